/* SPDX-License-Identifier: Apache-2.0 */
#include "export/text/tokenizer_json.h"

#include "export/text/byte_level.h"
#include "export/text/split_expression.h"
#include "text/tokenizer/expressions.h"
#include "text/tokenizer/tokenizer_data.h"

#include <string.h>

#define BROKEN(...) gb_fail(error, GUMBEL_ERROR_FORMAT, __VA_ARGS__)
#define REFUSED(...) gb_fail(error, GUMBEL_ERROR_UNSUPPORTED, __VA_ARGS__)

/* One of the lists of steps, and the part that it becomes. */
typedef struct step_list {
    const char *key;     /* in the root object */
    const char *members; /* of a Sequence */
    gb_tokenizer_part part;
} step_list;

static const step_list normalizer_list = {"normalizer", "normalizers", GB_PART_NORMALIZER};
static const step_list pre_tokenizer_list = {"pre_tokenizer", "pretokenizers", GB_PART_PRE_TOKENIZER};
static const step_list decoder_list = {"decoder", "decoders", GB_PART_DECODER};

typedef struct step_writer {
    const step_list *list;
    gb_byte_buffer *bytes;
    uint32_t count;
    bool is_byte_level; /* the text has become bytes */
} step_writer;

static const char *string_at(const json_t *object, const char *key) {
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

static gumbel_status check_text(const step_writer *w, const json_t *text, const char *key, size_t least,
                                size_t most, gumbel_error *error) {
    if (!json_is_string(text))
        return BROKEN("%s: \"%s\" is not a string", w->list->key, key);
    size_t length = json_string_length(text);
    if (length < least || length > most)
        return BROKEN("%s: \"%s\" has %zu bytes; %zu to %zu are possible", w->list->key, key, length, least,
                      most);
    return GUMBEL_OK;
}

/* Begins a step, which its two texts are appended to. */
static gumbel_status begin_step(step_writer *w, uint32_t kind, uint32_t option, gumbel_error *error) {
    if (w->count == GB_MAX_TEXT_STEPS)
        return REFUSED("%s: more than %d steps", w->list->key, GB_MAX_TEXT_STEPS);
    w->count++;
    gb_buffer_append_u32(w->bytes, kind);
    gb_buffer_append_u32(w->bytes, option);
    return GUMBEL_OK;
}

/* Appends a step; pattern and content are JSON strings or NULL for none. */
static gumbel_status write_step(step_writer *w, uint32_t kind, uint32_t option, const json_t *pattern,
                                const json_t *content, gumbel_error *error) {
    const json_t *texts[] = {pattern, content};
    GB_TRY(begin_step(w, kind, option, error));
    for (int i = 0; i < 2; i++) {
        const char *text = texts[i] ? json_string_value(texts[i]) : "";
        gb_buffer_append_text(w->bytes, text, texts[i] ? json_string_length(texts[i]) : 0);
    }
    return GUMBEL_OK;
}

/* Appends a split by an expression that a type of pre-tokenizer stands for. */
static gumbel_status write_expression(step_writer *w, gb_split_expression expression, gumbel_error *error) {
    const char *text = gb_split_expression_text(expression);
    GB_TRY(begin_step(w, GB_SPLIT_EXPRESSION, GB_SPLIT_ISOLATED, error));
    gb_buffer_append_text(w->bytes, text, strlen(text));
    gb_buffer_append_text(w->bytes, "", 0);
    return GUMBEL_OK;
}

/* {"pattern": {"String": " "}} */
static gumbel_status get_pattern(const step_writer *w, const json_t *step, const json_t **pattern,
                                 gumbel_error *error) {
    const json_t *object = json_object_get(step, "pattern");
    *pattern = json_object_get(object, "String");
    if (!*pattern && json_object_get(object, "Regex"))
        return REFUSED("%s: a %s by regular expression is not supported", w->list->key,
                       string_at(step, "type"));
    return check_text(w, *pattern, "pattern.String", 1, GB_MAX_PATTERN_BYTES, error);
}

static gumbel_status write_replace(step_writer *w, uint32_t kind, const json_t *step, gumbel_error *error) {
    const json_t *pattern, *content = json_object_get(step, "content");
    GB_TRY(get_pattern(w, step, &pattern, error));
    GB_TRY(check_text(w, content, "content", 0, GB_MAX_PATTERN_BYTES, error));
    return write_step(w, kind, 0, pattern, content, error);
}

static gumbel_status check_behavior(const step_writer *w, const json_t *step, const char *pattern,
                                    const char *behavior, gumbel_error *error) {
    if (strcmp(string_at(step, "behavior"), behavior) != 0)
        return REFUSED("%s: the Split behavior \"%.40s\" by a %s is not supported (%s is)", w->list->key,
                       string_at(step, "behavior"), pattern, behavior);
    if (json_is_true(json_object_get(step, "invert")))
        return REFUSED("%s: an inverted Split is not supported", w->list->key);
    return GUMBEL_OK;
}

static gumbel_status write_split(step_writer *w, const json_t *step, gumbel_error *error) {
    const json_t *pattern = json_object_get(json_object_get(step, "pattern"), "Regex");
    if (!pattern) {
        GB_TRY(get_pattern(w, step, &pattern, error));
        GB_TRY(check_behavior(w, step, "string", "MergedWithPrevious", error));
        return write_step(w, GB_SPLIT_TEXT, GB_SPLIT_MERGED_WITH_PREVIOUS, pattern, NULL, error);
    }
    GB_TRY(check_text(w, pattern, "pattern.Regex", 1, GB_MAX_EXPRESSION_BYTES, error));
    GB_TRY(check_behavior(w, step, "regular expression", "Isolated", error));
    gumbel_status status =
        gb_check_split_expression(json_string_value(pattern), json_string_length(pattern), error);
    if (status != GUMBEL_OK)
        return gb_prefix(error, status, "%s: Split", w->list->key);
    return write_step(w, GB_SPLIT_EXPRESSION, GB_SPLIT_ISOLATED, pattern, NULL, error);
}

/* The model's spellings have become bytes, and so need not the text. */
static gumbel_status enter_byte_level(step_writer *w, const json_t *step, gumbel_error *error) {
    if (json_is_true(json_object_get(step, "add_prefix_space")))
        return REFUSED("%s: ByteLevel with \"add_prefix_space\" is not supported", w->list->key);
    w->is_byte_level = true;
    return json_is_false(json_object_get(step, "use_regex")) ? GUMBEL_OK
                                                             : write_expression(w, GB_EXPRESSION_GPT2, error);
}

static gumbel_status write_digits(step_writer *w, const json_t *step, gumbel_error *error) {
    const bool is_individual = json_is_true(json_object_get(step, "individual_digits"));
    return write_expression(w, is_individual ? GB_EXPRESSION_DIGIT : GB_EXPRESSION_DIGITS, error);
}

static gumbel_status write_punctuation(step_writer *w, const json_t *step, gumbel_error *error) {
    const char *behavior = string_at(step, "behavior");
    const bool is_contiguous = strcmp(behavior, "Contiguous") == 0;
    if (!is_contiguous && behavior[0] && strcmp(behavior, "Isolated") != 0)
        return REFUSED(
            "%s: the Punctuation behavior \"%.40s\" is not supported (Isolated and Contiguous are)",
            w->list->key, behavior);
    return write_expression(w, is_contiguous ? GB_EXPRESSION_PUNCTUATIONS : GB_EXPRESSION_PUNCTUATION, error);
}

/* A stream of text may go on from another one, and so keeps the space that it begins with. */
static gumbel_status check_strip(const step_writer *w, const json_t *step, gumbel_error *error) {
    if (strcmp(string_at(step, "content"), " ") == 0 &&
        json_integer_value(json_object_get(step, "start")) <= 1 &&
        json_integer_value(json_object_get(step, "stop")) == 0)
        return GUMBEL_OK;
    return REFUSED("%s: Strip of anything but the first space is not supported", w->list->key);
}

static gumbel_status refuse_type(const step_writer *w, const char *type, const char *known,
                                 gumbel_error *error) {
    return REFUSED("%s: the type \"%.40s\" is not supported (%s)", w->list->key, type, known);
}

static gumbel_status write_prepend(step_writer *w, const json_t *step, gumbel_error *error) {
    const json_t *content = json_object_get(step, "prepend");
    GB_TRY(check_text(w, content, "prepend", 0, GB_MAX_PATTERN_BYTES, error));
    return write_step(w, GB_NORMALIZE_PREPEND, 0, NULL, content, error);
}

static gumbel_status write_normalizer(step_writer *w, const char *type, const json_t *step,
                                      gumbel_error *error) {
    if (strcmp(type, "NFC") == 0)
        return write_step(w, GB_NORMALIZE_NFC, 0, NULL, NULL, error);
    if (strcmp(type, "Prepend") == 0)
        return write_prepend(w, step, error);
    return strcmp(type, "Replace") == 0 ? write_replace(w, GB_NORMALIZE_REPLACE, step, error)
                                        : refuse_type(w, type, "Replace, Prepend and NFC are", error);
}

static gumbel_status write_pre_tokenizer(step_writer *w, const char *type, const json_t *step,
                                         gumbel_error *error) {
    if (w->is_byte_level)
        return REFUSED("%s: %.40s after ByteLevel is not supported", w->list->key, type);
    if (strcmp(type, "ByteLevel") == 0)
        return enter_byte_level(w, step, error);
    if (strcmp(type, "Digits") == 0)
        return write_digits(w, step, error);
    if (strcmp(type, "Punctuation") == 0)
        return write_punctuation(w, step, error);
    return strcmp(type, "Split") == 0
               ? write_split(w, step, error)
               : refuse_type(w, type, "Split, Digits, Punctuation and ByteLevel are", error);
}

static gumbel_status write_decoder(step_writer *w, const char *type, const json_t *step,
                                   gumbel_error *error) {
    if (strcmp(type, "ByteLevel") == 0)
        return write_step(w, GB_DECODE_BYTE_LEVEL, 0, NULL, NULL, error);
    if (strcmp(type, "Replace") == 0)
        return write_replace(w, GB_DECODE_REPLACE, step, error);
    if (strcmp(type, "ByteFallback") == 0)
        return write_step(w, GB_DECODE_BYTE_FALLBACK, 0, NULL, NULL, error);
    if (strcmp(type, "Strip") == 0)
        return check_strip(w, step, error);
    /* Fuse joins the tokens, which a stream of text does anyway. */
    return strcmp(type, "Fuse") == 0
               ? GUMBEL_OK
               : refuse_type(w, type, "Replace, ByteFallback, ByteLevel, Strip and Fuse are", error);
}

static gumbel_status write_one(step_writer *w, const json_t *step, gumbel_error *error) {
    const char *type = string_at(step, "type");
    switch (w->list->part) {
    case GB_PART_NORMALIZER:
        return write_normalizer(w, type, step, error);
    case GB_PART_PRE_TOKENIZER:
        return write_pre_tokenizer(w, type, step, error);
    default:
        return write_decoder(w, type, step, error);
    }
}

static gumbel_status write_steps(step_writer *w, const json_t *value, gumbel_error *error) {
    if (!value || json_is_null(value))
        return GUMBEL_OK;
    if (!json_is_object(value))
        return BROKEN("%s: not an object", w->list->key);
    if (strcmp(string_at(value, "type"), "Sequence") != 0)
        return write_one(w, value, error);
    const json_t *members = json_object_get(value, w->list->members);
    if (!json_is_array(members))
        return BROKEN("%s: a Sequence without the array \"%s\"", w->list->key, w->list->members);
    for (size_t i = 0; i < json_array_size(members); i++)
        GB_TRY(write_one(w, json_array_get(members, i), error));
    return GUMBEL_OK;
}

static gumbel_status write_list(const step_list *list, const json_t *root, gb_byte_buffer *bytes,
                                gumbel_error *error) {
    step_writer w = {.list = list, .bytes = bytes};
    size_t part = gb_begin_part(bytes, list->part);
    size_t count_at = bytes->size;
    gb_buffer_append_u32(bytes, 0);
    GB_TRY(write_steps(&w, json_object_get(root, list->key), error));
    gb_buffer_patch_u32(bytes, count_at, w.count);
    gb_end_part(bytes, part);
    return GUMBEL_OK;
}

gumbel_status gb_write_text_steps(const json_t *root, gb_byte_buffer *bytes, gumbel_error *error) {
    if (!json_is_object(json_object_get(root, "decoder")))
        return REFUSED("decoder: there is none; without one tokens are joined by spaces");
    if (gb_json_has_byte_level(json_object_get(root, "pre_tokenizer"), "pretokenizers") !=
        gb_json_has_byte_level(json_object_get(root, "decoder"), "decoders"))
        return REFUSED("decoder: ByteLevel is only supported in pre_tokenizer and decoder together");
    GB_TRY(write_list(&normalizer_list, root, bytes, error));
    GB_TRY(write_list(&pre_tokenizer_list, root, bytes, error));
    return write_list(&decoder_list, root, bytes, error);
}

/* ---- post_processor ---- */

typedef struct around {
    uint32_t ids[2][GB_MAX_AROUND]; /* before and after the text */
    uint32_t counts[2];
} around;

static gumbel_status read_template_token(const json_t *processor, const json_t *special, bool after,
                                         around *result, gumbel_error *error) {
    const json_t *tokens = json_object_get(processor, "special_tokens");
    const json_t *ids = json_object_get(json_object_get(tokens, string_at(special, "id")), "ids");
    if (json_array_size(ids) == 0)
        return BROKEN("post_processor: special_tokens has no ids for one that \"single\" names");
    for (size_t i = 0; i < json_array_size(ids); i++) {
        const json_t *id = json_array_get(ids, i);
        if (!json_is_integer(id) || json_integer_value(id) < 0 || json_integer_value(id) >= GB_MAX_TOKENS)
            return BROKEN("post_processor: special_tokens has an id that is none");
        if (result->counts[after] == GB_MAX_AROUND)
            return REFUSED("post_processor: more than %d tokens beside the text", GB_MAX_AROUND);
        result->ids[after][result->counts[after]++] = (uint32_t)json_integer_value(id);
    }
    return GUMBEL_OK;
}

/* "single": [{"SpecialToken": {"id": "<bos>"}}, {"Sequence": {"id": "A"}}] */
static gumbel_status read_template(const json_t *processor, around *result, gumbel_error *error) {
    const json_t *single = json_object_get(processor, "single");
    bool after = false;
    for (size_t i = 0; i < json_array_size(single); i++) {
        const json_t *piece = json_array_get(single, i);
        const json_t *special = json_object_get(piece, "SpecialToken");
        if (special) {
            GB_TRY(read_template_token(processor, special, after, result, error));
        } else if (json_object_get(piece, "Sequence") && !after) {
            after = true;
        } else {
            return BROKEN("post_processor: \"single\" has an entry that is neither a token nor the one text");
        }
    }
    return after ? GUMBEL_OK : BROKEN("post_processor: \"single\" does not contain the text");
}

/* ByteLevel concerns only where in the text a token is from. */
static gumbel_status read_processor(const json_t *processor, around *result, gumbel_error *error) {
    const char *type = string_at(processor, "type");
    if (strcmp(type, "ByteLevel") == 0)
        return GUMBEL_OK;
    if (strcmp(type, "TemplateProcessing") != 0)
        return REFUSED(
            "post_processor: the type \"%.40s\" is not supported (TemplateProcessing and ByteLevel "
            "are)",
            type);
    if (result->counts[0] + result->counts[1] > 0)
        return REFUSED("post_processor: a second TemplateProcessing is not supported");
    return read_template(processor, result, error);
}

static gumbel_status read_post_processor(const json_t *value, around *result, gumbel_error *error) {
    if (!value || json_is_null(value))
        return GUMBEL_OK;
    if (strcmp(string_at(value, "type"), "Sequence") != 0)
        return read_processor(value, result, error);
    const json_t *members = json_object_get(value, "processors");
    for (size_t i = 0; i < json_array_size(members); i++)
        GB_TRY(read_processor(json_array_get(members, i), result, error));
    return GUMBEL_OK;
}

gumbel_status gb_write_around(const json_t *root, gb_byte_buffer *bytes, gumbel_error *error) {
    around result = {0};
    GB_TRY(read_post_processor(json_object_get(root, "post_processor"), &result, error));
    size_t part = gb_begin_part(bytes, GB_PART_AROUND);
    for (int after = 0; after < 2; after++) {
        gb_buffer_append_u32(bytes, result.counts[after]);
        for (uint32_t i = 0; i < result.counts[after]; i++)
            gb_buffer_append_u32(bytes, result.ids[after][i]);
    }
    gb_end_part(bytes, part);
    return GUMBEL_OK;
}
