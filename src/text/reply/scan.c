/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the delimiters of a reply. What is done depends on the text alone, not on how it came in pieces: a
 * delimiter counts when nothing that follows can change where it begins and ends.
 */
#include "text/base/utf8.h"
#include "text/reply/call.h"

#include <string.h>

typedef enum event_kind { OPENS, CLOSES, STRAY } event_kind;

/* The first delimiter from `at` on. */
typedef struct event {
    event_kind kind;
    int field;
    size_t start, end;
    bool is_found;
    size_t pending; /* what begins here may become one; otherwise the end of the text */
    gb_search search;
} event;

/* ---- Texts --------------------------------------------------------------------------------------------- */

static bool is_text(const gumbel_reply *reply, int field) {
    return field < 0 || reply->format->fields[field].is_streamed;
}

/* Shows bytes [start, end) of the text, without what a reader is not shown unless shows_all. What the prompt
 * had is not part of the reply. */
static void show(gumbel_reply *reply, size_t start, size_t end, bool shows_all) {
    const gb_marked_text *text = &reply->text;
    const char *raw = (const char *)text->raw.data;
    if (start < reply->begin) {
        const size_t known = end < reply->begin ? end : reply->begin;
        size_t from = start, to = known;
        gb_utf8_strip(raw, &from, &to);
        if (from < to)
            gb_continue_text(&reply->parts);
        start = known;
    }
    size_t next = 0, last = text->hidden_count;
    while (next < last) { /* the first that ends behind start */
        const size_t middle = (next + last) / 2;
        if (text->hidden[middle].end <= start)
            next = middle + 1;
        else
            last = middle;
    }
    for (; !shows_all && next < text->hidden_count && text->hidden[next].start < end; next++) {
        if (text->hidden[next].start > start)
            gb_show_text(&reply->parts, raw + start, text->hidden[next].start - start);
        start = text->hidden[next].end;
    }
    if (start < end)
        gb_show_text(&reply->parts, raw + start, end - start);
}

/* Whether the text between fields is discarded: the format has a field for all that counts. */
static bool is_discarded(const gumbel_reply *reply, int field) {
    return field == GB_NO_FIELD && reply->format && reply->format->rest < 0;
}

void gb_enter_text(gumbel_reply *reply, int field, size_t raw) {
    const int of = field == GB_NO_FIELD && reply->format ? reply->format->rest : field;
    reply->field = field;
    if (raw < reply->begin)
        raw = reply->begin;
    gb_open_text(&reply->parts, of < 0 ? NULL : &reply->format->fields[of], raw);
}

/* Bytes up to `end` have no delimiter. */
static void pass(gumbel_reply *reply, size_t end) {
    const bool is_shown =
        is_text(reply, reply->field) && (reply->is_plain || !is_discarded(reply, reply->field));
    if (end > reply->at && is_shown)
        show(reply, reply->at, end, false);
    if (end > reply->at)
        reply->at = end;
}

static bool matches(const gumbel_reply *reply, const gb_text_pattern *pattern, size_t start, size_t end) {
    const gb_text_match match =
        gb_pattern_find(pattern, reply->matcher, (const char *)reply->text.search.data,
                        reply->text.search.size, start, GB_SEARCH_HERE);
    return match.state == GB_MATCH_FOUND && match.end == end;
}

/* ---- Fields -------------------------------------------------------------------------------------------- */

/* Goes back to the text around a field that is none; it goes on behind `raw`, as a part of its own if the
 * field has given parts. */
static void go_back(gumbel_reply *reply, size_t raw, bool has_parts) {
    reply->field = reply->outer;
    if (has_parts)
        gb_enter_text(reply, reply->outer, raw);
}

/* Whether the bytes close the text around the open field, as the end of a turn does. */
static bool closes_outer(const gumbel_reply *reply, size_t start, size_t end) {
    const gb_reply_format *format = reply->format;
    const int outer = reply->outer == GB_NO_FIELD ? format->rest : reply->outer;
    const gb_text_pattern *close = outer < 0 ? NULL : format->fields[outer].close;
    return close && matches(reply, close, start, end);
}

