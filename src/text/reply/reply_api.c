/* SPDX-License-Identifier: Apache-2.0
 *
 * Replies as gumbel.h has them.
 */
#include "base/file_map.h"
#include "base/memory.h"
#include "base/status.h"
#include "text/decode/detokenizer.h"
#include "text/reply/reply.h"
#include "text/reply/tool_types.h"
#include "text/tokenizer/tokenizer.h"

#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

/* ---- Text ---------------------------------------------------------------------------------------------- */

static bool ends_with(const char *text, size_t length, const char *end, size_t size) {
    return size <= length && memcmp(text + length - size, end, size) == 0;
}

static bool is_mark(const gb_marked_text *text, int32_t token) {
    for (size_t i = 0; i < text->mark_count; i++)
        if (text->marks[i].token == token)
            return true;
    return false;
}

/* Adds the token's text, and what it is. */
static gumbel_status put_token(gumbel_reply *reply, gb_marked_text *text, int32_t token,
                               gumbel_error *error) {
    const gumbel_tokenizer *tokenizer = reply->tokenizer;
    const char *piece, *spelling = "";
    size_t length, size = 0;
    GB_TRY(gumbel_detokenize(reply->detokenizer, token, &piece, &length, error));
    if ((uint32_t)token < tokenizer->data.token_count)
        spelling = gb_token_text(&tokenizer->data, token, &size);
    const bool is_hidden = size > 0 && (tokenizer->vocabulary.flags[token] & GB_ADDED_SPECIAL);
    if ((is_hidden || is_mark(text, token)) && ends_with(piece, length, spelling, size))
        gb_add_special(text, piece, length, size, is_hidden);
    else
        gb_add_ordinary(text, piece, length);
    return GUMBEL_OK;
}

/* What the detokenizer still holds back. */
static void put_rest(gumbel_reply *reply, gb_marked_text *text) {
    const char *piece;
    size_t length;
    gumbel_detokenize_end(reply->detokenizer, &piece, &length);
    gb_add_ordinary(text, piece, length);
}

/* ---- The prompt ---------------------------------------------------------------------------------------- */

enum { FIRST_TOKENS = 1024 }; /* of the prompt's end that are looked at first */

/* Where the reply begins in the prompt's text: behind its last anchor. False: there is none. */
static bool find_begin(const gumbel_reply *reply, const gb_marked_text *text, size_t *begin) {
    bool found = false;
    for (size_t from = 0; from < text->search.size;) {
        const gb_text_match match =
            gb_pattern_find(reply->format->anchor, reply->matcher, (const char *)text->search.data,
                            text->search.size, from, GB_SEARCH_WHOLE);
        if (match.state != GB_MATCH_FOUND)
            break;
        found = true;
        *begin = match.end;
        from = match.end > from ? match.end : from + 1;
        while (from < text->search.size && (text->search.data[from] & 0xC0) == 0x80)
            from++;
    }
    return found;
}

/* Leaves out the first size bytes. */
static void drop_begin(gb_marked_text *text, size_t size) {
    text->raw.size -= size;
    text->search.size -= size;
    if (text->raw.size > 0) {
        memmove(text->raw.data, text->raw.data + size, text->raw.size);
        memmove(text->search.data, text->search.data + size, text->search.size);
    }
    size_t kept = 0;
    for (size_t i = 0; i < text->hidden_count; i++)
        if (text->hidden[i].start >= size)
            text->hidden[kept++] = (gb_span){text->hidden[i].start - size, text->hidden[i].end - size};
    text->hidden_count = kept;
    text->ordinary = text->raw.size;
}

/* Puts the last `count` tokens' text, or the text, as if it had been generated. */
static gumbel_status put_prompt(gumbel_reply *reply, const gumbel_reply_options *options, size_t count,
                                gumbel_error *error) {
    gb_marked_text *text = &reply->text;
    text->raw.size = text->search.size = text->hidden_count = text->ordinary = 0;
    for (size_t i = options->prompt_count - count; i < options->prompt_count; i++)
        GB_TRY(put_token(reply, text, options->prompt[i], error));
    put_rest(reply, text);
    if (options->prompt_count == 0) {
        gb_add_text(text, options->prompt_text, options->prompt_text_length);
        gb_end_text(text);
    }
    return text->failed ? gb_no_memory(error, "a reply") : GUMBEL_OK;
}

