/* SPDX-License-Identifier: Apache-2.0 */
#include "server/generate/generation.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Numbers that are whole in a double, so that no client's JSON rounds them. */
static uint64_t draw_seed(void) {
    return server_random_bits() >> 11;
}

static gumbel_submission submission_of(const server_generation *generation, size_t prompt) {
    const server_request *request = &generation->request;
    const server_prompt *given = &generation->prompts.list[prompt];
    return (gumbel_submission){
        .size = sizeof(gumbel_submission),
        .tokens = given->tokens,
        .token_count = given->count,
        .branch_positions = given->branches,
        .branch_position_count = GUMBEL_CHAT_BRANCHES,
        .sampling = &request->sampling,
        .has_seed = true,
        .seed = generation->seed,
        .wants_logprob = request->wants_logprobs,
        .top_logprobs = request->top_logprobs,
        .ignore_stop = request->ignore_stop,
        .show_special = request->show_special,
        .include_stop_string = request->include_stop_string,
        .stop_in_answer = request->route != SERVER_COMPLETIONS && !request->stop_in_reasoning,
        .no_prefix_cache = request->no_prefix_cache,
        .answers = request->answers,
        .max_new_tokens = request->max_new_tokens,
        .min_new_tokens = request->min_new_tokens,
        .tokenizer = generation->model->tokenizer,
        .stop_strings = request->stops,
        .stop_string_count = request->stop_count,
        .stop_tokens = request->stop_tokens,
        .stop_token_count = request->stop_token_count,
        .priority = request->priority,
        .grammar = generation->grammar ? server_compiled_grammar(generation->grammar) : NULL,
        .reasons = generation->reasons,
        .has_reasoning_budget = request->has_reasoning_budget,
        .reasoning_budget = request->reasoning_budget,
        .drafting = request->has_drafting ? request->drafting : generation->model->drafting,
        .max_draft = request->max_draft,
        .predicted_tokens = generation->predicted.tokens,
        .predicted_count = generation->predicted.count,
    };
}

/* Encodes what the answer is likely to contain. */
static bool encode_prediction(server_generation *generation, server_failure *failure) {
    const gb_byte_buffer *text = &generation->request.predicted;
    if (text->failed)
        return server_fail(failure, 503, "no memory for a prediction");
    return text->size == 0 || server_encode_text(generation->model, text->text, text->size, false, false,
                                                 &generation->predicted, failure);
}

static const char *grammar_field(const server_request *request) {
    return request->grammar.kind ? request->grammar_field : "tools";
}

/* What the answer is held to, with its tools, whose text is the caller's to free; kind 0: nothing. */
static gumbel_grammar_options grammar_of(const server_request *request, char **tools) {
    gumbel_grammar_options options = request->grammar;
    *tools = request->tools ? json_dumps(request->tools, JSON_COMPACT) : NULL;
    if (!*tools)
        return options;
    options.size = sizeof options;
    options.kind = options.kind ? options.kind : GUMBEL_GRAMMAR_TEXT;
    options.tools = *tools;
    options.tool_choice = request->tool_choice;
    options.tool_name = request->tool_name;
    options.single_call = request->single_call;
    return options;
}

static bool has_strict_tool(const server_request *request) {
    const json_t *tool;
    size_t i;
    json_array_foreach(request->tools, i, tool) {
        const json_t *function = json_object_get(tool, "function");
        if (json_is_true(json_object_get(function ? function : tool, "strict")))
            return true;
    }
    return false;
}

/* Whether nobody asks for what the grammar gives: calls are written as the model likes where there is none.
 */
static bool is_optional(const server_request *request) {
    return request->grammar.kind == 0 && request->tool_choice != GUMBEL_TOOLS_REQUIRED &&
           !request->single_call && !has_strict_tool(request);
}

/* Why there is no grammar: what it asks, unless this moment is to blame. */
static bool refuse_grammar(const server_generation *generation, const char *field, const gumbel_error *error,
                           server_failure *failure) {
    if (error->status == GUMBEL_ERROR_MEMORY)
        return server_fail_with(failure, field, error);
    if (error->status != GUMBEL_ERROR_CANCELLED)
        return server_refuse(failure, field, "%s: %s", field, error->message);
    if (!server_has_left(generation->waiter.socket))
        return server_fail(failure, 503, "the server is shutting down");
    *failure = (server_failure){0};
    return false;
}

