/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/chat/conversation.h"

#include "cli/base/measure.h"
#include "cli/base/report.h"
#include "cli/base/signals.h"
#include "cli/chat/messages.h"

#include <stdlib.h>
#include <string.h>

static gumbel_status refuse(gumbel_error *error, gumbel_status status, const char *message) {
    cli_refuse(error, "%s", message);
    return error->status = status;
}

/* Takes the content. */
static void push_message(cli_conversation *conversation, const char *role, char *content) {
    if (conversation->message_count == conversation->message_capacity) {
        size_t capacity = conversation->message_capacity * 2 + 8;
        gumbel_message *larger = cli_allocate(capacity, sizeof *larger);
        if (conversation->message_count > 0)
            memcpy(larger, conversation->messages, conversation->message_count * sizeof *larger);
        free(conversation->messages);
        conversation->messages = larger;
        conversation->message_capacity = capacity;
    }
    conversation->messages[conversation->message_count++] =
        (gumbel_message){.size = sizeof(gumbel_message), .role = role, .content = content};
}

static void pop_message(cli_conversation *conversation) {
    if (conversation->message_count > 0)
        free((char *)(uintptr_t)conversation->messages[--conversation->message_count].content);
}

static void forget_messages(cli_conversation *conversation) {
    while (conversation->message_count > 0)
        pop_message(conversation);
}

static gumbel_status encode_messages(const cli_conversation *conversation, cli_tokens *tokens,
                                     gumbel_error *error) {
    return cli_encode_messages(conversation->model->tokenizer, conversation->messages,
                               conversation->message_count, &conversation->template.options, tokens, error);
}

static void begin_messages(cli_conversation *conversation) {
    const char *system = conversation->format.system;
    if (conversation->message_count == 0 && system)
        push_message(conversation, "system", cli_copy_text(system, strlen(system)));
}

/* What the session must hold for the model to answer text; with --raw what it must hold more. */
static gumbel_status encode_turn(cli_conversation *conversation, const char *text, size_t length,
                                 cli_tokens *tokens, gumbel_error *error) {
    if (conversation->format.raw) {
        gumbel_encode_options options = {.size = sizeof options};
        return cli_encode_text(conversation->model->tokenizer, text, length, &options, tokens, error);
    }
    begin_messages(conversation);
    push_message(conversation, "user", cli_copy_text(text, length));
    return encode_messages(conversation, tokens, error);
}

static size_t common_length(const int32_t *a, size_t a_count, const int32_t *b, size_t b_count) {
    size_t common = 0;
    while (common < a_count && common < b_count && a[common] == b[common])
        common++;
    return common;
}

/* How many of the tokens will begin the next turn's rendering too: those before what stands for the reply. */
static size_t stable_length(cli_conversation *conversation, const cli_tokens *tokens) {
    cli_tokens next = {0};
    gumbel_error ignored; /* of a template that does not take these messages */
    push_message(conversation, "assistant", cli_copy_text("0", 1));
    push_message(conversation, "user", cli_copy_text("0", 1));
    gumbel_status status = encode_messages(conversation, &next, &ignored);
    pop_message(conversation);
    pop_message(conversation);
    size_t stable = status == GUMBEL_OK ? common_length(tokens->ids, tokens->count, next.ids, next.count) : 0;
    cli_tokens_free(&next);
    return stable;
}

/* Adds what the first count tokens stand for. */
static gumbel_status add_text_of(const gumbel_tokenizer *tokenizer, const cli_tokens *tokens, size_t count,
                                 bool show_special, cli_text *text, gumbel_error *error) {
    gumbel_detokenizer *detokenizer;
    gumbel_status status = gumbel_detokenizer_create(tokenizer, show_special, &detokenizer, error);
    if (status != GUMBEL_OK)
        return status;
    const char *piece;
    size_t length;
    for (size_t i = 0; i < count && status == GUMBEL_OK; i++) {
        status = gumbel_detokenize(detokenizer, tokens->ids[i], &piece, &length, error);
        if (status == GUMBEL_OK)
            cli_text_add(text, piece, length);
    }
    gumbel_detokenize_end(detokenizer, &piece, &length);
    cli_text_add(text, piece, length);
    gumbel_detokenizer_destroy(detokenizer);
    return status;
}

