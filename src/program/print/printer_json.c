/* SPDX-License-Identifier: Apache-2.0 */
#include "program/constant_packing.h"
#include "program/draft_head.h"
#include "program/infer.h"
#include "program/print/printer.h"

#include <string.h>

/* JSON is written as it goes; first tells whether the next item of the current list or object is its first.
 */
typedef struct json_printer {
    const gb_program *program;
    const gb_text_sink *sink;
    bool first;
} json_printer;

/* ---- Lists, objects, scalars --------------------------------------------------------------------------- */

static void begin_item(json_printer *json) {
    if (!json->first)
        gb_print(json->sink, ",");
    json->first = false;
}

static void open_bracket(json_printer *json, const char *bracket) {
    gb_print(json->sink, "%s", bracket);
    json->first = true;
}

static void close_bracket(json_printer *json, const char *bracket) {
    gb_print(json->sink, "%s", bracket);
    json->first = false;
}

static void put_text(json_printer *json, const char *text) {
    gb_print_json_string(json->sink, text, strlen(text));
}

static void put_key(json_printer *json, const char *key) {
    begin_item(json);
    put_text(json, key);
    gb_print(json->sink, ":");
}

/* A list or an object under a key, and an object as an item. */
static void open_field(json_printer *json, const char *key, const char *bracket) {
    put_key(json, key);
    open_bracket(json, bracket);
}

static void open_item(json_printer *json) {
    begin_item(json);
    open_bracket(json, "{");
}

static void put_uint(json_printer *json, uint64_t value) {
    gb_print(json->sink, "%llu", (unsigned long long)value);
}

static void put_float(json_printer *json, double value) {
    gb_print(json->sink, "%.17g", value);
}

static void put_bool(json_printer *json, bool value) {
    gb_print(json->sink, "%s", value ? "true" : "false");
}

static void put_tokens(json_printer *json, gb_token_list list) {
    open_bracket(json, "[");
    for (uint32_t i = 0; i < list.count; i++) {
        begin_item(json);
        gb_print(json->sink, "%d", (int)list.ids[i]);
    }
    close_bracket(json, "]");
}

static void put_uint_field(json_printer *json, const char *key, uint64_t value) {
    put_key(json, key);
    put_uint(json, value);
}

static void put_text_field(json_printer *json, const char *key, const char *text) {
    put_key(json, key);
    put_text(json, text);
}

/* The fields dtype and shape of the current object. */
static void put_type(json_printer *json, const gb_type *type) {
    put_text_field(json, "dtype", gb_dtype_name(type->dtype));
    open_field(json, "shape", "[");
    for (int32_t i = 0; i < type->shape.rank; i++) {
        int64_t dim = type->shape.dims[i];
        begin_item(json);
        if (dim > 0)
            put_uint(json, (uint64_t)dim);
        else
            put_text(json, dim == GB_DIM_N ? "N" : "B");
    }
    close_bracket(json, "]");
}

/* ---- Sections ------------------------------------------------------------------------------------------ */

#define PUT_STRING put_text
#define PUT_UINT put_uint
#define PUT_FLOAT put_float
#define PUT_BOOL put_bool
#define PUT_TOKENS put_tokens

