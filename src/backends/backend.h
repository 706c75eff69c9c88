/* SPDX-License-Identifier: Apache-2.0
 *
 * What a backend is to the engine: something that executes steps of one verified program and keeps the state
 * of its slots. It knows neither sessions nor text. The engine has checked every number that it passes.
 */
#ifndef GUMBEL_BACKENDS_BACKEND_H
#define GUMBEL_BACKENDS_BACKEND_H

#include "backends/batch/batch.h"
#include "backends/ranks/meeting.h"
#include "program/program.h"

typedef struct gb_backend_options {
    uint32_t slots, max_context, step_tokens;
    uint32_t prefill_chunk; /* of one slot in a step, at most */
    uint32_t least_chunk;   /* a backend that lacks memory may halve prefill_chunk down to this */
    uint32_t draft_tokens;  /* draft tokens of one slot in a step, at most */
    gb_rank rank;           /* where the program is sharded */
    int device;             /* which of the backend's */
    int threads;
    const char *cpu_isa; /* NULL: the best there is */
    bool fuse, snapshots;
    gumbel_lock lock;
    gumbel_log_callback log;
    void *log_user;
    gumbel_profile_callback profile; /* NULL: ops are not timed */
    void *profile_user;
    gumbel_observe_callback observe; /* NULL: what products take in is not reported */
    void *observe_user;
} gb_backend_options;

/* Tokens of a step whose chunk is shorter by as much. */
static inline uint32_t gb_step_tokens_with(const gb_backend_options *options, uint32_t chunk) {
    return options->step_tokens - (options->prefill_chunk - chunk);
}

/* Rows of a step, at most. */
static inline uint32_t gb_most_rows(const gb_backend_options *options) {
    const uint64_t rows = (uint64_t)options->slots * (options->draft_tokens + 1ull);
    return options->draft_tokens > 0 && rows > options->step_tokens ? options->step_tokens : (uint32_t)rows;
}

/* Streams of bytes for saving and loading a slot; they return GUMBEL_OK or fail with a message. */
typedef gumbel_status (*gb_save_stream)(void *user, const void *data, uint64_t size, gumbel_error *error);
typedef gumbel_status (*gb_load_stream)(void *user, void *data, uint64_t size, gumbel_error *error);

/* Which of a slot's states are saved: all, or those that cannot be cut at an earlier position, for a snapshot
 * whose caches are still in the slot. */
typedef enum gb_saved_states { GB_SAVED_ALL = 0, GB_SAVED_WITHOUT_CACHES = 1 } gb_saved_states;

/* Which positions of one sequence another one may begin with, so that its tokens are those of a cold run. */
typedef enum gb_reuse {
    GB_REUSE_NONE = 0,   /* none: how tokens were divided into steps changes bits */
    GB_REUSE_PROMPT = 1, /* those that were run as a prompt: answers have kernels of their own */
    GB_REUSE_ALL = 2
} gb_reuse;

typedef struct gb_backend gb_backend;

/* A slot's states at a position in the host's memory, which belong to the backend that made them. */
typedef struct gb_host_states {
    uint64_t bytes; /* of memory */
    void (*release)(struct gb_host_states *states);
} gb_host_states;

/* Before the backend is destroyed. NULL is allowed. */
static inline void gb_host_states_release(gb_host_states *states) {
    if (states)
        states->release(states);
}

/* Rows first .. end - 1, by position, of a cache or a ring of a slot. */
typedef struct gb_rows_of_slot {
    gb_backend *backend;
    uint32_t slot, state, first, end;
} gb_rows_of_slot;

typedef struct gb_backend_functions {
    void (*destroy)(gb_backend *backend);

    /* Executes the program. Does not allocate memory of the host. */
    gumbel_status (*step)(gb_backend *backend, gb_batch *batch, gumbel_error *error);

    /* Makes the slot's state that of an empty session. */
    void (*reset_slot)(gb_backend *backend, uint32_t slot);

    /* Forgets the slot's positions from `position` on. Caches and rings forget by themselves, because later
     * positions overwrite them; a recurrent state forgets draft tokens of the slot's last step, and until the
     * slot's next step or another of these functions. False, with nothing changed, where it cannot. NULL: the
     * backend takes no drafts, and its entry says why. */
    bool (*truncate_slot)(gb_backend *backend, uint32_t slot, uint32_t position);

    /* Gives slot `to` the state that slot `from` has after `position` tokens. Errors: MEMORY (the device's).
     */
    gumbel_status (*copy_slot)(gb_backend *backend, uint32_t from, uint32_t to, uint32_t position,
                               gumbel_error *error);

    /* Keeps the slot's state at position in its snapshot, and puts it back. Only with options.snapshots.
     * Errors: MEMORY (the device's). */
    gumbel_status (*take_snapshot)(gb_backend *backend, uint32_t slot, uint32_t position,
                                   gumbel_error *error);
    void (*restore_snapshot)(gb_backend *backend, uint32_t slot, uint32_t position);

    /* Streams the slot's states at position; without caches, loading leaves those as they are. The bytes do
     * not depend on slots, threads or max_context. */
    gumbel_status (*save_slot)(gb_backend *backend, uint32_t slot, uint32_t position, gb_saved_states saved,
                               gb_save_stream write, void *user, gumbel_error *error);
    gumbel_status (*load_slot)(gb_backend *backend, uint32_t slot, uint32_t position, gb_saved_states saved,
                               gb_load_stream read, void *user, gumbel_error *error);

    /* Copies the slot's states at position, or those of them, to host memory, and gives any slot such states.
     * The slot may be used at once; the device may still be copying. NULL: they are saved and loaded as above
     * (run/host_states.h). Errors: MEMORY, BACKEND. */
    gumbel_status (*copy_to_host)(gb_backend *backend, uint32_t slot, uint32_t position,
                                  gb_saved_states saved, gb_host_states **states, gumbel_error *error);
    gumbel_status (*copy_from_host)(gb_backend *backend, uint32_t slot, uint32_t position,
                                    gb_saved_states saved, const gb_host_states *states, gumbel_error *error);

    /* Copies rows of a state of another backend, with these functions and the same device, into a state of
     * the slot of the same kind, whose rows are of the same type. NULL: it runs no draft heads. Errors:
     * MEMORY (the device's).
     */
    gumbel_status (*take_rows)(gb_backend *backend, uint32_t slot, uint32_t state,
                               const gb_rows_of_slot *rows, gumbel_error *error);

    /* Measures the machine with the backend's threads. NULL: the backend cannot. */
    gumbel_status (*measure_limits)(gb_backend *backend, gumbel_machine_limits *limits, gumbel_error *error);

    /* What the device has left, in bytes; 0: not known. NULL: states are in the machine's memory. */
    uint64_t (*free_bytes)(gb_backend *backend);
} gb_backend_functions;

/* The first member of every backend's own structure. */
struct gb_backend {
    const gb_backend_functions *functions;
    char description[96];    /* "cpu avx512 2 threads" */
    uint32_t threads;        /* of the CPU that compute; 0: it computes elsewhere */
    uint32_t most_following; /* longest lookahead; 0: no step is announced */
    uint32_t prefill_chunk;  /* that it has memory for; 0: that of the options */
    gb_reuse reuse;
    uint32_t grain; /* tokens of a prompt are computed in blocks that begin at multiples of it, and where a
                       step does: a cut elsewhere changes bits. 0, 1: no cut does */
};

/* Creates a backend: turns the program into a plan and reserves everything that steps will need. */
typedef gumbel_status (*gb_backend_create)(const gb_program *program, const gb_backend_options *options,
                                           gb_backend **backend, gumbel_error *error);

#endif
