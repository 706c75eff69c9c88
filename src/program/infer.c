/* SPDX-License-Identifier: Apache-2.0 */
#include "program/infer.h"

#include "program/infer_rules.h"
#include "program/signature.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* What the letters of a signature stand for so far. */
typedef struct bindings {
    int64_t letters[26]; /* 0: not bound */
    gb_shape any_dims;
    bool any_dims_bound;
    gb_dtype any_dtype; /* T */
} bindings;

static bool is_letter(int64_t dim) {
    return dim <= -(int64_t)'A' && dim >= -(int64_t)'Z';
}

static int64_t *letter(bindings *bound, int64_t dim) {
    return &bound->letters[-dim - 'A'];
}

/* ---- Text of what was expected ------------------------------------------------------------------------- */

static const char *pattern_type_name(const gb_type_pattern *pattern) {
    switch (pattern->kind) {
    case GB_PATTERN_WEIGHT:
        return "a float constant ";
    case GB_PATTERN_MATRIX:
        return "a float or quantized constant ";
    case GB_PATTERN_CACHE:
        return "an f32, bf16, q8 or q4 state ";
    case GB_PATTERN_STATE:
        return "an f32 state ";
    case GB_PATTERN_I32_STATE:
        return "an i32 state ";
    case GB_PATTERN_ANY:
        return "any dtype ";
    default:
        return gb_dtype_name(pattern->dtype);
    }
}

static size_t append_dim(char *text, size_t size, int64_t dim, bindings *bound) {
    if (is_letter(dim) && *letter(bound, dim) != 0)
        dim = *letter(bound, dim);
    int written = is_letter(dim)           ? snprintf(text, size, "%c", (char)-dim)
                  : dim == GB_DIM_N        ? snprintf(text, size, "N")
                  : dim == GB_DIM_B        ? snprintf(text, size, "B")
                  : dim == GB_DIM_ANY_DIMS ? snprintf(text, size, "...")
                                           : snprintf(text, size, "%lld", (long long)dim);
    return (size_t)written;
}

/* "f32[M,192]": the pattern with the letters that are bound replaced by what they stand for. */
static void expected_text(const gb_type_pattern *pattern, bindings *bound, char text[GB_TYPE_TEXT]) {
    size_t used = (size_t)snprintf(text, GB_TYPE_TEXT, "%s[", pattern_type_name(pattern));
    for (int32_t i = 0; i < pattern->dim_count; i++) {
        if (i)
            used += (size_t)snprintf(text + used, GB_TYPE_TEXT - used, ",");
        if (pattern->dims[i] == GB_DIM_ANY_DIMS && bound->any_dims_bound) {
            for (int32_t j = 0; j < bound->any_dims.rank; j++) {
                used += (size_t)snprintf(text + used, GB_TYPE_TEXT - used, j ? "," : "");
                used += append_dim(text + used, GB_TYPE_TEXT - used, bound->any_dims.dims[j], bound);
            }
        } else {
            used += append_dim(text + used, GB_TYPE_TEXT - used, pattern->dims[i], bound);
        }
    }
    snprintf(text + used, GB_TYPE_TEXT - used, "]");
}

/* ---- Matching ------------------------------------------------------------------------------------------ */

static bool match_kind(const gb_type_pattern *pattern, const gb_operand_type *operand, bindings *bound) {
    gb_dtype dtype = operand->type.dtype;
    bool is_state = operand->kind == GB_VALUE_STATE;
    switch (pattern->kind) {
    case GB_PATTERN_WEIGHT:
        return operand->kind == GB_VALUE_CONSTANT && gb_dtype_is_float(dtype);
    case GB_PATTERN_MATRIX:
        return operand->kind == GB_VALUE_CONSTANT && (gb_dtype_is_float(dtype) || dtype == GB_QUANTIZED);
    case GB_PATTERN_CACHE:
        return is_state && (dtype == GB_F32 || dtype == GB_BF16 || gb_dtype_has_codes(dtype));
    case GB_PATTERN_STATE:
        return is_state && dtype == GB_F32;
    case GB_PATTERN_I32_STATE:
        return is_state && dtype == GB_I32;
    case GB_PATTERN_ANY:
        if (bound->any_dtype == GB_DTYPE_NONE)
            bound->any_dtype = dtype;
        return !is_state && dtype != GB_QUANTIZED && bound->any_dtype == dtype;
    default:
        return !is_state && pattern->dtype == dtype;
    }
}

