/* SPDX-License-Identifier: Apache-2.0
 *
 * Another program that guesses an answer's next tokens: a session of its engine follows the target's tokens
 * and draws what comes next with the target's settings and seeds.
 */
#ifndef GUMBEL_RUN_DRAFT_MODEL_H
#define GUMBEL_RUN_DRAFT_MODEL_H

#include "run/constraint.h"
#include "run/draft/acceptance.h"
#include "run/handles.h"

/* Of one session of the target, as long as that exists. */
typedef struct gb_draft_model {
    gumbel_session *session;  /* of the draft engine; NULL: not yet */
    gumbel_sampling sampling; /* of the guesses drawn last */
    gb_acceptance acceptance; /* by place */
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

/* What guessing one token takes, in the unit of the target engine's step_times. */
double gb_draft_model_cost(const gumbel_engine *engine);

/* How many tokens to guess, at most so many, although they are not thought to pay: a few drafts at the start
 * tell what it takes and how good it is. 0 where that is known, or not to depend on times. */
uint32_t gb_draft_model_probe(const gumbel_session *target, uint32_t most);

/* Brings the draft session to the target's tokens and to the one that it runs next, and draws what may
 * follow: at most so many tokens, none that the constraint (NULL: none) refuses, and none from a stop token
 * on. Stops early, without an error, where the target is cancelled. Errors: those of the draft engine. */
gumbel_status gb_draft_model_guess(const gumbel_session *target, gb_constraint *constraint, uint32_t most,
                                   int32_t *tokens, uint32_t *count, gumbel_error *error);

#endif
