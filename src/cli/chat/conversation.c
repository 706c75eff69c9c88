/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/chat/conversation.h"

#include "cli/base/report.h"

#include <stdlib.h>
#include <string.h>

static gumbel_status refuse(gumbel_error *error, gumbel_status status, const char *message) {
    cli_refuse(error, "%s", message);
    return error->status = status;
}

static void push_message(cli_conversation *conversation, const char *role, const char *text, size_t length) {
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
        (gumbel_message){role, cli_copy_text(text, length)};
}

static void pop_message(cli_conversation *conversation) {
    if (conversation->message_count > 0)
        free((char *)(uintptr_t)conversation->messages[--conversation->message_count].content);
}

static void forget_messages(cli_conversation *conversation) {
    while (conversation->message_count > 0)
        pop_message(conversation);
    conversation->thought = false;
}

static bool ends_in_stop(const cli_conversation *conversation, const int32_t *tokens, uint32_t count) {
    const gumbel_program_info *info = &conversation->model->info;
    for (size_t i = 0; count > 0 && i < info->stop_token_count; i++)
        if (tokens[count - 1] == info->stop_tokens[i])
            return true;
    return false;
}

/* Lets the messages begin at the session's present position. */
static void begin_messages(cli_conversation *conversation) {
    const int32_t *tokens;
    forget_messages(conversation);
    conversation->start = gumbel_session_position(conversation->model->session, &tokens);
    conversation->continues = conversation->start > 0;
    conversation->turn_is_closed = ends_in_stop(conversation, tokens, conversation->start);
    if (!conversation->continues && conversation->format.system)
        push_message(conversation, "system", conversation->format.system,
                     strlen(conversation->format.system));
}

