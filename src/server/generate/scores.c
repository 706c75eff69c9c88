/* SPDX-License-Identifier: Apache-2.0 */
#include "server/generate/scores.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool reserve(server_scores *scores, size_t count, server_failure *failure) {
    scores->list = calloc(count, sizeof *scores->list);
    scores->capacity = scores->list ? count : 0;
    return scores->list || server_fail(failure, 503, "no memory for the log-probabilities of a prompt");
}

static bool submit(server_run *run, const server_model *model, const server_prompt *prompt,
                   uint32_t top_logprobs, server_failure *failure) {
    static const gumbel_sampling greedy = {.size = sizeof greedy, .top_p = 1};
    gumbel_submission submission = {.size = sizeof submission,
                                    .tokens = prompt->tokens,
                                    .token_count = 1,
                                    .sampling = &greedy,
                                    .has_seed = true,
                                    .wants_logprob = true,
                                    .top_logprobs = top_logprobs,
                                    .max_new_tokens = (uint32_t)prompt->count - 1,
                                    .tokenizer = model->tokenizer,
                                    .forced_tokens = prompt->tokens + 1,
                                    .forced_count = prompt->count - 1};
    return server_run_submit(run, &submission, failure);
}

static void keep(server_scores *scores, const server_event *event) {
    if (scores->count == scores->capacity)
        return;
    server_score *score = &scores->list[scores->count++];
    score->token = event->token;
    score->logprob = event->logprob;
    score->top_count = event->top_logprobs;
    memcpy(score->top_tokens, event->top_tokens, event->top_logprobs * sizeof *event->top_tokens);
    memcpy(score->top_logprobs, event->top_token_logprob,
           event->top_logprobs * sizeof *event->top_token_logprob);
}

static bool fail_with(const server_event *event, server_failure *failure) {
    gumbel_error error = {.status = event->status};
    snprintf(error.message, sizeof error.message, "%.*s", (int)event->message_length, event->message);
    return server_fail_with(failure, NULL, &error);
}

/* Takes the events of all that was submitted; owners[i] is what answer i scores. */
static bool collect(server_run *run, int socket, server_scores **owners, server_failure *failure) {
    server_event event;
    *failure = (server_failure){0};
    for (uint32_t open = run->answers; open > 0;) {
        const server_taken taken = server_run_take(run, socket, -1, &event);
        if (taken == SERVER_OVERFLOWED)
            return server_fail(failure, 503, "no memory for the log-probabilities of a prompt");
        if (taken != SERVER_TAKEN)
            return false;
        if (event.type == GUMBEL_EVENT_TOKEN)
            keep(owners[event.answer], &event);
        else if (event.type == GUMBEL_EVENT_ERROR)
            return fail_with(&event, failure);
        else
            open--;
    }
    return true;
}

static bool submit_all(server_run *run, const server_model *model, const server_prompts *prompts,
                       uint32_t top_logprobs, server_scores *scores, server_scores **owners,
                       server_failure *failure) {
    for (size_t i = 0; i < prompts->count; i++) {
        if (prompts->list[i].count < 2)
            continue;
        owners[run->answers] = &scores[i];
        if (!reserve(&scores[i], prompts->list[i].count - 1, failure) ||
            !submit(run, model, &prompts->list[i], top_logprobs, failure))
            return false;
    }
    return true;
}

bool server_score_prompts(const server_model *model, const server_prompts *prompts, uint32_t top_logprobs,
                          int socket, server_scores *scores, server_failure *failure) {
    server_run run;
    server_scores **owners = calloc(prompts->count, sizeof *owners);
    if (!owners)
        return server_fail(failure, 503, "no memory for the log-probabilities of a prompt");
    const bool is_good = server_run_init(&run, &model->generator, prompts->count, 0, failure) &&
                         submit_all(&run, model, prompts, top_logprobs, scores, owners, failure) &&
                         collect(&run, socket, owners, failure);
    server_run_free(&run);
    free(owners);
    return is_good;
}

void server_scores_free(server_scores *scores) {
    free(scores->list);
    *scores = (server_scores){0};
}
