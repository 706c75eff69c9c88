/* SPDX-License-Identifier: Apache-2.0 */
#include "program/signature.h"

#include <stdlib.h>
#include <string.h>

static bool is_of_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* strspn makes a table at each call, which was half of a program's verification. */
static size_t word_length(const char *text) {
    size_t length = 0;
    while (is_of_word(text[length]))
        length++;
    return length;
}

static bool is_word(const char *text, size_t length, const char *word) {
    return strlen(word) == length && memcmp(text, word, length) == 0;
}

static const char *skip_spaces(const char *text) {
    while (*text == ' ')
        text++;
    return text;
}

static bool parse_kind(const char *text, size_t length, gb_type_pattern *pattern) {
    pattern->kind = GB_PATTERN_DTYPE;
    for (int dtype = 1; dtype < GB_DTYPE_COUNT; dtype++) {
        if (is_word(text, length, gb_dtype_name((gb_dtype)dtype))) {
            pattern->dtype = (gb_dtype)dtype;
            return true;
        }
    }
    if (is_word(text, length, "weight"))
        pattern->kind = GB_PATTERN_WEIGHT;
    else if (is_word(text, length, "matrix"))
        pattern->kind = GB_PATTERN_MATRIX;
    else if (is_word(text, length, "cache"))
        pattern->kind = GB_PATTERN_CACHE;
    else if (is_word(text, length, "state"))
        pattern->kind = GB_PATTERN_STATE;
    else if (is_word(text, length, "i32_state"))
        pattern->kind = GB_PATTERN_I32_STATE;
    else if (is_word(text, length, "T"))
        pattern->kind = GB_PATTERN_ANY;
    else
        return false;
    return true;
}

static const char *parse_dim(const char *text, int64_t *dim) {
    if (strncmp(text, "...", 3) == 0) {
        *dim = GB_DIM_ANY_DIMS;
        return text + 3;
    }
    if (*text >= '1' && *text <= '9') {
        char *end;
        *dim = strtol(text, &end, 10);
        return end;
    }
    *dim = *text == 'N' ? GB_DIM_N : *text == 'B' ? GB_DIM_B : -(int64_t)*text;
    return text + 1;
}

static const char *parse_dims(const char *text, gb_type_pattern *pattern) {
    while (*text != ']') {
        if (!*text || pattern->dim_count == GB_MAX_RANK)
            return NULL;
        text = parse_dim(text, &pattern->dims[pattern->dim_count++]);
        text += *text == ',';
    }
    return text + 1;
}

/* One `name:type[dims]?` or, for a result made by a function, `name`. Returns the text after it. */
static const char *parse_pattern(const char *text, gb_type_pattern *pattern) {
    *pattern = (gb_type_pattern){.name = text, .name_length = word_length(text), .kind = GB_PATTERN_RULE};
    text += pattern->name_length;
    if (pattern->name_length == 0 || *text != ':')
        return pattern->name_length ? text : NULL;
    text++;
    size_t length = word_length(text);
    if (!parse_kind(text, length, pattern) || text[length] != '[')
        return NULL;
    text = parse_dims(text + length + 1, pattern);
    if (text && *text == '?') {
        pattern->optional = true;
        text++;
    }
    return text;
}

static const char *parse_list(const char *text, gb_type_pattern *patterns, uint32_t limit, uint32_t *count) {
    *count = 0;
    text = skip_spaces(text);
    while (*text && *text != '-') {
        if (*count == limit)
            return NULL;
        text = parse_pattern(text, &patterns[(*count)++]);
        if (!text)
            return NULL;
        text = skip_spaces(text);
    }
    return text;
}

bool gb_signature_parse(const gb_op_info *op, gb_signature *signature) {
    const char *text =
        parse_list(op->signature, signature->operands, GB_MAX_OPERANDS, &signature->operand_count);
    if (!text || strncmp(text, "->", 2) != 0)
        return false;
    text = parse_list(text + 2, signature->results, GB_MAX_RESULTS, &signature->result_count);
    return text && !*text;
}

static gb_attribute_key find_key(const char *text, size_t length) {
#define X(number, NAME, name)                                                                                \
    if (is_word(text, length, #name))                                                                        \
        return GB_ATTRIBUTE_##NAME;
    GB_ATTRIBUTES(X)
#undef X
    return GB_ATTRIBUTE_NONE;
}

uint32_t gb_attribute_patterns(const gb_op_info *op, gb_attribute_pattern patterns[GB_MAX_ATTRIBUTES]) {
    uint32_t count = 0;
    const char *text = skip_spaces(op->attributes);
    while (*text && count < GB_MAX_ATTRIBUTES) {
        gb_attribute_pattern *pattern = &patterns[count++];
        size_t length = word_length(text);
        *pattern = (gb_attribute_pattern){.key = find_key(text, length), .type = GB_ATTRIBUTE_INT};
        text += length;
        text += *text == ':';
        length = word_length(text);
        if (is_word(text, length, "float"))
            pattern->type = GB_ATTRIBUTE_FLOAT;
        text += length;
        if (*text == '=') {
            char *end;
            pattern->has_default = true;
            pattern->default_value = strtod(text + 1, &end);
            text = end;
        }
        text = skip_spaces(text);
    }
    return count;
}