/* Keeps the reply as a message, special tokens included: templates know them. */
static gumbel_status note_reply(cli_conversation *conversation, gumbel_error *error) {
    if (conversation->format.raw)
        return GUMBEL_OK;
    const cli_reply *reply = &conversation->reply;
    size_t count = reply->tokens.count - (reply->finish == GUMBEL_FINISH_STOP ? 1 : 0);
    cli_text whole = {0};
    cli_text_add(&whole, "", 0);
    gumbel_status status =
        add_text_of(conversation->model->tokenizer, &reply->tokens, count, true, &whole, error);
    push_message(conversation, "assistant", whole.bytes);
    return status;
}

/* Generates after tokens that follow the session's position. */
static gumbel_status generate(cli_conversation *conversation, const int32_t *tokens, size_t count,
                              gumbel_error *error) {
    gumbel_generate_options options = {
        .size = sizeof options,
        .sampling = &conversation->sampling.values,
        .max_new_tokens = conversation->max_new_tokens,
        .snapshot = conversation->format.raw,
        .tokenizer = conversation->model->tokenizer,
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

static gumbel_status check_turn(const cli_conversation *conversation, const cli_tokens *tokens,
                                gumbel_error *error) {
    uint32_t held =
        conversation->format.raw ? gumbel_session_position(conversation->model->session, NULL) : 0;
    if (tokens->count == 0)
        return refuse(error, GUMBEL_ERROR_ARGUMENT, "the message is empty");
    if (tokens->count > conversation->model->max_context - held)
        return refuse(error, GUMBEL_ERROR_LIMIT,
                      "the context has no room for this turn; /reset begins a new conversation");
    return GUMBEL_OK;
}

/* Runs tokens to where the next turn will begin anew, and remembers the state there. Ctrl-C ends it. */
static gumbel_status run_stable(const cli_conversation *conversation, const int32_t *tokens, size_t count,
                                gumbel_error *error) {
    gumbel_session *session = conversation->model->session;
    cli_cancel_on_interrupt(session);
    if (cli_interrupted()) /* just before */
        gumbel_session_cancel(session);
    gumbel_status status = gumbel_session_append(session, tokens, count, error);
    cli_cancel_on_interrupt(NULL);
    return status == GUMBEL_OK ? gumbel_session_snapshot(session, error) : status;
}

/* Runs the tokens after the first `held` ones and generates, the prompt in two parts where the next turn's
 * begins to differ. */
static gumbel_status run_prompt(cli_conversation *conversation, const cli_tokens *tokens, size_t held,
                                gumbel_error *error) {
    size_t stable = conversation->format.raw ? 0 : stable_length(conversation, tokens), begun = held;
    double begin = cli_seconds();
    if (stable >= tokens->count)
        stable = tokens->count - 1;
    if (stable > held) {
        gumbel_status status = run_stable(conversation, tokens->ids + held, stable - held, error);
        if (status != GUMBEL_OK) {
            cli_reply_free(&conversation->reply);
            conversation->reply.interrupted = status == GUMBEL_ERROR_CANCELLED;
            return conversation->reply.interrupted ? GUMBEL_OK : status;
        }
        begun = stable;
    }
    double seconds = cli_seconds() - begin;
    gumbel_status status = generate(conversation, tokens->ids + begun, tokens->count - begun, error);
    conversation->reply.prompt_tokens += begun - held;
    conversation->reply.first_token_seconds += seconds;
    return status;
}

/* How many of the tokens the session holds already; at least one is left to run. */
static size_t held_length(const cli_conversation *conversation, const cli_tokens *tokens) {
    const int32_t *held;
    uint32_t position = gumbel_session_position(conversation->model->session, &held);
    return conversation->format.raw ? 0 : common_length(held, position, tokens->ids, tokens->count - 1);
}

/* Runs what is new of the tokens and generates. Without a reply the session goes back to where it was. */
static gumbel_status run_turn(cli_conversation *conversation, const cli_tokens *tokens, gumbel_error *error) {
    size_t held = held_length(conversation, tokens);
    uint32_t from = conversation->format.raw ? gumbel_session_position(conversation->model->session, NULL)
                                             : (uint32_t)held;
    gumbel_status status = cli_generator_rewind(&conversation->generator, from, error);
    if (status != GUMBEL_OK)
        return status;
    status = run_prompt(conversation, tokens, held, error);
    if (conversation->reply.tokens.count > 0) {
        gumbel_status noted = note_reply(conversation, status == GUMBEL_OK ? error : NULL);
        return status == GUMBEL_OK ? noted : status; /* the first error is the one to tell */
    }
    gumbel_error ignored; /* the first error is the one to tell */
    cli_generator_rewind(&conversation->generator, from, &ignored);
    return status;
}

gumbel_status cli_converse(cli_conversation *conversation, const char *text, size_t length,
                           gumbel_error *error) {
    if (!conversation->format.raw && memchr(text, '\0', length))
        return refuse(error, GUMBEL_ERROR_ARGUMENT,
                      "the message has a zero byte, which no message can have; plain text can, with --raw");
    cli_tokens tokens = {0};
    size_t before = conversation->message_count;
    gumbel_status status = encode_turn(conversation, text, length, &tokens, error);
    size_t with_this_turn = conversation->message_count;
    if (status == GUMBEL_OK)
        status = check_turn(conversation, &tokens, error);
    if (status == GUMBEL_OK)
        status = run_turn(conversation, &tokens, error);
    while (conversation->message_count == with_this_turn && conversation->message_count > before) {
        pop_message(conversation); /* it got no reply */
        with_this_turn--;
    }
    cli_tokens_free(&tokens);
    return status;
}

gumbel_status cli_regenerate(cli_conversation *conversation, gumbel_error *error) {
    uint32_t prompt_end = conversation->reply.prompt_end;
    if (prompt_end == 0)
        return refuse(error, GUMBEL_ERROR_ARGUMENT, "there is no reply to replace");
    gumbel_session *session = conversation->model->session;
    const int32_t *held;
    gumbel_session_position(session, &held);
    int32_t last = held[prompt_end - 1];
    gumbel_status status = cli_generator_rewind(&conversation->generator, prompt_end - 1, error);
    if (status != GUMBEL_OK)
        return status;
    bool has_message = conversation->message_count > 0; /* not after a turn that was refused */
    if (has_message)
        pop_message(conversation);
    status = generate(conversation, &last, 1, error);
    if (has_message) {
        gumbel_status noted = note_reply(conversation, status == GUMBEL_OK ? error : NULL);
        status = status == GUMBEL_OK ? noted : status;
    }
    if (conversation->reply.tokens.count == 0 && gumbel_session_position(session, NULL) < prompt_end)
        gumbel_session_append(session, &last, 1, NULL);
    conversation->reply.prompt_end = prompt_end;
    return status;
}

void cli_conversation_reset(cli_conversation *conversation) {
    gumbel_session_reset(conversation->model->session);
    forget_messages(conversation);
    cli_reply_free(&conversation->reply);
    conversation->generator.prompt.count = 0;
}

static char *messages_path(const char *path) {
    cli_text text = {0};
    cli_text_add(&text, path, strlen(path));
    cli_text_add(&text, ".json", strlen(".json"));
    return text.bytes;
}

gumbel_status cli_conversation_save(cli_conversation *conversation, const char *path, gumbel_error *error) {
    gumbel_status status = gumbel_session_save(conversation->model->session, path, error);
    if (status != GUMBEL_OK || conversation->format.raw)
        return status;
    char *beside = messages_path(path);
    status = cli_messages_write(beside, conversation->messages, conversation->message_count, error);
    free(beside);
    return status;
}

/* The messages in the file, in place of those of the conversation. */
static gumbel_status read_messages(cli_conversation *conversation, const char *path, gumbel_error *error) {
    cli_plain_message *read;
    size_t count;
    gumbel_status status = cli_messages_read(path, &read, &count, error);
    if (status != GUMBEL_OK)
        return status;
    forget_messages(conversation);
    for (size_t i = 0; i < count; i++)
        push_message(conversation, read[i].role, read[i].content);
    free(read);
    return GUMBEL_OK;
}

gumbel_status cli_conversation_load(cli_conversation *conversation, const char *path, gumbel_error *error) {
    gumbel_status status = gumbel_session_load(conversation->model->session, path, error);
    if (status != GUMBEL_OK)
        return status;
    forget_messages(conversation);
    cli_reply_free(&conversation->reply);
    conversation->generator.prompt.count = 0;
    if (conversation->format.raw)
        return GUMBEL_OK;
    char *beside = messages_path(path);
    status = read_messages(conversation, beside, error);
    free(beside);
    if (status != GUMBEL_OK)
        gumbel_session_reset(conversation->model->session);
    return status;
}

void cli_conversation_free(cli_conversation *conversation) {
    forget_messages(conversation);
    free(conversation->messages);
    conversation->messages = NULL;
    cli_reply_free(&conversation->reply);
    cli_generator_free(&conversation->generator);
    cli_output_close(&conversation->output);
    cli_stops_free(&conversation->stops);
    cli_template_free(&conversation->template);
}
