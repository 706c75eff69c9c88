/* SPDX-License-Identifier: Apache-2.0 */
#include "program/program.h"

#include "base/memory.h"
#include "program/file/storage.h"
#include "program/signature.h"
#include "tensor/cache_codes.h"

#include <stdio.h>
#include <string.h>

bool gb_shape_equal(const gb_shape *a, const gb_shape *b) {
    if (a->rank != b->rank)
        return false;
    for (int32_t i = 0; i < a->rank; i++) {
        if (a->dims[i] != b->dims[i])
            return false;
    }
    return true;
}

bool gb_type_equal(const gb_type *a, const gb_type *b) {
    return a->dtype == b->dtype && gb_shape_equal(&a->shape, &b->shape);
}

bool gb_type_valid(const gb_type *type) {
    if (type->dtype <= GB_DTYPE_NONE || type->dtype >= GB_DTYPE_COUNT || type->shape.rank < 0 ||
        type->shape.rank > GB_MAX_RANK)
        return false;
    for (int32_t i = 0; i < type->shape.rank; i++) {
        int64_t dim = type->shape.dims[i];
        bool symbol = i == 0 && (dim == GB_DIM_N || dim == GB_DIM_B);
        if (!symbol && (dim < 1 || dim > GB_MAX_DIM))
            return false;
    }
    return true;
}

const char *gb_type_text(const gb_type *type, char text[GB_TYPE_TEXT]) {
    int32_t rank = type->shape.rank < 0             ? 0
                   : type->shape.rank > GB_MAX_RANK ? (int32_t)GB_MAX_RANK
                                                    : type->shape.rank;
    size_t used = (size_t)snprintf(text, GB_TYPE_TEXT, "%s[", gb_dtype_name(type->dtype));
    for (int32_t i = 0; i < rank; i++) {
        int64_t dim = type->shape.dims[i];
        const char *comma = i ? "," : "";
        if (dim == GB_DIM_N || dim == GB_DIM_B)
            used += (size_t)snprintf(text + used, GB_TYPE_TEXT - used, "%s%c", comma,
                                     dim == GB_DIM_N ? 'N' : 'B');
        else
            used += (size_t)snprintf(text + used, GB_TYPE_TEXT - used, "%s%lld", comma, (long long)dim);
    }
    snprintf(text + used, GB_TYPE_TEXT - used, "]");
    return text;
}

bool gb_shape_elements(const gb_shape *shape, uint64_t *elements) {
    uint64_t product = 1;
    for (int32_t i = 0; i < shape->rank; i++) {
        if (shape->dims[i] < 1 || !gb_multiply_size(product, (uint64_t)shape->dims[i], &product))
            return false;
    }
    *elements = product;
    return true;
}

bool gb_type_bytes(const gb_type *type, uint64_t *bytes) {
    uint64_t elements;
    if (type->dtype == GB_QUANTIZED || !gb_shape_elements(&type->shape, &elements))
        return false;
    if (!gb_dtype_has_codes(type->dtype))
        return gb_multiply_size(elements, gb_dtype_size(type->dtype), bytes);
    const size_t group = gb_code_bytes(type->dtype, GB_CODE_GROUP) + gb_code_scale_bytes(GB_CODE_GROUP);
    const int32_t rank = type->shape.rank;
    return rank > 0 && type->shape.dims[rank - 1] % GB_CODE_GROUP == 0 &&
           gb_multiply_size(elements / GB_CODE_GROUP, group, bytes);
}

bool gb_constant_matrix(const gb_constant *constant, uint64_t *rows, uint64_t *columns) {
    const gb_shape *shape = &constant->type.shape;
    uint64_t elements;
    if (shape->rank < 2 || shape->rank > GB_MAX_RANK || !gb_shape_elements(shape, &elements))
        return false;
    *columns = (uint64_t)shape->dims[shape->rank - 1];
    *rows = elements / *columns;
    return true;
}

bool gb_constant_planes(const gb_constant *constant, gb_planes *planes) {
    uint64_t rows, columns;
    return constant->type.dtype == GB_QUANTIZED && constant->format.kind != GB_FORMAT_DENSE &&
           gb_format_valid(&constant->format) && gb_constant_matrix(constant, &rows, &columns) &&
           gb_format_fits(&constant->format, columns) &&
           gb_format_planes(&constant->format, rows, columns, planes);
}

