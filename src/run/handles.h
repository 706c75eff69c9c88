/* SPDX-License-Identifier: Apache-2.0
 *
 * What stands behind the public handles. Only the files of this folder and of schedule/ include it.
 */
#ifndef GUMBEL_RUN_HANDLES_H
#define GUMBEL_RUN_HANDLES_H

#include "backends/backend.h"
#include "program/program.h"
#include "run/draft/step_times.h"
#include "run/mask_workers.h"

#include <stdatomic.h>

struct gumbel_program {
    const gb_program *program;
    gumbel_program *head; /* of program->head; NULL: none */
};

enum { GB_ANY_TOKEN = -2 };

/* A prompt that is being run and then continued, see generate.c. */
typedef struct gb_generation {
    bool active, ignore_stop, snapshot;
    size_t forced_count;      /* of its tokens, which are given */
    gumbel_sampling sampling; /* its biases are in gumbel_session.bias */
    bool wants_logprob;
    uint32_t top_logprobs;
    uint32_t max_new_tokens, generated; /* max 0: no limit */
    uint32_t prompt_count, prompt_done; /* of gumbel_session.prompt */
} gb_generation;

/* What the caller of a step says of those that will follow, each with the token that the one before draws. */
typedef struct gb_lookahead {
    const gumbel_sampling
        *sampling;             /* of all of them: the very structure of the request; NULL: none follow */
    uint32_t steps;            /* at most, the context's end aside */
    gb_token_list stop_tokens; /* after one of which none follows */
} gb_lookahead;

/* Results that a step with a draft has given and gumbel_next has not: the last `left` of count. */
typedef struct gb_drawn_ahead {
    gumbel_result *results; /* [draft_tokens + 1]; NULL: there are no drafts */
    int32_t *top_tokens;    /* [draft_tokens + 1, max_top_logprobs] theirs, as the next */
    float *top_logprobs;
    uint32_t count, left;
} gb_drawn_ahead;

struct gumbel_session {
    gumbel_engine *engine;
    uint32_t slot;
    bool in_use;
    int32_t *tokens;   /* [max_context] the session's, `position` of them */
    bool *generated;   /* [max_context] which of them continued an answer; the others were a prompt */
    bool is_repeating; /* tokens of its own are run again, and are what they were */
    bool is_ahead;     /* a step of its tokens has failed, or is being run */
    uint32_t position;
    uint32_t held;        /* of its tokens the last ones, of a prompt, that are still to be run (blocks.h) */
    uint32_t written_end; /* one more than the highest position written since the state was last whole */
    uint32_t whole_position; /* rings held their full window at this position, and nothing older */
    int32_t pending_token;   /* generated but not yet run; -1: none */
    uint32_t generated_from; /* tokens from this position on were generated, earlier ones are the prompt */
    /* By the last step; -1: none; GB_ANY_TOKEN: the caller draws. What is run next continues the answer, and
     * counts as generated where it is this token. */
    int32_t drawn_token;
    bool is_rewound; /* into an answer: what is run next continues it only where it is that token */
    bool has_snapshot;
    uint32_t snapshot_position;
    bool has_seed;
    uint64_t seed, seed_counter; /* the next token is drawn with their sum */
    atomic_bool cancelled;
    gb_generation generation;
    gb_lookahead lookahead;
    uint32_t known; /* of a draft head's: the positions that the states of its program have; 0: all its own */
    gb_mask_source mask;      /* of the step that the caller runs, where its request has none; else none */
    gumbel_detokenizer *text; /* of the generation begun last; NULL: it gives no text */
    struct gb_constraint *constraint;   /* likewise; NULL: it is held to no grammar */
    struct gb_drafter *drafter;         /* likewise; NULL: it has no drafts */
    gb_drawn_ahead ahead;               /* likewise */
    struct gb_draft_model *draft_model; /* another program that guesses; NULL: the engine has none */
    int32_t *prompt;                    /* [max_context + 1] the generation's tokens still to run */
    gumbel_bias *bias;                  /* [max_bias] of the generation */
};

/* A step's requests in this version's form, and what they get; arrays of as many as there are slots, by
 * request. */
typedef struct gb_step_requests {
    gumbel_request *list;
    size_t count;
    gumbel_sampling *settings; /* of its rows */
    uint32_t *first_row;       /* its first row in the batch, where it has a result */
    uint32_t *rest;            /* tokens that its session holds behind the step */
} gb_step_requests;

