/* SPDX-License-Identifier: Apache-2.0 */
#include "text/reply/reasoning.h"

#include "base/status.h"
#include "text/base/utf8.h"
#include "text/reply/reply.h"
#include "text/tokenizer/tokenizer.h"

#include <string.h>

bool gb_is_mark_of(const gb_mark_list *list, int32_t token) {
    for (size_t i = 0; i < list->count; i++)
        if (list->tokens[i] == token)
            return true;
    return false;
}

/* The value of a delimiter's key in the field. */
static const json_t *texts_of(const gumbel_tokenizer *tokenizer, const gb_reply_field *field,
                              const char *key) {
    const json_t *fields = json_object_get(tokenizer->reply_format->source, "fields");
    return json_object_get(json_object_get(fields, field->name), key);
}

static const char *text_at(const json_t *texts, size_t index) {
    return json_string_value(json_is_array(texts) ? json_array_get(texts, index) : texts);
}

/* Whether the token may begin the opening: one behind other text, as of a recipient, begins an answer too. */
static bool begins_opening(const gumbel_tokenizer *tokenizer, const gb_reply_field *field, int32_t token) {
    const json_t *texts = texts_of(tokenizer, field, "open");
    const size_t count = json_is_array(texts) ? json_array_size(texts) : 1;
    for (size_t i = 0; i < tokenizer->reply_mark_count; i++) {
        const gb_mark *mark = &tokenizer->reply_marks[i];
        for (size_t k = 0; texts && mark->token == token && k < count; k++)
            if (strncmp(text_at(texts, k), mark->text, mark->length) == 0)
                return true;
    }
    return !texts;
}

/* Leaves out the tokens that no opening begins with. */
static void keep_first_marks(const gumbel_tokenizer *tokenizer, const gb_reply_field *field,
                             gb_mark_list *open) {
    size_t kept = 0;
    for (size_t i = 0; i < open->count; i++)
        if (begins_opening(tokenizer, field, open->tokens[i]))
            open->tokens[kept++] = open->tokens[i];
    open->count = kept;
}

/* Adds the tokens that a delimiter is spelled with. */
static void add_marks(const gumbel_tokenizer *tokenizer, const gb_text_pattern *delimiter,
                      gb_mark_list *list) {
    for (size_t i = 0; delimiter && i < tokenizer->reply_mark_count && list->count < GB_MOST_REASONING_MARKS;
         i++) {
        const gb_mark *mark = &tokenizer->reply_marks[i];
        if (gb_pattern_mentions(delimiter, mark->text, mark->length))
            list->tokens[list->count++] = mark->token;
    }
}

/* The first of the texts that close the field, where it is a token; otherwise any token that does. */
static int32_t closing_of(const gumbel_tokenizer *tokenizer, const gb_reply_field *field,
                          const gb_mark_list *close) {
    const char *first = text_at(texts_of(tokenizer, field, "close"), 0);
    for (size_t i = 0; first && i < tokenizer->reply_mark_count; i++) {
        const gb_mark *mark = &tokenizer->reply_marks[i];
        if (mark->length == strlen(first) && memcmp(mark->text, first, mark->length) == 0)
            return mark->token;
    }
    return close->count > 0 ? close->tokens[0] : -1;
}

gb_reasoning_marks gb_read_reasoning_marks(const gumbel_tokenizer *tokenizer) {
    const gb_reply_format *format = tokenizer->reply_format;
    gb_reasoning_marks marks = {.closing = -1};
    for (int i = 0; format && i < format->field_count; i++) {
        const gb_reply_field *field = &format->fields[i];
        if (field->type == GUMBEL_PART_TOOL_CALL)
            add_marks(tokenizer, field->open, &marks.calls);
        if (field->type != GUMBEL_PART_REASONING)
            continue;
        marks.reasons = true;
        add_marks(tokenizer, field->open, &marks.open);
        keep_first_marks(tokenizer, field, &marks.open);
        add_marks(tokenizer, field->close, &marks.close);
        marks.closing = closing_of(tokenizer, field, &marks.close);
    }
    return marks;
}

