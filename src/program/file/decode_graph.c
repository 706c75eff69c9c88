/* SPDX-License-Identifier: Apache-2.0 */
#include "program/file/encode.h"
#include "program/file/format.h"
#include "program/file/storage.h"
#include "program/verify/verify.h"

#include <string.h>

/* One record of the graph section while its fields are read. */
typedef struct item_decoder {
    gb_program *program;
    const char *what; /* "node", for messages */
    uint32_t index;   /* of that kind */
    uint32_t seen;    /* bit n: field n was read */
    gumbel_error *error;
} item_decoder;

static gumbel_status broken(const item_decoder *decoder, unsigned field) {
    return gb_fail(decoder->error, GUMBEL_ERROR_FORMAT, "graph: %s %u: field %u is malformed", decoder->what,
                   decoder->index, field);
}

/* ---- Fields -------------------------------------------------------------------------------------------- */

static gumbel_status get_pair(const item_decoder *decoder, gb_record *field, uint32_t *first,
                              uint32_t *second) {
    *first = gb_view_u32(&field->payload);
    *second = gb_view_u32(&field->payload);
    return gb_view_ended(&field->payload) ? GUMBEL_OK : broken(decoder, field->tag);
}

static gumbel_status get_list(const item_decoder *decoder, gb_record *field, uint32_t *items, uint32_t limit,
                              uint8_t *count) {
    uint64_t found = field->payload.size / 4;
    if (field->payload.size % 4 != 0 || found > limit)
        return broken(decoder, field->tag);
    for (uint32_t i = 0; i < found; i++)
        items[i] = gb_view_u32(&field->payload);
    *count = (uint8_t)found;
    return GUMBEL_OK;
}

static gumbel_status get_name(const item_decoder *decoder, const gb_record *field, const char **name) {
    size_t size = (size_t)field->payload.size;
    if (size && memchr(field->payload.data, 0, size))
        return broken(decoder, field->tag);
    *name = gb_storage_string(decoder->program->storage, (const char *)field->payload.data, size);
    return *name ? GUMBEL_OK : gb_fail(decoder->error, GUMBEL_ERROR_MEMORY, "no memory for the graph");
}

static gumbel_status get_type(const item_decoder *decoder, gb_record *field, gb_type *type) {
    uint32_t dtype = gb_view_u32(&field->payload);
    uint32_t rank = gb_view_u32(&field->payload);
    if (rank > GB_MAX_RANK)
        return broken(decoder, field->tag);
    if (dtype == GB_DTYPE_NONE || dtype >= GB_DTYPE_COUNT)
        return gb_fail(decoder->error, GUMBEL_ERROR_UNSUPPORTED,
                       "graph: %s %u: dtype %u is not known to this version", decoder->what, decoder->index,
                       dtype);
    *type = (gb_type){.dtype = (gb_dtype)dtype, .shape.rank = (int32_t)rank};
    for (uint32_t i = 0; i < rank; i++)
        type->shape.dims[i] = (int64_t)gb_view_u64(&field->payload);
    return gb_view_ended(&field->payload) ? GUMBEL_OK : broken(decoder, field->tag);
}

/* A kind that is not known is told apart from broken fields, which the verifier finds. */
static gumbel_status get_format(const item_decoder *decoder, gb_record *field, gb_format *format) {
    uint32_t kind = gb_view_u32(&field->payload), bits = gb_view_u32(&field->payload);
    uint32_t group = gb_view_u32(&field->payload), scale = gb_view_u32(&field->payload);
    uint32_t has_bias = gb_view_u32(&field->payload), scale_bits = gb_view_u32(&field->payload);
    if (!gb_view_ended(&field->payload) || bits > UINT8_MAX || scale_bits > UINT8_MAX || has_bias > 1 ||
        scale >= GB_DTYPE_COUNT)
        return broken(decoder, field->tag);
    if (kind > GB_FORMAT_PROGRESSIVE)
        return gb_fail(decoder->error, GUMBEL_ERROR_UNSUPPORTED,
                       "graph: %s %u: weight format %u is not known to this version", decoder->what,
                       decoder->index, kind);
    *format = (gb_format){.kind = (gb_format_kind)kind,
                          .bits = (uint8_t)bits,
                          .has_bias = has_bias == 1,
                          .scale_bits = (uint8_t)scale_bits,
                          .scale = (gb_dtype)scale,
                          .group = group,
                          .book = format->book};
    return GUMBEL_OK;
}

