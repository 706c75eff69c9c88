/* SPDX-License-Identifier: Apache-2.0
 *
 * The chat functions of gumbel.h.
 */
#include "text/chat/chat_encode.h"
#include "text/chat/chat_prompt.h"
#include "text/chat/chat_section.h"
#include "text/chat/chat_tools.h"
#include "text/tokenizer/encode.h"

gumbel_status gumbel_chat_encode(const gumbel_tokenizer *tokenizer, const gumbel_message *messages,
                                 size_t message_count, const gumbel_chat_options *options, int32_t *tokens,
                                 size_t capacity, size_t *count, gumbel_error *error) {
    gb_token_sink sink = {.tokens = tokens, .capacity = capacity};
    gb_jinja_output output = {0};
    GB_TRY(gb_chat_render_with(tokenizer, messages, message_count, options, &output, error));
    gumbel_status status = gb_chat_encode_range(tokenizer, &output, 0, output.length, &sink, error);
    gb_jinja_output_free(&output);
    return status == GUMBEL_OK ? gb_finish_sink(&sink, count, error) : status;
}

gumbel_status gumbel_chat_encode_branches(const gumbel_tokenizer *tokenizer, const gumbel_message *messages,
                                          size_t message_count, const gumbel_chat_options *options,
                                          int32_t *tokens, size_t capacity, size_t *count,
                                          uint32_t branches[GUMBEL_CHAT_BRANCHES], gumbel_error *error) {
    gb_token_sink sink = {.tokens = tokens, .capacity = capacity};
    gb_chat_prompt prompt = {0};
    GB_TRY(gb_chat_prompt_create(tokenizer, messages, message_count, options, &prompt, error));
    for (size_t i = 0; i < prompt.count; i++)
        gb_sink_token(&sink, prompt.tokens[i]);
    branches[0] = prompt.head_end;
    branches[1] = prompt.messages_end;
    gb_chat_prompt_free(&prompt);
    return gb_finish_sink(&sink, count, error);
}

gumbel_status gumbel_chat_render(const gumbel_tokenizer *tokenizer, const gumbel_message *messages,
                                 size_t message_count, const gumbel_chat_options *options,
                                 gumbel_write_callback write, void *user, gumbel_error *error) {
    gb_jinja_output output = {0};
    GB_TRY(gb_chat_render_with(tokenizer, messages, message_count, options, &output, error));
    write(user, output.text, output.length);
    gb_jinja_output_free(&output);
    return GUMBEL_OK;
}

const char *gumbel_chat_template(const gumbel_tokenizer *tokenizer, const char *name) {
    const char *text = NULL;
    if (tokenizer->chat.templates)
        gb_chat_section_choose(&tokenizer->chat, name, false, &text, NULL);
    return text;
}

bool gumbel_chat_shows_tools(const gumbel_tokenizer *tokenizer, const gumbel_chat_options *options) {
    const char *text = options ? options->template_text : NULL;
    if (!text && tokenizer->chat.templates)
        gb_chat_section_choose(&tokenizer->chat, options ? options->template_name : NULL, true, &text, NULL);
    return text && gb_chat_shows_tools(text);
}