/* Compiles the request's grammar, unless that was done for another request. */
static bool constrain(server_generation *generation, const server_limits *limits, server_failure *failure) {
    const server_request *request = &generation->request;
    const char *field = grammar_field(request);
    const bool may_do_without = is_optional(request);
    char *tools;
    gumbel_grammar_options options = grammar_of(request, &tools);
    options.max_seconds = limits->max_grammar_seconds;
    gumbel_error error;
    gumbel_status status = GUMBEL_OK;
    const bool has_mask = generation->model->info.has_mask;
    if (options.kind != 0 && has_mask)
        status = server_grammars_take(generation->model->grammars, &options, &generation->waiter,
                                      generation->metrics, &generation->grammar, &error);
    free(tools);
    if (options.kind != 0 && !has_mask && !may_do_without)
        return server_refuse(failure, field,
                             "%s: the program has no input mask; export it again, without --sampler minimal",
                             field);
    const bool is_momentary = status == GUMBEL_ERROR_MEMORY || status == GUMBEL_ERROR_CANCELLED;
    if (status != GUMBEL_OK && (is_momentary || !may_do_without))
        return refuse_grammar(generation, field, &error, failure);
    return !generation->grammar || may_do_without ||
           server_is_thinking(request, generation->model, &generation->reasons, failure);
}

static bool begin_answers(server_generation *generation, server_failure *failure) {
    const server_request *request = &generation->request;
    generation->answer_count = generation->prompts.count * request->answers;
    generation->open_answers = generation->answer_count;
    generation->answers = calloc(generation->answer_count, sizeof *generation->answers);
    if (!generation->answers)
        return server_fail(failure, 503, "no memory for %zu answers", generation->answer_count);
    for (size_t i = 0; i < generation->answer_count; i++) {
        generation->answers[i].index = (uint32_t)i;
        generation->answers[i].stop_string = -1;
        const server_prompt *prompt = &generation->prompts.list[i / request->answers];
        if (request->route != SERVER_COMPLETIONS &&
            !server_answer_begin_reply(&generation->answers[i], request, generation->model, prompt, failure))
            return false;
    }
    return true;
}

enum { MOST_SCORES = 1 << 20 }; /* of a request: each is some hundred bytes of its reply */

static bool check_scores(const server_generation *generation, const char *field, server_failure *failure) {
    const server_request *request = &generation->request;
    const uint32_t top = request->prompt_top_logprobs > request->top_logprobs ? request->prompt_top_logprobs
                                                                              : request->top_logprobs;
    size_t tokens = 0;
    for (size_t i = 0; i < generation->prompts.count; i++)
        tokens += generation->prompts.list[i].count;
    if (request->answers > 1)
        return server_refuse(failure, "n", "n: one answer where the prompt's log-probabilities are wanted");
    return tokens <= MOST_SCORES / (top + 1) ||
           server_refuse(failure, field, "%s: %zu tokens with %u likeliest ones each are more than %d", field,
                         tokens, top, MOST_SCORES);
}

/* Asks for the log-probabilities of the prompts' own tokens, where they are wanted. */
static bool score_prompts(server_generation *generation, server_failure *failure) {
    const server_request *request = &generation->request;
    const bool is_echo = request->wants_echo && request->wants_logprobs;
    const uint32_t most = request->wants_prompt_logprobs ? request->prompt_top_logprobs : 0;
    if (!is_echo && !request->wants_prompt_logprobs)
        return true;
    if (!check_scores(generation, is_echo ? "echo" : "prompt_logprobs", failure))
        return false;
    if (!generation->model->info.has_mask)
        return server_refuse(failure, is_echo ? "echo" : "prompt_logprobs",
                             "log-probabilities of a prompt need an input mask; export the program again, "
                             "without --sampler minimal");
    generation->scores = calloc(generation->prompts.count, sizeof *generation->scores);
    if (!generation->scores)
        return server_fail(failure, 503, "no memory for the log-probabilities of a prompt");
    return server_score_prompts(generation->model, &generation->prompts,
                                is_echo && request->top_logprobs > most ? request->top_logprobs : most,
                                generation->waiter.socket, generation->scores, failure);
}

static bool submit_prompts(server_generation *generation, const server_limits *limits,
                           server_failure *failure) {
    const size_t most = generation->request.is_stream ? limits->max_stream_bytes : 0;
    if (generation->request.drafting == GUMBEL_DRAFTING_MODEL && !generation->model->has_draft_model)
        return server_refuse(failure, "draft",
                             "draft: no other program guesses for this one (gumbel serve --draft PROGRAM)");
    if (!server_run_init(&generation->run, &generation->model->generator, generation->prompts.count, most,
                         failure))
        return false;
    for (size_t i = 0; i < generation->prompts.count && !generation->request.wants_no_answer; i++) {
        gumbel_submission submission = submission_of(generation, i);
        if (server_run_submit(&generation->run, &submission, failure))
            continue;
        if (failure->status == 400 && generation->grammar)
            snprintf(failure->param, sizeof failure->param, "%s", grammar_field(&generation->request));
        return false;
    }
    return true;
}

/* Members for which there was no memory are missing in what was read. */
static bool is_whole(server_failure *failure) {
    return !server_json_has_failed() || server_fail(failure, 503, "no memory for the request");
}

