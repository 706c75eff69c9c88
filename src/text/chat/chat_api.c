/* SPDX-License-Identifier: Apache-2.0
 *
 * The chat functions of gumbel.h.
 */
#include "base/memory.h"
#include "text/chat/chat_render.h"
#include "text/tokenizer/encode.h"

static gumbel_status encode_rendered(const gumbel_tokenizer *tokenizer, const gb_jinja_output *output,
                                     gb_token_sink *sink, gumbel_error *error) {
    gb_span *spans;
    size_t count;
    GB_TRY(gb_chat_literal_spans(output, &spans, &count, error));
    gb_literal_spans literal = {spans, count};
    gumbel_status status = gb_encode(tokenizer, output->text, output->length, &literal, sink, error);
    gb_free(spans);
    return status;
}

static gumbel_status render(const gumbel_tokenizer *tokenizer, const gumbel_message *messages,
                            size_t message_count, const gumbel_chat_options *options, gb_jinja_output *output,
                            gumbel_error *error) {
    static const gumbel_chat_options defaults = {.size = sizeof defaults};
    if (!options)
        options = &defaults;
    if (options->size < sizeof *options)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "gumbel_chat_options: size is %zu instead of %zu",
                       options->size, sizeof *options);
    const gb_chat_section *section = tokenizer->chat.templates ? &tokenizer->chat : NULL;
    return gb_chat_render(section, messages, message_count, options, output, error);
}

gumbel_status gumbel_chat_encode(const gumbel_tokenizer *tokenizer, const gumbel_message *messages,
                                 size_t message_count, const gumbel_chat_options *options, int32_t *tokens,
                                 size_t capacity, size_t *count, gumbel_error *error) {
    gb_token_sink sink = {.tokens = tokens, .capacity = capacity};
    gb_jinja_output output = {0};
    GB_TRY(render(tokenizer, messages, message_count, options, &output, error));
    gumbel_status status = encode_rendered(tokenizer, &output, &sink, error);
    gb_jinja_output_free(&output);
    return status == GUMBEL_OK ? gb_finish_sink(&sink, count, error) : status;
}

gumbel_status gumbel_chat_render(const gumbel_tokenizer *tokenizer, const gumbel_message *messages,
                                 size_t message_count, const gumbel_chat_options *options,
                                 gumbel_write_callback write, void *user, gumbel_error *error) {
    gb_jinja_output output = {0};
    GB_TRY(render(tokenizer, messages, message_count, options, &output, error));
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
