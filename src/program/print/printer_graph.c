/* SPDX-License-Identifier: Apache-2.0 */
#include "base/memory.h"
#include "program/infer.h"
#include "program/print/printer.h"

typedef struct graph_printer {
    const gb_program *program;
    const gb_text_sink *sink;
    uint32_t *numbers; /* of result values, by ref */
    uint32_t next_number;
} graph_printer;

static void print_indent(const graph_printer *printer, int depth) {
    gb_print(printer->sink, "%*s", 2 * depth, "");
}

static void print_value(const graph_printer *printer, gb_ref ref) {
    const gb_program *program = printer->program;
    const gb_value *value = &program->values[ref];
    switch (value->kind) {
    case GB_VALUE_INPUT:
        gb_print(printer->sink, "%s", gb_role_find(program->inputs[value->index].role)->name);
        break;
    case GB_VALUE_CONSTANT:
        gb_print_escaped(printer->sink, program->constants[value->index].name);
        break;
    case GB_VALUE_STATE:
        gb_print_escaped(printer->sink, program->states[value->index].name);
        break;
    default:
        gb_print(printer->sink, "%%%u", printer->numbers[ref]);
    }
}

static void print_values(const graph_printer *printer, const gb_ref *refs, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        if (i)
            gb_print(printer->sink, ", ");
        print_value(printer, refs[i]);
    }
}

static void print_attributes(const graph_printer *printer, const gb_node *node) {
    for (uint32_t i = 0; i < node->attribute_count; i++) {
        const gb_attribute *attribute = &node->attributes[i];
        gb_print(printer->sink, "%s%s = ", i ? ", " : " {", gb_attribute_name(attribute->key));
        if (attribute->type == GB_ATTRIBUTE_INT)
            gb_print(printer->sink, "%lld", (long long)attribute->i);
        else
            gb_print(printer->sink, "%.9g", attribute->f);
    }
    if (node->attribute_count)
        gb_print(printer->sink, "}");
}

static void print_region(graph_printer *printer, const gb_region *region, int depth);

static void print_regions(graph_printer *printer, const gb_node *node, int depth) {
    static const char *const names[] = {"then", "else"};
    gb_print(printer->sink, " {\n");
    for (uint32_t i = 0; i < 2; i++) {
        const gb_region *region = &printer->program->regions[node->regions[i]];
        print_indent(printer, depth + 1);
        gb_print(printer->sink, "%s:\n", names[i]);
        print_region(printer, region, depth + 2);
        print_indent(printer, depth + 2);
        gb_print(printer->sink, "yield ");
        print_values(printer, region->yields, region->yield_count);
        gb_print(printer->sink, "\n");
    }
    print_indent(printer, depth);
    gb_print(printer->sink, "}");
}

static void print_node(graph_printer *printer, const gb_node *node, int depth) {
    print_indent(printer, depth);
    for (uint32_t i = 0; i < node->result_count; i++)
        printer->numbers[node->results[i]] = printer->next_number++;
    print_values(printer, node->results, node->result_count);
    gb_print(printer->sink, " = %s(", gb_op_find(node->op)->name);
    print_values(printer, node->operands, node->operand_count);
    gb_print(printer->sink, ")");
    print_attributes(printer, node);
    for (uint32_t i = 0; i < node->result_count; i++) {
        char text[GB_TYPE_TEXT];
        gb_print(printer->sink, "%s%s", i ? ", " : " : ",
                 gb_type_text(&printer->program->values[node->results[i]].type, text));
    }
    if (node->op == GB_OP_IF)
        print_regions(printer, node, depth);
    gb_print(printer->sink, "\n");
}

static void print_region(graph_printer *printer, const gb_region *region, int depth) {
    for (uint32_t i = 0; i < region->node_count; i++)
        print_node(printer, &printer->program->nodes[region->first_node + i], depth);
}

static void print_head(const graph_printer *printer) {
    const gb_program *program = printer->program;
    const gb_metadata *metadata = &program->metadata;
    char text[GB_TYPE_TEXT];
    gb_print(printer->sink, "program ");
    gb_print_escaped(printer->sink, metadata->architecture);
    gb_print(printer->sink, " { vocab %llu, context %llu, prefill chunk %llu }\n",
             (unsigned long long)metadata->vocab_size, (unsigned long long)metadata->max_context,
             (unsigned long long)metadata->prefill_chunk);
    gb_print(printer->sink, "inputs\n");
    for (uint32_t i = 0; i < program->input_count; i++)
        gb_print(printer->sink, "  %s: %s\n", gb_role_find(program->inputs[i].role)->name,
                 gb_type_text(&program->values[program->inputs[i].value].type, text));
    gb_print(printer->sink, "states\n");
    for (uint32_t i = 0; i < program->state_count; i++) {
        const gb_state *state = &program->states[i];
        gb_print(printer->sink, "  ");
        gb_print_escaped(printer->sink, state->name);
        gb_print(printer->sink, ": %s %s", gb_state_kind_name(state->kind), gb_type_text(&state->type, text));
        if (state->kind == GB_STATE_RING)
            gb_print(printer->sink, " window %u", state->window);
        gb_print(printer->sink, "\n");
    }
}

gumbel_status gb_print_graph(const gb_program *program, const gb_text_sink *sink, gumbel_error *error) {
    graph_printer printer = {.program = program, .sink = sink};
    printer.numbers = gb_allocate(program->value_count, sizeof(uint32_t));
    if (!printer.numbers)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for printing the graph");
    print_head(&printer);
    gb_print(sink, "body\n");
    print_region(&printer, &program->regions[0], 1);
    gb_print(sink, "outputs\n");
    for (uint32_t i = 0; i < program->output_count; i++) {
        gb_print(sink, "  %s: ", gb_role_find(program->outputs[i].role)->name);
        print_value(&printer, program->outputs[i].value);
        gb_print(sink, "\n");
    }
    gb_free(printer.numbers);
    return GUMBEL_OK;
}
