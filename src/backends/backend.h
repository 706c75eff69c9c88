/* SPDX-License-Identifier: Apache-2.0
 *
 * What a backend is to the engine: something that executes steps of one verified program and keeps the state
 * of its slots. It knows neither sessions nor text. The engine has checked every number that it passes.
 */
#ifndef GUMBEL_BACKENDS_BACKEND_H
#define GUMBEL_BACKENDS_BACKEND_H

#include "backends/batch/batch.h"
#include "program/program.h"

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
