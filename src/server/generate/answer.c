/* SPDX-License-Identifier: Apache-2.0 */
#include "server/generate/answer.h"

#include "server/generate/lag.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool server_answer_begin_reply(server_answer *answer, const server_request *request,
                               const server_model *model, const server_prompt *prompt,
                               server_failure *failure) {
    char *tools = request->tools && !request->no_tools ? json_dumps(request->tools, JSON_COMPACT) : NULL;
    const gumbel_reply_options options = {.size = sizeof options,
                                          .tools = tools,
                                          .prompt = prompt->tokens,
                                          .prompt_count = prompt->count,
                                          .calls_are_text = !tools,
                                          .reasoning_is_text = request->reasoning_is_text};
    gumbel_error error;
    const gumbel_status status = gumbel_reply_create(model->tokenizer, &options, &answer->reply, &error);
    free(tools);
    if (status != GUMBEL_OK)
        return server_fail_with(failure, "tools", &error);
    if (request->stop_count == 0)
        return true;
    answer->lag = server_lag_create(model->tokenizer);
    return answer->lag || server_fail(failure, 503, "no memory for stop strings");
}

static void emit_deltas(server_answer *answer, const server_sink *sink) {
    gumbel_reply_delta delta = {.size = sizeof delta};
    while (gumbel_reply_next(answer->reply, &delta)) {
        if (delta.call >= 0 && (uint32_t)delta.call >= answer->calls)
            answer->calls = (uint32_t)delta.call + 1;
        answer->reasoning_tokens += delta.type == GUMBEL_PART_REASONING ? answer->pending_tokens : 0;
        answer->pending_tokens = 0;
        if (sink->delta)
            sink->delta(sink->user, answer, &delta);
    }
}

/* An error of the reply, such as one that is too long, ends the answer's text, not the answer. */
static void note_error(server_answer *answer, const gumbel_error *error) {
    if (answer->status != GUMBEL_OK)
        return;
    answer->status = error->status;
    snprintf(answer->message, sizeof answer->message, "%s", error->message);
}

static void add_to_reply(server_answer *answer, const server_event *event, const server_sink *sink) {
    gumbel_error error;
    gumbel_status status = GUMBEL_OK;
    const int32_t token = event->type == GUMBEL_EVENT_TOKEN ? event->token : -1;
    if (answer->lag)
        status = server_lag_add(answer->lag, token, event->text, event->text_length, answer->reply, &error);
    else if (token >= 0)
        status = gumbel_reply_add_token(answer->reply, token, &error);
    if (status != GUMBEL_OK)
        note_error(answer, &error);
    answer->pending_tokens += token >= 0;
    emit_deltas(answer, sink);
}

static void add_text(server_answer *answer, const server_event *event, const server_sink *sink) {
    const gumbel_reply_delta delta = {.size = sizeof delta,
                                      .type = GUMBEL_PART_CONTENT,
                                      .begins = !answer->has_begun,
                                      .call = -1,
                                      .text = event->text,
                                      .text_length = event->text_length,
                                      .separator = ""};
    if (event->text_length > 0 && sink->delta)
        sink->delta(sink->user, answer, &delta);
    answer->has_begun |= event->text_length > 0;
}

static void end_reply(server_answer *answer, const server_sink *sink) {
    gumbel_error error;
    gumbel_status status = GUMBEL_OK;
    if (answer->lag)
        status =
            server_lag_end(answer->lag, answer->finish == GUMBEL_FINISH_STOP_STRING, answer->reply, &error);
    if (status == GUMBEL_OK)
        status = gumbel_reply_end(answer->reply, &error);
    if (status != GUMBEL_OK)
        note_error(answer, &error);
    emit_deltas(answer, sink);
}

void server_answer_add(server_answer *answer, const server_event *event, const server_sink *sink) {
    const bool is_token = event->type == GUMBEL_EVENT_TOKEN;
    if (is_token) {
        answer->seed = answer->tokens == 0 ? event->seed : answer->seed;
        answer->tokens++;
        answer->last_time = event->time;
        if (sink->token)
            sink->token(sink->user, answer, event);
    }
    if (answer->reply)
        add_to_reply(answer, event, sink);
    else
        add_text(answer, event, sink);
    if (is_token)
        return;
    answer->has_ended = true;
    answer->finish = event->finish;
    answer->stop_string = event->stop_string;
    answer->usage = event->usage;
    answer->status = event->type == GUMBEL_EVENT_ERROR ? event->status : answer->status;
    if (event->type == GUMBEL_EVENT_ERROR)
        snprintf(answer->message, sizeof answer->message, "%.*s", (int)event->message_length, event->message);
    if (answer->reply)
        end_reply(answer, sink);
    if (sink->finish)
        sink->finish(sink->user, answer);
}

const char *server_answer_finish(const server_answer *answer) {
    const bool has_stopped =
        answer->finish == GUMBEL_FINISH_STOP || answer->finish == GUMBEL_FINISH_STOP_STRING;
    return !has_stopped ? "length" : answer->calls > 0 ? "tool_calls" : "stop";
}

void server_answer_free(server_answer *answer) {
    gumbel_reply_destroy(answer->reply);
    server_lag_destroy(answer->lag);
    gb_buffer_free(&answer->text);
    json_decref(answer->logprobs);
    *answer = (server_answer){0};
}