bool gb_constant_bytes(const gb_constant *constant, uint64_t *bytes) {
    gb_planes planes;
    if (constant->type.dtype != GB_QUANTIZED)
        return constant->format.kind == GB_FORMAT_DENSE && gb_format_valid(&constant->format) &&
               gb_type_bytes(&constant->type, bytes);
    if (!gb_constant_planes(constant, &planes))
        return false;
    *bytes = planes.size;
    return true;
}

const char *gb_constant_format_text(const gb_constant *constant, char text[GB_FORMAT_TEXT]) {
    if (constant->type.dtype == GB_QUANTIZED)
        return gb_format_text(&constant->format, text);
    snprintf(text, GB_FORMAT_TEXT, "%s", gb_dtype_name(constant->type.dtype));
    return text;
}

double gb_constant_bits_per_weight(const gb_constant *constant) {
    const gb_shape *shape = &constant->type.shape;
    if (constant->type.dtype != GB_QUANTIZED)
        return 8.0 * (double)gb_dtype_size(constant->type.dtype);
    return gb_format_bits_per_weight(&constant->format, (uint64_t)shape->dims[shape->rank - 1]);
}

const gb_op_info *gb_op_find(uint32_t number) {
    static const gb_op_info table[GB_OP_LIMIT] = {
#define GB_OP(number_, NAME, name_, signature_, attributes_, ...)                                            \
    [number_] = {.op = GB_OP_##NAME, .name = #name_, .signature = signature_, .attributes = attributes_},
#include "program/ops.def"
#undef GB_OP
    };
    return number < GB_OP_LIMIT && table[number].name ? &table[number] : NULL;
}

const gb_role_info *gb_role_find(uint32_t number) {
    static const gb_role_info table[GB_ROLE_LIMIT] = {
#define GB_ROLE(number_, NAME, name_, direction_, dtype_, dims_, required_, neutral)                         \
    [number_] = {.role = GB_ROLE_##NAME,                                                                     \
                 .name = #name_,                                                                             \
                 .direction = GB_ROLE_##direction_,                                                          \
                 .dtype = dtype_,                                                                            \
                 .dims = #dims_,                                                                             \
                 .required = required_},
#include "program/roles.def"
    };
    return number < GB_ROLE_LIMIT && table[number].name ? &table[number] : NULL;
}

uint64_t gb_mask_words(uint64_t vocab_size) {
    return (vocab_size + 31) / 32;
}

static int64_t role_dim(char letter, const gb_metadata *metadata) {
    switch (letter) {
    case 'N':
        return GB_DIM_N;
    case 'B':
        return GB_DIM_B;
    case 'L':
        return (int64_t)metadata->max_bias;
    case 'K':
        return (int64_t)metadata->max_top_logprobs;
    case 'W':
        return (int64_t)gb_mask_words(metadata->vocab_size);
    default:
        return (int64_t)metadata->vocab_size;
    }
}

gb_type gb_role_type(const gb_role_info *role, const gb_metadata *metadata) {
    gb_type type = {.dtype = role->dtype, .shape.rank = (int32_t)strlen(role->dims)};
    for (int32_t i = 0; i < type.shape.rank; i++)
        type.shape.dims[i] = role_dim(role->dims[i], metadata);
    return type;
}

void gb_program_destroy(gb_program *program) {
    if (!program)
        return;
    gb_program_destroy(program->head);
    gb_unmap_file(&program->map);
    gb_storage_destroy(program->storage);
    gb_free(program);
}

/* The node's attribute, or the default that the op's line gives it. */
static gb_attribute find_attribute(const gb_node *node, gb_attribute_key key) {
    for (uint32_t i = 0; i < node->attribute_count; i++) {
        if (node->attributes[i].key == key)
            return node->attributes[i];
    }
    gb_attribute_pattern patterns[GB_MAX_ATTRIBUTES];
    const gb_op_info *info = gb_op_find(node->op);
    uint32_t count = info ? gb_attribute_patterns(info, patterns) : 0;
    for (uint32_t i = 0; i < count; i++) {
        if (patterns[i].key == key)
            return patterns[i].type == GB_ATTRIBUTE_INT ? gb_int(key, (int64_t)patterns[i].default_value)
                                                        : gb_float(key, patterns[i].default_value);
    }
    return gb_int(GB_ATTRIBUTE_NONE, 0);
}

int64_t gb_node_int(const gb_node *node, gb_attribute_key key) {
    gb_attribute attribute = find_attribute(node, key);
    return attribute.type == GB_ATTRIBUTE_INT ? attribute.i : 0;
}

double gb_node_float(const gb_node *node, gb_attribute_key key) {
    gb_attribute attribute = find_attribute(node, key);
    return attribute.type == GB_ATTRIBUTE_FLOAT ? attribute.f : 0;
}

static gb_ref find_binding(const gb_binding *bindings, uint32_t count, gb_role role) {
    for (uint32_t i = 0; i < count; i++) {
        if (bindings[i].role == role)
            return bindings[i].value;
    }
    return GB_NO_VALUE;
}

gb_ref gb_program_input(const gb_program *program, gb_role role) {
    return find_binding(program->inputs, program->input_count, role);
}

gb_ref gb_program_output(const gb_program *program, gb_role role) {
    return find_binding(program->outputs, program->output_count, role);
}

uint64_t gb_state_bytes(const gb_state *state) {
    uint64_t bytes;
    return gb_type_bytes(&state->type, &bytes) ? bytes : UINT64_MAX;
}

uint64_t gb_state_bytes_at(const gb_state *state, uint64_t tokens) {
    const uint64_t bytes = gb_state_bytes(state), rows = (uint64_t)state->type.shape.dims[0];
    return state->kind == GB_STATE_RECURRENT || tokens >= rows ? bytes : bytes / rows * tokens;
}

bool gb_has_recurrent_state(const gb_program *program) {
    for (uint32_t i = 0; i < program->state_count; i++)
        if (program->states[i].kind == GB_STATE_RECURRENT)
            return true;
    return false;
}

uint32_t gb_hidden_state(const gb_program *program) {
    for (uint32_t i = 0; i < program->node_count; i++)
        if (program->nodes[i].op == GB_OP_KEEP_HIDDEN)
            return program->values[program->nodes[i].operands[3]].index;
    return UINT32_MAX;
}

bool gb_is_draft_head(const gb_program *program) {
    return gb_program_op_count(program, GB_OP_LOAD_HIDDEN) > 0;
}

bool gb_attends_to_program(const gb_program *program) {
    return gb_program_op_count(program, GB_OP_ATTEND) > 0;
}

uint32_t gb_draft_head_offset(const gb_program *program) {
    for (uint32_t i = 0; i < program->node_count; i++)
        if (program->nodes[i].op == GB_OP_LOAD_HIDDEN)
            return 1 - (uint32_t)gb_node_int(&program->nodes[i], GB_ATTRIBUTE_BEFORE);
    return 0;
}

uint32_t gb_ring_slack(const gb_program *program) {
    uint32_t least = UINT32_MAX;
    for (uint32_t i = 0; i < program->state_count; i++) {
        const gb_state *state = &program->states[i];
        if (state->kind == GB_STATE_RING && state->type.shape.dims[0] - state->window < least)
            least = (uint32_t)(state->type.shape.dims[0] - state->window);
    }
    return least;
}

static const gb_value *last_operand(const gb_program *program, const gb_node *node) {
    return &program->values[node->operands[node->operand_count - 1]];
}

bool gb_is_last_with_state(const gb_program *program, const gb_node *node) {
    const uint32_t state = last_operand(program, node)->index;
    for (const gb_node *later = node + 1; later < program->nodes + program->node_count; later++) {
        const gb_value *value = last_operand(program, later);
        if (later->op == node->op && value->kind == GB_VALUE_STATE && value->index == state)
            return false;
    }
    return true;
}

const char *gb_state_kind_name(gb_state_kind kind) {
    static const char *const names[] = {"?", "cache", "ring", "recurrent"};
    return names[kind <= GB_STATE_RECURRENT ? kind : 0];
}

uint64_t gb_program_weight_bytes(const gb_program *program) {
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < program->constant_count; i++)
        bytes += program->constants[i].size;
    return bytes;
}

uint64_t gb_program_state_bytes(const gb_program *program) {
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < program->state_count; i++)
        bytes += gb_state_bytes(&program->states[i]);
    return bytes;
}

uint64_t gb_program_state_bytes_at(const gb_program *program, uint64_t tokens) {
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < program->state_count; i++)
        bytes += gb_state_bytes_at(&program->states[i], tokens);
    return bytes;
}

uint32_t gb_program_op_count(const gb_program *program, gb_op op) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < program->node_count; i++)
        count += program->nodes[i].op == op;
    return count;
}
