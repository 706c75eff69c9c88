/* SPDX-License-Identifier: Apache-2.0
 *
 * What a process does with the library from the first call to the last, in lives that end with nothing left:
 * each opens what it needs and closes it, whatever fails on the way.
 */
#ifndef GUMBEL_TESTS_LIVES_H
#define GUMBEL_TESTS_LIVES_H

#include "gumbel.h"

typedef struct life {
    const char *name;
    /* made: a hash of what came out, which is the same every time; not set on an error. */
    gumbel_status (*run)(uint64_t *made, gumbel_error *error);
} life;

enum { LIVES = 7 };

extern const life lives[LIVES];

/* Makes the files that lives read. Ends the process on an error. */
void prepare_lives(void);

#endif
