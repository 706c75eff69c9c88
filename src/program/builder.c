/* SPDX-License-Identifier: Apache-2.0 */
#include "program/builder.h"

#include "base/memory.h"
#include "program/file/storage.h"
#include "program/infer.h"
#include "program/verify/verifier.h"

#include <stdio.h>
#include <string.h>

/* A region that is being built. Its nodes get their place in the node array when it ends. */
typedef struct open_region {
    gb_node *nodes;
    size_t node_count, node_capacity;
    uint32_t region;  /* its number */
    gb_ref condition; /* of an if's region: the if's operand */
    uint32_t sibling; /* of the second region: the number of the first */
    gb_type yield;    /* of the second region: what the first yielded */
    bool second;
} open_region;

struct gb_builder {
    gb_program *program; /* counts, metadata and storage; its arrays are those below until the end */
    gb_value *values;
    gb_node *nodes;
    gb_region *regions;
    gb_constant *constants;
    gb_state *states;
    gb_binding *inputs, *outputs;
    size_t value_capacity, node_capacity, region_capacity, constant_capacity, state_capacity, input_capacity,
        output_capacity;
    open_region open[GB_MAX_REGION_DEPTH + 1];
    uint32_t open_count;
    gumbel_error error;
};

/* ---- Life ---------------------------------------------------------------------------------------------- */

static void fail_memory(gb_builder *builder) {
    gb_builder_fail(builder, GUMBEL_ERROR_MEMORY, "no memory for the graph");
}

/* Room for one more item in one of the builder's arrays; false after making the failure the builder's. */
static bool reserve(gb_builder *builder, void *items, size_t *capacity, size_t count, size_t item_size) {
    void *grown;
    memcpy(&grown, items, sizeof grown);
    if (count >= UINT32_MAX - 1 || !gb_grow(&grown, capacity, count + 1, item_size)) {
        fail_memory(builder);
        return false;
    }
    memcpy(items, &grown, sizeof grown);
    return true;
}

static bool failed(const gb_builder *builder) {
    return builder->error.status != GUMBEL_OK;
}

static uint32_t new_region(gb_builder *builder) {
    gb_program *program = builder->program;
    if (!reserve(builder, &builder->regions, &builder->region_capacity, program->region_count,
                 sizeof(gb_region)))
        return 0;
    builder->regions[program->region_count] = (gb_region){0};
    return program->region_count++;
}

gb_builder *gb_builder_create(void) {
    gb_builder *builder = gb_allocate(1, sizeof *builder);
    if (!builder)
        return NULL;
    builder->program = gb_allocate(1, sizeof *builder->program);
    if (builder->program)
        builder->program->storage = gb_storage_create();
    if (!builder->program || !builder->program->storage) {
        gb_builder_destroy(builder);
        return NULL;
    }
    builder->open_count = 1;
    builder->open[0].region = new_region(builder);
    return builder;
}

void gb_builder_destroy(gb_builder *builder) {
    if (!builder)
        return;
    for (uint32_t i = 0; i < builder->open_count; i++)
        gb_free(builder->open[i].nodes);
    gb_free(builder->values);
    gb_free(builder->nodes);
    gb_free(builder->regions);
    gb_free(builder->constants);
    gb_free(builder->states);
    gb_free(builder->inputs);
    gb_free(builder->outputs);
    gb_program_destroy(builder->program);
    gb_free(builder);
}

gumbel_status gb_builder_status(const gb_builder *builder, gumbel_error *error) {
    if (failed(builder) && error)
        *error = builder->error;
    return builder->error.status;
}

void gb_builder_fail(gb_builder *builder, gumbel_status status, const char *format, ...) {
    if (failed(builder))
        return;
    va_list arguments;
    va_start(arguments, format);
    builder->error.status = status;
    vsnprintf(builder->error.message, sizeof builder->error.message, format, arguments);
    va_end(arguments);
}

gb_metadata *gb_builder_metadata(gb_builder *builder) {
    return &builder->program->metadata;
}

