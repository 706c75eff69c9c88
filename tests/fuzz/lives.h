/* SPDX-License-Identifier: Apache-2.0
 *
 * What a process does with the library from the first call to the last, in lives that end with nothing left:
 * each opens what it needs and closes it, whatever fails on the way.
 */
#ifndef GUMBEL_TESTS_LIVES_H
#define GUMBEL_TESTS_LIVES_H

#include "gumbel.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MOST_LIVES = 128 };

typedef struct life_set {
    const char *harness; /* the name of the harness that runs them */
    bool is_short_alone; /* where memory is short, that alone is the error */
    size_t count;
    void (*prepare)(void); /* what all of them read. Ends the process on an error. */
    const char *(*name_of)(size_t which);
    /* made: a hash of what came out, which is the same every time; undefined on an error. */
    gumbel_status (*run)(size_t which, uint64_t *made, gumbel_error *error);
} life_set;

/* Of the file that the harness is linked with. */
extern const life_set lives;

/* FNV-1a. */
static inline void hash_bytes(uint64_t *made, const void *bytes, size_t count) {
    for (size_t i = 0; i < count; i++)
        *made = (*made ^ ((const unsigned char *)bytes)[i]) * 0x100000001b3u;
}

#endif
