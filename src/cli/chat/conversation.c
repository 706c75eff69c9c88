/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/chat/conversation.h"

#include "base/clock.h"
#include "base/status.h"
#include "cli/base/files.h"
#include "cli/base/signals.h"
#include "cli/chat/messages.h"

#include <stdlib.h>
#include <string.h>

gumbel_status cli_conversation_apply(cli_conversation *conversation, gumbel_error *error) {
    gumbel_status status = GUMBEL_OK;
    if (!conversation->messages)
        status = gumbel_conversation_create(conversation->model->tokenizer, &conversation->messages, error);
    if (status == GUMBEL_OK)
        status = gumbel_conversation_set_chat(conversation->messages, &conversation->template.options, error);
    conversation->output.conversation = conversation->format.raw ? NULL : conversation->messages;
    conversation->output.reasoning = conversation->format.reasoning;
    return status;
}

/* ---- Generating ---------------------------------------------------------------------------------------- */

/* Generates after tokens that follow the session's position. */
static gumbel_status generate(cli_conversation *conversation, const int32_t *tokens, size_t count,
                              gumbel_error *error) {
    gumbel_generate_options options = {
        .size = sizeof options,
        .sampling = &conversation->sampling.values,
        .max_new_tokens = conversation->max_new_tokens,
        .snapshot = conversation->format.raw,
        .tokenizer = conversation->model->tokenizer,
        .grammar = conversation->grammar,
        .reasons = conversation->reasons,
        .stop_in_answer = true,
        .has_reasoning_budget = conversation->has_reasoning_budget,
        .reasoning_budget = conversation->reasoning_budget,
        .drafting = conversation->drafting,
    };
    cli_generator *generator = &conversation->generator;
    gumbel_status status = cli_apply_stops(&conversation->stops, &options, error);
    if (status == GUMBEL_OK)
        status = cli_generate_reply(generator, tokens, count, &options, &conversation->output,
                                    &conversation->reply, error);
    gumbel_error ignored; /* the reply's finish says that the context is full */
    cli_generator_settle(generator, &ignored);
    return status;
}

/* Runs what comes before the reply. Ctrl-C ends it. */
static gumbel_status prefill(cli_conversation *conversation, gumbel_turn *turn, gumbel_error *error) {
    gumbel_session *session = conversation->model->session;
    conversation->generator.prompt.count = 0;
    cli_cancel_on_interrupt(session);
    if (cli_interrupted()) /* just before */
        gumbel_session_cancel(session);
    gumbel_status status = gumbel_conversation_prefill(conversation->messages, session, turn, error);
    cli_cancel_on_interrupt(NULL);
    if (status == GUMBEL_ERROR_LIMIT && turn->count == 0)
        return gb_fail(error, status,
                       "the context has no room for this turn; /reset begins a new conversation");
    return status;
}

/* Prints the reply to the messages. Where none is added to them, only the first `kept` stay. */
static gumbel_status reply_to_messages(cli_conversation *conversation, size_t kept, gumbel_error *error) {
    gumbel_turn turn = {.size = sizeof turn};
    cli_reply *reply = &conversation->reply;
    const size_t asked = gumbel_conversation_count(conversation->messages);
    const double begin = gb_seconds();
    cli_reply_free(reply);
    gumbel_status status = prefill(conversation, &turn, error);
    const double seconds = gb_seconds() - begin;
    if (status == GUMBEL_OK)
        status = generate(conversation, turn.tokens + turn.begin, turn.count - turn.begin, error);
    else if (status == GUMBEL_ERROR_CANCELLED) {
        reply->interrupted = true;
        status = GUMBEL_OK;
    }
    reply->prompt_tokens = turn.count - turn.held;
    reply->first_token_seconds += seconds;
    if (gumbel_conversation_count(conversation->messages) == asked) {
        gumbel_conversation_truncate(conversation->messages, kept);
        return status;
    }
    conversation->asked = asked;
    conversation->answered = 0;
    return status;
}

/* ---- Messages ------------------------------------------------------------------------------------------ */

/* A copy of the text as a message's; the message is the library's then. */
static gumbel_status add_message(cli_conversation *conversation, gumbel_message message, const char *text,
                                 size_t length, gumbel_error *error) {
    if (memchr(text, '\0', length))
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT,
                       "the message has a zero byte, which no message can have; plain text can, with --raw");
    char *content = cli_copy_text(text, length);
    message.size = sizeof message;
    message.content = content;
    gumbel_status status = gumbel_conversation_add(conversation->messages, &message, 1, error);
    free(content);
    return status;
}

/* Has the messages begin with the system message of the settings. */
static gumbel_status use_system(cli_conversation *conversation, gumbel_error *error) {
    const char *system = conversation->format.system, *used = conversation->system;
    if (used == system || (used && system && strcmp(used, system) == 0))
        return GUMBEL_OK;
    gumbel_status status = cli_messages_set_system(conversation->messages, system, error);
    if (status == GUMBEL_OK)
        conversation->system = system;
    return status;
}

static gumbel_status converse_raw(cli_conversation *conversation, const char *text, size_t length,
                                  gumbel_error *error) {
    cli_tokens tokens = {0};
    gumbel_session *session = conversation->model->session;
    const uint32_t from = gumbel_session_position(session, NULL);
    const gumbel_encode_options options = {.size = sizeof options};
    gumbel_status status =
        cli_encode_text(conversation->model->tokenizer, text, length, &options, &tokens, error);
    if (status == GUMBEL_OK && tokens.count == 0)
        status = gb_fail(error, GUMBEL_ERROR_ARGUMENT, "the message is empty");
    if (status == GUMBEL_OK && tokens.count > conversation->model->max_context - from)
        status = gb_fail(error, GUMBEL_ERROR_LIMIT,
                         "the context has no room for this turn; /reset begins a new conversation");
    if (status == GUMBEL_OK) {
        status = generate(conversation, tokens.ids, tokens.count, error);
        gumbel_error ignored; /* the first error is the one to report */
        if (conversation->reply.tokens.count == 0)
            cli_generator_rewind(&conversation->generator, from, &ignored);
    }
    cli_tokens_free(&tokens);
    return status;
}

