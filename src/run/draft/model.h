/* SPDX-License-Identifier: Apache-2.0
 *
 * Another program that guesses answers' next tokens: a session of its engine follows the target's tokens and
 * draws what comes next with the target's settings and seeds, those of several answers in the same steps.
 */
#ifndef GUMBEL_RUN_DRAFT_MODEL_H
#define GUMBEL_RUN_DRAFT_MODEL_H

#include "run/draft/acceptance.h"
#include "run/draft/guess.h"
#include "run/handles.h"

/* Of one session of the target, as long as that exists. */
typedef struct gb_draft_model {
    gumbel_session *session;  /* of the draft engine; NULL: not yet */
    gumbel_sampling sampling; /* of the guesses drawn last */
    gumbel_result result;     /* of the last of them */
    gb_acceptance acceptance; /* by place */
    uint64_t last_use;        /* the calls of gb_draft_models_guess are counted on */
    uint32_t probes;          /* drafts that were made to learn whether they pay */
} gb_draft_model;

/* Checks that the draft engine's program can guess for the target's: the same tokens, drawn in its graph,
 * and states that go back. Errors: ARGUMENT, UNSUPPORTED, and those of reading a tokenizer. */
gumbel_status gb_check_draft_engine(const gb_program *target, const gumbel_engine *draft_engine,
                                    gumbel_error *error);

/* A draft model for each session of an engine whose draft_engine is set. NULL: there is no memory. */
gb_draft_model *gb_draft_models_create(uint32_t slots);

/* Gives back the draft engine's session, if there is one. NULL is allowed. */
void gb_draft_model_end(gb_draft_model *model);

/* How many tokens it may guess at most for the target where that stands: 0 where its context is full. */
uint32_t gb_draft_model_room(const gumbel_session *target);

/* What a guess of each of so many answers takes, in the unit of the target engine's step_times. */
double gb_draft_model_cost(const gumbel_engine *engine, uint32_t rows);

/* How many tokens to guess, at most so many, although they are not thought to pay: a few drafts at the start
 * tell what it takes and how good it is. 0 where that is known, or not to depend on the target's times. */
uint32_t gb_draft_model_probe(const gb_draft_model *model, const gb_step_times *times, uint32_t most);

/* Makes guesses, of different slots. Brings the draft sessions to the targets' tokens and to the ones that
 * these run next, by at most so many tokens (budget), and draws what may follow for those that got there: the
 * r-th guess of all of them in one step. Where the draft engine has no session left, one that was not used
 * for long is taken. A target that is cancelled gets none. Errors: those of the draft engine, which leave
 * no guess. */
gumbel_status gb_draft_models_guess(gumbel_engine *engine, gb_guess *guesses, size_t count, uint32_t budget,
                                    gumbel_error *error);

/* The same for a session that generates by itself, however long catching up takes. Errors: those of the draft
 * engine, LIMIT where that has no session. */
gumbel_status gb_draft_model_guess(const gumbel_session *target, gb_constraint *constraint, uint32_t most,
                                   bool is_probe, int32_t *tokens, uint32_t *count, gumbel_error *error);

#endif