static gumbel_status get_book(const item_decoder *decoder, gb_record *field, gb_code_book *book) {
    const uint32_t number = gb_view_u32(&field->payload);
    if (!gb_view_ended(&field->payload))
        return broken(decoder, field->tag);
    if (number >= GB_BOOK_COUNT)
        return gb_fail(decoder->error, GUMBEL_ERROR_UNSUPPORTED,
                       "graph: %s %u: code book %u is not known to this version", decoder->what,
                       decoder->index, number);
    *book = (gb_code_book)number;
    return GUMBEL_OK;
}

/* Reads within the arrays of a layout; whether it is one, the verifier says. */
static bool get_layout(gb_byte_view *view, gb_layout *layout) {
    uint32_t count = gb_view_u32(view), flags = gb_view_u32(view);
    if (count > GB_MAX_LAYOUT_PARTS || flags > GB_LAYOUT_FLAG_HIGH_NIBBLE_FIRST)
        return false;
    *layout = (gb_layout){.part_count = (uint8_t)count,
                          .high_nibble_first = flags == GB_LAYOUT_FLAG_HIGH_NIBBLE_FIRST};
    for (uint32_t i = 0; i < count; i++) {
        uint32_t axis = gb_view_u32(view), size = gb_view_u32(view);
        if (axis > GB_AXIS_COLUMNS)
            return false;
        layout->parts[i] = (gb_layout_part){(uint8_t)axis, size};
    }
    for (uint32_t i = 0; i < count; i++) {
        uint32_t part = gb_view_u32(view);
        if (part >= count)
            return false;
        layout->order[i] = (uint8_t)part;
    }
    return !view->failed;
}

static gumbel_status get_packing(const item_decoder *decoder, gb_record *field, gb_packing *packing) {
    gb_byte_view *view = &field->payload;
    packing->block_rows = gb_view_u32(view);
    bool is_whole = packing->block_rows > 0 && get_layout(view, &packing->codes) &&
                    get_layout(view, &packing->high_codes) && get_layout(view, &packing->scales) &&
                    get_layout(view, &packing->high_scales) && get_layout(view, &packing->supers);
    return is_whole && gb_view_ended(view) ? GUMBEL_OK : broken(decoder, field->tag);
}

static gumbel_status get_attribute(const item_decoder *decoder, gb_record *field, gb_node *node) {
    if (node->attribute_count == GB_MAX_ATTRIBUTES)
        return broken(decoder, field->tag);
    gb_attribute *attribute = &node->attributes[node->attribute_count++];
    gb_attribute_key key = (gb_attribute_key)gb_view_u32(&field->payload);
    *attribute = field->tag == GB_NODE_FIELD_INT ? gb_int(key, (int64_t)gb_view_u64(&field->payload))
                                                 : gb_float(key, gb_view_f64(&field->payload));
    return gb_view_ended(&field->payload) ? GUMBEL_OK : broken(decoder, field->tag);
}

/* A field that no case of the record's kind knows. */
static gumbel_status unknown(const item_decoder *decoder, const gb_record *field) {
    if (field->flags & GB_RECORD_CRITICAL)
        return gb_fail(decoder->error, GUMBEL_ERROR_UNSUPPORTED,
                       "graph: %s %u has the field %u, which is not known to this version", decoder->what,
                       decoder->index, field->tag);
    return GUMBEL_OK;
}

/* ---- Records ------------------------------------------------------------------------------------------- */

/* Each takes one field of its kind of record into the item that decoder->index names. */

static gumbel_status value_field(const item_decoder *decoder, gb_record *field) {
    gb_value *value = &decoder->program->values[decoder->index];
    uint32_t kind = 0;
    switch (field->tag) {
    case GB_VALUE_FIELD_DEFINITION:
        GB_TRY(get_pair(decoder, field, &kind, &value->index));
        value->kind = (gb_value_kind)kind;
        return GUMBEL_OK;
    case GB_VALUE_FIELD_TYPE:
        return get_type(decoder, field, &value->type);
    default:
        return unknown(decoder, field);
    }
}

static gumbel_status node_field(const item_decoder *decoder, gb_record *field) {
    gb_node *node = &decoder->program->nodes[decoder->index];
    switch (field->tag) {
    case GB_NODE_FIELD_OP:
        node->op = (gb_op)gb_view_u32(&field->payload);
        if (!gb_view_ended(&field->payload))
            return broken(decoder, field->tag);
        return gb_op_find((uint32_t)node->op)
                   ? GUMBEL_OK
                   : gb_fail(decoder->error, GUMBEL_ERROR_UNSUPPORTED,
                             "graph: node %u is op %u, which is not known to this version", decoder->index,
                             (unsigned)node->op);
    case GB_NODE_FIELD_OPERANDS:
        return get_list(decoder, field, node->operands, GB_MAX_OPERANDS, &node->operand_count);
    case GB_NODE_FIELD_RESULTS:
        return get_list(decoder, field, node->results, GB_MAX_RESULTS, &node->result_count);
    case GB_NODE_FIELD_REGIONS:
        return get_pair(decoder, field, &node->regions[0], &node->regions[1]);
    case GB_NODE_FIELD_INT:
    case GB_NODE_FIELD_FLOAT:
        return get_attribute(decoder, field, node);
    default:
        return unknown(decoder, field);
    }
}

