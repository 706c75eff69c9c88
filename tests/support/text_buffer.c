/* SPDX-License-Identifier: Apache-2.0 */
#include "support/text_buffer.h"

#include <stdlib.h>
#include <string.h>

static void append(void *user, const char *text, size_t length) {
    text_buffer *buffer = user;
    char *grown = realloc(buffer->text, buffer->length + length + 1);
    if (!grown)
        abort();
    memcpy(grown + buffer->length, text, length);
    buffer->length += length;
    grown[buffer->length] = 0;
    buffer->text = grown;
}

gb_text_sink text_buffer_sink(text_buffer *buffer) {
    return (gb_text_sink){append, buffer};
}