static void forget_field(gumbel_reply *reply) {
    json_decref(reply->captures);
    reply->captures = NULL;
}

/* The open field, which is no text, ends: its text at `end`, what belongs to it at `behind`. Scanning goes on
 * behind it, but what closes the text around a malformed one is not part of that. */
static void finish_field(gumbel_reply *reply, size_t end, size_t behind, bool is_closed) {
    const bool good = gb_add_field_parts(reply, end, behind, is_closed);
    reply->at = !good && closes_outer(reply, end, behind) ? end : behind;
    if (!good) {
        show(reply, reply->opened, reply->at, true);
        gb_warn_text(&reply->parts,
                     is_closed ? "a malformed tool call is text" : "a tool call without its end is text");
    }
    go_back(reply, behind, good);
    forget_field(reply);
}

/* What opened the field is text, and what follows is looked at anew. */
static void take_back_opening(gumbel_reply *reply) {
    show(reply, reply->opened, reply->body, true);
    gb_warn_text(&reply->parts, "a tool call that does not begin as one is text");
    reply->at = reply->body;
    reply->text_mark = reply->field;
    go_back(reply, reply->body, false);
    forget_field(reply);
}

/* Finds the opening again, since the matcher's last search may have been another one. */
static void read_captures(gumbel_reply *reply, const gb_text_pattern *open, const event *found) {
    const gb_marked_text *text = &reply->text;
    const char *name, *raw = (const char *)text->raw.data;
    gb_text_match group;
    reply->captures = json_object();
    if (gb_pattern_find(open, reply->matcher, (const char *)text->search.data, text->search.size,
                        found->start, found->search)
            .state != GB_MATCH_FOUND)
        return;
    for (uint32_t i = 0; (name = gb_pattern_group_name(open, i)); i++)
        if (gb_pattern_group(open, reply->matcher, name, &group))
            json_object_set_new(reply->captures, name,
                                json_stringn_nocheck(raw + group.start, group.end - group.start));
}

static void open_field(gumbel_reply *reply, const event *found) {
    const gb_reply_field *field = &reply->format->fields[found->field];
    if (!is_text(reply, reply->field))
        finish_field(reply, found->start, found->start, false);
    if (field->is_streamed) {
        gb_enter_text(reply, found->field, found->start);
        return;
    }
    reply->outer = reply->field;
    reply->field = found->field;
    reply->opened = found->start;
    reply->body = found->end;
    reply->has_begun = !field->begin;
    read_captures(reply, field->open, found);
}

static void close_field(gumbel_reply *reply, const event *found) {
    if (is_text(reply, reply->field)) {
        gb_enter_text(reply, GB_NO_FIELD, found->end);
        reply->at = found->end;
    } else if (found->field == reply->field) {
        finish_field(reply, found->start, found->end, true);
    } else { /* the text around it closes */
        finish_field(reply, found->start, found->start, false);
    }
}

/* Whether a mark too many belongs to an opening that was text. */
static bool is_text_mark(gumbel_reply *reply, const event *found) {
    const gb_reply_format *format = reply->format;
    for (int i = 0; i < format->field_count; i++) {
        const gb_reply_field *field = &format->fields[i];
        const bool was_text = reply->text_mark == i || (reply->text_fields >> i & 1);
        if (was_text && field->close && matches(reply, field->close, found->start, found->end))
            return true;
    }
    return false;
}

static void handle(gumbel_reply *reply, const event *found) {
    pass(reply, found->start);
    if (found->start == found->end)
        reply->empty_at = found->start;
    if (found->kind == CLOSES) {
        close_field(reply, found);
        return;
    }
    if (found->kind == OPENS) {
        open_field(reply, found);
    } else if (is_text_mark(reply, found)) { /* shown as its opening was */
        show(reply, found->start, found->end, reply->text_mark != GB_NO_FIELD);
        reply->text_mark = GB_NO_FIELD;
    }
    reply->at = found->end;
}

/* ---- Delimiters ---------------------------------------------------------------------------------------- */

