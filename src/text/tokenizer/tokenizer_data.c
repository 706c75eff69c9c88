/* SPDX-License-Identifier: Apache-2.0 */
#include "text/tokenizer/tokenizer_data.h"

#include "text/base/utf8.h"

#include <string.h>

#define BROKEN(...) gb_fail(error, GUMBEL_ERROR_FORMAT, "tokenizer: " __VA_ARGS__)
#define UNKNOWN(...) gb_fail(error, GUMBEL_ERROR_UNSUPPORTED, "tokenizer: " __VA_ARGS__)

static int hex_digit(char c) {
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int gb_byte_of_spelling(const char *text, size_t length) {
    if (length != 6 || memcmp(text, "<0x", 3) != 0 || text[5] != '>')
        return -1;
    int high = hex_digit(text[3]), low = hex_digit(text[4]);
    return high < 0 || low < 0 ? -1 : high * 16 + low;
}

static gumbel_status read_model(gb_byte_reader *in, gb_tokenizer_data *data, gumbel_error *error) {
    uint32_t kind = gb_read_u32(in);
    if (kind != GB_MODEL_BPE)
        return UNKNOWN("model kind %u is not known to this version", kind);
    data->bpe_flags = gb_read_u32(in);
    if (data->bpe_flags & ~(uint32_t)GB_BPE_ALL)
        return UNKNOWN("model flags %#x are not known to this version", data->bpe_flags);
    if (gb_is_byte_level(data) && data->bpe_flags & GB_BPE_BYTE_FALLBACK)
        return BROKEN("the model is byte-level and has byte fallback, too");
    data->unknown = (int32_t)gb_read_u32(in);
    return GUMBEL_OK;
}

static gumbel_status check_tokens(gb_tokenizer_data *data, size_t byte_count, gumbel_error *error) {
    uint32_t start = gb_load_u32(data->token_offsets);
    if (start != 0)
        return BROKEN("the spelling of token 0 starts at byte %u instead of 0", start);
    for (uint32_t id = 0; id < data->token_count; id++) {
        uint32_t end = gb_load_u32(data->token_offsets + 4 * ((size_t)id + 1));
        if (end < start || end > byte_count || end - start > GB_MAX_TOKEN_BYTES)
            return BROKEN("the spelling of token %u lies at bytes %u..%u of %zu", id, start, end, byte_count);
        if (!gb_is_byte_level(data) &&
            !gb_utf8_is_valid((const char *)data->token_bytes + start, end - start))
            return BROKEN("the spelling of token %u is not UTF-8", id);
        if (end - start > data->longest_token)
            data->longest_token = end - start;
        start = end;
    }
    return GUMBEL_OK;
}

static gumbel_status read_vocabulary(gb_byte_reader *in, gb_tokenizer_data *data, gumbel_error *error) {
    data->token_count = gb_read_u32(in);
    uint32_t byte_count = gb_read_u32(in);
    if (data->token_count == 0 || data->token_count > GB_MAX_TOKENS)
        return BROKEN("%u tokens; 1 to %d are possible", data->token_count, GB_MAX_TOKENS);
    data->token_offsets = gb_read_bytes(in, 4 * ((uint64_t)data->token_count + 1));
    data->token_bytes = gb_read_bytes(in, byte_count);
    if (in->failed)
        return BROKEN("the vocabulary is cut short");
    return check_tokens(data, byte_count, error);
}

static gumbel_status check_merge(const gb_tokenizer_data *data, uint32_t rank, gumbel_error *error) {
    gb_merge merge = gb_merge_at(data, rank);
    if ((uint32_t)merge.left >= data->token_count || (uint32_t)merge.right >= data->token_count ||
        (uint32_t)merge.result >= data->token_count)
        return BROKEN("merge %u has an id that is not in the vocabulary", rank);
    size_t left_length, right_length, length;
    const char *left = gb_token_text(data, merge.left, &left_length);
    const char *right = gb_token_text(data, merge.right, &right_length);
    const char *result = gb_token_text(data, merge.result, &length);
    if (left_length == 0 || right_length == 0 || length != left_length + right_length ||
        memcmp(result, left, left_length) != 0 || memcmp(result + left_length, right, right_length) != 0)
        return BROKEN("merge %u (%d, %d) gives token %d, which is spelled otherwise", rank, merge.left,
                      merge.right, merge.result);
    return GUMBEL_OK;
}

static gumbel_status read_merges(gb_byte_reader *in, gb_tokenizer_data *data, gumbel_error *error) {
    data->merge_count = gb_read_u32(in);
    if (data->merge_count > GB_MAX_MERGES)
        return BROKEN("%u merges; at most %d are possible", data->merge_count, GB_MAX_MERGES);
    data->merges = gb_read_bytes(in, 12 * (uint64_t)data->merge_count);
    if (in->failed)
        return BROKEN("the merges are cut short");
    for (uint32_t rank = 0; rank < data->merge_count; rank++)
        GB_TRY(check_merge(data, rank, error));
    return GUMBEL_OK;
}

static bool is_token(const gb_tokenizer_data *data, uint32_t id) {
    size_t length = 0;
    if (id < data->token_count)
        gb_token_text(data, (int32_t)id, &length);
    return length > 0;
}

static gumbel_status read_added(gb_byte_reader *in, gb_tokenizer_data *data, gumbel_error *error) {
    data->added_count = gb_read_u32(in);
    data->added = gb_read_bytes(in, 8 * (uint64_t)data->added_count);
    if (in->failed)
        return BROKEN("the added tokens are cut short");
    for (uint32_t i = 0; i < data->added_count; i++) {
        gb_added_token added = gb_added_at(data, i);
        if (!is_token(data, (uint32_t)added.id))
            return BROKEN("added token %u has id %d, which has no spelling", i, added.id);
        size_t length;
        const char *text = gb_token_text(data, added.id, &length);
        if (!gb_utf8_is_valid(text, length))
            return BROKEN("the spelling of added token %u (id %d) is not UTF-8", i, added.id);
        if (added.flags & ~(uint32_t)GB_ADDED_ALL)
            return UNKNOWN("added token %u has flags %#x", i, added.flags);
        /* Ascending ids make a second entry for one token impossible. */
        if (i > 0 && added.id <= gb_added_at(data, i - 1).id)
            return BROKEN("added token %u (id %d) is not in ascending order of ids", i, added.id);
    }
    return GUMBEL_OK;
}

/* Every kind of step. */
static const struct step_kind {
    gb_tokenizer_part part;
    uint32_t kind, option;
    uint32_t least_pattern, most_pattern, most_content; /* bytes */
} step_kinds[] = {
    {GB_PART_NORMALIZER, GB_NORMALIZE_REPLACE, 0, 1, GB_MAX_PATTERN_BYTES, GB_MAX_PATTERN_BYTES},
    {GB_PART_NORMALIZER, GB_NORMALIZE_NFC, 0, 0, 0, 0},
    {GB_PART_NORMALIZER, GB_NORMALIZE_PREPEND, 0, 0, 0, GB_MAX_PATTERN_BYTES},
    {GB_PART_PRE_TOKENIZER, GB_SPLIT_TEXT, GB_SPLIT_MERGED_WITH_PREVIOUS, 1, GB_MAX_PATTERN_BYTES, 0},
    {GB_PART_PRE_TOKENIZER, GB_SPLIT_EXPRESSION, GB_SPLIT_ISOLATED, 1, GB_MAX_EXPRESSION_BYTES, 0},
    {GB_PART_DECODER, GB_DECODE_REPLACE, 0, 1, GB_MAX_PATTERN_BYTES, GB_MAX_PATTERN_BYTES},
    {GB_PART_DECODER, GB_DECODE_BYTE_FALLBACK, 0, 0, 0, 0},
    {GB_PART_DECODER, GB_DECODE_BYTE_LEVEL, 0, 0, 0, 0},
};

static gumbel_status check_step(gb_tokenizer_part part, uint32_t index, const gb_text_step *step,
                                gumbel_error *error) {
    for (size_t i = 0; i < sizeof step_kinds / sizeof step_kinds[0]; i++) {
        const struct step_kind *kind = &step_kinds[i];
        if (kind->part != part || kind->kind != step->kind || kind->option != step->option)
            continue;
        if (step->pattern_length < kind->least_pattern || step->pattern_length > kind->most_pattern ||
            step->content_length > kind->most_content)
            return BROKEN("part %d, step %u: texts of %u and %u bytes", part, index, step->pattern_length,
                          step->content_length);
        if (!gb_utf8_is_valid(step->pattern, step->pattern_length) ||
            !gb_utf8_is_valid(step->content, step->content_length))
            return BROKEN("part %d, step %u: a text is not UTF-8", part, index);
        return GUMBEL_OK;
    }
    return UNKNOWN("part %d has a step of kind %u, option %u, which this version does not know", part,
                   step->kind, step->option);
}

static gumbel_status read_steps(gb_byte_reader *in, gb_tokenizer_part part, gb_text_steps *steps,
                                gumbel_error *error) {
    steps->count = gb_read_u32(in);
    if (steps->count > GB_MAX_TEXT_STEPS)
        return BROKEN("part %d has %u steps; at most %d are possible", part, steps->count, GB_MAX_TEXT_STEPS);
    for (uint32_t i = 0; i < steps->count; i++) {
        gb_text_step *step = &steps->items[i];
        step->kind = gb_read_u32(in);
        step->option = gb_read_u32(in);
        step->pattern = gb_read_text(in, &step->pattern_length);
        step->content = gb_read_text(in, &step->content_length);
        if (in->failed)
            return BROKEN("part %d is cut short", part);
        GB_TRY(check_step(part, i, step, error));
    }
    return GUMBEL_OK;
}

static gumbel_status read_ids(gb_byte_reader *in, const gb_tokenizer_data *data, int32_t *ids,
                              uint32_t *count, gumbel_error *error) {
    *count = gb_read_u32(in);
    if (*count > GB_MAX_AROUND)
        return BROKEN("%u tokens around plain text; at most %d are possible", *count, GB_MAX_AROUND);
    for (uint32_t i = 0; i < *count; i++) {
        uint32_t id = gb_read_u32(in);
        if (!is_token(data, id))
            return BROKEN("token %u around plain text is not in the vocabulary", id);
        ids[i] = (int32_t)id;
    }
    return GUMBEL_OK;
}

static gumbel_status read_around(gb_byte_reader *in, gb_tokenizer_data *data, gumbel_error *error) {
    GB_TRY(read_ids(in, data, data->before, &data->before_count, error));
    return read_ids(in, data, data->after, &data->after_count, error);
}

static gumbel_status read_part(gb_byte_reader *in, uint32_t part, gb_tokenizer_data *data,
                               gumbel_error *error) {
    if (part > GB_PART_VOCABULARY && data->token_count == 0)
        return BROKEN("part %u comes before the vocabulary", part);
    switch (part) {
    case GB_PART_MODEL:
        return read_model(in, data, error);
    case GB_PART_VOCABULARY:
        return read_vocabulary(in, data, error);
    case GB_PART_MERGES:
        return read_merges(in, data, error);
    case GB_PART_ADDED:
        return read_added(in, data, error);
    case GB_PART_NORMALIZER:
        return read_steps(in, GB_PART_NORMALIZER, &data->normalizer, error);
    case GB_PART_PRE_TOKENIZER:
        return read_steps(in, GB_PART_PRE_TOKENIZER, &data->pre_tokenizer, error);
    case GB_PART_DECODER:
        return read_steps(in, GB_PART_DECODER, &data->decoder, error);
    case GB_PART_AROUND:
        return read_around(in, data, error);
    default:
        return UNKNOWN("part %u is not known to this version", part);
    }
}

static gumbel_status read_parts(gb_byte_reader *in, gb_tokenizer_data *data, gumbel_error *error) {
    bool seen[GB_PART_LIMIT] = {false};
    for (uint32_t last = 0; in->size > 0;) {
        uint32_t part = gb_read_u32(in);
        uint32_t size = gb_read_u32(in);
        gb_byte_reader body = {.size = size};
        body.data = gb_read_bytes(in, size);
        if (in->failed)
            return BROKEN("part %u is cut short", part);
        if (part <= last)
            return BROKEN("part %u stands after part %u", part, last);
        last = part;
        GB_TRY(read_part(&body, part, data, error));
        if (body.failed || body.size != 0)
            return BROKEN("part %u is %s", part, body.failed ? "cut short" : "longer than its content");
        seen[part] = true;
    }
    for (int part = 1; part < GB_PART_LIMIT; part++)
        if (!seen[part])
            return BROKEN("part %d is missing", part);
    return GUMBEL_OK;
}

/* The streaming decoder replaces within a token, then turns byte tokens into bytes; it has room for what the
 * replacements can make of the longest token. */
static gumbel_status check_decoder(const gb_tokenizer_data *data, gumbel_error *error) {
    const gb_text_steps *decoder = &data->decoder;
    uint32_t growth = 1;
    bool bytes = decoder->count == 1 && decoder->items[0].kind == GB_DECODE_BYTE_LEVEL;
    if (gb_is_byte_level(data) != bytes)
        return BROKEN("%s", bytes ? "the decoder is byte-level, the model is not"
                                  : "the model is byte-level, the decoder is not");
    for (uint32_t i = 0; i < decoder->count; i++) {
        const gb_text_step *step = &decoder->items[i];
        if (step->kind == GB_DECODE_BYTE_FALLBACK && i + 1 < decoder->count)
            return BROKEN("the decoder's byte fallback is not its last step");
        if (step->kind == GB_DECODE_BYTE_LEVEL && decoder->count > 1)
            return BROKEN("the decoder has other steps beside the byte-level one");
        growth *= step->content_length > 1 ? step->content_length : 1;
        if (growth > GB_MAX_DECODER_GROWTH)
            return BROKEN("the decoder's replacements are longer than %d bytes", GB_MAX_DECODER_GROWTH);
    }
    return GUMBEL_OK;
}

gumbel_status gb_tokenizer_parse(const gb_blob *blob, gb_tokenizer_data *data, gumbel_error *error) {
    *data = (gb_tokenizer_data){0};
    gb_byte_reader in = {.data = blob->data, .size = (size_t)blob->size};
    const uint8_t *magic = gb_read_bytes(&in, 4);
    uint32_t version = gb_read_u32(&in);
    if (in.failed || memcmp(magic, GB_TOKENIZER_MAGIC, 4) != 0)
        return BROKEN("the section does not begin with %s", GB_TOKENIZER_MAGIC);
    if (version != GB_TOKENIZER_VERSION)
        return UNKNOWN("version %u is not known to this version, which reads %d; export the model again",
                       version, GB_TOKENIZER_VERSION);
    GB_TRY(read_parts(&in, data, error));
    if (data->unknown != -1 && !is_token(data, (uint32_t)data->unknown))
        return BROKEN("the unknown token %d is not in the vocabulary", data->unknown);
    return check_decoder(data, error);
}
