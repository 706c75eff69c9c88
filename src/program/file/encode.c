/* SPDX-License-Identifier: Apache-2.0 */
#include "program/file/encode.h"

#include "program/file/format.h"

#include <string.h>

/* ---- Metadata ------------------------------------------------------------------------------------------ */

static void put_string(gb_byte_buffer *buffer, const char *text) {
    gb_buffer_append(buffer, text, strlen(text));
}

static void put_bool(gb_byte_buffer *buffer, bool value) {
    gb_buffer_append(buffer, &(uint8_t){value}, 1);
}

static void put_tokens(gb_byte_buffer *buffer, gb_token_list list) {
    for (uint32_t i = 0; i < list.count; i++)
        gb_buffer_append_u32(buffer, (uint32_t)list.ids[i]);
}

#define PUT_STRING put_string
#define PUT_UINT gb_buffer_append_u64
#define PUT_FLOAT gb_buffer_append_f64
#define PUT_BOOL put_bool
#define PUT_TOKENS put_tokens

void gb_encode_metadata(const gb_metadata *metadata, gb_byte_buffer *buffer) {
#define GB_METADATA(number, type, name, required, what)                                                      \
    if (metadata->has_##name) {                                                                              \
        size_t begin = gb_record_begin(buffer, number, 0);                                                   \
        PUT_##type(buffer, metadata->name);                                                                  \
        gb_record_end(buffer, begin);                                                                        \
    }
#include "program/metadata.def"
#undef GB_METADATA
}

/* ---- Graph --------------------------------------------------------------------------------------------- */

static size_t begin(gb_byte_buffer *buffer, int tag) {
    return gb_record_begin(buffer, (uint16_t)tag, GB_RECORD_CRITICAL);
}

static void put_pair(gb_byte_buffer *buffer, int field, uint32_t first, uint32_t second) {
    size_t start = begin(buffer, field);
    gb_buffer_append_u32(buffer, first);
    gb_buffer_append_u32(buffer, second);
    gb_record_end(buffer, start);
}

/* Nothing for an empty list. */
static void put_list(gb_byte_buffer *buffer, int field, const uint32_t *items, uint32_t count) {
    if (count == 0)
        return;
    size_t start = begin(buffer, field);
    for (uint32_t i = 0; i < count; i++)
        gb_buffer_append_u32(buffer, items[i]);
    gb_record_end(buffer, start);
}

static void put_name(gb_byte_buffer *buffer, int field, const char *name) {
    size_t start = begin(buffer, field);
    put_string(buffer, name);
    gb_record_end(buffer, start);
}

static void put_type(gb_byte_buffer *buffer, int field, const gb_type *type) {
    size_t start = begin(buffer, field);
    gb_buffer_append_u32(buffer, (uint32_t)type->dtype);
    gb_buffer_append_u32(buffer, (uint32_t)type->shape.rank);
    for (int32_t i = 0; i < type->shape.rank; i++)
        gb_buffer_append_u64(buffer, (uint64_t)type->shape.dims[i]);
    gb_record_end(buffer, start);
}

static void put_value(gb_byte_buffer *buffer, const gb_value *value) {
    size_t start = begin(buffer, GB_GRAPH_VALUE);
    put_pair(buffer, GB_VALUE_FIELD_DEFINITION, (uint32_t)value->kind, value->index);
    put_type(buffer, GB_VALUE_FIELD_TYPE, &value->type);
    gb_record_end(buffer, start);
}

static void put_attribute(gb_byte_buffer *buffer, const gb_attribute *attribute) {
    bool is_int = attribute->type == GB_ATTRIBUTE_INT;
    size_t start = begin(buffer, is_int ? GB_NODE_FIELD_INT : GB_NODE_FIELD_FLOAT);
    gb_buffer_append_u32(buffer, (uint32_t)attribute->key);
    if (is_int)
        gb_buffer_append_u64(buffer, (uint64_t)attribute->i);
    else
        gb_buffer_append_f64(buffer, attribute->f);
    gb_record_end(buffer, start);
}

static void put_node(gb_byte_buffer *buffer, const gb_node *node) {
    size_t start = begin(buffer, GB_GRAPH_NODE);
    uint32_t op = (uint32_t)node->op;
    put_list(buffer, GB_NODE_FIELD_OP, &op, 1);
    put_list(buffer, GB_NODE_FIELD_OPERANDS, node->operands, node->operand_count);
    put_list(buffer, GB_NODE_FIELD_RESULTS, node->results, node->result_count);
    if (node->regions[0] != GB_NO_REGION || node->regions[1] != GB_NO_REGION)
        put_list(buffer, GB_NODE_FIELD_REGIONS, node->regions, 2);
    for (uint32_t i = 0; i < node->attribute_count; i++)
        put_attribute(buffer, &node->attributes[i]);
    gb_record_end(buffer, start);
}