void gb_builder_set_ranks(gb_builder *builder, uint32_t ranks) {
    builder->program->ranks = ranks;
}

/* ---- Values -------------------------------------------------------------------------------------------- */

static gb_ref new_value(gb_builder *builder, gb_value_kind kind, uint32_t index, const gb_type *type) {
    gb_program *program = builder->program;
    if (!reserve(builder, &builder->values, &builder->value_capacity, program->value_count, sizeof(gb_value)))
        return GB_NO_VALUE;
    builder->values[program->value_count] = (gb_value){kind, index, *type};
    return program->value_count++;
}

static bool is_value(gb_builder *builder, gb_ref value) {
    if (!failed(builder) && value >= builder->program->value_count)
        gb_builder_fail(builder, GUMBEL_ERROR_ARGUMENT, "value %u is not one of the graph's", value);
    return !failed(builder);
}

gb_type gb_build_type(const gb_builder *builder, gb_ref value) {
    return value < builder->program->value_count ? builder->values[value].type : (gb_type){0};
}

bool gb_build_constant_index(const gb_builder *builder, gb_ref value, uint32_t *index) {
    if (value >= builder->program->value_count || builder->values[value].kind != GB_VALUE_CONSTANT)
        return false;
    *index = builder->values[value].index;
    return true;
}

gb_ref gb_build_input(gb_builder *builder, gb_role role) {
    gb_program *program = builder->program;
    const gb_role_info *info = gb_role_find(role);
    if (!info || info->direction != GB_ROLE_INPUT)
        gb_builder_fail(builder, GUMBEL_ERROR_ARGUMENT, "role %u is not an input", (unsigned)role);
    if (failed(builder))
        return GB_NO_VALUE;
    for (uint32_t i = 0; i < program->input_count; i++) {
        if (builder->inputs[i].role == role)
            return builder->inputs[i].value;
    }
    gb_type type = gb_role_type(info, &program->metadata);
    if (!reserve(builder, &builder->inputs, &builder->input_capacity, program->input_count,
                 sizeof(gb_binding)))
        return GB_NO_VALUE;
    gb_ref value = new_value(builder, GB_VALUE_INPUT, program->input_count, &type);
    if (value != GB_NO_VALUE)
        builder->inputs[program->input_count++] = (gb_binding){role, value};
    return value;
}

/* A type from the caller's numbers. */
static bool make_type(gb_builder *builder, const char *name, gb_dtype dtype, int32_t rank,
                      const int64_t *dims, gb_type *type) {
    *type = (gb_type){.dtype = dtype, .shape.rank = rank};
    for (int32_t i = 0; i < rank && i < GB_MAX_RANK; i++)
        type->shape.dims[i] = dims[i];
    uint64_t bytes;
    if (!gb_type_valid(type) || !gb_type_bytes(type, &bytes))
        gb_builder_fail(builder, GUMBEL_ERROR_ARGUMENT, "%s: rank %d, dtype %s: not a type", name, (int)rank,
                        gb_dtype_name(dtype));
    return !failed(builder);
}

static const char *copy_name(gb_builder *builder, const char *name) {
    const char *copy = gb_storage_string(builder->program->storage, name, strlen(name));
    if (!copy)
        fail_memory(builder);
    return copy;
}

static gb_ref add_constant(gb_builder *builder, const char *name, gb_constant *constant) {
    gb_program *program = builder->program;
    if (!reserve(builder, &builder->constants, &builder->constant_capacity, program->constant_count,
                 sizeof(gb_constant)))
        return GB_NO_VALUE;
    constant->name = copy_name(builder, name);
    if (!constant->name)
        return GB_NO_VALUE;
    builder->constants[program->constant_count] = *constant;
    return new_value(builder, GB_VALUE_CONSTANT, program->constant_count++, &constant->type);
}

