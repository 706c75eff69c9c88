/* SPDX-License-Identifier: Apache-2.0 */
#include "text/tokenizer/encode.h"

#include "base/versioned.h"
#include "text/base/utf8.h"
#include "text/tokenizer/text_steps.h"

typedef struct encoding {
    const gumbel_tokenizer *tokenizer;
    gb_byte_buffer normalized, spare;
    gb_bpe_scratch scratch;
    gb_cutting *cuttings[GB_MAX_TEXT_STEPS]; /* created when they are first needed */
    gb_token_sink *sink;
} encoding;

/* Begins to cut the text by the step's expression, where it has one. */
static gumbel_status begin_cutting(encoding *e, uint32_t step, const char *text, size_t length,
                                   gumbel_error *error) {
    const gb_splitter *splitter = e->tokenizer->splitters[step];
    if (splitter && !e->cuttings[step])
        GB_TRY(gb_cutting_create(splitter, &e->cuttings[step], error));
    return splitter ? gb_cutting_begin(e->cuttings[step], text, length, error) : GUMBEL_OK;
}

static gumbel_status next_piece(encoding *e, uint32_t step, const char *text, size_t length, size_t *size,
                                gumbel_error *error) {
    if (e->cuttings[step])
        return gb_cutting_next(e->cuttings[step], size, error);
    *size = gb_first_piece(&e->tokenizer->data.pre_tokenizer.items[step], text, length);
    return GUMBEL_OK;
}

/* Cuts the text with pre-tokenizer step number `step` and the later ones, and encodes the pieces. */
static gumbel_status encode_pieces(encoding *e, uint32_t step, const char *text, size_t length,
                                   gumbel_error *error) {
    const gumbel_tokenizer *tokenizer = e->tokenizer;
    if (step == tokenizer->data.pre_tokenizer.count)
        return gb_bpe_encode(&tokenizer->vocabulary, &tokenizer->merges, text, length, &e->scratch, e->sink,
                             error);
    GB_TRY(begin_cutting(e, step, text, length, error));
    for (size_t size; length > 0; text += size, length -= size) {
        GB_TRY(next_piece(e, step, text, length, &size, error));
        GB_TRY(encode_pieces(e, step + 1, text, size, error));
    }
    return GUMBEL_OK;
}

/* Encodes text without raw added tokens. */
static gumbel_status encode_plain(encoding *e, const char *text, size_t length, bool literal,
                                  gumbel_error *error) {
    if (length == 0)
        return GUMBEL_OK;
    gb_normalize(&e->tokenizer->data.normalizer, text, length, &e->normalized, &e->spare);
    if (e->normalized.failed || e->normalized.size > INT32_MAX)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory to encode %zu bytes of text", length);
    text = (const char *)e->normalized.data;
    length = e->normalized.size;
    gb_span all = {0, length};
    gb_literal_spans spans = {&all, literal ? 1 : 0};
    gb_added_cursor cursor = {0};
    for (int32_t id = 0; id >= 0;) {
        gb_added_match match =
            gb_added_tokens_next(&e->tokenizer->normalized_added, text, length, &spans, &cursor);
        size_t size = match.before.end - match.before.start;
        if (size > 0)
            GB_TRY(encode_pieces(e, 0, text + match.before.start, size, error));
        id = match.id;
        if (id >= 0)
            gb_sink_token(e->sink, id);
    }
    return GUMBEL_OK;
}

static gumbel_status encode_all(encoding *e, const char *text, size_t length, const gb_literal_spans *literal,
                                gb_added_cursor cursor, gumbel_error *error) {
    for (int32_t id = 0; id >= 0;) {
        gb_added_match match = gb_added_tokens_next(&e->tokenizer->raw_added, text, length, literal, &cursor);
        bool all_literal;
        bool any_literal = gb_is_literal(literal, match.before, &all_literal);
        GB_TRY(encode_plain(e, text + match.before.start, match.before.end - match.before.start, any_literal,
                            error));
        id = match.id;
        if (id >= 0)
            gb_sink_token(e->sink, id);
    }
    return GUMBEL_OK;
}

gumbel_status gb_encode(const gumbel_tokenizer *tokenizer, const char *text, size_t length,
                        const gb_literal_spans *literal, gb_token_sink *sink, gumbel_error *error) {
    return gb_encode_from(tokenizer, text, length, literal, (gb_added_cursor){0}, sink, error);
}

gumbel_status gb_encode_from(const gumbel_tokenizer *tokenizer, const char *text, size_t length,
                             const gb_literal_spans *literal, gb_added_cursor cursor, gb_token_sink *sink,
                             gumbel_error *error) {
    if (length > INT32_MAX)
        return gb_fail(error, GUMBEL_ERROR_LIMIT, "a text of %zu bytes; 2 GiB can be encoded at once",
                       length);
    encoding e = {.tokenizer = tokenizer, .sink = sink};
    gumbel_status status = encode_all(&e, text, length, literal, cursor, error);
    gb_buffer_free(&e.normalized);
    gb_buffer_free(&e.spare);
    gb_bpe_scratch_free(&e.scratch);
    for (uint32_t i = 0; i < GB_MAX_TEXT_STEPS; i++)
        gb_cutting_free(e.cuttings[i]);
    return status;
}

gumbel_status gb_finish_sink(const gb_token_sink *sink, size_t *count, gumbel_error *error) {
    *count = sink->count;
    if (sink->count > sink->capacity)
        return gb_fail(error, GUMBEL_ERROR_LIMIT, "the text has %zu tokens, room was given for %zu",
                       sink->count, sink->capacity);
    return GUMBEL_OK;
}

static gumbel_status encode_around(const gumbel_tokenizer *tokenizer, const char *text, size_t length,
                                   const gumbel_encode_options *options, gb_token_sink *sink,
                                   gumbel_error *error) {
    const gb_tokenizer_data *data = &tokenizer->data;
    gb_span all = {0, length};
    gb_literal_spans literal = {&all, options->parse_special ? 0 : 1};
    for (uint32_t i = 0; options->add_special && i < data->before_count; i++)
        gb_sink_token(sink, data->before[i]);
    GB_TRY(gb_encode(tokenizer, text, length, &literal, sink, error));
    for (uint32_t i = 0; options->add_special && i < data->after_count; i++)
        gb_sink_token(sink, data->after[i]);
    return GUMBEL_OK;
}

/* The text itself where it is well-formed; otherwise its repaired form, kept in buffer. */
static gumbel_status repair(const char **text, size_t *length, gb_byte_buffer *buffer, gumbel_error *error) {
    if (gb_utf8_is_valid(*text, *length))
        return GUMBEL_OK;
    gb_utf8_append_repaired(buffer, *text, *length);
    if (buffer->failed)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory to encode %zu bytes of text", *length);
    *text = (const char *)buffer->data;
    *length = buffer->size;
    return GUMBEL_OK;
}

gumbel_status gumbel_encode(const gumbel_tokenizer *tokenizer, const char *text, size_t length,
                            const gumbel_encode_options *given, int32_t *tokens, size_t capacity,
                            size_t *count, gumbel_error *error) {
    gumbel_encode_options options;
    GB_TRY(gb_read_versioned(given, "encode options", &options, sizeof options, error));
    gb_token_sink sink = {.tokens = tokens, .capacity = capacity};
    gb_byte_buffer repaired = {0};
    gumbel_status status = repair(&text, &length, &repaired, error);
    if (status == GUMBEL_OK)
        status = encode_around(tokenizer, text, length, &options, &sink, error);
    gb_buffer_free(&repaired);
    return status == GUMBEL_OK ? gb_finish_sink(&sink, count, error) : status;
}
