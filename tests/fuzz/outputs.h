/* SPDX-License-Identifier: Apache-2.0
 *
 * The files that lives (lives.h) and commands (tried_commands.h) write: what is there before, after one that
 * went well and after one that did not.
 */
#ifndef GUMBEL_TESTS_OUTPUTS_H
#define GUMBEL_TESTS_OUTPUTS_H

#include <stdint.h>

enum { LIFE_OUTPUTS = 5 };

/* Hashes of each file's bytes; 0: it is not there. */
typedef struct life_outputs {
    uint64_t hashes[LIFE_OUTPUTS];
} life_outputs;

life_outputs read_outputs(void);

/* Ends the case unless each file is as before the life or as a whole life leaves it, or absent where lives
 * remove it first; and unless there is no temporary file. what and nth are for the message. */
void check_outputs(const life_outputs *before, const life_outputs *whole, const char *what, uint64_t nth);

/* Ends the case unless each file that a whole life leaves is there as that leaves it. */
void check_written(const life_outputs *whole, const char *what, uint64_t nth);

#endif
