/* SPDX-License-Identifier: Apache-2.0
 *
 * Another program that guesses answers' next tokens: the session that it has for each of the target's, how
 * good its guesses were, and what they take.
 */
#ifndef GUMBEL_RUN_DRAFT_MODEL_H
#define GUMBEL_RUN_DRAFT_MODEL_H

#include "run/draft/acceptance.h"
#include "run/handles.h"

/* Of one session of the target, as long as that exists. */
typedef struct gb_draft_model {
    gumbel_session *session;  /* of the draft engine; NULL: not yet */
    gumbel_sampling sampling; /* of the guesses drawn last */
    gumbel_result result;     /* of the last of them */
    gb_acceptance acceptance; /* by place */
    uint32_t sure;       /* of a draft head: the position up to which it had hidden states; else unused */
    int32_t first_token; /* of a draft head: the target's, which its session leaves out */
    uint64_t last_use;   /* the calls of gb_draft_models_guess are counted on */
    double budget;       /* tokens that drafts may cost beyond what they gain, to learn whether they pay */
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

/* What a draft of so many tokens costs, guessing which took so long: the tokens that a step of so many rows
 * would draw in the time that is added to it. */
double gb_draft_price(const gb_step_times *times, uint32_t rows, uint32_t count, double guessing);

/* How many tokens to guess, at most so many, although they are not thought to pay: as long as the budget has
 * their price, for a text may have become easy to guess. */
uint32_t gb_draft_model_probe(const gb_draft_model *model, const gb_step_times *times, uint32_t rows,
                              uint32_t most, double each);

/* Adds what was gained, or lost where it is below 0. A budget of long gains is no larger than one at the
 * start. */
void gb_draft_model_gain(gb_draft_model *model, double tokens);

/* Makes sure that it has a session of the draft engine. Errors: LIMIT where that has none left. */
gumbel_status gb_draft_model_begin(gb_draft_model *model, gumbel_engine *draft_engine, gumbel_error *error);

/* The same, with the session of a model of the engine that was not used for long where none is left. now: the
 * number of the call, of gb_draft_models_call. False: all are in use. */
bool gb_draft_model_take_session(gumbel_engine *engine, gb_draft_model *model, uint64_t now);

/* The number of a call that makes guesses for an engine with draft models, behind those before it. */
uint64_t gb_draft_models_call(const gumbel_engine *engine);

#endif
