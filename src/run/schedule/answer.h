/* SPDX-License-Identifier: Apache-2.0
 *
 * One answer of a request: its settings, its sequence, and the events that its caller gets.
 */
#ifndef GUMBEL_RUN_SCHEDULE_ANSWER_H
#define GUMBEL_RUN_SCHEDULE_ANSWER_H

#include "run/draft/drafter.h"
#include "run/schedule/sequence.h"

#include <stdatomic.h>

typedef enum gb_phase {
    GB_WAITING = 0, /* in the queue */
    GB_RUNNING = 1, /* has a slot: its prompt is run, or its answer */
    GB_SPILLED = 2, /* its states wait in host memory */
    GB_ENDED = 3    /* its last event was given */
} gb_phase;

typedef struct gb_answer {
    struct gb_answer *next, *live_next; /* the latter in the scheduler's list of all */
    uint64_t request;
    uint32_t index;   /* of the request's answers */
    uint64_t arrival; /* the earlier, the smaller */
    int32_t priority;
    double deadline, arrived_at, began_at, first_token_at; /* on the scheduler's clock; 0: none, not yet */
    atomic_bool cancelled;
    gb_phase phase;
    gb_sequence *sequence;
    uint32_t limit;    /* the sequence has at most that many tokens, all of which can be run */
    uint32_t reserved; /* it counts as that long in memory, if it is shorter */
    /* how it is drawn */
    gumbel_sampling sampling, first_sampling; /* the latter until min_new_tokens have come */
    gumbel_bias *biases;                      /* of both */
    int32_t *stop_tokens;
    uint32_t stop_token_count;
    uint32_t forced_count; /* of its tokens, which are given */
    uint32_t min_new_tokens, max_new_tokens, top_logprobs;
    uint64_t seed;
    bool wants_logprob, no_prefix_cache;
    gb_constraint *constraint; /* NULL: any answer will do */
    gumbel_drafting drafting;
    uint32_t max_draft; /* tokens of a draft; 0: it has none */
    int32_t *predicted; /* [predicted_count] what drafts are taken from as well */
    size_t predicted_count;
    gb_drafter *drafter; /* NULL: none, or not yet */
    /* what is told */
    gumbel_event_callback callback;
    void *user;
    gumbel_detokenizer *text; /* NULL: no text */
    uint32_t cached_tokens;
    uint32_t branch_count;
    uint32_t branches[GB_MOST_SNAPSHOTS]; /* positions of snapshots to take, ascending */
} gb_answer;

/* Copies a submission, whose fields are checked, for its answer number index. Errors as those of
 * gumbel_scheduler_submit. */
gumbel_status gb_answer_create(const gb_slots_of_engine *slots, const gumbel_submission *submission,
                               uint32_t index, uint64_t seed, uint32_t grain, gb_answer **answer,
                               gumbel_error *error);

/* Gives no event. NULL is allowed. */
void gb_answer_destroy(gb_answer *answer);

/* How many tokens have been drawn. */
uint32_t gb_answer_drawn(const gb_answer *answer);

/* The settings and the seed of the next token. */
const gumbel_sampling *gb_answer_sampling(const gb_answer *answer);

/* How many steps with the same settings will follow on its next one, unless it ends before. */
uint32_t gb_answer_following(const gb_answer *answer);

/* Takes a token that was drawn, appends it to the sequence and gives its event. Returns whether, and why, it
 * is the last one; the text may end for itself. */
gumbel_finish gb_answer_add(const gb_slots_of_engine *slots, gb_answer *answer, const gumbel_result *result);

/* Give the last event. */
void gb_answer_finish(gb_answer *answer, gumbel_finish finish, double now);
void gb_answer_fail(gb_answer *answer, gumbel_status status, const char *message, double now);

#endif
