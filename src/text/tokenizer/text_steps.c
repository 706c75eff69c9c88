/* SPDX-License-Identifier: Apache-2.0 */
#include "text/tokenizer/text_steps.h"

#include "text/tokenizer/nfc.h"

#include <string.h>

/* The first place of the pattern in text, or length. */
static size_t find(const char *text, size_t length, const char *pattern, size_t pattern_length) {
    for (size_t at = 0; at + pattern_length <= length; at++) {
        const char *candidate = memchr(text + at, pattern[0], length - at - pattern_length + 1);
        if (!candidate)
            return length;
        at = (size_t)(candidate - text);
        if (memcmp(candidate, pattern, pattern_length) == 0)
            return at;
    }
    return length;
}

void gb_replace(const gb_text_step *step, const char *text, size_t length, gb_byte_buffer *output) {
    while (length > 0) {
        size_t at = find(text, length, step->pattern, step->pattern_length);
        gb_buffer_append(output, text, at);
        if (at == length)
            return;
        gb_buffer_append(output, step->content, step->content_length);
        text += at + step->pattern_length;
        length -= at + step->pattern_length;
    }
}

static void normalize_once(const gb_text_step *step, const char *text, size_t length,
                           gb_byte_buffer *output) {
    switch (step->kind) {
    case GB_NORMALIZE_NFC:
        gb_append_nfc(text, length, output);
        break;
    case GB_NORMALIZE_PREPEND:
        gb_buffer_append(output, step->content, step->content_length);
        gb_buffer_append(output, text, length);
        break;
    default:
        gb_replace(step, text, length, output);
    }
}

void gb_normalize(const gb_text_steps *steps, const char *text, size_t length, gb_byte_buffer *output,
                  gb_byte_buffer *spare) {
    output->size = 0;
    gb_buffer_append(output, text, length);
    for (uint32_t i = 0; i < steps->count && !output->failed; i++) {
        spare->size = 0;
        normalize_once(&steps->items[i], (const char *)output->data, output->size, spare);
        gb_byte_buffer swapped = *output;
        *output = *spare;
        *spare = swapped;
    }
}

/* A pattern that follows text ends the text's piece; one that follows a pattern is a piece of its own. */
size_t gb_first_piece(const gb_text_step *step, const char *text, size_t length) {
    size_t at = find(text, length, step->pattern, step->pattern_length);
    return at == length ? length : at + step->pattern_length;
}