/* What the session must hold from `start` on for the model to answer text. */
static gumbel_status encode_turn(cli_conversation *conversation, const char *text, size_t length,
                                 cli_tokens *tokens, gumbel_error *error) {
    const gumbel_tokenizer *tokenizer = conversation->model->tokenizer;
    if (!conversation->thought)
        begin_messages(conversation);
    if (conversation->format.raw) {
        gumbel_encode_options options = {.size = sizeof options};
        return cli_encode_text(tokenizer, text, length, &options, tokens, error);
    }
    push_message(conversation, "user", text, length);
    gumbel_chat_options options = {
        .size = sizeof options,
        .thinking = (gumbel_thinking)conversation->format.thinking,
        .continues = conversation->continues,
        .turn_is_closed = conversation->turn_is_closed,
    };
    return cli_encode_messages(tokenizer, conversation->messages, conversation->message_count, &options,
                               tokens, error);
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

/* Whether the chat format leaves part of an assistant's text out when it is rendered as an earlier message.
 */
static gumbel_status find_shortened(const cli_conversation *conversation, const cli_text *text,
                                    bool *shortened, gumbel_error *error) {
    const gumbel_tokenizer *tokenizer = conversation->model->tokenizer;
    gumbel_message message = {"assistant", text->bytes};
    gumbel_chat_options options = {.size = sizeof options, .no_generation_prompt = true};
    cli_tokens tokens = {0};
    cli_text rendered = {0};
    gumbel_status status = cli_encode_messages(tokenizer, &message, 1, &options, &tokens, error);
    if (status == GUMBEL_OK)
        status = add_text_of(tokenizer, &tokens, tokens.count, true, &rendered, error);
    size_t begin = strspn(text->bytes, " \t\r\n"), end = text->length;
    while (end > begin && strchr(" \t\r\n", text->bytes[end - 1]))
        end--;
    char *trimmed = cli_copy_text(text->bytes + begin, end - begin);
    *shortened = status == GUMBEL_OK && !strstr(rendered.bytes, trimmed);
    free(trimmed);
    cli_text_free(&rendered);
    cli_tokens_free(&tokens);
    return status;
}

/* Keeps the reply as a message. Thoughts are marked by special tokens: without any there is none. Where that
 * fails the conversation goes on as if the reply had none. */
static gumbel_status note_reply(cli_conversation *conversation, gumbel_error *error) {
    conversation->thought = false;
    if (conversation->format.raw)
        return GUMBEL_OK;
    const cli_reply *reply = &conversation->reply;
    const gumbel_tokenizer *tokenizer = conversation->model->tokenizer;
    size_t count = reply->tokens.count - (reply->finish == GUMBEL_FINISH_STOP ? 1 : 0);
    cli_text whole = {0}, plain = {0};
    gumbel_status status = add_text_of(tokenizer, &reply->tokens, count, true, &whole, error);
    if (status == GUMBEL_OK)
        status = add_text_of(tokenizer, &reply->tokens, count, false, &plain, error);
    if (status == GUMBEL_OK && whole.length != plain.length)
        status = find_shortened(conversation, &whole, &conversation->thought, error);
    if (status == GUMBEL_OK)
        push_message(conversation, "assistant", whole.bytes, whole.length);
    cli_text_free(&whole);
    cli_text_free(&plain);
    return status;
}

/* Generates after tokens that follow the session's position. */
static gumbel_status generate(cli_conversation *conversation, const int32_t *tokens, size_t count,
                              gumbel_error *error) {
    gumbel_generate_options options = {
        .size = sizeof options,
        .sampling = &conversation->sampling.values,
        .max_new_tokens = conversation->max_new_tokens,
        .snapshot = true,
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

/* How many of the tokens the session holds already, from `start` on; at least one is left to run. */
static uint32_t common_length(const cli_conversation *conversation, const cli_tokens *tokens) {
    const int32_t *held;
    uint32_t left = gumbel_session_position(conversation->model->session, &held) - conversation->start;
    uint32_t common = 0;
    while (common < left && common + 1 < tokens->count &&
           held[conversation->start + common] == tokens->ids[common])
        common++;
    return common;
}

static gumbel_status check_turn(const cli_conversation *conversation, const cli_tokens *tokens,
                                gumbel_error *error) {
    if (tokens->count == 0)
        return refuse(error, GUMBEL_ERROR_ARGUMENT, "the message is empty");
    if (tokens->count > conversation->model->max_context - conversation->start)
        return refuse(error, GUMBEL_ERROR_LIMIT,
                      "the context has no room for this turn; /reset begins a new conversation");
    return GUMBEL_OK;
}

/* Runs what is new of the tokens and generates. Without a reply the session goes back to where it was. */
static gumbel_status run_turn(cli_conversation *conversation, const cli_tokens *tokens, gumbel_error *error) {
    uint32_t common = common_length(conversation, tokens), from = conversation->start + common;
    gumbel_status status = cli_generator_rewind(&conversation->generator, from, error);
    if (status != GUMBEL_OK)
        return status;
    status = generate(conversation, tokens->ids + common, tokens->count - common, error);
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
    gumbel_status status = encode_turn(conversation, text, length, &tokens, error);
    size_t with_this_turn = conversation->message_count;
    if (status == GUMBEL_OK)
        status = check_turn(conversation, &tokens, error);
    if (status == GUMBEL_OK)
        status = run_turn(conversation, &tokens, error);
    if (conversation->message_count == with_this_turn && !conversation->format.raw)
        pop_message(conversation); /* it got no reply */
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

gumbel_status cli_conversation_save(cli_conversation *conversation, const char *path, gumbel_error *error) {
    return gumbel_session_save(conversation->model->session, path, error);
}

gumbel_status cli_conversation_load(cli_conversation *conversation, const char *path, gumbel_error *error) {
    gumbel_status status = gumbel_session_load(conversation->model->session, path, error);
    if (status != GUMBEL_OK)
        return status;
    forget_messages(conversation);
    cli_reply_free(&conversation->reply);
    conversation->generator.prompt.count = 0;
    return GUMBEL_OK;
}

void cli_conversation_free(cli_conversation *conversation) {
    forget_messages(conversation);
    free(conversation->messages);
    conversation->messages = NULL;
    cli_reply_free(&conversation->reply);
    cli_generator_free(&conversation->generator);
    cli_output_close(&conversation->output);
    cli_stops_free(&conversation->stops);
}