gumbel_status cli_converse(cli_conversation *conversation, const char *text, size_t length,
                           gumbel_error *error) {
    if (conversation->format.raw)
        return converse_raw(conversation, text, length, error);
    gumbel_status status = use_system(conversation, error);
    const size_t kept = gumbel_conversation_count(conversation->messages);
    if (status == GUMBEL_OK)
        status = add_message(conversation, (gumbel_message){.role = "user"}, text, length, error);
    return status == GUMBEL_OK ? reply_to_messages(conversation, kept, error) : status;
}

/* ---- Calls --------------------------------------------------------------------------------------------- */

bool cli_open_call(const cli_conversation *conversation, gumbel_reply_part *call) {
    if (conversation->asked == 0 || conversation->format.raw)
        return false;
    const gumbel_reply *reply = gumbel_conversation_reply(conversation->messages);
    call->size = sizeof *call;
    for (size_t i = 0; i < gumbel_reply_part_count(reply); i++)
        if (gumbel_reply_get_part(reply, i, call, NULL) == GUMBEL_OK && call->type == GUMBEL_PART_TOOL_CALL &&
            (size_t)call->call == conversation->answered)
            return true;
    return false;
}

gumbel_status cli_answer_call(cli_conversation *conversation, const char *text, size_t length,
                              gumbel_error *error) {
    gumbel_reply_part call;
    if (!cli_open_call(conversation, &call))
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "there is no call without a result");
    const gumbel_message result = {.role = "tool", .tool_call_id = call.id, .name = call.name};
    gumbel_status status = add_message(conversation, result, text, length, error);
    if (status != GUMBEL_OK)
        return status;
    conversation->answered++;
    if (cli_open_call(conversation, &call))
        return GUMBEL_OK;
    const size_t kept = gumbel_conversation_count(conversation->messages) - 1;
    status = reply_to_messages(conversation, kept, error);
    if (gumbel_conversation_count(conversation->messages) == kept)
        conversation->answered--;
    return status;
}

/* ---- Going back ---------------------------------------------------------------------------------------- */

static gumbel_status regenerate_raw(cli_conversation *conversation, gumbel_error *error) {
    const uint32_t prompt_end = conversation->reply.prompt_end;
    if (prompt_end == 0)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "there is no reply to replace");
    gumbel_session *session = conversation->model->session;
    const int32_t *held;
    gumbel_session_position(session, &held);
    const int32_t last = held[prompt_end - 1];
    gumbel_status status = cli_generator_rewind(&conversation->generator, prompt_end - 1, error);
    if (status != GUMBEL_OK)
        return status;
    status = generate(conversation, &last, 1, error);
    if (conversation->reply.tokens.count == 0 && gumbel_session_position(session, NULL) < prompt_end)
        gumbel_session_append(session, &last, 1, NULL);
    conversation->reply.prompt_end = prompt_end;
    return status;
}

gumbel_status cli_regenerate(cli_conversation *conversation, gumbel_error *error) {
    if (conversation->format.raw)
        return regenerate_raw(conversation, error);
    if (conversation->asked == 0)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "there is no reply to replace");
    gumbel_conversation_truncate(conversation->messages, conversation->asked);
    return reply_to_messages(conversation, conversation->asked, error);
}

static void forget(cli_conversation *conversation) {
    gumbel_conversation_truncate(conversation->messages, 0);
    cli_reply_free(&conversation->reply);
    conversation->system = NULL;
    conversation->asked = conversation->answered = 0;
    conversation->generator.prompt.count = 0;
}

void cli_conversation_reset(cli_conversation *conversation) {
    gumbel_session_reset(conversation->model->session);
    forget(conversation);
}

/* ---- Files --------------------------------------------------------------------------------------------- */

static char *messages_path(const char *path) {
    gb_byte_buffer text = {0};
    cli_append_string(&text, path);
    cli_append_string(&text, ".json");
    return text.text;
}

gumbel_status cli_conversation_save(cli_conversation *conversation, const char *path, gumbel_error *error) {
    gumbel_status status = gumbel_session_save(conversation->model->session, path, error);
    if (status != GUMBEL_OK || conversation->format.raw)
        return status;
    char *beside = messages_path(path);
    status = cli_messages_write(beside, conversation->messages, error);
    free(beside);
    return status;
}

gumbel_status cli_conversation_load(cli_conversation *conversation, const char *path, gumbel_error *error) {
    cli_clear_folder_of(path);
    gumbel_status status = gumbel_session_load(conversation->model->session, path, error);
    if (status != GUMBEL_OK)
        return status;
    forget(conversation);
    if (conversation->format.raw)
        return GUMBEL_OK;
    char *beside = messages_path(path);
    status = cli_messages_read(beside, conversation->messages, error);
    free(beside);
    conversation->system = conversation->format.system; /* they have their own */
    if (status != GUMBEL_OK)
        gumbel_session_reset(conversation->model->session);
    return status;
}

void cli_conversation_free(cli_conversation *conversation) {
    gumbel_conversation_destroy(conversation->messages);
    conversation->messages = NULL;
    cli_reply_free(&conversation->reply);
    cli_generator_free(&conversation->generator);
    cli_output_close(&conversation->output);
    cli_stops_free(&conversation->stops);
    gumbel_grammar_destroy(conversation->grammar);
    cli_template_free(&conversation->template);
}
