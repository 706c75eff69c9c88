/* SPDX-License-Identifier: Apache-2.0 */
#include "text/conversation/replay.h"

#include "base/byte_buffer.h"
#include "base/memory.h"
#include "text/chat/chat_render.h"
#include "text/tokenizer/encode.h"

#include <string.h>

size_t gb_common_tokens(const int32_t *a, size_t a_count, const int32_t *b, size_t b_count) {
    size_t common = 0;
    while (common < a_count && common < b_count && a[common] == b[common])
        common++;
    return common;
}

typedef struct replay {
    const gumbel_tokenizer *tokenizer;
    const char *text;
    size_t length;
    gb_literal_spans literal;
    const int32_t *record;
    size_t at, count; /* of the record */
    gumbel_detokenizer *detokenizer;
    gb_byte_buffer spelled;
    gb_id_list encoded;
} replay;

/* ---- Encoding into a list ------------------------------------------------------------------------------ */

static gumbel_status no_memory(gumbel_error *error) {
    return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory to encode a conversation");
}

static gumbel_status add_token(gb_id_list *tokens, int32_t id, gumbel_error *error) {
    if (!gb_grow((void **)&tokens->ids, &tokens->capacity, tokens->count + 1, sizeof *tokens->ids))
        return no_memory(error);
    tokens->ids[tokens->count++] = id;
    return GUMBEL_OK;
}

/* Appends what stands from the cursor on. */
static gumbel_status encode_rest(const replay *r, const gb_literal_spans *literal, const char *text,
                                 size_t length, gb_added_cursor cursor, gb_id_list *tokens,
                                 gumbel_error *error) {
    size_t needed = length - cursor.start + 8; /* seldom more than one id for a byte */
    for (;;) {
        if (!gb_grow((void **)&tokens->ids, &tokens->capacity, tokens->count + needed, sizeof *tokens->ids))
            return no_memory(error);
        gb_token_sink sink = {tokens->ids + tokens->count, tokens->capacity - tokens->count, 0};
        GB_TRY(gb_encode_from(r->tokenizer, text, length, literal, cursor, &sink, error));
        needed = sink.count;
        if (sink.count <= sink.capacity)
            break;
    }
    tokens->count += needed;
    return GUMBEL_OK;
}

/* ---- What of the record stands for a part of the text ---------------------------------------------------
 */

static bool is_added(const gumbel_tokenizer *tokenizer, int32_t token) {
    return (uint32_t)token < tokenizer->data.token_count && tokenizer->vocabulary.flags[token] != 0;
}

/* Spells the record's tokens up to the next added one. */
static gumbel_status spell(replay *r, size_t *count, gumbel_error *error) {
    const char *text;
    size_t length;
    r->spelled.size = 0;
    for (*count = 0; r->at + *count < r->count; ++*count) {
        if (is_added(r->tokenizer, r->record[r->at + *count]))
            break;
        GB_TRY(gumbel_detokenize(r->detokenizer, r->record[r->at + *count], &text, &length, error));
        gb_buffer_append(&r->spelled, text, length);
    }
    gumbel_detokenize_end(r->detokenizer, &text, &length);
    gb_buffer_append(&r->spelled, text, length);
    return r->spelled.failed ? no_memory(error) : GUMBEL_OK;
}

/* Whether the tokenizer's tokens for the part are the record's: those that it normalizes are spelled
 * otherwise than they were written. */
static gumbel_status compare_encoded(replay *r, gb_span part, size_t *count, bool *same,
                                     gumbel_error *error) {
    const size_t length = part.end - part.start;
    bool all_literal;
    const gb_span all = {0, length};
    const gb_literal_spans literal = {&all, gb_is_literal(&r->literal, part, &all_literal) ? 1 : 0};
    r->encoded.count = 0;
    GB_TRY(encode_rest(r, &literal, r->text + part.start, length, (gb_added_cursor){0}, &r->encoded, error));
    *count = r->encoded.count;
    *same = gb_common_tokens(r->record + r->at, r->count - r->at, r->encoded.ids, *count) == *count;
    return GUMBEL_OK;
}

/* Whether the record goes on with tokens that stand for the part, and how many. */
static gumbel_status compare(replay *r, gb_span part, size_t *count, bool *same, gumbel_error *error) {
    GB_TRY(spell(r, count, error));
    const size_t length = part.end - part.start;
    *same = r->spelled.size == length &&
            (length == 0 || memcmp(r->spelled.data, r->text + part.start, length) == 0);
    return *same ? GUMBEL_OK : compare_encoded(r, part, count, same, error);
}

/* Takes from the record, part by part, what it has of the text; *cursor is where the rest begins. */
static gumbel_status take_record(replay *r, gb_added_cursor *cursor, gb_id_list *tokens,
                                 gumbel_error *error) {
    while (r->at < r->count) {
        gb_added_cursor behind = *cursor;
        const gb_added_match match =
            gb_added_tokens_next(&r->tokenizer->raw_added, r->text, r->length, &r->literal, &behind);
        size_t count;
        bool same;
        if (match.id < 0)
            break; /* the last part is what is new */
        GB_TRY(compare(r, match.before, &count, &same, error));
        if (!same)
            break;
        for (size_t i = 0; i < count; i++)
            GB_TRY(add_token(tokens, r->record[r->at + i], error));
        GB_TRY(add_token(tokens, match.id, error));
        *cursor = behind;
        r->at += count;
        if (r->at == r->count || r->record[r->at++] != match.id)
            break;
    }
    return GUMBEL_OK;
}

gumbel_status gb_encode_replaying(const gumbel_tokenizer *tokenizer, const gb_jinja_output *rendered,
                                  const int32_t *record, size_t record_count, gb_id_list *tokens,
                                  gumbel_error *error) {
    gb_span *spans;
    gb_added_cursor cursor = {0};
    replay r = {.tokenizer = tokenizer,
                .text = rendered->text,
                .length = rendered->length,
                .record = record,
                .count = record_count};
    GB_TRY(gb_chat_literal_spans(rendered, 0, rendered->length, &spans, &r.literal.count, error));
    r.literal.spans = spans;
    tokens->count = 0;
    gumbel_status status = gumbel_detokenizer_create(tokenizer, true, &r.detokenizer, error);
    if (status == GUMBEL_OK)
        status = take_record(&r, &cursor, tokens, error);
    if (status == GUMBEL_OK)
        status = encode_rest(&r, &r.literal, r.text, r.length, cursor, tokens, error);
    gumbel_detokenizer_destroy(r.detokenizer);
    gb_buffer_free(&r.spelled);
    gb_free(r.encoded.ids);
    gb_free(spans);
    return status;
}