static void put_region(gb_byte_buffer *buffer, const gb_region *region) {
    size_t start = begin(buffer, GB_GRAPH_REGION);
    put_pair(buffer, GB_REGION_FIELD_NODES, region->first_node, region->node_count);
    put_list(buffer, GB_REGION_FIELD_YIELDS, region->yields, region->yield_count);
    gb_record_end(buffer, start);
}

static void put_format(gb_byte_buffer *buffer, const gb_format *format) {
    const uint32_t fields[] = {(uint32_t)format->kind,  format->bits,     format->group,
                               (uint32_t)format->scale, format->has_bias, format->scale_bits};
    put_list(buffer, GB_CONSTANT_FIELD_FORMAT, fields, sizeof fields / sizeof *fields);
}

static void put_layout(gb_byte_buffer *buffer, const gb_layout *layout) {
    gb_buffer_append_u32(buffer, layout->part_count);
    gb_buffer_append_u32(buffer, layout->high_nibble_first ? GB_LAYOUT_FLAG_HIGH_NIBBLE_FIRST : 0);
    for (uint32_t i = 0; i < layout->part_count; i++) {
        gb_buffer_append_u32(buffer, layout->parts[i].axis);
        gb_buffer_append_u32(buffer, layout->parts[i].size);
    }
    for (uint32_t i = 0; i < layout->part_count; i++)
        gb_buffer_append_u32(buffer, layout->order[i]);
}

static void put_packing(gb_byte_buffer *buffer, const gb_packing *packing) {
    size_t start = begin(buffer, GB_CONSTANT_FIELD_PACKING);
    gb_buffer_append_u32(buffer, packing->block_rows);
    put_layout(buffer, &packing->codes);
    put_layout(buffer, &packing->high_codes);
    put_layout(buffer, &packing->scales);
    put_layout(buffer, &packing->high_scales);
    put_layout(buffer, &packing->supers);
    gb_record_end(buffer, start);
}

static void put_constant(gb_byte_buffer *buffer, const gb_constant *constant) {
    size_t start = begin(buffer, GB_GRAPH_CONSTANT);
    put_name(buffer, GB_CONSTANT_FIELD_NAME, constant->name);
    put_type(buffer, GB_CONSTANT_FIELD_TYPE, &constant->type);
    size_t data = begin(buffer, GB_CONSTANT_FIELD_DATA);
    gb_buffer_append_u64(buffer, constant->offset);
    gb_buffer_append_u64(buffer, constant->size);
    gb_buffer_append_u64(buffer, constant->checksum);
    gb_record_end(buffer, data);
    if (constant->format.kind != GB_FORMAT_DENSE)
        put_format(buffer, &constant->format);
    const uint32_t book = (uint32_t)constant->format.book;
    if (book != GB_BOOK_NONE)
        put_list(buffer, GB_CONSTANT_FIELD_BOOK, &book, 1);
    if (constant->packing.block_rows > 0)
        put_packing(buffer, &constant->packing);
    gb_record_end(buffer, start);
}

static void put_state(gb_byte_buffer *buffer, const gb_state *state) {
    size_t start = begin(buffer, GB_GRAPH_STATE);
    put_name(buffer, GB_STATE_FIELD_NAME, state->name);
    put_pair(buffer, GB_STATE_FIELD_KIND, (uint32_t)state->kind, state->window);
    put_type(buffer, GB_STATE_FIELD_TYPE, &state->type);
    gb_record_end(buffer, start);
}

static void put_binding(gb_byte_buffer *buffer, int tag, const gb_binding *binding) {
    size_t start = begin(buffer, tag);
    put_pair(buffer, GB_BINDING_FIELD, (uint32_t)binding->role, binding->value);
    gb_record_end(buffer, start);
}

void gb_encode_graph(const gb_program *program, gb_byte_buffer *buffer) {
    for (uint32_t i = 0; i < program->constant_count; i++)
        put_constant(buffer, &program->constants[i]);
    for (uint32_t i = 0; i < program->state_count; i++)
        put_state(buffer, &program->states[i]);
    for (uint32_t i = 0; i < program->input_count; i++)
        put_binding(buffer, GB_GRAPH_INPUT, &program->inputs[i]);
    for (uint32_t i = 0; i < program->output_count; i++)
        put_binding(buffer, GB_GRAPH_OUTPUT, &program->outputs[i]);
    for (uint32_t i = 0; i < program->value_count; i++)
        put_value(buffer, &program->values[i]);
    for (uint32_t i = 0; i < program->region_count; i++)
        put_region(buffer, &program->regions[i]);
    for (uint32_t i = 0; i < program->node_count; i++)
        put_node(buffer, &program->nodes[i]);
}