/* A letter other than M is a size; M may also be a symbol. */
static bool match_dim(int64_t expected, int64_t found, bindings *bound) {
    if (!is_letter(expected))
        return expected == found;
    if (found < 0 && expected != -(int64_t)'M')
        return false;
    if (*letter(bound, expected) == 0)
        *letter(bound, expected) = found;
    return *letter(bound, expected) == found;
}

static bool match_any_dims(const gb_shape *shape, int32_t count, bindings *bound) {
    gb_shape first = {.rank = count};
    for (int32_t i = 0; i < count; i++)
        first.dims[i] = shape->dims[i];
    if (!bound->any_dims_bound) {
        bound->any_dims = first;
        bound->any_dims_bound = true;
    }
    return gb_shape_equal(&bound->any_dims, &first);
}

static bool match_shape(const gb_type_pattern *pattern, const gb_shape *shape, bindings *bound) {
    bool open = pattern->dim_count > 0 && pattern->dims[0] == GB_DIM_ANY_DIMS;
    int32_t named = open ? pattern->dim_count - 1 : pattern->dim_count;
    int32_t skipped = shape->rank - named;
    if (skipped < 0 || (!open && skipped > 0))
        return false;
    if (open && !match_any_dims(shape, skipped, bound))
        return false;
    for (int32_t i = 0; i < named; i++) {
        if (!match_dim(pattern->dims[open ? i + 1 : i], shape->dims[skipped + i], bound))
            return false;
    }
    return true;
}

static gumbel_status match_operand(const gb_op_info *op, const gb_type_pattern *pattern,
                                   const gb_operand_type *operand, bindings *bound, gumbel_error *error) {
    bindings before = *bound;
    if (gb_type_valid(&operand->type) && match_kind(pattern, operand, bound) &&
        match_shape(pattern, &operand->type.shape, bound))
        return GUMBEL_OK;
    static const char *const kinds[] = {"", "input ", "constant ", "state ", ""};
    char found[GB_TYPE_TEXT], expected[GB_TYPE_TEXT];
    expected_text(pattern, &before, expected);
    return gb_fail(error, GUMBEL_ERROR_FORMAT, "%s: operand %.*s is %s%s, expected %s", op->name,
                   (int)pattern->name_length, pattern->name, kinds[operand->kind],
                   gb_type_text(&operand->type, found), expected);
}

static gumbel_status match_operands(const gb_op_info *op, const gb_signature *signature,
                                    const gb_operand_type *operands, uint32_t count, bindings *bound,
                                    gumbel_error *error) {
    if (count > signature->operand_count)
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "%s: %u operands, expected at most %u", op->name, count,
                       signature->operand_count);
    for (uint32_t i = 0; i < signature->operand_count; i++) {
        const gb_type_pattern *pattern = &signature->operands[i];
        if (i < count)
            GB_TRY(match_operand(op, pattern, &operands[i], bound, error));
        else if (!pattern->optional)
            return gb_fail(error, GUMBEL_ERROR_FORMAT, "%s: operand %.*s is missing", op->name,
                           (int)pattern->name_length, pattern->name);
    }
    return GUMBEL_OK;
}

/* ---- Attributes ---------------------------------------------------------------------------------------- */

static const gb_attribute *find_attribute(const gb_attribute *attributes, uint32_t count,
                                          gb_attribute_key key) {
    for (uint32_t i = 0; i < count; i++) {
        if (attributes[i].key == key)
            return &attributes[i];
    }
    return NULL;
}

static gumbel_status check_attribute(const gb_op_info *op, const gb_attribute *attribute,
                                     gumbel_error *error) {
    const char *name = gb_attribute_name(attribute->key);
    gb_attribute_type type = gb_op_attribute_type(op->op, attribute->key);
    if (type == 0)
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "%s: has no attribute %s (number %u)", op->name, name,
                       (unsigned)attribute->key);
    if (attribute->type != type)
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "%s: attribute %s is not %s", op->name, name,
                       type == GB_ATTRIBUTE_INT ? "an integer" : "a float");
    if (type == GB_ATTRIBUTE_FLOAT && !isfinite((float)attribute->f))
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "%s: attribute %s = %g is not a finite float32", op->name,
                       name, attribute->f);
    if (type == GB_ATTRIBUTE_INT && (attribute->i < 0 || attribute->i > GB_MAX_DIM))
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "%s: attribute %s = %lld is not within 0 .. %d", op->name,
                       name, (long long)attribute->i, (int)GB_MAX_DIM);
    return GUMBEL_OK;
}

