/* SPDX-License-Identifier: Apache-2.0
 *
 * The chat functions of gumbel.h.
 */
#include "base/file_map.h"
#include "base/memory.h"
#include "text/tokenizer/encode.h"

enum { MAX_CHAT_FORMAT_FILE = 1 << 20 };

static gumbel_status encode_chat(const gumbel_tokenizer *tokenizer, const gumbel_message *messages,
                                 size_t message_count, const gumbel_chat_options *options, gb_chat_text *chat,
                                 gb_token_sink *sink, gumbel_error *error) {
    GB_TRY(gb_chat_render(&tokenizer->chat_format, messages, message_count, options, chat, error));
    gb_literal_spans literal = {chat->literal, chat->literal_count};
    return gb_encode(tokenizer, (const char *)chat->text.data, chat->text.size, &literal, sink, error);
}

gumbel_status gumbel_chat_encode(const gumbel_tokenizer *tokenizer, const gumbel_message *messages,
                                 size_t message_count, const gumbel_chat_options *options, int32_t *tokens,
                                 size_t capacity, size_t *count, gumbel_error *error) {
    static const gumbel_chat_options defaults = {.size = sizeof defaults};
    if (!options)
        options = &defaults;
    if (options->size < sizeof *options)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "gumbel_chat_options: size is %zu instead of %zu",
                       options->size, sizeof *options);
    if (!tokenizer->has_chat_format)
        return gb_fail(error, GUMBEL_ERROR_UNSUPPORTED,
                       "the program has no chat format; load one (--chat-format FILE) or give plain text "
                       "(--raw)");
    gb_token_sink sink = {.tokens = tokens, .capacity = capacity};
    gb_chat_text chat = {0};
    gumbel_status status = encode_chat(tokenizer, messages, message_count, options, &chat, &sink, error);
    gb_chat_text_free(&chat);
    return status == GUMBEL_OK ? gb_finish_sink(&sink, count, error) : status;
}

gumbel_status gumbel_chat_format_load(gumbel_tokenizer *tokenizer, const char *path, gumbel_error *error) {
    char *text;
    size_t size;
    gb_chat_format format;
    GB_TRY(gb_read_file(path, MAX_CHAT_FORMAT_FILE, &text, &size, error));
    gumbel_status status = gb_chat_format_parse_json(text, size, path, &format, error);
    gb_free(text);
    GB_TRY(status);
    gb_chat_format_free(&tokenizer->chat_format);
    tokenizer->chat_format = format;
    tokenizer->has_chat_format = true;
    return GUMBEL_OK;
}
