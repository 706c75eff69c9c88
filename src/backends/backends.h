/* SPDX-License-Identifier: Apache-2.0
 *
 * The list of backends by name. One that is left out of a build stays in the list with a sentence that says
 * how to get it.
 */
#ifndef GUMBEL_BACKENDS_BACKENDS_H
#define GUMBEL_BACKENDS_BACKENDS_H

#include "backends/backend.h"
#include "backends/devices.h"
#include "backends/ranks/ranks.h"
#include "base/text_sink.h"

typedef struct gb_backend_entry {
    const char *name;
    gb_backend_create create;
    void (*describe)(gumbel_write_callback write,
                     void *user); /* one line: what this build and machine have */
    /* Writes the steps that it would execute and their kernels; NULL: it executes the graph's nodes. */
    gumbel_status (*describe_plan)(const gb_program *program, const gb_backend_options *options,
                                   const gb_text_sink *sink, gumbel_error *error);
    bool observes;             /* it calls options.observe */
    const char *why_no_drafts; /* NULL: it takes drafts */
    bool has_ranks;            /* it runs sharded programs */
    uint32_t prefill_chunk; /* tokens of a prompt from which on longer steps pay no more, a power of two; 0: a
                               program's own chunk is as good */
    /* What the constants of a program, or of a rank's, take on a device. NULL: what they take in the file.
     * Errors: UNSUPPORTED, for a rank that create refuses. */
    gumbel_status (*measure_weights)(const gb_program *program, uint64_t *bytes, gumbel_error *error);
    gumbel_status (*count_devices)(int *count, gumbel_error *error); /* NULL: it has one */
    gb_list_devices list_devices; /* NULL: its devices are not looked at, the first one is taken */
} gb_backend_entry;

/* The entry of a name (NULL: the CPU), or an ARGUMENT error that lists the names. */
gumbel_status gb_backend_find(const char *name, const gb_backend_entry **entry, gumbel_error *error);

/* Creates a backend on the device options.device, or on several. Errors: the backend's; UNSUPPORTED where it
 * has no ranks. */
gumbel_status gb_backend_create_on(const gb_backend_entry *entry, const gb_devices *devices,
                                   const gb_program *program, const gb_backend_options *options,
                                   gb_backend **backend, gumbel_error *error);

/* UNSUPPORTED where the options ask for what products take in and the backend does not report it. */
gumbel_status gb_backend_check_observe(const gb_backend_entry *entry, const gb_backend_options *options,
                                       gumbel_error *error);

#endif