bool server_generation_start(server_generation *generation, const char *id_prefix,
                             const server_limits *limits, server_failure *failure) {
    const server_request *request = &generation->request;
    server_make_id(id_prefix, generation->id);
    generation->created = server_unix_time();
    generation->seed = request->has_seed ? request->seed : draw_seed();
    generation->seed_origin = request->has_seed ? "request" : "drawn";
    gumbel_error error;
    const bool spells_tokens = request->wants_logprobs || request->wants_prompt_logprobs;
    if (spells_tokens && gumbel_detokenizer_create(generation->model->tokenizer, true,
                                                   &generation->detokenizer, &error) != GUMBEL_OK)
        return server_fail_with(failure, NULL, &error);
    return server_make_prompts(request, generation->model, limits->max_prompt_tokens, &generation->prompts,
                               failure) &&
           encode_prediction(generation, failure) && constrain(generation, limits, failure) &&
           begin_answers(generation, failure) && is_whole(failure) && score_prompts(generation, failure) &&
           submit_prompts(generation, limits, failure);
}

/* ---- Events -------------------------------------------------------------------------------------------- */

/* Answers that nobody wants end at once. */
static void finish_unasked(server_generation *generation, const server_sink *sink) {
    for (size_t i = 0; i < generation->answer_count; i++) {
        const size_t prompt = i / generation->request.answers;
        const server_event event = {
            .type = GUMBEL_EVENT_FINISH,
            .finish = GUMBEL_FINISH_LENGTH,
            .stop_string = -1,
            .text = "",
            .usage = {.prompt_tokens = (uint32_t)generation->prompts.list[prompt].count}};
        generation->answers[i].seed =
            gumbel_answer_seed(generation->seed, (uint32_t)(i % generation->request.answers));
        server_answer_add(&generation->answers[i], &event, sink);
        generation->open_answers--;
    }
}

server_taken server_generation_step(server_generation *generation, int socket, int milliseconds,
                                    const server_sink *sink) {
    server_event event;
    if (generation->request.wants_no_answer) {
        finish_unasked(generation, sink);
        return SERVER_TAKEN;
    }
    const server_taken taken = server_run_take(&generation->run, socket, milliseconds, &event);
    if (taken != SERVER_TAKEN)
        return taken;
    server_answer *answer = &generation->answers[event.answer];
    if (generation->metrics && event.type == GUMBEL_EVENT_TOKEN && answer->tokens > 0)
        server_observe(&generation->metrics->token_gap, event.time - answer->last_time);
    server_answer_add(answer, &event, sink);
    if (event.type == GUMBEL_EVENT_TOKEN)
        return taken;
    generation->open_answers--;
    if (generation->metrics)
        server_count_answer(generation->metrics, &event.usage, event.type == GUMBEL_EVENT_FINISH,
                            event.finish);
    return taken;
}

bool server_generation_finish(server_generation *generation, int socket, const server_sink *sink,
                              server_failure *failure) {
    *failure = (server_failure){0};
    while (generation->open_answers > 0) {
        const server_taken taken = server_generation_step(generation, socket, -1, sink);
        if (taken == SERVER_LEFT)
            return false;
        if (taken == SERVER_OVERFLOWED)
            return server_fail(failure, 503, "no memory for the answer");
    }
    return !server_generation_failure(generation, failure);
}

bool server_generation_failure(const server_generation *generation, server_failure *failure) {
    for (size_t i = 0; i < generation->answer_count; i++) {
        const server_answer *answer = &generation->answers[i];
        gumbel_error error = {.status = answer->status};
        if (answer->status == GUMBEL_OK)
            continue;
        memcpy(error.message, answer->message, sizeof error.message);
        /* Only submitting one meets the queue's limit; this one is the grammar's. */
        if (error.status == GUMBEL_ERROR_LIMIT && generation->grammar)
            server_refuse(failure, generation->request.grammar_field, "%s", error.message);
        else
            server_fail_with(failure, NULL, &error);
        return true;
    }
    return false;
}

void server_generation_free(server_generation *generation) {
    server_run_free(&generation->run);
    for (size_t i = 0; generation->answers && i < generation->answer_count; i++)
        server_answer_free(&generation->answers[i]);
    free(generation->answers);
    for (size_t i = 0; generation->scores && i < generation->prompts.count; i++)
        server_scores_free(&generation->scores[i]);
    free(generation->scores);
    free(generation->predicted.tokens);
    server_prompts_free(&generation->prompts);
    if (generation->grammar)
        server_grammars_release(generation->model->grammars, generation->grammar);
    gumbel_detokenizer_destroy(generation->detokenizer);
    server_request_free(&generation->request);
    *generation = (server_generation){0};
}