static gumbel_status region_field(const item_decoder *decoder, gb_record *field) {
    gb_region *region = &decoder->program->regions[decoder->index];
    switch (field->tag) {
    case GB_REGION_FIELD_NODES:
        return get_pair(decoder, field, &region->first_node, &region->node_count);
    case GB_REGION_FIELD_YIELDS:
        return get_list(decoder, field, region->yields, GB_MAX_RESULTS, &region->yield_count);
    default:
        return unknown(decoder, field);
    }
}

static gumbel_status constant_field(const item_decoder *decoder, gb_record *field) {
    gb_constant *constant = &decoder->program->constants[decoder->index];
    switch (field->tag) {
    case GB_CONSTANT_FIELD_NAME:
        return get_name(decoder, field, &constant->name);
    case GB_CONSTANT_FIELD_TYPE:
        return get_type(decoder, field, &constant->type);
    case GB_CONSTANT_FIELD_DATA:
        constant->offset = gb_view_u64(&field->payload);
        constant->size = gb_view_u64(&field->payload);
        constant->checksum = gb_view_u64(&field->payload);
        return gb_view_ended(&field->payload) ? GUMBEL_OK : broken(decoder, field->tag);
    case GB_CONSTANT_FIELD_FORMAT:
        return get_format(decoder, field, &constant->format);
    case GB_CONSTANT_FIELD_PACKING:
        return get_packing(decoder, field, &constant->packing);
    case GB_CONSTANT_FIELD_BOOK:
        return get_book(decoder, field, &constant->format.book);
    default:
        return unknown(decoder, field);
    }
}

static gumbel_status state_field(const item_decoder *decoder, gb_record *field) {
    gb_state *state = &decoder->program->states[decoder->index];
    uint32_t kind = 0;
    switch (field->tag) {
    case GB_STATE_FIELD_NAME:
        return get_name(decoder, field, &state->name);
    case GB_STATE_FIELD_KIND:
        GB_TRY(get_pair(decoder, field, &kind, &state->window));
        state->kind = (gb_state_kind)kind;
        return GUMBEL_OK;
    case GB_STATE_FIELD_TYPE:
        return get_type(decoder, field, &state->type);
    default:
        return unknown(decoder, field);
    }
}

static gumbel_status binding_field(const item_decoder *decoder, gb_record *field, gb_binding *binding) {
    uint32_t role = 0;
    if (field->tag != GB_BINDING_FIELD)
        return unknown(decoder, field);
    GB_TRY(get_pair(decoder, field, &role, &binding->value));
    binding->role = (gb_role)role;
    return GUMBEL_OK;
}

static gumbel_status input_field(const item_decoder *decoder, gb_record *field) {
    return binding_field(decoder, field, &decoder->program->inputs[decoder->index]);
}

static gumbel_status output_field(const item_decoder *decoder, gb_record *field) {
    return binding_field(decoder, field, &decoder->program->outputs[decoder->index]);
}

#define FIELD(number) (1u << (number))

/* What each tag of the section holds: a name, the fields that it must and the fields that it may have more
 * than once, and how one is read. */
static const struct record_kind {
    const char *what;
    uint32_t required, repeated;
    gumbel_status (*read)(const item_decoder *decoder, gb_record *field);
} record_kinds[GB_GRAPH_LIMIT] = {
    [GB_GRAPH_VALUE] = {"value", FIELD(GB_VALUE_FIELD_DEFINITION) | FIELD(GB_VALUE_FIELD_TYPE), 0,
                        value_field},
    [GB_GRAPH_NODE] = {"node", FIELD(GB_NODE_FIELD_OP), FIELD(GB_NODE_FIELD_INT) | FIELD(GB_NODE_FIELD_FLOAT),
                       node_field},
    [GB_GRAPH_REGION] = {"region", FIELD(GB_REGION_FIELD_NODES), 0, region_field},
    [GB_GRAPH_CONSTANT] = {"constant",
                           FIELD(GB_CONSTANT_FIELD_NAME) | FIELD(GB_CONSTANT_FIELD_TYPE) |
                               FIELD(GB_CONSTANT_FIELD_DATA),
                           0, constant_field},
    [GB_GRAPH_STATE] = {"state",
                        FIELD(GB_STATE_FIELD_NAME) | FIELD(GB_STATE_FIELD_KIND) | FIELD(GB_STATE_FIELD_TYPE),
                        0, state_field},
    [GB_GRAPH_INPUT] = {"input", FIELD(GB_BINDING_FIELD), 0, input_field},
    [GB_GRAPH_OUTPUT] = {"output", FIELD(GB_BINDING_FIELD), 0, output_field},
};

