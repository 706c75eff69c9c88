/* SPDX-License-Identifier: Apache-2.0 */
#include "text/chat/chat_encode.h"

#include "base/memory.h"
#include "text/chat/chat_render.h"
#include "text/tokenizer/encode.h"

gumbel_status gb_chat_render_with(const gumbel_tokenizer *tokenizer, const gumbel_message *messages,
                                  size_t count, const gumbel_chat_options *options, gb_jinja_output *output,
                                  gumbel_error *error) {
    static const gumbel_chat_options defaults = {.size = sizeof defaults};
    if (!options)
        options = &defaults;
    if (options->size < sizeof *options)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "gumbel_chat_options: size is %zu instead of %zu",
                       options->size, sizeof *options);
    const gb_chat_section *section = tokenizer->chat.templates ? &tokenizer->chat : NULL;
    return gb_chat_render(section, messages, count, options, output, error);
}

gumbel_status gb_chat_encode_range(const gumbel_tokenizer *tokenizer, const gb_jinja_output *output,
                                   size_t start, size_t end, gb_token_sink *sink, gumbel_error *error) {
    gb_span *spans;
    size_t count;
    GB_TRY(gb_chat_literal_spans(output, start, end, &spans, &count, error));
    const gb_literal_spans literal = {spans, count};
    gumbel_status status = gb_encode(tokenizer, output->text + start, end - start, &literal, sink, error);
    gb_free(spans);
    return status;
}
