/* SPDX-License-Identifier: Apache-2.0 */
#include "mutate_graph.h"

#include "base/memory.h"
#include "program/file/encode.h"
#include "program/file/reader.h"
#include "program/infer.h"
#include "program/verify/verifier.h"

#include <math.h>
#include <string.h>

/* ---- Choosing ------------------------------------------------------------------------------------------ */

static uint32_t any_of(uint32_t count, random_source *source) {
    return (uint32_t)random_below(source, count);
}

static gb_node *any_node(gb_program *program, random_source *source) {
    return &program->nodes[any_of(program->node_count, source)];
}

/* A value of the type below the limit, since values are numbered as they are made; GB_NO_VALUE: none. */
static gb_ref any_value(const gb_program *program, const gb_type *type, gb_ref limit, random_source *source) {
    gb_ref chosen = GB_NO_VALUE;
    uint64_t fitting = 0;
    for (gb_ref i = 0; i < program->value_count && i < limit; i++)
        if (gb_type_equal(&program->values[i].type, type) && random_once_in(source, ++fitting))
            chosen = i;
    return chosen;
}

static int64_t odd_int(int64_t old, random_source *source) {
    static const int64_t numbers[] = {0,  1,  2,   3,   4,   5,   7,    8,    15,    16,       24,
                                      31, 32, 63,  64,  96,  127, 128,  255,  256,   1000,     4096,
                                      -1, 33, 100, 129, 512, 513, 1024, 2048, 65536, INT32_MAX};
    if (random_once_in(source, 3))
        return numbers[random_below(source, sizeof numbers / sizeof *numbers)];
    return (int64_t)neighbour_of((uint64_t)old, source);
}

static double odd_float(double old, random_source *source) {
    static const double numbers[] = {0,    -0.0,  1,     -1,        0.5,  1e-6,   1e-30, 1e30,
                                     1e38, 1e300, 1e-45, -INFINITY, 1e10, 100000, NAN,   INFINITY};
    switch (random_below(source, 4)) {
    case 0:
        return -old;
    case 1:
        return old * 2;
    default:
        return numbers[random_below(source, sizeof numbers / sizeof *numbers)];
    }
}

/* ---- Changes ------------------------------------------------------------------------------------------- */

static void change_operand(gb_program *program, random_source *source) {
    gb_node *node = any_node(program, source);
    if (node->operand_count == 0)
        return;
    gb_ref *operand = &node->operands[any_of(node->operand_count, source)];
    if (*operand >= program->value_count)
        return;
    const gb_ref limit = node->result_count > 0 ? node->results[0] : program->value_count;
    const gb_ref other = any_value(program, &program->values[*operand].type, limit, source);
    if (other != GB_NO_VALUE)
        *operand = other;
}

static void change_op(gb_program *program, random_source *source) {
    const uint32_t op = 1 + any_of(GB_OP_LIMIT - 1, source);
    gb_node *node = any_node(program, source);
    if (gb_op_find(op) && node->regions[0] == GB_NO_REGION) {
        node->op = (gb_op)op;
        node->attribute_count = random_once_in(source, 2) ? 0 : node->attribute_count;
    }
}

static void change_attribute(gb_program *program, random_source *source) {
    gb_node *node = any_node(program, source);
    for (int tries = 0; node->attribute_count == 0 && tries < 8; tries++)
        node = any_node(program, source);
    if (node->attribute_count == 0)
        return;
    gb_attribute *attribute = &node->attributes[any_of(node->attribute_count, source)];
    if (random_once_in(source, 6))
        *attribute = node->attributes[--node->attribute_count]; /* its default, where it has one */
    else if (attribute->type == GB_ATTRIBUTE_INT)
        attribute->i = odd_int(attribute->i, source);
    else
        attribute->f = odd_float(attribute->f, source);
}

