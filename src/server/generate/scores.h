/* SPDX-License-Identifier: Apache-2.0
 *
 * What the model thinks of a prompt's own tokens: each is forced behind those before it, and the scheduler's
 * events have its log-probability.
 */
#ifndef GUMBEL_SERVER_GENERATE_SCORES_H
#define GUMBEL_SERVER_GENERATE_SCORES_H

#include "server/generate/prompt.h"
#include "server/generate/run.h"

typedef struct server_score {
    int32_t token;
    float logprob;
    uint32_t top_count;
    int32_t top_tokens[GUMBEL_TOP_LOGPROBS_LIMIT];
    float top_logprobs[GUMBEL_TOP_LOGPROBS_LIMIT];
} server_score;

/* Of all tokens but the prompt's first, of which nothing is known. */
typedef struct server_scores {
    server_score *list; /* owned */
    size_t count, capacity;
} server_scores;

/* Scores each prompt: scores has room for all of them, zeroed. Waits for the scheduler, and looks at the
 * socket meanwhile (-1: not). False with failure->status 0: the client has left. */
bool server_score_prompts(const server_model *model, const server_prompts *prompts, uint32_t top_logprobs,
                          int socket, server_scores *scores, server_failure *failure);

void server_scores_free(server_scores *scores);

#endif