gb_ref gb_build_constant(gb_builder *builder, const char *name, gb_dtype dtype, int32_t rank,
                         const int64_t *dims) {
    gb_constant constant = {0};
    if (failed(builder) || !make_type(builder, name, dtype, rank, dims, &constant.type) ||
        !gb_type_bytes(&constant.type, &constant.size))
        return GB_NO_VALUE;
    return add_constant(builder, name, &constant);
}

gb_ref gb_build_quantized(gb_builder *builder, const char *name, const gb_format *format, int32_t rank,
                          const int64_t *dims) {
    gb_constant constant = {.type.dtype = GB_QUANTIZED, .format = *format};
    if (failed(builder))
        return GB_NO_VALUE;
    constant.type.shape.rank = rank;
    for (int32_t i = 0; i < rank && i < GB_MAX_RANK; i++)
        constant.type.shape.dims[i] = dims[i];
    if (!gb_type_valid(&constant.type) || !gb_constant_bytes(&constant, &constant.size)) {
        char type[GB_TYPE_TEXT], text[GB_FORMAT_TEXT];
        gb_builder_fail(builder, GUMBEL_ERROR_ARGUMENT, "%s: %s does not fit the format %s", name,
                        gb_type_text(&constant.type, type), gb_format_text(format, text));
        return GB_NO_VALUE;
    }
    return add_constant(builder, name, &constant);
}

gb_ref gb_build_state(gb_builder *builder, const char *name, gb_state_kind kind, gb_dtype dtype, int32_t rank,
                      const int64_t *dims, uint32_t window) {
    gb_program *program = builder->program;
    gb_state state = {.kind = kind, .window = window};
    if (failed(builder) || !make_type(builder, name, dtype, rank, dims, &state.type) ||
        !reserve(builder, &builder->states, &builder->state_capacity, program->state_count, sizeof(gb_state)))
        return GB_NO_VALUE;
    state.name = copy_name(builder, name);
    if (!state.name)
        return GB_NO_VALUE;
    builder->states[program->state_count] = state;
    return new_value(builder, GB_VALUE_STATE, program->state_count++, &state.type);
}

/* ---- Nodes --------------------------------------------------------------------------------------------- */

/* Appends node with results of those types to the current region. */
static void append_node(gb_builder *builder, gb_node *node, const gb_type *types, uint32_t count) {
    open_region *region = &builder->open[builder->open_count - 1];
    if (!reserve(builder, &region->nodes, &region->node_capacity, region->node_count, sizeof(gb_node)))
        return;
    node->result_count = (uint8_t)count;
    for (uint32_t i = 0; i < count; i++)
        node->results[i] = new_value(builder, GB_VALUE_RESULT, 0, &types[i]);
    if (!failed(builder))
        region->nodes[region->node_count++] = *node;
}

/* The node of gb_build_op and gb_build_op_results; false after an error. */
static bool build_node(gb_builder *builder, gb_op op, const gb_ref *operands, uint32_t operand_count,
                       const gb_attribute *attributes, uint32_t attribute_count, gb_node *built) {
    gb_operand_type types[GB_MAX_OPERANDS];
    gb_node node = {.op = op, .regions = {GB_NO_REGION, GB_NO_REGION}};
    while (operand_count > 0 && operands[operand_count - 1] == GB_NO_VALUE)
        operand_count--;
    if (operand_count > GB_MAX_OPERANDS || op == GB_OP_IF)
        gb_builder_fail(builder, GUMBEL_ERROR_ARGUMENT, "op %u is not built from %u operands", (unsigned)op,
                        operand_count);
    for (uint32_t i = 0; i < operand_count; i++) {
        if (!is_value(builder, operands[i]))
            return false;
        node.operands[i] = operands[i];
        types[i] = gb_operand_type_of(&builder->values[operands[i]], builder->constants);
    }
    gb_type results[GB_MAX_RESULTS];
    uint32_t result_count;
    if (failed(builder) || gb_infer(op, types, operand_count, attributes, attribute_count, results,
                                    &result_count, &builder->error) != GUMBEL_OK)
        return false;
    node.operand_count = (uint8_t)operand_count;
    node.attribute_count = (uint8_t)attribute_count;
    for (uint32_t i = 0; i < attribute_count; i++)
        node.attributes[i] = attributes[i];
    append_node(builder, &node, results, result_count);
    *built = node;
    return !failed(builder);
}