/* One that the node leaves to its default, with any number. */
static void add_attribute(gb_program *program, random_source *source) {
    gb_node *node = any_node(program, source);
    const gb_attribute_key key = (gb_attribute_key)(1 + any_of(GB_ATTRIBUTE_BEFORE, source));
    const gb_attribute_type type = gb_op_attribute_type(node->op, key);
    for (uint32_t i = 0; i < node->attribute_count; i++)
        if (node->attributes[i].key == key)
            return;
    if (type == 0 || node->attribute_count == GB_MAX_ATTRIBUTES)
        return;
    node->attributes[node->attribute_count++] =
        type == GB_ATTRIBUTE_INT ? gb_int(key, odd_int(1, source)) : gb_float(key, odd_float(1, source));
}

static void replace_dim(gb_shape *shape, int64_t old, int64_t new) {
    for (int32_t i = 0; i < shape->rank; i++)
        if (shape->dims[i] == old)
            shape->dims[i] = new;
}

static void resize_constants(gb_program *program) {
    uint64_t bytes;
    for (uint32_t i = 0; i < program->constant_count; i++) {
        gb_constant *constant = &program->constants[i];
        if (gb_constant_bytes(constant, &bytes) && bytes != constant->size) {
            constant->size = bytes;
            constant->packing = (gb_packing){0};
        }
    }
}

/* One size everywhere, or a multiple of it too, as widths are of heads. */
static void change_size(gb_program *program, random_source *source) {
    const gb_shape *shape = &program->constants[any_of(program->constant_count, source)].type.shape;
    const int64_t old = shape->dims[any_of((uint32_t)shape->rank, source)];
    const int64_t new = old < 1 || random_once_in(source, 3)
                            ? odd_int(old, source)
                            : 1 + (int64_t)random_below(source, (uint64_t)old);
    const bool everywhere = !random_once_in(source, 8);
    for (uint32_t i = 0; i < program->constant_count; i++)
        if (everywhere || random_once_in(source, 2))
            replace_dim(&program->constants[i].type.shape, old, new);
    for (uint32_t i = 0; i < program->state_count; i++)
        if (everywhere || random_once_in(source, 2))
            replace_dim(&program->states[i].type.shape, old, new);
    resize_constants(program);
}

static void change_weights(gb_program *program, random_source *source) {
    gb_constant *a = &program->constants[any_of(program->constant_count, source)];
    const gb_constant *b = &program->constants[any_of(program->constant_count, source)];
    if (a->size <= b->size)
        a->offset = b->offset;
}

static void change_format(gb_program *program, random_source *source) {
    static const gb_dtype dtypes[] = {GB_F32, GB_BF16, GB_F16};
    gb_constant *constant = &program->constants[any_of(program->constant_count, source)];
    const gb_constant *other = &program->constants[any_of(program->constant_count, source)];
    constant->type.dtype = other->type.dtype;
    constant->format = other->format;
    if (other->type.dtype != GB_QUANTIZED)
        constant->type.dtype = dtypes[random_below(source, 3)];
    constant->packing = (gb_packing){0};
    resize_constants(program);
}

static void change_state(gb_program *program, random_source *source) {
    static const gb_dtype dtypes[] = {GB_F32, GB_BF16, GB_Q8, GB_Q4, GB_I32};
    if (program->state_count == 0)
        return;
    gb_state *state = &program->states[any_of(program->state_count, source)];
    switch (random_below(source, 4)) {
    case 0:
        state->kind = (gb_state_kind)(1 + random_below(source, 3));
        break;
    case 1:
        state->window = (uint32_t)odd_int(state->window, source);
        break;
    case 2:
        state->type.shape.dims[0] = odd_int(state->type.shape.dims[0], source);
        break;
    default:
        for (uint32_t i = 0, dtype = any_of(5, source); i < program->state_count; i++)
            if (program->states[i].type.dtype == state->type.dtype)
                program->states[i].type.dtype = dtypes[dtype];
    }
}

static void change_binding(gb_program *program, random_source *source) {
    const bool is_input = random_once_in(source, 3);
    gb_binding *list = is_input ? program->inputs : program->outputs;
    const uint32_t count = is_input ? program->input_count : program->output_count;
    if (count == 0)
        return;
    gb_binding *binding = &list[any_of(count, source)];
    const gb_ref other = any_value(program, &program->values[binding->value].type, GB_NO_VALUE, source);
    if (other != GB_NO_VALUE)
        binding->value = other;
}

