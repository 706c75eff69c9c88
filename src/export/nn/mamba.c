/* SPDX-License-Identifier: Apache-2.0 */
#include "export/nn/mamba.h"

#include "export/nn/layers.h"

static int64_t inner_of(const gb_mamba *mamba) {
    return mamba->heads * mamba->head_dim;
}

/* Columns of what a token writes to the memory, or reads from it. */
static int64_t keys_of(const gb_mamba *mamba) {
    return mamba->groups * mamba->state_size;
}

static int64_t channels_of(const gb_mamba *mamba) {
    return inner_of(mamba) + 2 * keys_of(mamba);
}

/* Rows of the one matrix: gate, channels of the convolution, step sizes. */
static gb_ref project(const gb_scope *scope, const gb_mamba *mamba, const char *name, int64_t first, gb_ref x,
                      int64_t outputs) {
    const gb_fused_rows rows = {.tensor = "in_proj.weight",
                                .rows = inner_of(mamba) + channels_of(mamba) + mamba->heads,
                                .first = first};
    return gb_linear_of(scope, name, &rows, x, outputs);
}

static gb_ref convolve(const gb_scope *scope, const gb_mamba *mamba, const char *name, gb_ref x) {
    const int64_t channels = channels_of(mamba);
    const int64_t kernel[] = {channels, 1, mamba->conv_width}, tail[] = {mamba->conv_width - 1, channels};
    const gb_ref operands[] = {
        project(scope, mamba, "in_proj_xbc.weight", inner_of(mamba), x, channels),
        gb_weight(scope, "conv1d.weight", 3, kernel, gb_random_matrix(mamba->conv_width)),
        gb_build_input(scope->builder, GB_ROLE_SLOTS),
        gb_recurrent_state(scope, name, ".conv", 2, tail),
    };
    gb_ref mixed = gb_build_op(scope->builder, GB_OP_CAUSAL_CONV, operands, 4, NULL, 0);
    if (mamba->has_conv_bias)
        mixed = gb_add_bias(scope, "conv1d.bias", mixed);
    return gb_node1(scope, GB_OP_SILU, mixed);
}

/* How long each head's step is, and how much of the memory it leaves. Random weights forget within some
 * tokens to some hundreds. */
typedef struct steps {
    gb_ref size, decay;
} steps;

static steps steps_of(const gb_scope *scope, const gb_mamba *mamba, gb_ref x) {
    const gb_ref raw =
        project(scope, mamba, "in_proj_dt.weight", inner_of(mamba) + channels_of(mamba), x, mamba->heads);
    const gb_ref rate = gb_weight(scope, "A_log", 1, &mamba->heads, (gb_uniform){0.0f, 2.5f});
    const gb_ref bias = gb_weight(scope, "dt_bias", 1, &mamba->heads, (gb_uniform){-6.0f, -2.0f});
    return (steps){gb_node1(scope, GB_OP_SOFTPLUS, gb_node2(scope, GB_OP_ADD_BIAS, raw, bias)),
                   gb_node3(scope, GB_OP_DELTA_DECAY, raw, rate, bias)};
}

static gb_ref heads_of(const gb_scope *scope, gb_ref mixed, int64_t first, int64_t count, int64_t heads) {
    return gb_split_heads(scope, gb_slice(scope, mixed, first, count), heads);
}

/* What the memory answers, and each head's own values times D beside it: f32[N, inner]. */
static gb_ref remember(const gb_scope *scope, const gb_mamba *mamba, const char *name, gb_ref x) {
    const int64_t inner = inner_of(mamba), keys = keys_of(mamba);
    const int64_t memory[] = {mamba->heads, mamba->state_size, mamba->head_dim};
    const steps step =
        steps_of(scope, mamba, x); /* before the wide channels, which it would be chained with */
    const gb_ref mixed = convolve(scope, mamba, name, x), values = gb_slice(scope, mixed, 0, inner);
    const gb_ref operands[] = {
        heads_of(scope, mixed, inner + keys, keys, mamba->groups),
        heads_of(scope, mixed, inner, keys, mamba->groups),
        gb_split_heads(scope, values, mamba->heads),
        step.decay,
        step.size,
        gb_build_input(scope->builder, GB_ROLE_SLOTS),
        gb_recurrent_state(scope, name, ".memory", 3, memory),
    };
    const gb_attribute plain = gb_int(GB_ATTRIBUTE_CORRECTS, 0);
    const gb_ref y = gb_build_op(scope->builder, GB_OP_GATED_DELTA, operands, 7, &plain, 1);
    const gb_ref skip = gb_weight(scope, "D", 1, &mamba->heads, (gb_uniform){0.5f, 1.5f});
    return gb_node2(scope, GB_OP_ADD, gb_node1(scope, GB_OP_MERGE_HEADS, y),
                    gb_node2(scope, GB_OP_SCALE_COLUMNS, values, skip));
}

/* The gate is multiplied before the norm. */
static gb_ref gated_norm(const gb_scope *scope, const gb_mamba *mamba, gb_ref y, gb_ref gate) {
    const int64_t inner = inner_of(mamba);
    y = gb_node2(scope, GB_OP_MULTIPLY, gb_node1(scope, GB_OP_SILU, gate), y);
    if (mamba->groups == 1)
        return gb_rms_norm(scope, "norm.weight", y, mamba->epsilon);
    y = gb_rms_normalize(scope, gb_split_heads(scope, y, mamba->groups), mamba->epsilon);
    return gb_node2(scope, GB_OP_SCALE_COLUMNS, gb_node1(scope, GB_OP_MERGE_HEADS, y),
                    gb_gain(scope, "norm.weight", inner));
}

gb_ref gb_mamba_mixer(const gb_scope *scope, const gb_mamba *mamba, const char *name, gb_ref x,
                      bool rows_only) {
    if (gb_builder_status(scope->builder, NULL) != GUMBEL_OK)
        return GB_NO_VALUE;
    const int64_t hidden = gb_build_type(scope->builder, x).shape.dims[1];
    gb_ref y = remember(scope, mamba, name, x);
    if (rows_only) {
        x = gb_gather_rows(scope, x);
        y = gb_gather_rows(scope, y);
    }
    const gb_ref gate = project(scope, mamba, "in_proj_z.weight", 0, x, inner_of(mamba));
    return gb_linear(scope, "out_proj.weight", gated_norm(scope, mamba, y, gate), hidden);
}