struct gumbel_engine {
    const gb_program *program;
    gb_backend *backend;
    uint32_t slots, max_context, step_tokens, prefill_chunk, draft_tokens;
    uint32_t most_rows;                      /* of a step */
    uint32_t short_chunk, short_step_tokens; /* of a scheduler's steps that others wait for */
    bool snapshots;
    const char *backend_name;
    char description[128];
    gumbel_session *sessions;     /* [slots] */
    int32_t *token_storage;       /* what the sessions' token arrays are cut from */
    bool *generated_storage;      /* and their generated arrays */
    gumbel_bias *bias_storage;    /* and their biases */
    gb_step_requests requests;    /* of the current step */
    gb_step_requests own_request; /* room for one, with which a session runs tokens of its own again */
    gb_batch_arrays arrays;       /* of its batch */
    gb_batch batch;
    gb_late_masks *late_masks;
    gb_mask_workers *mask_workers;       /* NULL: the threads of the backend make masks */
    gb_batch following;                  /* the step after it, of one row */
    uint32_t most_following;             /* steps that are announced */
    gb_step_times step_times;            /* of sessions that generate by themselves */
    gumbel_engine *draft_engine;         /* the caller's; NULL: none */
    struct gb_draft_model *draft_models; /* [slots] */
    gumbel_request *draft_requests;      /* [slots] of a step of the draft engine */
    int devices[GB_MOST_RANKS];          /* their numbers, [device_count], and zeros */
    uint32_t device_count;               /* at least 1 */
    gumbel_process_group *process_group; /* NULL: this process has all of the model */
    bool is_draft_head;                  /* the program is one */
    bool attends_to_program;             /* and attends to the keys of its program */
    uint32_t head_offset;                /* how many of that one's first tokens its sessions leave out */
    struct gb_taken_states *taken;       /* what the draft engine has of this one's states; NULL: nothing */
    double draft_cost;                   /* of a guess, where no time is known, in steps of this engine */
    gumbel_log_callback log;             /* NULL: no notices */
    void *log_user;
    int32_t following_position, following_row;
    bool following_generated;
    uint64_t following_seed;
};

/* The given settings (of a caller's version of the structure), or the program's defaults when given is NULL.
 * where ("request 2: ") begins a message. Errors: ARGUMENT, UNSUPPORTED. */
gumbel_status gb_settle_sampling(const gb_program *program, const gumbel_sampling *given, const char *where,
                                 gumbel_sampling *settled, gumbel_error *error);

/* Checks the ranges of a row's settings. */
gumbel_status gb_check_sampling(const gumbel_sampling *sampling, const char *where, gumbel_error *error);

/* Checks that the program has an input for each setting that is not neutral, and that its biases are tokens.
 */
gumbel_status gb_check_inputs(const gb_program *program, const gumbel_sampling *sampling, const char *where,
                              gumbel_error *error);

/* Checks a list of biases against a vocabulary. */
gumbel_status gb_check_bias(const gumbel_sampling *sampling, uint64_t vocab_size, const char *where,
                            gumbel_error *error);

/* Checks that the program gives log-probabilities, where they are wanted, and so many likeliest tokens. */
gumbel_status gb_check_logprobs(const gb_program *program, bool wanted, uint32_t top, const char *where,
                                gumbel_error *error);

/* Checks that the program takes masks. */
gumbel_status gb_check_mask(const gb_program *program, const char *where, gumbel_error *error);

/* Whether a penalty of these settings changes anything. */
bool gb_has_penalties(const gumbel_sampling *sampling);

/* What a token of a backend means that is none of the vocabulary, as a sentence. */
const char *gb_token_problem(int32_t token);

/* Whether a row has no token because none was left to draw from. */
bool gb_lacks_candidates(const gumbel_result *result);

/* 64 bits from the system's random source. */
gumbel_status gb_draw_seed(uint64_t *seed, gumbel_error *error);

/* Runs tokens in steps of at most the prefill chunk, in absolute chunks where that matters to a backend. last
 * is NULL, or a request that says what is wanted after the last token: all its fields but session and tokens
 * count. Stops with CANCELLED between steps. */
gumbel_status gb_session_run(gumbel_session *session, const int32_t *tokens, size_t count,
                             const gumbel_request *last, gumbel_error *error);

/* The position that the session's states stand at. */
static inline uint32_t gb_session_run_position(const gumbel_session *session) {
    return session->position - session->held;
}

/* Where the block of that position begins (blocks.h): chunks begin blocks too. */
uint32_t gb_block_begin(const gumbel_engine *engine, uint32_t position);

/* Whether the token would continue the session's answer. */
bool gb_session_continues(const gumbel_session *session, int32_t token);

/* Whether the states at that position are those of a prompt's block that is not full: they are no beginning
 * for the rest of the block. */
bool gb_session_is_amid_block(const gumbel_session *session, uint32_t position);

/* How many of count tokens the session runs in one step. */
size_t gb_session_chunk(const gumbel_session *session, size_t count);

/* Whether caches and rings can forget the positions from `position` on in place: caches always; a ring while
 * the window before position has not been overwritten. The other two are a session's. */
bool gb_can_truncate_rings(const gb_program *program, uint32_t written_end, uint32_t whole_position,
                           uint32_t position);

/* The same of every state: of a recurrent one never. */
bool gb_can_truncate(const gb_program *program, uint32_t written_end, uint32_t whole_position,
                     uint32_t position);

/* Frees what the generation begun last has of its own. */
void gb_session_forget_generation(gumbel_session *session);

/* Goes back to an earlier position, or where the states cannot, further: to one that they can stand at. What
 * has been run stays in tokens, and is to be run again. */
void gb_session_go_back(gumbel_session *session, uint32_t position);

/* Goes back to the snapshot, or to position 0 without one that the token behind it can go on from. What has
 * been run stays in tokens. */
void gb_session_start_over(gumbel_session *session);

/* Makes the session's state that of an empty one; keeps seed and snapshot flags alone. */
void gb_session_clear(gumbel_session *session);

#endif
