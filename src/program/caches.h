/* SPDX-License-Identifier: Apache-2.0
 *
 * What attention's caches hold: the choices that users have by name, and the change of a program to one of
 * them, when it is exported or before it runs.
 */
#ifndef GUMBEL_PROGRAM_CACHES_H
#define GUMBEL_PROGRAM_CACHES_H

#include "program/program.h"

typedef struct gb_cache_choice {
    const char *name;
    const char *aliases; /* separated by blanks, with one at each end */
    gb_dtype full;       /* of layers that attend to everything */
    gb_dtype window;     /* of those with a window */
} gb_cache_choice;

/* The choice of that name or alias. Errors: ARGUMENT, which lists the names. */
gumbel_status gb_cache_find(const char *name, const gb_cache_choice **choice, gumbel_error *error);

/* Gives the keys and values of every attention node that dtype, codes with the largest rotation that divides
 * their heads, and verifies the program; then its draft head's likewise. Where something changes, the id
 * becomes a hash of the old one and the choice. On failure both are as they were. Errors: UNSUPPORTED naming
 * the state whose heads are no whole groups, MEMORY. */
gumbel_status gb_program_set_caches(gb_program *program, const gb_cache_choice *choice, gumbel_error *error);

#endif
