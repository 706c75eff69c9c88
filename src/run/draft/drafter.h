/* SPDX-License-Identifier: Apache-2.0
 *
 * Guesses of an answer's next tokens, for its step to verify: the tokens that its grammar forces, or else
 * what a lookup finds or a draft model draws. A guess changes no token, only how many steps an answer takes.
 */
#ifndef GUMBEL_RUN_DRAFT_DRAFTER_H
#define GUMBEL_RUN_DRAFT_DRAFTER_H

#include "program/program.h"
#include "run/constraint.h"
#include "run/draft/acceptance.h"
#include "run/draft/lookup.h"
#include "run/draft/step_times.h"

enum { GB_MOST_DRAFT = 64 };

/* What a step verifies. chances[i]: that tokens 0 .. i are all accepted. */
typedef struct gb_draft {
    int32_t tokens[GB_MOST_DRAFT];
    float chances[GB_MOST_DRAFT];
    uint32_t count;
    uint32_t forced_count; /* of them, the first ones, that nothing else may be drawn for */
    uint32_t matching;     /* tokens that speak for the first of the others */
    bool is_of_model;      /* the draft model has drawn them */
    double price;          /* what that cost (gb_draft_price) */
} gb_draft;

/* Guesses that are made right or wrong, to measure what drafts would save (simulated.c). */
typedef struct gb_simulated {
    int32_t *answer; /* [count] what is drawn; NULL: guesses are as they are */
    size_t count;
    uint32_t acceptance; /* of 100 whose turn comes */
    uint64_t random;
} gb_simulated;

/* Of one answer. */
typedef struct gb_drafter {
    gb_lookup lookup;
    gb_acceptance acceptance;
    gb_draft draft; /* of the next step */
    uint32_t most;  /* tokens of a draft */
    uint32_t alert; /* steps without a draft until steps may be begun ahead; 0 behind a wrong draft */
    uint32_t ahead; /* steps that it may have begun */
    bool looks_up;
    struct gb_draft_model *model; /* of the session; NULL: none, or it has failed */
    gb_simulated simulated;
    gumbel_draft_stats stats;
} gb_drafter;

/* A drafter of an answer that begins. predicted [predicted_count] (may be NULL) is what it may contain. NULL:
 * there is no memory. One thread at a time, as all of this. */
gb_drafter *gb_drafter_create(uint32_t most, const int32_t *predicted, size_t predicted_count);

/* Lets a model guess too, or it alone beside a grammar. */
void gb_drafter_use_model(gb_drafter *drafter, struct gb_draft_model *model, bool alone);

/* From now on so many of 100 guesses of the model are right, as the answer [count], which is copied, tells;
 * false: there is no memory. */
bool gb_drafter_simulate(gb_drafter *drafter, const int32_t *answer, size_t count, uint32_t acceptance);

/* Makes the model's guesses of the answer's tokens from number `at` on right or wrong, where they are
 * simulated, and ends them before a stop token. Returns how many there are. */
uint32_t gb_drafter_make_right(gb_drafter *drafter, uint32_t at, const gb_token_list *stop_tokens);

/* NULL is allowed. */
void gb_drafter_destroy(gb_drafter *drafter);

/* The sequence goes on with tokens, of the prompt or of the answer. */
void gb_drafter_add(gb_drafter *drafter, const int32_t *tokens, size_t count);

/* Proposes what may follow, at most so many tokens: none that the constraint (NULL: none) refuses, and none
 * from a stop token on. */
void gb_drafter_propose(gb_drafter *drafter, gb_constraint *constraint, const gb_token_list *stop_tokens,
                        uint32_t most);

/* chances[i]: that the guesses 0 .. i of the model, which there is, are all accepted. */
void gb_drafter_model_chances(const gb_drafter *drafter, float *chances, uint32_t count);

/* How many tokens pay to be drawn by the model, which there is, in place of the proposed ones; at most so
 * many, each of which costs so much. 0: none, or those that are proposed pay more. */
uint32_t gb_drafter_model_tokens(const gb_drafter *drafter, const gb_step_times *times, uint32_t most,
                                 double each);

/* The model has drawn so many tokens into drafter->draft, in place of the proposed ones, for a price
 * (gb_draft_price). None for a price above 0 count as a wrong guess. */
void gb_drafter_take_model(gb_drafter *drafter, uint32_t count, double price);

/* Keeps the draft's first tokens alone, and lets the constraint make their masks. Where the backend has begun
 * steps ahead, which a draft would waste, there is none yet. */
void gb_drafter_keep(gb_drafter *drafter, gb_constraint *constraint, uint32_t count);

/* How many of so many steps without a draft may follow the next one. Where drafts are likely, those that have
 * been begun alone, so that none of them is thrown away. */
uint32_t gb_drafter_lets_ahead(const gb_drafter *drafter, uint32_t steps);

/* Says that so many steps may have been begun behind the one that has run. */
void gb_drafter_note_ahead(gb_drafter *drafter, uint32_t steps);

/* Counts a draft of so many tokens, of which so many were accepted; one of none does not count. */
void gb_draft_stats_note(gumbel_draft_stats *stats, uint32_t count, uint32_t accepted);

/* The step has run: so many of the draft's tokens were accepted. */
void gb_drafter_note(gb_drafter *drafter, uint32_t accepted);

#endif
