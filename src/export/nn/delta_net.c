/* SPDX-License-Identifier: Apache-2.0 */
#include "export/nn/delta_net.h"

#include "export/nn/layers.h"

#include <math.h>

static const double KEY_EPSILON = 1e-6;

/* A tensor that has `rows` rows for each key head, one key head after the other; no runs are taken yet. */
static gb_fused_rows interleaved(const gb_delta_net *net, const char *tensor, int64_t rows) {
    return (gb_fused_rows){.tensor = net->is_interleaved ? tensor : NULL, .rows = net->key_heads * rows};
}

/* Of each key head's rows these are a part of the matrix, below those taken before. */
static void take(const gb_delta_net *net, gb_fused_rows *fused, int64_t first, int64_t run) {
    fused->runs[fused->run_count++] = (gb_row_runs){first, run, fused->rows / net->key_heads, net->key_heads};
}

/* Rows of a key head's values. */
static int64_t value_rows(const gb_delta_net *net) {
    return net->value_heads / net->key_heads * net->value_dim;
}

/* Query, key, value and gate of each key head. */
static gb_fused_rows rows_of_qkvz(const gb_delta_net *net) {
    return interleaved(net, "in_proj_qkvz.weight", 2 * net->key_dim + 2 * value_rows(net));
}

static gb_ref project_qkv(const gb_scope *scope, const gb_delta_net *net, gb_ref x, int64_t channels) {
    gb_fused_rows rows = rows_of_qkvz(net);
    take(net, &rows, 0, net->key_dim);
    take(net, &rows, net->key_dim, net->key_dim);
    take(net, &rows, 2 * net->key_dim, value_rows(net));
    return gb_linear_of(scope, "in_proj_qkv.weight", &rows, x, channels);
}

static gb_ref project_gate(const gb_scope *scope, const gb_delta_net *net, gb_ref x) {
    gb_fused_rows rows = rows_of_qkvz(net);
    take(net, &rows, 2 * net->key_dim + value_rows(net), value_rows(net));
    return gb_linear_of(scope, "in_proj_z.weight", &rows, x, net->value_heads * net->value_dim);
}

/* Of each value head one number: a, or b, which has the rows before a's. */
static gb_ref project_numbers(const gb_scope *scope, const gb_delta_net *net, gb_ref x, const char *name,
                              bool is_second) {
    const int64_t heads = net->value_heads / net->key_heads;
    gb_fused_rows rows = interleaved(net, "in_proj_ba.weight", 2 * heads);
    take(net, &rows, is_second ? heads : 0, heads);
    return gb_linear_of(scope, name, &rows, x, net->value_heads);
}

/* Query, key and value of each token, side by side. */
static gb_ref convolve(const gb_scope *scope, const gb_delta_net *net, const char *name, gb_ref x,
                       int64_t channels) {
    const int64_t kernel[] = {channels, 1, net->conv_width}, tail[] = {net->conv_width - 1, channels};
    const gb_ref operands[] = {
        project_qkv(scope, net, x, channels),
        gb_weight(scope, "conv1d.weight", 3, kernel, gb_random_matrix(net->conv_width)),
        gb_build_input(scope->builder, GB_ROLE_SLOTS),
        gb_recurrent_state(scope, name, ".conv", 2, tail),
    };
    gb_ref mixed = gb_build_op(scope->builder, GB_OP_CAUSAL_CONV, operands, 4, NULL, 0);
    return gb_node1(scope, GB_OP_SILU, mixed);
}

/* Keys and queries have length 1, and queries then the usual scale of attention. */
static gb_ref unit_heads(const gb_scope *scope, const gb_delta_net *net, gb_ref x, double scale) {
    const gb_attribute attributes[] = {gb_float(GB_ATTRIBUTE_EPSILON, KEY_EPSILON),
                                       gb_float(GB_ATTRIBUTE_SCALE, scale)};
    gb_ref heads = gb_split_heads(scope, x, net->key_heads);
    return gb_build_op(scope->builder, GB_OP_L2_NORMALIZE, &heads, 1, attributes, 2);
}

/* How much of the memory a token leaves. Random weights forget within some ten tokens to some hundreds. */
static gb_ref decay(const gb_scope *scope, const gb_delta_net *net, gb_ref x) {
    gb_ref step = project_numbers(scope, net, x, "in_proj_a.weight", true);
    gb_ref rate = gb_weight(scope, "A_log", 1, &net->value_heads, (gb_uniform){0.0f, 2.0f});
    gb_ref bias = gb_weight(scope, "dt_bias", 1, &net->value_heads, (gb_uniform){-5.0f, -1.0f});
    return gb_node3(scope, GB_OP_DELTA_DECAY, step, rate, bias);
}

static gb_ref remember(const gb_scope *scope, const gb_delta_net *net, const char *name, gb_ref x) {
    int64_t key_width = net->key_heads * net->key_dim, value_width = net->value_heads * net->value_dim;
    const int64_t memory[] = {net->value_heads, net->key_dim, net->value_dim};
    gb_ref mixed = convolve(scope, net, name, x, 2 * key_width + value_width);
    gb_ref query = gb_slice(scope, mixed, 0, key_width);
    gb_ref key = gb_slice(scope, mixed, key_width, key_width);
    gb_ref value = gb_slice(scope, mixed, 2 * key_width, value_width);
    const gb_ref operands[] = {
        unit_heads(scope, net, query, 1 / sqrt((double)net->key_dim)),
        unit_heads(scope, net, key, 1),
        gb_split_heads(scope, value, net->value_heads),
        decay(scope, net, x),
        gb_node1(scope, GB_OP_SIGMOID, project_numbers(scope, net, x, "in_proj_b.weight", false)),
        gb_build_input(scope->builder, GB_ROLE_SLOTS),
        gb_recurrent_state(scope, name, ".memory", 3, memory),
    };
    const gb_attribute tiled = gb_int(GB_ATTRIBUTE_TILED, 1);
    return gb_build_op(scope->builder, GB_OP_GATED_DELTA, operands, 7, &tiled, net->is_tiled ? 1 : 0);
}

gb_ref gb_delta_net_mixer(const gb_scope *scope, const gb_delta_net *net, const char *name, gb_ref x,
                          bool rows_only) {
    if (gb_builder_status(scope->builder, NULL) != GUMBEL_OK)
        return GB_NO_VALUE;
    int64_t hidden = gb_build_type(scope->builder, x).shape.dims[1];
    gb_ref y = remember(scope, net, name, x);
    if (rows_only) {
        x = gb_gather_rows(scope, x);
        y = gb_gather_rows(scope, gb_node1(scope, GB_OP_MERGE_HEADS, y));
        y = gb_split_heads(scope, y, net->value_heads);
    }
    gb_ref gate = project_gate(scope, net, x);
    gate = gb_node1(scope, GB_OP_SILU, gb_split_heads(scope, gate, net->value_heads));
    y = gb_node2(scope, GB_OP_MULTIPLY, gb_rms_norm(scope, "norm.weight", y, net->epsilon), gate);
    return gb_linear(scope, "out_proj.weight", gb_node1(scope, GB_OP_MERGE_HEADS, y), hidden);
}
