/* SPDX-License-Identifier: Apache-2.0
 *
 * What another program is to guess for one answer, and what it has guessed.
 */
#ifndef GUMBEL_RUN_DRAFT_GUESS_H
#define GUMBEL_RUN_DRAFT_GUESS_H

#include "run/constraint.h"

typedef struct gb_guess {
    uint32_t slot;                   /* of the target, which has run the answer's tokens but for the next */
    int32_t next;                    /* what it runs next */
    uint64_t seed;                   /* of the token behind that */
    const gumbel_sampling *sampling; /* of all of them */
    gb_constraint *constraint;       /* no guess is one that it refuses; NULL: none */
    uint32_t most;                   /* 0: nothing is to be guessed */
    bool is_probe;                   /* it is made to learn whether guesses pay */
    int32_t *tokens;                 /* [most] out, if it is ready; up to a stop token of the target */
    uint32_t count;                  /* out: of tokens */
    bool is_ready;   /* out; false: there is no session for it, or that has still to catch up */
    bool has_failed; /* out: a row had no token, as one with a NaN */
    bool goes_on;    /* while it is made: there is one more to draw */
} gb_guess;

#endif
