/* SPDX-License-Identifier: Apache-2.0
 *
 * Where an output is to stand: links followed, its directory held open, and what it may not replace refused.
 */
#ifndef GUMBEL_BASE_OUTPUT_TARGET_H
#define GUMBEL_BASE_OUTPUT_TARGET_H

#include "base/input_file.h"

#include <limits.h>

typedef struct gb_output_target {
    const char *path; /* the caller's, for messages */
    const gb_input_list *inputs;
    int directory; /* descriptor; -1: none */
    char name[NAME_MAX + 1];
    bool is_new;
    struct stat replaced; /* what is there, unless it is new */
} gb_output_target;

/* Finds where path leads: a link's target, which need not exist. path and inputs must outlive the target.
 * Errors: those of gb_check_target; IO. Close with gb_close_target in any case. */
gumbel_status gb_open_target(gb_output_target *target, const char *path, const gb_input_list *inputs,
                             gumbel_error *error);

/* Looks again at what is there. Errors: ARGUMENT when that is no regular file or one of the inputs (NULL:
 * anything may be replaced), IO; all name the path. */
gumbel_status gb_check_target(gb_output_target *target, gumbel_error *error);

void gb_close_target(gb_output_target *target);

#endif