/* Reads the prompt's end, further back while no reply begins there. */
static gumbel_status read_prompt(gumbel_reply *reply, const gumbel_reply_options *options,
                                 gumbel_error *error) {
    size_t begin = 0;
    bool found = false;
    for (size_t count = FIRST_TOKENS; reply->format && reply->format->anchor && !found; count *= 4) {
        const bool is_all = count >= options->prompt_count;
        GB_TRY(put_prompt(reply, options, is_all ? options->prompt_count : count, error));
        found = find_begin(reply, &reply->text, &begin);
        if (is_all)
            break;
    }
    drop_begin(&reply->text, found ? begin : reply->text.raw.size);
    reply->begin = reply->text.raw.size;
    reply->prompt_hash = XXH3_64bits(options->prompt, options->prompt_count * sizeof *options->prompt);
    if (options->prompt_text_length > 0)
        reply->prompt_hash =
            XXH3_64bits_withSeed(options->prompt_text, options->prompt_text_length, reply->prompt_hash);
    return GUMBEL_OK;
}

/* ---- Creating ------------------------------------------------------------------------------------------ */

static uint32_t text_fields_of(const gb_reply_format *format, const gumbel_reply_options *options) {
    uint32_t fields = 0;
    for (int i = 0; format && i < format->field_count; i++) {
        const gb_reply_field *field = &format->fields[i];
        const bool is_text = (options->calls_are_text && field->type == GUMBEL_PART_TOOL_CALL) ||
                             (options->reasoning_is_text && field->type == GUMBEL_PART_REASONING) ||
                             (field->needs_tools && !options->tools);
        fields |= is_text ? 1U << i : 0;
    }
    return fields;
}

static gumbel_status fill(gumbel_reply *reply, const gumbel_reply_options *options, gumbel_error *error) {
    const gumbel_tokenizer *tokenizer = reply->tokenizer;
    reply->format = tokenizer->reply_format;
    reply->empty_at = SIZE_MAX;
    reply->field = reply->outer = reply->text_mark = GB_NO_FIELD;
    reply->text_fields = text_fields_of(reply->format, options);
    reply->max_call = options->max_call_bytes ? options->max_call_bytes : GB_DEFAULT_CALL_BYTES;
    if (reply->max_call > GB_MAX_REPLY_BYTES)
        reply->max_call = GB_MAX_REPLY_BYTES;
    reply->text.marks = tokenizer->reply_marks;
    reply->text.mark_count = tokenizer->reply_mark_count;
    for (size_t i = 0; i < reply->text.mark_count; i++)
        if (reply->text.marks[i].length > reply->text.longest_mark)
            reply->text.longest_mark = reply->text.marks[i].length;
    GB_TRY(gumbel_detokenizer_create(tokenizer, true, &reply->detokenizer, error));
    GB_TRY(gb_pattern_matcher_create(&reply->matcher, error));
    GB_TRY(gb_read_tools(options->tools, &reply->tools, error));
    GB_TRY(read_prompt(reply, options, error));
    gb_enter_text(reply, GB_NO_FIELD, reply->begin);
    gb_scan_reply(reply, false);
    return reply->parts.failed ? gb_no_memory(error, "a reply") : GUMBEL_OK;
}

gumbel_status gumbel_reply_create(const gumbel_tokenizer *tokenizer, const gumbel_reply_options *options,
                                  gumbel_reply **reply, gumbel_error *error) {
    static const gumbel_reply_options defaults = {.size = sizeof defaults};
    *reply = NULL;
    if (!options)
        options = &defaults;
    if (options->size < sizeof *options)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "gumbel_reply_options: size is %zu instead of %zu",
                       options->size, sizeof *options);
    gumbel_reply *created = gb_allocate(1, sizeof *created);
    if (!created)
        return gb_no_memory(error, "a reply");
    created->tokenizer = tokenizer;
    gumbel_status status = fill(created, options, error);
    if (status == GUMBEL_OK)
        *reply = created;
    else
        gumbel_reply_destroy(created);
    return status;
}

void gumbel_reply_destroy(gumbel_reply *reply) {
    if (!reply)
        return;
    gumbel_detokenizer_destroy(reply->detokenizer);
    gb_pattern_matcher_destroy(reply->matcher);
    json_decref(reply->tools);
    json_decref(reply->captures);
    gb_marked_text_free(&reply->text);
    gb_reply_parts_free(&reply->parts);
    gb_free(reply);
}

/* ---- Adding -------------------------------------------------------------------------------------------- */

/* Bytes of text that are looked at at once, so that searches are short however long the text is. */
enum { PIECE = 4096 };

static gumbel_status check_open(const gumbel_reply *reply, gumbel_error *error) {
    if (reply->has_ended)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "the reply has ended");
    return reply->text.failed || reply->parts.failed ? gb_no_memory(error, "a reply") : GUMBEL_OK;
}

