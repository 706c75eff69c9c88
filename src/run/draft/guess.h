/* SPDX-License-Identifier: Apache-2.0
 *
 * Guesses of another program: its sessions follow the targets' tokens and draw what comes next with the
 * targets' settings and seeds, those of several answers in the same steps.
 */
#ifndef GUMBEL_RUN_DRAFT_GUESS_H
#define GUMBEL_RUN_DRAFT_GUESS_H

#include "run/constraint.h"

/* What is to be guessed for one answer, and what has been. */
typedef struct gb_guess {
    uint32_t slot;                   /* of the target, which has run the answer's tokens but for the next */
    int32_t next;                    /* what it runs next */
    uint64_t seed;                   /* of the token behind that */
    const gumbel_sampling *sampling; /* of all of them */
    gb_constraint *constraint;       /* no guess is one that it refuses; NULL: none */
    uint32_t most;                   /* 0: nothing is to be guessed */
    int32_t *tokens;                 /* [most] out, if it is ready; up to a stop token of the target */
    uint32_t count;                  /* out: of tokens */
    uint32_t rounds;                 /* out: of guesses, those without a token too */
    bool is_ready;   /* out; false: there is no session for it, or that has still to catch up */
    bool has_failed; /* out: a row had no token, as one with a NaN */
    bool goes_on;    /* while it is made: there is one more to draw */
} gb_guess;

/* Makes guesses, of different slots. Brings the draft sessions to the targets' tokens and to the ones that
 * these run next, by at most so many tokens (budget) and those of a draft, and draws what may follow for
 * those that got there: the r-th guess of all of them in one step. Where the draft engine has no session
 * left, one that was not used for long is taken. A target that is cancelled gets none. Errors: those of the
 * draft engine, which leave no guess. */
gumbel_status gb_draft_models_guess(gumbel_engine *engine, gb_guess *guesses, size_t count, uint32_t budget,
                                    gumbel_error *error);

/* The same for a session that generates by itself, however long catching up takes: most, tokens and what
 * comes out are guess's. Errors: those of the draft engine, LIMIT where that has no session. */
gumbel_status gb_draft_model_guess(const gumbel_session *target, gb_constraint *constraint, gb_guess *guess,
                                   gumbel_error *error);

#endif