static bool comes_first(const event *best, event_kind kind, size_t start, size_t end) {
    if (!best->is_found || start != best->start)
        return !best->is_found || start < best->start;
    return end != best->end ? end > best->end : kind < best->kind;
}

/* The next match that can be a delimiter. One that is too long is none, but what begins behind its first
 * character may be; one without bytes neither stands twice in a place nor at the end of what is known. */
static gb_text_match find_match(const gumbel_reply *reply, const gb_text_pattern *pattern, gb_search search) {
    const char *text = (const char *)reply->text.search.data;
    const size_t size = reply->text.search.size;
    gb_text_match match = {GB_MATCH_NONE, size, size};
    for (size_t from = reply->at; pattern;) {
        match = gb_pattern_find(pattern, reply->matcher, text, size, from, search);
        if (match.state == GB_MATCH_PENDING)
            match.end = size;
        const bool is_empty = match.state == GB_MATCH_FOUND && match.start == match.end;
        if (is_empty && match.start == size &&
            (search == GB_SEARCH_GROWING || match.start == reply->empty_at))
            match.state = GB_MATCH_NONE;
        else if (match.end - match.start > GB_MAX_REPLY_MARKER ||
                 (is_empty && match.start == reply->empty_at)) {
            from = match.start + gb_utf8_size(text[match.start]);
            continue;
        }
        break;
    }
    return match;
}

/* Whether text stands before a byte that was not passed yet: of a call in the reply itself, since one that is
 * required follows whatever the prompt has begun. */
static bool follows_text(const gumbel_reply *reply, const gb_reply_field *field, size_t at) {
    const bool is_call = field->type == GUMBEL_PART_TOOL_CALL;
    size_t from = is_call && reply->at < reply->begin ? reply->begin : reply->at, to = at;
    if (from < to)
        gb_utf8_strip((const char *)reply->text.raw.data, &from, &to);
    return from < to || (is_call ? reply->parts.text.has_part : reply->parts.text.goes_on);
}

static void look_for(gumbel_reply *reply, const gb_text_pattern *pattern, event_kind kind, int field,
                     event *best) {
    gb_text_match match = find_match(reply, pattern, best->search);
    const bool is_there = match.state == GB_MATCH_FOUND || match.state == GB_MATCH_PENDING;
    if (is_there && kind == OPENS && reply->format->fields[field].leads &&
        follows_text(reply, &reply->format->fields[field], match.start))
        match.state = GB_MATCH_NONE;
    if (match.state == GB_MATCH_FAILED) {
        reply->is_plain = true;
    } else if (match.state == GB_MATCH_PENDING) {
        best->pending = match.start < best->pending ? match.start : best->pending;
    } else if (match.state == GB_MATCH_FOUND && comes_first(best, kind, match.start, match.end)) {
        best->kind = kind;
        best->field = field;
        best->start = match.start;
        best->end = match.end;
        best->is_found = true;
    }
}

/* Whether the field can open where the reply is. */
static bool can_open(const gumbel_reply *reply, const gb_reply_field *field) {
    if (reply->text_fields >> (field - reply->format->fields) & 1)
        return false;
    return reply->field == GB_NO_FIELD || ((field->within | field->ends) >> reply->field & 1);
}

static void look_for_close(gumbel_reply *reply, int field, event *best) {
    field = field == GB_NO_FIELD ? reply->format->rest : field;
    if (field != GB_NO_FIELD)
        look_for(reply, reply->format->fields[field].close, CLOSES, field, best);
}

static event find_delimiter(gumbel_reply *reply, bool is_whole) {
    const gb_reply_format *format = reply->format;
    event best = {.pending = reply->text.search.size,
                  .search = is_whole ? GB_SEARCH_WHOLE : GB_SEARCH_GROWING};
    for (int i = 0; i < format->field_count; i++)
        if (can_open(reply, &format->fields[i]))
            look_for(reply, format->fields[i].open, OPENS, i, &best);
    look_for_close(reply, reply->field, &best);
    if (!is_text(reply, reply->field))
        look_for_close(reply, reply->outer, &best);
    if (reply->field == GB_NO_FIELD)
        look_for(reply, format->stray, STRAY, GB_NO_FIELD, &best);
    if (best.is_found && best.start >= best.pending)
        best.is_found = false;
    return best;
}