gb_ref gb_build_op(gb_builder *builder, gb_op op, const gb_ref *operands, uint32_t operand_count,
                   const gb_attribute *attributes, uint32_t attribute_count) {
    gb_node node;
    bool is_built = build_node(builder, op, operands, operand_count, attributes, attribute_count, &node);
    return is_built ? node.results[0] : GB_NO_VALUE;
}

void gb_build_op_results(gb_builder *builder, gb_op op, const gb_ref *operands, uint32_t operand_count,
                         const gb_attribute *attributes, uint32_t attribute_count, gb_ref *results,
                         uint32_t result_count) {
    gb_node node;
    bool is_built = build_node(builder, op, operands, operand_count, attributes, attribute_count, &node);
    if (is_built && node.result_count != result_count)
        gb_builder_fail(builder, GUMBEL_ERROR_ARGUMENT, "op %u has %u results, not %u", (unsigned)op,
                        node.result_count, result_count);
    for (uint32_t i = 0; i < result_count; i++)
        results[i] = failed(builder) ? GB_NO_VALUE : node.results[i];
}

/* ---- Regions ------------------------------------------------------------------------------------------- */

/* Moves the nodes of the innermost open region to their place in the graph and closes it. */
static void close_region(gb_builder *builder) {
    gb_program *program = builder->program;
    open_region *open = &builder->open[builder->open_count - 1];
    gb_region *region = &builder->regions[open->region];
    region->first_node = program->node_count;
    region->node_count = (uint32_t)open->node_count;
    for (size_t i = 0; i < open->node_count && !failed(builder); i++) {
        if (!reserve(builder, &builder->nodes, &builder->node_capacity, program->node_count, sizeof(gb_node)))
            break;
        const gb_node *node = &open->nodes[i];
        for (uint32_t j = 0; j < node->result_count; j++)
            builder->values[node->results[j]].index = program->node_count;
        builder->nodes[program->node_count++] = *node;
    }
    gb_free(open->nodes);
    builder->open_count--;
}

static void open_new_region(gb_builder *builder, gb_ref condition) {
    uint32_t region = new_region(builder);
    if (!failed(builder))
        builder->open[builder->open_count++] = (open_region){.region = region, .condition = condition};
}

void gb_build_if_begin(gb_builder *builder, gb_ref condition) {
    if (!is_value(builder, condition))
        return;
    if (builder->open_count > GB_MAX_REGION_DEPTH) {
        gb_builder_fail(builder, GUMBEL_ERROR_ARGUMENT, "more than %d nested ifs", GB_MAX_REGION_DEPTH);
        return;
    }
    gb_operand_type type = gb_operand_type_of(&builder->values[condition], builder->constants);
    uint32_t result_count;
    if (gb_infer(GB_OP_IF, &type, 1, NULL, 0, NULL, &result_count, &builder->error) == GUMBEL_OK)
        open_new_region(builder, condition);
}

/* Ends the innermost region of an if with its yield; second tells which of the two is expected to be open. */
static bool end_region(gb_builder *builder, gb_ref yield, bool second, open_region *ended) {
    if (!is_value(builder, yield))
        return false;
    *ended = builder->open[builder->open_count - 1];
    if (builder->open_count < 2 || ended->second != second) {
        gb_builder_fail(builder, GUMBEL_ERROR_ARGUMENT, "an if's region ends that has not begun");
        return false;
    }
    builder->regions[ended->region].yields[0] = yield;
    builder->regions[ended->region].yield_count = 1;
    close_region(builder);
    return !failed(builder);
}

void gb_build_if_else(gb_builder *builder, gb_ref yield) {
    open_region first;
    if (!end_region(builder, yield, false, &first))
        return;
    open_new_region(builder, first.condition);
    open_region *second = &builder->open[builder->open_count - 1];
    if (failed(builder))
        return;
    second->second = true;
    second->sibling = first.region;
    second->yield = builder->values[yield].type;
}

