/* SPDX-License-Identifier: Apache-2.0
 *
 * What an engine is to the scheduler: slots that hold one sequence's states each, and steps over them. The
 * engine's sessions implement it (session_slots.c), and so does the fake of the scheduler's tests. All
 * functions are called by one thread.
 */
#ifndef GUMBEL_RUN_SCHEDULE_SLOTS_H
#define GUMBEL_RUN_SCHEDULE_SLOTS_H

#include "backends/backend.h"
#include "run/draft/guess.h"
#include "run/draft/step_times.h"

/* One sequence's part of a step. */
typedef struct gb_step_part {
    uint32_t slot;
    const int32_t *tokens; /* [count] run after the slot's position */
    uint32_t count;
    const int32_t *draft; /* [draft_count] behind the one token of an answer, as in gumbel_request */
    uint32_t draft_count;
    bool draws; /* the token after the last one; the next six count then */
    bool wants_logprob;
    uint32_t top_logprobs;
    uint64_t seed;
    gb_mask_source mask; /* made while the step computes; none: every token may be drawn */
    const gumbel_sampling *sampling;
    uint32_t following;        /* steps with what they draw and these settings that come next, most likely */
    gb_token_list stop_tokens; /* after one of which none comes */
    gumbel_result *results;    /* [1 + draft_count] out, as gumbel_step gives them */
} gb_step_part;

/* A sequence's first tokens, as a slot is to know them. */
typedef struct gb_token_prefix {
    const int32_t *tokens; /* [position], and the one that follows if that is behind prompt_end */
    uint32_t position;
    uint32_t prompt_end; /* tokens before it were run as a prompt */
} gb_token_prefix;

#define GB_NO_SLOT UINT32_MAX

typedef struct gb_slots_of_engine gb_slots_of_engine;

typedef struct gb_slots_functions {
    /* Runs a step. NUMERIC: some parts have no token, and the others stand. On any other error no slot has
     * changed, but for those that could not be brought back and are empty; MEMORY is the device's. */
    gumbel_status (*step)(gb_slots_of_engine *slots, gb_step_part *parts, size_t count, gumbel_error *error);

    uint32_t (*position)(const gb_slots_of_engine *slots, uint32_t slot);

    /* Takes a slot that has just run a draft back to a position within it. */
    void (*truncate)(gb_slots_of_engine *slots, uint32_t slot, uint32_t position);

    /* Empties the slot. */
    void (*clear)(gb_slots_of_engine *slots, uint32_t slot);

    /* The latest position, up to `wanted`, at which the slot's states can be cut without a snapshot; 0: none.
     * Of GB_NO_SLOT: of states that were saved at `position`, which otherwise is the slot's. */
    uint32_t (*cut)(const gb_slots_of_engine *slots, uint32_t slot, uint32_t position, uint32_t wanted);

    /* Copies the states of slot `from` into `to`, or none where they are the same slot, and cuts that one at
     * the prefix's position. What cannot be cut there is loaded afterwards. Errors: MEMORY. */
    gumbel_status (*take)(gb_slots_of_engine *slots, uint32_t from, uint32_t to,
                          const gb_token_prefix *prefix, gumbel_error *error);

    /* Copies the slot's states at its position to host memory; they are the caller's, who releases them.
     * Errors: MEMORY, BACKEND. */
    gumbel_status (*save)(gb_slots_of_engine *slots, uint32_t slot, gb_saved_states saved,
                          gb_host_states **states, gumbel_error *error);

    /* Gives the slot states that were saved at the prefix's position. */
    gumbel_status (*load)(gb_slots_of_engine *slots, uint32_t slot, const gb_token_prefix *prefix,
                          gb_saved_states saved, const gb_host_states *states, gumbel_error *error);

    /* Bytes of a sequence's states at a position. */
    uint64_t (*bytes)(const gb_slots_of_engine *slots, uint32_t position);

    /* Lets another program guess for answers, where there are draft_models. Those whose states there have far
     * to catch up are not ready, and come closer with each call. On an error there are no draft models any
     * more, which a notice has said. */
    gumbel_status (*guess)(gb_slots_of_engine *slots, gb_guess *guesses, size_t count);

    /* What a guess of each of so many answers takes, in the unit of step_times. */
    double (*guess_cost)(const gb_slots_of_engine *slots, uint32_t answers);

    /* Checks a request's settings and gives them in this version's form, biases still the caller's.
     * Thread-safe. */
    gumbel_status (*settle)(const gb_slots_of_engine *slots, const gumbel_submission *submission,
                            gumbel_sampling *settled, gumbel_error *error);

    void (*destroy)(gb_slots_of_engine *slots);
} gb_slots_functions;

/* The first member of every implementation's own structure. */
struct gb_slots_of_engine {
    const gb_slots_functions *functions;
    uint32_t count, max_context, step_tokens, prefill_chunk, vocab_size, max_bias;
    uint32_t draft_tokens, most_rows;        /* of one slot in a step; of a step, at most */
    uint32_t most_following;                 /* steps that an engine begins ahead */
    uint32_t short_step_tokens, short_chunk; /* the same of steps that others wait for; no more than those */
    gb_token_list stop_tokens;
    gb_step_times *step_times;           /* of the engine; the scheduler notes them */
    uint32_t draft_context;              /* positions of another program that guesses; 0: there is none */
    struct gb_draft_model *draft_models; /* [count] by slot, what it is like; NULL: none, or it has failed */
    gb_reuse reuse;
    uint32_t grain;       /* prompts must be cut at multiples of it, but for their ends; 0, 1: anywhere */
    bool needs_snapshots; /* some state cannot be cut anywhere */
};

/* Takes all slots of an engine without sessions. */
gumbel_status gb_session_slots_create(gumbel_engine *engine, gb_slots_of_engine **slots, gumbel_error *error);

#endif