/* The most that a field which is no text may have is text again, and what follows is looked at anew. */
static bool overflows(gumbel_reply *reply, const event *next) {
    const size_t limit = reply->body + reply->max_call;
    const size_t known = next->is_found ? next->start : next->pending;
    if (is_text(reply, reply->field) || known <= limit)
        return false;
    size_t end = limit; /* whole characters */
    while (end > reply->body && ((uint8_t)reply->text.raw.data[end] & 0xC0) == 0x80)
        end--;
    show(reply, reply->opened, end, true);
    gb_warn_text(&reply->parts, "a tool call that is too long is text");
    reply->at = end;
    reply->field = reply->outer;
    forget_field(reply);
    return true;
}

/* Whether the open field's text does not begin as it has to, which is known before its end is. */
static bool fails_to_begin(gumbel_reply *reply, const event *next) {
    if (is_text(reply, reply->field) || reply->has_begun)
        return false;
    const size_t known = next->is_found ? next->start : reply->text.raw.size;
    const size_t limit = reply->body + reply->max_call, end = known < limit ? known : limit;
    const bool is_complete = end == known && (next->is_found || next->search == GB_SEARCH_WHOLE);
    if (end == reply->body && !is_complete)
        return false;
    const gb_text_match match = gb_pattern_find(reply->format->fields[reply->field].begin, reply->matcher,
                                                (const char *)reply->text.raw.data, end, reply->body,
                                                is_complete ? GB_SEARCH_HERE : GB_SEARCH_HERE_GROWING);
    reply->has_begun = match.state == GB_MATCH_FOUND;
    return match.state == GB_MATCH_NONE || match.state == GB_MATCH_FAILED;
}

/* Delimiters take too long to find: all that follows is text. */
static void give_up(gumbel_reply *reply) {
    if (!is_text(reply, reply->field)) {
        show(reply, reply->opened, reply->at, true);
        reply->field = reply->outer;
    }
    pass(reply, reply->text.raw.size);
    gb_warn_text(&reply->parts, "the reply format's patterns take too long: the rest is text");
}

/* The end without tokens that a reader is not shown, as that of the turn is. */
static size_t end_of_shown(const gb_marked_text *text) {
    size_t end = text->raw.size;
    for (size_t i = text->hidden_count; i > 0 && text->hidden[i - 1].end == end; i--)
        end = text->hidden[i - 1].start;
    return end;
}

static void end_text(gumbel_reply *reply) {
    const size_t end = reply->text.raw.size;
    gb_reply_parts *parts = &reply->parts;
    pass(reply, end);
    if (!is_text(reply, reply->field)) {
        const size_t shown = end_of_shown(&reply->text), last = shown > reply->body ? shown : reply->body;
        finish_field(reply, last, last, false);
    }
    if (parts->count == 0 && end > reply->begin && is_discarded(reply, GB_NO_FIELD)) {
        gb_enter_text(reply, GB_NO_FIELD, reply->begin);
        show(reply, reply->begin, end, false);
    }
    if (parts->count == 0 && end > reply->begin) {
        const gb_byte_buffer nothing = {0};
        gb_add_part(parts, NULL, reply->begin, NULL, NULL, &nothing, NULL);
    }
    gb_close_text(parts);
}

void gb_scan_reply(gumbel_reply *reply, bool is_whole) {
    while (reply->format && !reply->is_plain) {
        const event next = find_delimiter(reply, is_whole);
        if (reply->is_plain)
            break;
        if (fails_to_begin(reply, &next)) {
            take_back_opening(reply);
            continue;
        }
        if (overflows(reply, &next))
            continue;
        if (!next.is_found) {
            pass(reply, next.pending);
            break;
        }
        handle(reply, &next);
    }
    if (reply->is_plain)
        give_up(reply);
    if (!reply->format)
        pass(reply, reply->text.raw.size);
    if (is_whole)
        end_text(reply);
}
