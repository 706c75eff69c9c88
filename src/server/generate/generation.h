/* SPDX-License-Identifier: Apache-2.0
 *
 * A request that is being answered: its prompts, their answers, the stream or object that they are sent as.
 */
#ifndef GUMBEL_SERVER_GENERATE_GENERATION_H
#define GUMBEL_SERVER_GENERATE_GENERATION_H

#include "server/base/clock.h"
#include "server/generate/answer.h"
#include "server/generate/grammars.h"
#include "server/generate/scores.h"
#include "server/metrics.h"

typedef struct server_generation {
    server_request request;
    const server_model *model;
    server_metrics *metrics; /* NULL: nothing is counted */
    server_waiter waiter;    /* the client */
    server_prompts prompts;
    server_scores *scores;   /* [prompts.count], owned; NULL: none are wanted */
    server_grammar *grammar; /* NULL: the answer is held to nothing */
    bool reasons;            /* thinking comes before what is held to the grammar */
    server_prompt predicted; /* what the answer is likely to contain; its tokens are owned */
    server_run run;
    server_answer *answers; /* of all prompts: those of the first one first */
    size_t answer_count, open_answers;
    uint64_t seed;
    const char *seed_origin; /* "request", "drawn" */
    char id[SERVER_ID];
    int64_t created;                 /* seconds since 1970 */
    gumbel_detokenizer *detokenizer; /* for the names of single tokens */
} server_generation;

typedef struct server_limits {
    uint32_t max_prompt_tokens; /* 0: a context */
    size_t max_stream_bytes;    /* events that a stream may be behind */
    double max_grammar_seconds; /* that compiling a grammar may take; 0: the library's limit */
} server_limits;

/* Makes the prompts and submits them. request, model and waiter are filled in, and metrics may be. False with
 * failure->status 0: the client has left. Free with server_generation_free in any case. */
bool server_generation_start(server_generation *generation, const char *id_prefix,
                             const server_limits *limits, server_failure *failure);

/* Waits for an event and gives it to the sink. */
server_taken server_generation_step(server_generation *generation, int socket, int milliseconds,
                                    const server_sink *sink);

/* Steps to the end. False: the client has left (failure->status 0), or an answer has failed. */
bool server_generation_finish(server_generation *generation, int socket, const server_sink *sink,
                              server_failure *failure);

/* The failure of an answer; false: all are good. */
bool server_generation_failure(const server_generation *generation, server_failure *failure);

void server_generation_free(server_generation *generation);

/* ---- What all protocols report ------------------------------------------------------------------------- */

/* Tokens of the whole request. */
typedef struct server_totals {
    uint64_t prompt, cached, generated, reasoning;
    uint64_t drafted, accepted; /* draft tokens */
} server_totals;

server_totals server_count_tokens(const server_generation *generation);

/* Times and rates, by llama.cpp's names, of the first answer and of all tokens. */
json_t *server_timings_json(const server_generation *generation);

/* Adds generation_settings and timings to an object: what an answer was made with, and how fast. */
void server_add_report(const server_generation *generation, json_t *object);

/* The text of one token by itself, special ones too. *is_whole: it is whole characters. */
json_t *server_token_text(server_generation *generation, int32_t token, bool *is_whole);

#endif
