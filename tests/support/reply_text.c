/* SPDX-License-Identifier: Apache-2.0 */
#include "support/reply_text.h"

#include "text/base/utf8.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void require(bool holds, const char *what) {
    if (holds)
        return;
    fprintf(stderr, "reply: not so: %s\n", what);
    abort();
}

void join_deltas(gumbel_reply *reply, joined_deltas *joined) {
    gumbel_reply_delta delta = {.size = sizeof delta};
    while (gumbel_reply_next(reply, &delta)) {
        require(delta.part == joined->count - (delta.begins ? 0 : 1), "deltas are in the order of parts");
        require(delta.begins == (delta.part == joined->count), "a part begins once");
        joined->count = delta.part + 1;
        require(gb_utf8_is_valid(delta.text, delta.text_length), "a delta is UTF-8");
        require((delta.type == GUMBEL_PART_TOOL_CALL) == (delta.call >= 0), "calls have numbers");
        require(delta.call < 0 || (delta.id && delta.name && *delta.id && *delta.name), "calls have names");
        if (joined->count <= MOST_REPLY_PARTS)
            gb_buffer_append(&joined->parts[delta.part], delta.text, delta.text_length);
    }
}

void free_deltas(joined_deltas *joined) {
    for (size_t i = 0; i < joined->count && i < MOST_REPLY_PARTS; i++)
        gb_buffer_free(&joined->parts[i]);
    joined->count = 0;
}

static void add_text(gb_byte_buffer *description, const char *name, const char *text, size_t length) {
    gb_buffer_append(description, name, strlen(name));
    gb_buffer_append(description, text, length);
    gb_buffer_append(description, "\n", 1);
}

static void add_string(gb_byte_buffer *description, const char *name, const char *text) {
    add_text(description, name, text ? text : "-", strlen(text ? text : "-"));
}

void describe_reply(const gumbel_reply *reply, const joined_deltas *joined, const char *text, size_t length,
                    gb_byte_buffer *description) {
    gb_byte_buffer raw = {0};
    gumbel_reply_part part = {.size = sizeof part};
    const size_t count = gumbel_reply_part_count(reply);
    description->size = 0;
    require(joined->count == count, "every part has deltas");
    for (size_t i = 0; i < count; i++) {
        require(gumbel_reply_get_part(reply, i, &part, NULL) == GUMBEL_OK, "there is the part");
        char number[48];
        snprintf(number, sizeof number, "part %zu type %d call %d", i, (int)part.type, (int)part.call);
        add_string(description, "", number);
        add_string(description, "id ", part.id);
        add_string(description, "name ", part.name);
        add_string(description, "warning ", part.warning);
        add_text(description, "text ", part.text, part.text_length);
        add_text(description, "raw ", part.raw, part.raw_length);
        gb_buffer_append(&raw, part.raw, part.raw_length);
        const gb_byte_buffer *deltas = i < MOST_REPLY_PARTS ? &joined->parts[i] : NULL;
        require(!deltas || (deltas->size == part.text_length &&
                            (deltas->size == 0 || memcmp(deltas->data, part.text, deltas->size) == 0)),
                "the deltas of a part are its text");
    }
    require(raw.size == length && (length == 0 || memcmp(raw.data, text, length) == 0),
            "the raw texts are the text");
    gb_buffer_free(&raw);
}