/* ---- Types --------------------------------------------------------------------------------------------- */

static void retype_data(gb_program *program) {
    for (uint32_t i = 0; i < program->value_count; i++) {
        gb_value *value = &program->values[i];
        if (value->kind == GB_VALUE_CONSTANT)
            value->type = program->constants[value->index].type;
        else if (value->kind == GB_VALUE_STATE)
            value->type = program->states[value->index].type;
    }
}

static void retype_node(gb_program *program, const gb_node *node) {
    gb_operand_type operands[GB_MAX_OPERANDS];
    gb_type results[GB_MAX_RESULTS];
    uint32_t count;
    for (uint32_t i = 0; i < node->operand_count; i++)
        operands[i] = gb_operand_type_of(&program->values[node->operands[i]], program->constants);
    if (gb_infer(node->op, operands, node->operand_count, node->attributes, node->attribute_count, results,
                 &count, NULL) != GUMBEL_OK)
        return; /* the verifier says so */
    for (uint32_t i = 0; i < count && i < node->result_count; i++)
        program->values[node->results[i]].type = results[i];
}

static void retype_if(gb_program *program, const gb_node *node) {
    const gb_region *region = &program->regions[node->regions[0]];
    for (uint32_t i = 0; i < region->yield_count && i < node->result_count; i++)
        program->values[node->results[i]].type = program->values[region->yields[i]].type;
}

/* Nodes of inner regions stand before those that make what they read. */
static void retype(gb_program *program) {
    retype_data(program);
    for (int pass = 0; pass < 3; pass++)
        for (uint32_t i = 0; i < program->node_count; i++) {
            if (program->nodes[i].regions[0] != GB_NO_REGION)
                retype_if(program, &program->nodes[i]);
            else
                retype_node(program, &program->nodes[i]);
        }
}

/* ---- The file ------------------------------------------------------------------------------------------ */

/* The graph goes behind everything else, where there is room for any. */
static program_file with_graph(const program_file *original, const gb_byte_buffer *graph) {
    const uint64_t end =
        (original->size + GB_SECTION_ALIGNMENT - 1) / GB_SECTION_ALIGNMENT * GB_SECTION_ALIGNMENT;
    program_file file = copy_program_file(original, end - original->size + graph->size);
    memset(file.bytes + file.size, 0, (size_t)(end - file.size));
    memcpy(file.bytes + end, graph->data, graph->size);
    file.size = end + graph->size;
    uint8_t *entry = section_entry(&file, GB_SECTION_GRAPH);
    gb_put_u64(entry + GB_ENTRY_OFFSET, end);
    gb_put_u64(entry + GB_ENTRY_SIZE, graph->size);
    repair_checksums(&file);
    return file;
}

/* NULL where it is refused. */
static gb_program *try_changes(const program_file *original, bool is_last, random_source *source) {
    static void (*const changes[])(gb_program *, random_source *) = {
        change_operand, change_operand, change_op,     change_attribute, change_attribute, add_attribute,
        change_size,    change_size,    change_format, change_weights,   change_state,     change_binding};
    gb_program *program;
    gumbel_error error;
    if (gb_program_parse("original", original->bytes, original->size, &program, &error) != GUMBEL_OK)
        fail_case("%s", error.message);
    for (uint64_t left = 1 + random_below(source, 3); left > 0; left--) {
        changes[random_below(source, sizeof changes / sizeof *changes)](program, source);
        retype(program);
    }
    if (is_last || gb_program_verify(program, &error) == GUMBEL_OK)
        return program;
    gb_program_destroy(program);
    return NULL;
}

program_file mutate_graph(const program_file *original, random_source *source) {
    enum { TRIES = 4 };
    gb_program *program = NULL;
    for (int tries = 1; !program; tries++)
        program = try_changes(original, tries == TRIES, source);
    gb_byte_buffer graph = {0};
    gb_encode_graph(program, &graph);
    program_file file = with_graph(original, &graph);
    gb_buffer_free(&graph);
    gb_program_destroy(program);
    return file;
}