static gumbel_status decode_record(item_decoder *decoder, const struct record_kind *kind,
                                   gb_byte_view fields) {
    gb_record field;
    decoder->what = kind->what;
    decoder->seen = 0;
    while (gb_next_record(&fields, &field)) {
        uint32_t bit = field.tag < 32 ? FIELD(field.tag) : 0;
        if (decoder->seen & bit & ~kind->repeated)
            return gb_fail(decoder->error, GUMBEL_ERROR_FORMAT, "graph: %s %u: field %u is given twice",
                           kind->what, decoder->index, field.tag);
        GB_TRY(kind->read(decoder, &field));
        decoder->seen |= bit;
    }
    if (!gb_view_ended(&fields))
        return gb_fail(decoder->error, GUMBEL_ERROR_FORMAT, "graph: %s %u: a field leaves its record",
                       kind->what, decoder->index);
    for (uint32_t number = 0; number < 32; number++) {
        if (kind->required & ~decoder->seen & FIELD(number))
            return gb_fail(decoder->error, GUMBEL_ERROR_FORMAT, "graph: %s %u has no field %u", kind->what,
                           decoder->index, number);
    }
    return GUMBEL_OK;
}

/* ---- The section --------------------------------------------------------------------------------------- */

/* Counts the records of each tag, so that the arrays are as long as what the file really holds. */
static gumbel_status count_records(gb_byte_view section, uint32_t counts[GB_GRAPH_LIMIT],
                                   gumbel_error *error) {
    gb_record record;
    while (gb_next_record(&section, &record)) {
        if (record.tag < GB_GRAPH_LIMIT && record_kinds[record.tag].what)
            counts[record.tag]++;
        else if (record.flags & GB_RECORD_CRITICAL)
            return gb_fail(error, GUMBEL_ERROR_UNSUPPORTED,
                           "graph: has the record %u, which is not known to this version", record.tag);
    }
    if (!gb_view_ended(&section))
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "graph: a record leaves the section");
    return GUMBEL_OK;
}

static gumbel_status allocate_arrays(gb_program *program, const uint32_t counts[GB_GRAPH_LIMIT],
                                     gumbel_error *error) {
    struct gb_storage *storage = program->storage;
    program->value_count = counts[GB_GRAPH_VALUE];
    program->node_count = counts[GB_GRAPH_NODE];
    program->region_count = counts[GB_GRAPH_REGION];
    program->constant_count = counts[GB_GRAPH_CONSTANT];
    program->state_count = counts[GB_GRAPH_STATE];
    program->input_count = counts[GB_GRAPH_INPUT];
    program->output_count = counts[GB_GRAPH_OUTPUT];
    GB_TRY(gb_verify_counts(program, error));
    program->values = gb_storage_take(storage, program->value_count, sizeof(gb_value));
    program->nodes = gb_storage_take(storage, program->node_count, sizeof(gb_node));
    program->regions = gb_storage_take(storage, program->region_count, sizeof(gb_region));
    program->constants = gb_storage_take(storage, program->constant_count, sizeof(gb_constant));
    program->states = gb_storage_take(storage, program->state_count, sizeof(gb_state));
    program->inputs = gb_storage_take(storage, program->input_count, sizeof(gb_binding));
    program->outputs = gb_storage_take(storage, program->output_count, sizeof(gb_binding));
    if (!program->values || !program->nodes || !program->regions || !program->constants || !program->states ||
        !program->inputs || !program->outputs)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for the graph");
    for (uint32_t i = 0; i < program->node_count; i++)
        program->nodes[i].regions[0] = program->nodes[i].regions[1] = GB_NO_REGION;
    return GUMBEL_OK;
}

gumbel_status gb_decode_graph(gb_byte_view section, gb_program *program, gumbel_error *error) {
    uint32_t counts[GB_GRAPH_LIMIT] = {0};
    GB_TRY(count_records(section, counts, error));
    GB_TRY(allocate_arrays(program, counts, error));
    uint32_t next[GB_GRAPH_LIMIT] = {0};
    gb_record record;
    while (gb_next_record(&section, &record)) {
        if (record.tag >= GB_GRAPH_LIMIT || !record_kinds[record.tag].what)
            continue;
        item_decoder decoder = {.program = program, .index = next[record.tag]++, .error = error};
        GB_TRY(decode_record(&decoder, &record_kinds[record.tag], record.payload));
    }
    return GUMBEL_OK;
}