static void put_metadata(json_printer *json) {
    const gb_metadata *metadata = &json->program->metadata;
    open_field(json, "metadata", "{");
#define GB_METADATA(number, type, name, required, what)                                                      \
    if (metadata->has_##name) {                                                                              \
        put_key(json, #name);                                                                                \
        PUT_##type(json, metadata->name);                                                                    \
    }
#include "program/metadata.def"
#undef GB_METADATA
    close_bracket(json, "}");
}

static void put_memory(json_printer *json, uint64_t scratch_bytes) {
    const gb_program *program = json->program;
    open_field(json, "memory", "{");
    put_uint_field(json, "weights", gb_program_weight_bytes(program));
    put_uint_field(json, "state_per_session", gb_program_state_bytes(program));
    if (scratch_bytes)
        put_uint_field(json, "scratch", scratch_bytes);
    put_uint_field(json, "tokenizer", program->tokenizer.size);
    put_uint_field(json, "chat", program->chat.size);
    put_uint_field(json, "token_trie", program->trie.size);
    close_bracket(json, "}");
}

static void put_op_counts(json_printer *json) {
    open_field(json, "ops", "{");
    for (uint32_t number = 0; number < GB_OP_LIMIT; number++) {
        uint32_t count = gb_program_op_count(json->program, (gb_op)number);
        if (count)
            put_uint_field(json, gb_op_find(number)->name, count);
    }
    close_bracket(json, "}");
}

static void put_bindings(json_printer *json, const char *key, const gb_binding *bindings, uint32_t count) {
    open_field(json, key, "[");
    for (uint32_t i = 0; i < count; i++) {
        open_item(json);
        put_text_field(json, "role", gb_role_find(bindings[i].role)->name);
        put_uint_field(json, "value", bindings[i].value);
        put_type(json, &json->program->values[bindings[i].value].type);
        close_bracket(json, "}");
    }
    close_bracket(json, "]");
}

static void put_states(json_printer *json) {
    open_field(json, "states", "[");
    for (uint32_t i = 0; i < json->program->state_count; i++) {
        const gb_state *state = &json->program->states[i];
        open_item(json);
        put_text_field(json, "name", state->name);
        put_text_field(json, "kind", gb_state_kind_name(state->kind));
        put_type(json, &state->type);
        if (state->kind == GB_STATE_RING)
            put_uint_field(json, "window", state->window);
        put_uint_field(json, "bytes", gb_state_bytes(state));
        close_bracket(json, "}");
    }
    close_bracket(json, "]");
}

static void put_constants(json_printer *json) {
    open_field(json, "constants", "[");
    for (uint32_t i = 0; i < json->program->constant_count; i++) {
        const gb_constant *constant = &json->program->constants[i];
        open_item(json);
        put_text_field(json, "name", constant->name);
        put_type(json, &constant->type);
        if (constant->type.dtype == GB_QUANTIZED) {
            char text[GB_FORMAT_TEXT];
            put_text_field(json, "format", gb_format_text(&constant->format, text));
            put_key(json, "bits_per_weight");
            put_float(json, gb_constant_bits_per_weight(constant));
            put_text_field(json, "packing", gb_constant_packing_text(constant));
        }
        put_uint_field(json, "offset", constant->offset);
        put_uint_field(json, "bytes", constant->size);
        close_bracket(json, "}");
    }
    close_bracket(json, "]");
}

/* ---- The graph ----------------------------------------------------------------------------------------- */

/* {"input": "tokens"}, {"constant": name}, {"state": name} or {"value": number}. */
static void put_reference(json_printer *json, gb_ref ref) {
    const gb_program *program = json->program;
    const gb_value *value = &program->values[ref];
    open_bracket(json, "{");
    switch (value->kind) {
    case GB_VALUE_INPUT:
        put_text_field(json, "input", gb_role_find(program->inputs[value->index].role)->name);
        break;
    case GB_VALUE_CONSTANT:
        put_text_field(json, "constant", program->constants[value->index].name);
        break;
    case GB_VALUE_STATE:
        put_text_field(json, "state", program->states[value->index].name);
        break;
    default:
        put_uint_field(json, "value", ref);
    }
    close_bracket(json, "}");
}

static void put_references(json_printer *json, const char *key, const gb_ref *refs, uint32_t count) {
    open_field(json, key, "[");
    for (uint32_t i = 0; i < count; i++) {
        begin_item(json);
        put_reference(json, refs[i]);
    }
    close_bracket(json, "]");
}

static void put_attributes(json_printer *json, const gb_node *node) {
    open_field(json, "attributes", "{");
    for (uint32_t i = 0; i < node->attribute_count; i++) {
        put_key(json, gb_attribute_name(node->attributes[i].key));
        if (node->attributes[i].type == GB_ATTRIBUTE_INT)
            gb_print(json->sink, "%lld", (long long)node->attributes[i].i);
        else
            put_float(json, node->attributes[i].f);
    }
    close_bracket(json, "}");
}

static void put_results(json_printer *json, const gb_node *node) {
    open_field(json, "results", "[");
    for (uint32_t i = 0; i < node->result_count; i++) {
        open_item(json);
        put_uint_field(json, "value", node->results[i]);
        put_type(json, &json->program->values[node->results[i]].type);
        close_bracket(json, "}");
    }
    close_bracket(json, "]");
}

static void put_nodes(json_printer *json, const gb_region *region);

static void put_regions(json_printer *json, const gb_node *node) {
    open_field(json, "regions", "[");
    for (uint32_t i = 0; i < 2; i++) {
        const gb_region *region = &json->program->regions[node->regions[i]];
        open_item(json);
        put_nodes(json, region);
        put_references(json, "yields", region->yields, region->yield_count);
        close_bracket(json, "}");
    }
    close_bracket(json, "]");
}

static void put_nodes(json_printer *json, const gb_region *region) {
    open_field(json, "nodes", "[");
    for (uint32_t i = 0; i < region->node_count; i++) {
        const gb_node *node = &json->program->nodes[region->first_node + i];
        begin_item(json);
        gb_print(json->sink, "\n");
        open_bracket(json, "{");
        put_text_field(json, "op", gb_op_find(node->op)->name);
        put_references(json, "operands", node->operands, node->operand_count);
        put_attributes(json, node);
        put_results(json, node);
        if (node->op == GB_OP_IF)
            put_regions(json, node);
        close_bracket(json, "}");
    }
    close_bracket(json, "]");
}

/* What the head has beside what it shares. */
static void put_draft_head(json_printer *json) {
    json_printer head = {.program = json->program->head, .sink = json->sink, .first = true};
    if (!head.program)
        return;
    open_field(json, "draft_head", "{");
    put_uint_field(&head, "own_weights", gb_head_own_bytes(json->program));
    put_uint_field(&head, "state_per_session", gb_program_state_bytes(head.program));
    put_op_counts(&head);
    put_states(&head);
    put_constants(&head);
    put_nodes(&head, &head.program->regions[0]);
    close_bracket(json, "}");
}

void gb_print_json(const gb_program *program, uint64_t scratch_bytes, const gb_text_sink *sink) {
    json_printer json = {.program = program, .sink = sink};
    open_bracket(&json, "{");
    put_key(&json, "id");
    gb_print(sink, "\"");
    for (size_t i = 0; i < sizeof program->id; i++)
        gb_print(sink, "%02x", program->id[i]);
    gb_print(sink, "\"");
    put_metadata(&json);
    put_memory(&json, scratch_bytes);
    put_op_counts(&json);
    put_bindings(&json, "inputs", program->inputs, program->input_count);
    put_bindings(&json, "outputs", program->outputs, program->output_count);
    put_states(&json);
    put_constants(&json);
    put_nodes(&json, &program->regions[0]);
    put_draft_head(&json);
    close_bracket(&json, "}\n");
}
