/* SPDX-License-Identifier: Apache-2.0
 *
 * A reply as an assistant's message of OpenAI's API.
 */
#include "base/status.h"
#include "text/reply/json_text.h"
#include "text/reply/reply.h"

#include <string.h>

static void append(gb_byte_buffer *json, const char *text) {
    gb_buffer_append(json, text, strlen(text));
}

/* Whether the part is the first one of its field. */
static bool is_first(const gb_reply_parts *parts, size_t index) {
    for (size_t i = 0; i < index; i++)
        if (parts->items[i].field == parts->items[index].field)
            return false;
    return true;
}

/* The texts of all parts of one type. */
static void append_texts(const gb_reply_parts *parts, gumbel_part_type type, gb_byte_buffer *json) {
    gb_byte_buffer text = {0};
    bool goes_on = false;
    for (size_t i = 0; i < parts->count; i++) {
        const gb_reply_part *part = &parts->items[i];
        if (part->type != type)
            continue;
        if (goes_on && part->text.size > 0)
            append(&text, part->field ? part->field->join : "");
        gb_buffer_append(&text, part->text.data, part->text.size);
        goes_on |= part->text.size > 0;
    }
    gb_append_json_string(json, text.data ? (const char *)text.data : "", text.size);
    json->failed |= text.failed;
    gb_buffer_free(&text);
}

/* The values of a field that is none of the usual ones: one by itself, several as a list. */
static void append_values(const gb_reply_parts *parts, const gb_reply_field *field, gb_byte_buffer *json) {
    const size_t start = json->size;
    size_t count = 0;
    for (size_t i = 0; i < parts->count; i++) {
        const gb_reply_part *part = &parts->items[i];
        if (part->field != field)
            continue;
        append(json, count++ > 0 ? "," : "[");
        gb_buffer_append(json, part->text.data, part->text.size);
    }
    if (count == 1 && !json->failed)
        json->data[start] = ' ';
    else
        append(json, "]");
}

static void append_call(const gb_reply_part *part, gb_byte_buffer *json) {
    append(json, "{\"id\":");
    gb_append_json_string(json, part->id, strlen(part->id));
    append(json, ",\"type\":\"function\",\"function\":{\"name\":");
    gb_append_json_string(json, part->name, strlen(part->name));
    append(json, ",\"arguments\":");
    gb_append_json_string(json, (const char *)part->text.data, part->text.size);
    append(json, "}}");
}

static void append_calls(const gb_reply_parts *parts, gb_byte_buffer *json) {
    append(json, ",\"tool_calls\":");
    for (size_t i = 0; i < parts->count; i++) {
        if (parts->items[i].type != GUMBEL_PART_TOOL_CALL)
            continue;
        append(json, parts->items[i].call == 0 ? "[" : ",");
        append_call(&parts->items[i], json);
    }
    append(json, "]");
}

static bool has_type(const gb_reply_parts *parts, gumbel_part_type type) {
    for (size_t i = 0; i < parts->count; i++)
        if (parts->items[i].type == type)
            return true;
    return false;
}

static void append_message(const gb_reply_parts *parts, gb_byte_buffer *json) {
    append(json, "{\"role\":\"assistant\",\"content\":");
    if (has_type(parts, GUMBEL_PART_CONTENT) || parts->calls == 0)
        append_texts(parts, GUMBEL_PART_CONTENT, json);
    else
        append(json, "null");
    if (has_type(parts, GUMBEL_PART_REASONING)) {
        append(json, ",\"reasoning_content\":");
        append_texts(parts, GUMBEL_PART_REASONING, json);
    }
    for (size_t i = 0; i < parts->count; i++) {
        if (parts->items[i].type != GUMBEL_PART_OTHER || !is_first(parts, i))
            continue;
        append(json, ",");
        gb_append_json_string(json, parts->items[i].name, strlen(parts->items[i].name));
        append(json, ":");
        append_values(parts, parts->items[i].field, json);
    }
    if (parts->calls > 0)
        append_calls(parts, json);
    append(json, "}");
}

gumbel_status gumbel_reply_message(const gumbel_reply *reply, gumbel_write_callback write, void *user,
                                   gumbel_error *error) {
    gb_byte_buffer json = {0};
    append_message(&reply->parts, &json);
    const bool good = !json.failed;
    if (good)
        write(user, (const char *)json.data, json.size);
    gb_buffer_free(&json);
    return good ? GUMBEL_OK : gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for a message");
}
