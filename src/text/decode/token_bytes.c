/* SPDX-License-Identifier: Apache-2.0 */
#include "text/decode/token_bytes.h"

#include "text/tokenizer/text_steps.h"

void gb_append_spelling(const gb_tokenizer_data *data, const char *spelling, size_t length,
                        gb_byte_buffer *output, gb_byte_buffer *spare) {
    const gb_text_steps *decoder = &data->decoder;
    const size_t start = output->size;
    gb_buffer_append(output, spelling, length);
    for (uint32_t i = 0; i < decoder->count; i++) {
        if (decoder->items[i].kind != GB_DECODE_REPLACE)
            continue;
        spare->size = 0;
        gb_replace(&decoder->items[i], (const char *)output->data + start, output->size - start, spare);
        output->size = start;
        gb_buffer_append(output, spare->data, spare->size);
    }
}

int gb_token_byte(const gb_tokenizer_data *data, const char *spelling, size_t length) {
    const gb_text_steps *decoder = &data->decoder;
    const bool has_byte_tokens =
        decoder->count > 0 && decoder->items[decoder->count - 1].kind == GB_DECODE_BYTE_FALLBACK;
    return has_byte_tokens ? gb_byte_of_spelling(spelling, length) : -1;
}

void gb_append_token_bytes(const gumbel_tokenizer *tokenizer, int32_t token, gb_byte_buffer *output,
                           gb_byte_buffer *spare) {
    const gb_tokenizer_data *data = &tokenizer->data;
    size_t length;
    if ((uint32_t)token >= data->token_count || !gb_is_ordinary(&tokenizer->vocabulary, token))
        return;
    const char *spelling = gb_token_text(data, token, &length);
    const int byte = gb_token_byte(data, spelling, length);
    if (gb_is_byte_level(data))
        gb_buffer_append(output, spelling, length);
    else if (byte >= 0)
        gb_buffer_append(output, &(uint8_t){(uint8_t)byte}, 1);
    else
        gb_append_spelling(data, spelling, length, output, spare);
}