gb_ref gb_build_if_end(gb_builder *builder, gb_ref yield) {
    open_region second;
    if (!end_region(builder, yield, true, &second))
        return GB_NO_VALUE;
    if (!gb_type_equal(&second.yield, &builder->values[yield].type)) {
        gb_builder_fail(builder, GUMBEL_ERROR_FORMAT, "if: its regions yield values of different types");
        return GB_NO_VALUE;
    }
    gb_node node = {.op = GB_OP_IF,
                    .operand_count = 1,
                    .operands = {second.condition},
                    .regions = {second.sibling, second.region}};
    append_node(builder, &node, &second.yield, 1);
    return failed(builder) ? GB_NO_VALUE : node.results[0];
}

void gb_build_output(gb_builder *builder, gb_role role, gb_ref value) {
    gb_program *program = builder->program;
    if (is_value(builder, value) && reserve(builder, &builder->outputs, &builder->output_capacity,
                                            program->output_count, sizeof(gb_binding)))
        builder->outputs[program->output_count++] = (gb_binding){role, value};
}

/* ---- The end ------------------------------------------------------------------------------------------- */

/* A copy of count items in the program's storage; *missing is set when there is no memory for it. */
static void *keep(gb_builder *builder, const void *items, uint32_t count, size_t item_size) {
    void *copy = gb_storage_take(builder->program->storage, count, item_size);
    if (!copy)
        fail_memory(builder);
    else if (count)
        memcpy(copy, items, count * item_size);
    return copy;
}

static void keep_STRING(gb_builder *builder, const char **text, bool *given, bool required) {
    *given = *given || required || (*text && **text);
    *text = copy_name(builder, *text ? *text : "");
}

static void keep_TOKENS(gb_builder *builder, gb_token_list *list, bool *given, bool required) {
    *given = *given || required || list->count > 0;
    list->ids = keep(builder, list->ids, list->count, sizeof *list->ids);
}

/* A number that a program need not have is there only when its has_ field says so. */
#define keep_number(builder, field, given, required) ((void)(*(given) = *(given) || (required)))
#define keep_UINT keep_number
#define keep_FLOAT keep_number
#define keep_BOOL keep_number

static void keep_metadata(gb_builder *builder) {
    gb_metadata *metadata = &builder->program->metadata;
#define GB_METADATA(number, type, field, required, what)                                                     \
    keep_##type(builder, &metadata->field, &metadata->has_##field, required);
#include "program/metadata.def"
#undef GB_METADATA
}

static void keep_arrays(gb_builder *builder) {
    gb_program *program = builder->program;
    program->values = keep(builder, builder->values, program->value_count, sizeof(gb_value));
    program->nodes = keep(builder, builder->nodes, program->node_count, sizeof(gb_node));
    program->regions = keep(builder, builder->regions, program->region_count, sizeof(gb_region));
    program->constants = keep(builder, builder->constants, program->constant_count, sizeof(gb_constant));
    program->states = keep(builder, builder->states, program->state_count, sizeof(gb_state));
    program->inputs = keep(builder, builder->inputs, program->input_count, sizeof(gb_binding));
    program->outputs = keep(builder, builder->outputs, program->output_count, sizeof(gb_binding));
}

gumbel_status gb_builder_finish(gb_builder *builder, gb_program **program, gumbel_error *error) {
    *program = NULL;
    if (builder->open_count != 1)
        gb_builder_fail(builder, GUMBEL_ERROR_ARGUMENT, "an if has no end");
    if (!failed(builder))
        close_region(builder);
    if (!failed(builder))
        keep_metadata(builder);
    if (!failed(builder))
        keep_arrays(builder);
    GB_TRY(gb_builder_status(builder, error));
    GB_TRY(gb_program_verify(builder->program, error));
    *program = builder->program;
    builder->program = NULL;
    return GUMBEL_OK;
}