static gumbel_status check_attributes(const gb_op_info *op, const gb_attribute *attributes, uint32_t count,
                                      gumbel_error *error) {
    gb_attribute_pattern patterns[GB_MAX_ATTRIBUTES];
    uint32_t pattern_count = gb_attribute_patterns(op, patterns);
    for (uint32_t i = 0; i < count; i++) {
        GB_TRY(check_attribute(op, &attributes[i], error));
        if (find_attribute(attributes, i, attributes[i].key))
            return gb_fail(error, GUMBEL_ERROR_FORMAT, "%s: attribute %s is given twice", op->name,
                           gb_attribute_name(attributes[i].key));
    }
    for (uint32_t i = 0; i < pattern_count; i++) {
        if (!patterns[i].has_default && !find_attribute(attributes, count, patterns[i].key))
            return gb_fail(error, GUMBEL_ERROR_FORMAT, "%s: attribute %s is missing", op->name,
                           gb_attribute_name(patterns[i].key));
    }
    return GUMBEL_OK;
}

/* ---- Results ------------------------------------------------------------------------------------------- */

static gb_type make_type(const gb_type_pattern *pattern, bindings *bound) {
    gb_type type = {.dtype = pattern->kind == GB_PATTERN_ANY ? bound->any_dtype : pattern->dtype};
    for (int32_t i = 0; i < pattern->dim_count; i++) {
        int64_t dim = pattern->dims[i];
        if (dim == GB_DIM_ANY_DIMS)
            type.shape = bound->any_dims;
        else
            type.shape.dims[type.shape.rank++] = is_letter(dim) ? *letter(bound, dim) : dim;
    }
    return type;
}

gumbel_status gb_infer(gb_op op, const gb_operand_type *operands, uint32_t operand_count,
                       const gb_attribute *attributes, uint32_t attribute_count, gb_type *results,
                       uint32_t *result_count, gumbel_error *error) {
    const gb_op_info *info = gb_op_find(op);
    gb_signature signature;
    bindings bound = {0};
    *result_count = 0;
    if (!info)
        return gb_fail(error, GUMBEL_ERROR_UNSUPPORTED, "op %u is not known to this version", (unsigned)op);
    if (!gb_signature_parse(info, &signature))
        return gb_fail(error, GUMBEL_ERROR_UNSUPPORTED, "%s: its signature cannot be read", info->name);
    GB_TRY(match_operands(info, &signature, operands, operand_count, &bound, error));
    GB_TRY(check_attributes(info, attributes, attribute_count, error));
    GB_TRY(gb_check_vocabulary(info, *letter(&bound, -(int64_t)'V'), error)); /* 0: has none */
    if (op == GB_OP_IF)
        return GUMBEL_OK;
    for (uint32_t i = 0; i < signature.result_count; i++)
        results[i] = make_type(&signature.results[i], &bound);
    *result_count = signature.result_count;
    gb_node node = {.op = op, .attribute_count = (uint8_t)attribute_count};
    for (uint32_t i = 0; i < attribute_count; i++)
        node.attributes[i] = attributes[i];
    return gb_infer_rule(info, operands, &node, results, *result_count, error);
}

/* ---- Names --------------------------------------------------------------------------------------------- */

const char *gb_attribute_name(gb_attribute_key key) {
    switch (key) {
#define X(number, NAME, name)                                                                                \
    case GB_ATTRIBUTE_##NAME:                                                                                \
        return #name;
        GB_ATTRIBUTES(X)
#undef X
    default:
        return "?";
    }
}

gb_attribute_type gb_op_attribute_type(gb_op op, gb_attribute_key key) {
    gb_attribute_pattern patterns[GB_MAX_ATTRIBUTES];
    const gb_op_info *info = gb_op_find(op);
    uint32_t count = info ? gb_attribute_patterns(info, patterns) : 0;
    for (uint32_t i = 0; i < count; i++) {
        if (patterns[i].key == key)
            return patterns[i].type;
    }
    return (gb_attribute_type)0;
}

const char *gb_op_operand_name(gb_op op, uint32_t index, size_t *length) {
    const gb_op_info *info = gb_op_find(op);
    gb_signature signature;
    *length = 0;
    if (!info || !gb_signature_parse(info, &signature) || index >= signature.operand_count)
        return NULL;
    *length = signature.operands[index].name_length;
    return signature.operands[index].name;
}
