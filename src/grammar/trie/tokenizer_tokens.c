/* SPDX-License-Identifier: Apache-2.0 */
#include "grammar/trie/tokenizer_tokens.h"

#include "base/memory.h"
#include "text/tokenizer/text_steps.h"
#include "text/tokenizer/tokenizer.h"

/* What the decoder makes of the spelling of a token that is no byte, appended. */
static void append_decoded(const gb_text_steps *decoder, const char *text, size_t length,
                           gb_byte_buffer *bytes) {
    gb_byte_buffer now = {0}, next = {0};
    gb_buffer_append(&now, text, length);
    for (uint32_t i = 0; i < decoder->count; i++) {
        if (decoder->items[i].kind != GB_DECODE_REPLACE)
            continue;
        next.size = 0;
        gb_replace(&decoder->items[i], (const char *)now.data, now.size, &next);
        gb_byte_buffer last = now;
        now = next;
        next = last;
    }
    gb_buffer_append(bytes, now.data, now.size);
    bytes->failed |= now.failed | next.failed;
    gb_buffer_free(&now);
    gb_buffer_free(&next);
}

static void append_token(const gumbel_tokenizer *tokenizer, int32_t token, gb_byte_buffer *bytes) {
    const gb_tokenizer_data *data = &tokenizer->data;
    size_t length;
    const char *text = gb_token_text(data, token, &length);
    bool has_bytes = data->decoder.count > 0 &&
                     data->decoder.items[data->decoder.count - 1].kind == GB_DECODE_BYTE_FALLBACK;
    int byte = has_bytes ? gb_byte_of_spelling(text, length) : -1;
    if (tokenizer->vocabulary.flags[token] & GB_ADDED_SPECIAL)
        return;
    if (byte >= 0)
        gb_buffer_append(bytes, &(uint8_t){(uint8_t)byte}, 1);
    else if (gb_is_byte_level(data))
        gb_buffer_append(bytes, text, length);
    else
        append_decoded(&data->decoder, text, length, bytes);
}

/* Fills tokens with what lies in bytes, which grew while ends were noted. */
static void place_tokens(gb_token_bytes *tokens, size_t count, const gb_byte_buffer *bytes) {
    const uint8_t *start = bytes->data;
    for (size_t i = 0; i < count; i++) {
        tokens[i].data = start;
        start += tokens[i].size;
    }
}

gumbel_status gb_write_tokenizer_trie(const gumbel_tokenizer *tokenizer, gb_byte_buffer *section,
                                      gumbel_error *error) {
    uint32_t count = tokenizer->id_limit;
    gb_token_bytes *tokens = gb_allocate(count, sizeof *tokens);
    gb_byte_buffer bytes = {.failed = !tokens};
    for (uint32_t i = 0; i < count && i < tokenizer->data.token_count && !bytes.failed; i++) {
        size_t before = bytes.size;
        append_token(tokenizer, (int32_t)i, &bytes);
        tokens[i].size = bytes.size - before;
    }
    gumbel_status status = GUMBEL_ERROR_MEMORY;
    if (bytes.failed) {
        gb_fail(error, status, "token trie: no memory for %u tokens", count);
    } else {
        place_tokens(tokens, count, &bytes);
        status = gb_token_trie_write(tokens, count, section, error);
    }
    gb_free(tokens);
    gb_buffer_free(&bytes);
    return status;
}
