/* SPDX-License-Identifier: Apache-2.0 */
#include "program/costs.h"

#include "program/op_traits.h"

#include <math.h>

typedef struct costing {
    const gb_program *program;
    const gumbel_step_shape *shape;
    gumbel_step_costs *costs;
} costing;

static const gb_type *operand_type(const costing *c, const gb_node *node, uint32_t index) {
    return &c->program->values[node->operands[index]].type;
}

/* A dim with the step's sizes in place of N and B. */
static double extent(const costing *c, int64_t dim) {
    double sequences = c->shape->sequences;
    if (dim == GB_DIM_N)
        return sequences * c->shape->tokens;
    if (dim == GB_DIM_B)
        return c->shape->wants_tokens ? sequences : 0;
    return (double)dim;
}

static double elements(const costing *c, const gb_type *type) {
    double count = 1;
    for (int32_t i = 0; i < type->shape.rank; i++)
        count *= extent(c, type->shape.dims[i]);
    return count;
}

static double result_elements(const costing *c, const gb_node *node) {
    return node->result_count > 0 ? elements(c, &c->program->values[node->results[0]].type) : 0;
}

static double constant_bytes(const costing *c, gb_ref ref) {
    const gb_value *value = &c->program->values[ref];
    uint64_t bytes;
    if (value->kind != GB_VALUE_CONSTANT || !gb_constant_bytes(&c->program->constants[value->index], &bytes))
        return 0;
    return (double)bytes;
}

static void add_products(const costing *c, const gb_node *node, double products) {
    bool is_int8 = gb_op_traits_find(node->op)->before == GB_BEFORE_ROUND &&
                   gb_activation_is_int8(gb_node_int(node, GB_ATTRIBUTE_ACTIVATION));
    *(is_int8 ? &c->costs->int8_products : &c->costs->float_products) += products;
}

/* The rows of its tokens, each counted once. */
static void add_rows(const costing *c, const gb_node *node) {
    double rows = (double)operand_type(c, node, 0)->shape.dims[0];
    double tokens = fmin(extent(c, operand_type(c, node, 1)->shape.dims[0]), rows);
    c->costs->weight_bytes += constant_bytes(c, node->operands[0]) * tokens / rows;
}

/* Of X experts, M tokens that choose T each touch X (1 - (1 - T/X)^M) where all are as likely. */
static void add_chosen(const costing *c, const gb_node *node) {
    const gb_shape *weight = &operand_type(c, node, 1)->shape, *chosen = &operand_type(c, node, 2)->shape;
    double experts = (double)weight->dims[0], share = fmin((double)chosen->dims[1] / experts, 1);
    double touched = 1 - pow(1 - share, extent(c, chosen->dims[0]));
    c->costs->weight_bytes += constant_bytes(c, node->operands[1]) * touched;
}

static void add_weights(const costing *c, const gb_node *node) {
    if (result_elements(c, node) == 0)
        return;
    for (uint32_t i = 0; i < node->operand_count; i++)
        c->costs->weight_bytes += constant_bytes(c, node->operands[i]);
}

/* Sum over a sequence's tokens of the positions that each attends to; window 0: all. */
static double attended_positions(double position, double tokens, double window) {
    double growing = window > 0 ? fmin(fmax(window - position, 0), tokens) : tokens;
    return growing * (position + (growing + 1) / 2) + (tokens - growing) * window;
}

/* Of a cache's position. */
static double position_bytes(const gb_type *cache) {
    uint64_t bytes;
    return gb_type_bytes(cache, &bytes) ? (double)bytes / (double)cache->shape.dims[0] : 0;
}

/* A sequence's keys and values are counted once for all of its tokens in the step. */
static void add_attention(const costing *c, const gb_node *node) {
    const uint32_t caches = gb_op_traits_find(node->op)->work.operand;
    const gb_type *query = operand_type(c, node, 0), *keys = operand_type(c, node, caches),
                  *values = operand_type(c, node, caches + 1);
    double position = c->shape->position, tokens = c->shape->tokens, sequences = c->shape->sequences;
    double window = (double)gb_node_int(node, GB_ATTRIBUTE_WINDOW), end = position + tokens;
    double first = window > 0 ? fmax(position + 1 - window, 0) : 0;
    const double row_bytes = position_bytes(keys) + position_bytes(values);
    c->costs->state_bytes += sequences * (end - first) * row_bytes;
    double per_position =
        (double)query->shape.dims[1] * (double)(query->shape.dims[2] + values->shape.dims[2]);
    add_products(c, node, sequences * attended_positions(position, tokens, window) * per_position);
}

/* A recurrent state is read whole. */
static void add_recurrent_states(const costing *c, const gb_node *node) {
    for (uint32_t i = 0; i < node->operand_count; i++) {
        const gb_value *value = &c->program->values[node->operands[i]];
        if (value->kind != GB_VALUE_STATE)
            continue;
        const gb_state *state = &c->program->states[value->index];
        if (state->kind == GB_STATE_RECURRENT)
            c->costs->state_bytes += (double)gb_state_bytes(state) * (double)c->shape->sequences;
    }
}

static void add_node(const costing *c, const gb_node *node) {
    const gb_op_traits *traits = gb_op_traits_find(node->op);
    const gb_work *work = &traits->work;
    if (traits->weights == GB_WEIGHTS_ROWS)
        add_rows(c, node);
    else if (traits->weights == GB_WEIGHTS_CHOSEN)
        add_chosen(c, node);
    else
        add_weights(c, node);
    add_recurrent_states(c, node);
    if (work->kind == GB_WORK_ATTENTION)
        add_attention(c, node);
    else if (work->kind == GB_WORK_PRODUCTS)
        add_products(c, node,
                     result_elements(c, node) * work->factor *
                         (double)operand_type(c, node, work->operand)->shape.dims[work->dim]);
}

void gb_program_costs(const gb_program *program, const gumbel_step_shape *shape, gumbel_step_costs *costs) {
    costs->weight_bytes = costs->state_bytes = costs->int8_products = costs->float_products = 0;
    const costing c = {program, shape, costs};
    for (uint32_t i = 0; i < program->node_count; i++)
        add_node(&c, &program->nodes[i]);
}
