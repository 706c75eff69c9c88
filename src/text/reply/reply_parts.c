/* SPDX-License-Identifier: Apache-2.0 */
#include "text/reply/reply_parts.h"

#include "base/memory.h"
#include "text/base/utf8.h"

void gb_reply_parts_free(gb_reply_parts *parts) {
    for (size_t i = 0; i < parts->count; i++) {
        gb_buffer_free(&parts->items[i].text);
        gb_free(parts->items[i].id);
        gb_free(parts->items[i].name);
    }
    gb_free(parts->items);
    gb_free(parts->deltas);
    gb_buffer_free(&parts->text.space);
}

static gb_reply_part *new_part(gb_reply_parts *parts, const gb_reply_field *field, size_t raw) {
    if (!gb_grow((void **)&parts->items, &parts->capacity, parts->count + 1, sizeof *parts->items)) {
        parts->failed = true;
        return NULL;
    }
    gb_reply_part *part = &parts->items[parts->count++];
    *part = (gb_reply_part){
        .type = field ? field->type : GUMBEL_PART_CONTENT, .field = field, .raw = raw, .call = -1};
    return part;
}

/* Says that the last part's text is new from `start` on. Goes on with a delta that nobody has taken. */
static void add_delta(gb_reply_parts *parts, size_t start, bool begins, const char *warning) {
    const size_t part = parts->count - 1, end = parts->items[part].text.size;
    gb_part_delta *last = parts->delta_count > parts->taken ? &parts->deltas[parts->delta_count - 1] : NULL;
    if (last && last->part == part && !begins) {
        last->end = end;
        last->warning = warning ? warning : last->warning;
        return;
    }
    if (parts->taken == parts->delta_count)
        parts->taken = parts->delta_count = 0;
    if (!gb_grow((void **)&parts->deltas, &parts->delta_capacity, parts->delta_count + 1,
                 sizeof *parts->deltas)) {
        parts->failed = true;
        return;
    }
    parts->deltas[parts->delta_count++] =
        (gb_part_delta){.part = part, .start = start, .end = end, .begins = begins, .warning = warning};
}

void gb_open_text(gb_reply_parts *parts, const gb_reply_field *field, size_t raw) {
    gb_close_text(parts);
    parts->text.field = field;
    parts->text.is_open = true;
    parts->text.strips = field && field->parser.strips;
    parts->text.raw = raw;
}

/* Appends to the text's part, which may begin with it. */
static void append(gb_reply_parts *parts, const char *bytes, size_t length) {
    const bool begins = !parts->text.has_part;
    if (begins && !new_part(parts, parts->text.field, parts->text.raw))
        return;
    parts->text.has_part = parts->text.goes_on = true;
    gb_reply_part *part = &parts->items[parts->count - 1];
    const size_t start = part->text.size;
    gb_buffer_append(&part->text, parts->text.space.data, parts->text.space.size);
    gb_buffer_append(&part->text, bytes, length);
    parts->text.space.size = 0;
    parts->failed |= part->text.failed;
    if (!part->text.failed)
        add_delta(parts, start, begins, NULL);
}

void gb_show_text(gb_reply_parts *parts, const char *text, size_t length) {
    size_t start = 0, end = length;
    if (!parts->text.is_open || length == 0)
        return;
    if (parts->text.strips)
        gb_utf8_strip(text, &start, &end);
    if (start < end)
        append(parts, text + (parts->text.goes_on ? 0 : start), end - (parts->text.goes_on ? 0 : start));
    else
        end = 0; /* all of it is white space */
    if (parts->text.goes_on)
        gb_buffer_append(&parts->text.space, text + end, length - end);
    parts->failed |= parts->text.space.failed;
}

void gb_warn_text(gb_reply_parts *parts, const char *warning) {
    if (!parts->text.has_part)
        return;
    gb_reply_part *part = &parts->items[parts->count - 1];
    part->warning = warning;
    add_delta(parts, part->text.size, false, warning);
}

void gb_continue_text(gb_reply_parts *parts) {
    parts->text.goes_on = true;
}

void gb_close_text(gb_reply_parts *parts) {
    parts->text.is_open = parts->text.has_part = parts->text.goes_on = false;
    parts->text.space.size = 0;
}

void gb_add_part(gb_reply_parts *parts, const gb_reply_field *field, size_t raw, char *id, char *name,
                 const gb_byte_buffer *text, const char *warning) {
    gb_reply_part *part = new_part(parts, field, raw);
    if (!part) {
        gb_free(id);
        gb_free(name);
        return;
    }
    part->id = id;
    part->name = name;
    part->warning = warning;
    if (part->type == GUMBEL_PART_TOOL_CALL)
        part->call = parts->calls++;
    gb_buffer_append(&part->text, text->data, text->size);
    parts->failed |= part->text.failed;
    add_delta(parts, 0, true, warning);
}
