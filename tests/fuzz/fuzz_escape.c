/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes as text that a terminal is to get: what comes out has nothing left to escape, and in JSON it is a
 * string that a parser reads.
 */
#include "base/byte_buffer.h"
#include "gumbel.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void keep(void *user, const char *text, size_t length) {
    gb_buffer_append(user, text, length);
}

static gb_byte_buffer escape(gumbel_escape_style style, const void *text, size_t size) {
    gb_byte_buffer escaped = {0};
    gumbel_escape(style, text, size, keep, &escaped);
    return escaped;
}

static void check_again(gumbel_escape_style style, const gb_byte_buffer *text) {
    gb_byte_buffer again = escape(style, text->text, text->size);
    if (again.size != text->size || (again.size > 0 && memcmp(again.data, text->data, again.size) != 0))
        abort();
    gb_buffer_free(&again);
}

static void check_json(const gb_byte_buffer *text) {
    gb_byte_buffer quoted = {0};
    gb_buffer_append(&quoted, "\"", 1);
    if (text->size > 0)
        gb_buffer_append(&quoted, text->data, text->size);
    gb_buffer_append(&quoted, "\"", 1);
    json_t *string = json_loadb(quoted.text, quoted.size, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    if (!json_is_string(string))
        abort();
    json_decref(string);
    gb_buffer_free(&quoted);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    for (int style = GUMBEL_ESCAPE_LINE; style <= GUMBEL_ESCAPE_JSON; style++) {
        gb_byte_buffer escaped = escape((gumbel_escape_style)style, data, size);
        if (style == GUMBEL_ESCAPE_JSON)
            check_json(&escaped);
        else
            check_again((gumbel_escape_style)style, &escaped);
        gb_buffer_free(&escaped);
    }
    return 0;
}