static gumbel_status scan(gumbel_reply *reply, bool is_whole, gumbel_error *error) {
    if (reply->text.failed)
        return gb_no_memory(error, "a reply");
    if (reply->text.raw.size - reply->begin > GB_MAX_REPLY_BYTES)
        return gb_fail(error, GUMBEL_ERROR_LIMIT, "the reply is longer than %d bytes", GB_MAX_REPLY_BYTES);
    gb_scan_reply(reply, is_whole);
    return reply->parts.failed ? gb_no_memory(error, "a reply") : GUMBEL_OK;
}

gumbel_status gumbel_reply_add_token(gumbel_reply *reply, int32_t token, gumbel_error *error) {
    GB_TRY(check_open(reply, error));
    gb_end_text(&reply->text);
    GB_TRY(put_token(reply, &reply->text, token, error));
    return scan(reply, false, error);
}

gumbel_status gumbel_reply_add_text(gumbel_reply *reply, const char *text, size_t length,
                                    gumbel_error *error) {
    GB_TRY(check_open(reply, error));
    if (length > GB_MAX_REPLY_BYTES)
        return gb_fail(error, GUMBEL_ERROR_LIMIT, "the reply is longer than %d bytes", GB_MAX_REPLY_BYTES);
    put_rest(reply, &reply->text);
    for (size_t at = 0, size; at < length; at += size) {
        size = length - at < PIECE ? length - at : PIECE;
        gb_add_text(&reply->text, text + at, size);
        GB_TRY(scan(reply, false, error));
    }
    return GUMBEL_OK;
}

gumbel_status gumbel_reply_end(gumbel_reply *reply, gumbel_error *error) {
    GB_TRY(check_open(reply, error));
    put_rest(reply, &reply->text);
    gb_end_text(&reply->text);
    GB_TRY(scan(reply, false, error));
    GB_TRY(scan(reply, true, error));
    reply->has_ended = true;
    return GUMBEL_OK;
}

/* ---- Parts --------------------------------------------------------------------------------------------- */

static const char *text_at(const gb_byte_buffer *buffer, size_t at) {
    return buffer->data ? (const char *)buffer->data + at : "";
}

static const char *name_of(const gb_reply_part *part) {
    return part->type == GUMBEL_PART_TOOL_CALL || part->type == GUMBEL_PART_OTHER ? part->name : NULL;
}

/* What stands between a part that begins and the texts of its type before it. */
static const char *separator_of(const gb_reply_parts *parts, size_t index) {
    const gb_reply_part *part = &parts->items[index];
    for (size_t i = 0; i < index; i++)
        if (parts->items[i].type == part->type && parts->items[i].text.size > 0)
            return part->field ? part->field->join : "";
    return "";
}

bool gumbel_reply_next(gumbel_reply *reply, gumbel_reply_delta *delta) {
    gb_reply_parts *parts = &reply->parts;
    if (parts->taken == parts->delta_count || delta->size < sizeof *delta)
        return false;
    const gb_part_delta *next = &parts->deltas[parts->taken++];
    const gb_reply_part *part = &parts->items[next->part];
    *delta = (gumbel_reply_delta){.size = delta->size,
                                  .part = next->part,
                                  .type = part->type,
                                  .begins = next->begins,
                                  .call = part->call,
                                  .id = part->id,
                                  .name = name_of(part),
                                  .text = text_at(&part->text, next->start),
                                  .text_length = next->end - next->start,
                                  .warning = next->warning,
                                  .separator = next->begins ? separator_of(parts, next->part) : ""};
    return true;
}

size_t gumbel_reply_part_count(const gumbel_reply *reply) {
    return reply->parts.count;
}

gumbel_status gumbel_reply_get_part(const gumbel_reply *reply, size_t index, gumbel_reply_part *part,
                                    gumbel_error *error) {
    const gb_reply_parts *parts = &reply->parts;
    if (part->size < sizeof *part)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "gumbel_reply_part: size is %zu instead of %zu",
                       part->size, sizeof *part);
    if (index >= parts->count)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "part %zu of a reply of %zu", index, parts->count);
    const gb_reply_part *found = &parts->items[index];
    const size_t start = index == 0 ? reply->begin : found->raw;
    const size_t end = index + 1 < parts->count ? parts->items[index + 1].raw : reply->text.raw.size;
    *part = (gumbel_reply_part){.size = part->size,
                                .type = found->type,
                                .call = found->call,
                                .id = found->id,
                                .name = name_of(found),
                                .text = text_at(&found->text, 0),
                                .text_length = found->text.size,
                                .raw = text_at(&reply->text.raw, start),
                                .raw_length = end - start,
                                .warning = found->warning};
    return GUMBEL_OK;
}
