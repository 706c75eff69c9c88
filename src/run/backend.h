/* SPDX-License-Identifier: Apache-2.0
 *
 * What a backend is to the engine: something that executes steps of one verified program and keeps the state
 * of its slots. It knows neither sessions nor text. The engine has checked every number that it passes.
 */
#ifndef GUMBEL_RUN_BACKEND_H
#define GUMBEL_RUN_BACKEND_H

#include "program/program.h"

/* The inputs and outputs of one step; arrays are the engine's. */
typedef struct gb_batch {
    uint32_t token_count;     /* N, 1 .. step_tokens */
    uint32_t row_count;       /* B, 0 .. slots */
    const int32_t *tokens;    /* [N] */
    const int32_t *positions; /* [N], below max_context */
    const int32_t *slots; /* [N], below slots; the tokens of one slot stand together, positions ascending */
    /* [N] whether the token continues an answer, being the one after a draw; the others are a prompt's. The
     * slots without a prompt stand first; in another one the prompt stands last. */
    const bool *generated;
    const int32_t *rows;      /* [B], below N; a slot's last token; ascending */
    const float *temperature; /* [B] */
    const int32_t *top_k;     /* [B] */
    const float *top_p;       /* [B] */
    const uint64_t *seed;     /* [B] */
    const float *min_p;       /* [B] */
    const float *repetition_penalty, *frequency_penalty, *presence_penalty; /* [B] */
    const int32_t *generated_from;  /* [B] a position, or -1: the row has no penalties */
    const int32_t *penalize_prompt; /* [B] bit 0: for repetition, bit 1: for frequency and presence */
    const int32_t *bias_ids;        /* [B, max_bias], up to the first -1; below vocab_size */
    const float *bias_values;       /* [B, max_bias] */
    const bool *want_logprobs;      /* [B] */
    /* NULL, or the step that probably comes next: its tokens, which are NULL here, will be the ones that this
     * step's rows draw. A backend may begin it before it waits for them. What it began is undone by any other
     * step or function of one of the slots, so that nobody sees it. The pointer is valid during the step. */
    const struct gb_batch *following;
    /* Where there is one: how many steps may follow, that one included. Each has the token that the one
     * before it drew, at the next position, with the next seed where its temperature is not 0. */
    uint32_t following_count;
    /* Where there is one: nothing follows after all where the row draws one of these tokens. A backend that
     * does not look at them has begun steps for nothing then. */
    const int32_t *stop_ids; /* [stop_count] */
    uint32_t stop_count;     /* 0: no token stops the answer */
    /* out */
    int32_t *next; /* [B]: a token id; -1: no candidate in the row; -2: a NaN in it */
    /* The backend's own memory until the next step; NULL where the program lacks the output. */
    const float *logits;       /* [B, V]; also NULL where a backend has begun what follows */
    const float *logprob;      /* [B] */
    const int32_t *top_ids;    /* [B, max_top_logprobs] */
    const float *top_logprobs; /* [B, max_top_logprobs] */
} gb_batch;

typedef struct gb_backend_options {
    uint32_t slots, max_context, step_tokens;
    int threads;
    const char *cpu_isa; /* NULL: the best there is */
    bool fuse, snapshots;
    gumbel_lock lock;
    gumbel_log_callback log;
    void *log_user;
    gumbel_profile_callback profile; /* NULL: ops are not timed */
    void *profile_user;
} gb_backend_options;

/* Streams of bytes for saving and loading a slot; they return GUMBEL_OK or fail with a message. */
typedef gumbel_status (*gb_save_stream)(void *user, const void *data, uint64_t size, gumbel_error *error);
typedef gumbel_status (*gb_load_stream)(void *user, void *data, uint64_t size, gumbel_error *error);

typedef struct gb_backend gb_backend;

typedef struct gb_backend_functions {
    void (*destroy)(gb_backend *backend);

    /* Executes the program. Does not allocate memory of the host. */
    gumbel_status (*step)(gb_backend *backend, gb_batch *batch, gumbel_error *error);

    /* Makes the slot's state that of an empty session. */
    void (*reset_slot)(gb_backend *backend, uint32_t slot);

    /* Gives slot `to` the state that slot `from` has after `position` tokens. Errors: MEMORY (the device's).
     */
    gumbel_status (*copy_slot)(gb_backend *backend, uint32_t from, uint32_t to, uint32_t position,
                               gumbel_error *error);

    /* Keeps the slot's state at position in its snapshot, and puts it back. Only with options.snapshots.
     * Errors: MEMORY (the device's). */
    gumbel_status (*take_snapshot)(gb_backend *backend, uint32_t slot, uint32_t position,
                                   gumbel_error *error);
    void (*restore_snapshot)(gb_backend *backend, uint32_t slot, uint32_t position);

    /* Streams the slot's state at position; the bytes do not depend on slots, threads or max_context. */
    gumbel_status (*save_slot)(gb_backend *backend, uint32_t slot, uint32_t position, gb_save_stream write,
                               void *user, gumbel_error *error);
    gumbel_status (*load_slot)(gb_backend *backend, uint32_t slot, uint32_t position, gb_load_stream read,
                               void *user, gumbel_error *error);

    /* Measures the machine with the backend's threads. NULL: the backend cannot. */
    gumbel_status (*measure_limits)(gb_backend *backend, gumbel_machine_limits *limits, gumbel_error *error);
} gb_backend_functions;

/* The first member of every backend's own structure. */
struct gb_backend {
    const gb_backend_functions *functions;
    char description[96];    /* "cpu avx512 2 threads" */
    uint32_t threads;        /* of the CPU that compute; 0: it computes elsewhere */
    uint32_t most_following; /* how many steps it begins ahead of their requests; 0: none are announced */
};

/* A backend maker: turns the program into a plan and reserves everything that steps will need. */
typedef gumbel_status (*gb_backend_create)(const gb_program *program, const gb_backend_options *options,
                                           gb_backend **backend, gumbel_error *error);

#endif