gumbel_status gb_prompt_opens_reasoning(const gumbel_tokenizer *tokenizer, const int32_t *prompt,
                                        size_t count, bool *opens, gumbel_error *error) {
    const gumbel_reply_options options = {.size = sizeof options, .prompt = prompt, .prompt_count = count};
    gumbel_reply *reply;
    GB_TRY(gumbel_reply_create(tokenizer, &options, &reply, error));
    *opens = reply->field >= 0 && reply->format->fields[reply->field].type == GUMBEL_PART_REASONING;
    gumbel_reply_destroy(reply);
    return GUMBEL_OK;
}

/* ---- Where the answer proper begins -------------------------------------------------------------------- */

gumbel_status gb_await_answer(const gumbel_tokenizer *tokenizer, const int32_t *prompt, size_t count,
                              gb_answer_start *start, gumbel_error *error) {
    *start = (gb_answer_start){.marks = gb_read_reasoning_marks(tokenizer), .tokenizer = tokenizer};
    start->is_awaited = start->marks.close.count > 0;
    return start->is_awaited ? gb_prompt_opens_reasoning(tokenizer, prompt, count, &start->reasons, error)
                             : GUMBEL_OK;
}

static const gb_mark *mark_of(const gumbel_tokenizer *tokenizer, int32_t token) {
    for (size_t i = 0; i < tokenizer->reply_mark_count; i++)
        if (tokenizer->reply_marks[i].token == token)
            return &tokenizer->reply_marks[i];
    return NULL;
}

typedef enum opening_match { NO_OPENING, PART_OF_OPENING, WHOLE_OPENING } opening_match;

static opening_match match_text(const char *text, const char *opening, size_t length) {
    if (strncmp(text, opening, length) != 0)
        return NO_OPENING;
    return text[length] == '\0' ? WHOLE_OPENING : PART_OF_OPENING;
}

/* Of the format's reasoning; where that opens by a pattern its marks alone are an opening. */
static opening_match match_opening(const gumbel_tokenizer *tokenizer, const char *opening, size_t length) {
    opening_match best = NO_OPENING;
    for (int i = 0; i < tokenizer->reply_format->field_count; i++) {
        const gb_reply_field *field = &tokenizer->reply_format->fields[i];
        const json_t *texts = texts_of(tokenizer, field, "open");
        if (field->type != GUMBEL_PART_REASONING)
            continue;
        if (!texts)
            return WHOLE_OPENING;
        for (size_t k = 0; k < (json_is_array(texts) ? json_array_size(texts) : 1); k++) {
            const opening_match match = match_text(text_at(texts, k), opening, length);
            best = match > best ? match : best;
        }
    }
    return best;
}

/* Marks open more than reasoning where a channel's name stands between them: the whole opening decides. */
static void follow_opening(gb_answer_start *start, const gb_mark *mark, const char *text, size_t length) {
    const char *spelled = mark ? mark->text : text;
    const size_t size = mark ? mark->length : length, left = GB_MOST_OPENING - start->opening_length;
    opening_match match = NO_OPENING;
    if (size < left) {
        memcpy(start->opening + start->opening_length, spelled, size);
        start->opening_length += size;
        match = match_opening(start->tokenizer, start->opening, start->opening_length);
    }
    start->reasons = match == WHOLE_OPENING;
    start->is_in_heading = match == NO_OPENING && !mark;
    if (match != PART_OF_OPENING)
        start->opening_length = 0;
}

size_t gb_before_answer(gb_answer_start *start, int32_t token, const char *text, size_t length) {
    size_t from = 0, to = length;
    if (!start->is_awaited)
        return 0;
    const bool opens = gb_is_mark_of(&start->marks.open, token),
               closes = gb_is_mark_of(&start->marks.close, token);
    const gb_mark *mark = mark_of(start->tokenizer, token);
    if (start->is_in_heading) {
        start->is_in_heading = !mark;
        return length;
    }
    if (!start->reasons && (opens || start->opening_length > 0)) {
        follow_opening(start, mark, text, length);
        return length;
    }
    start->reasons = start->reasons && !closes;
    if (start->reasons || closes)
        return length;
    gb_utf8_strip(text, &from, &to);
    start->is_awaited = from == to;
    return start->is_awaited ? length : from;
}
