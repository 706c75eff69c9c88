/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/fuse/pattern.h"

#define OP(NAME) ((uint64_t)1 << GB_OP_##NAME)
#define ACTIVATIONS (OP(GELU_TANH) | OP(SILU) | OP(SIGMOID))
#define PART(part)                                                                                           \
    { GB_SOURCE_PART, (part), 0 }
#define SECOND(part)                                                                                         \
    { GB_SOURCE_PART, (part), 1 }
#define OPERAND(operand)                                                                                     \
    { GB_SOURCE_OPERAND, (operand), 0 }

enum { OPTIONAL = GB_PART_OPTIONAL, RESULT = GB_PART_RESULT, WORK = GB_PART_WORK, OUTSIDE = GB_PART_OUTSIDE };

static const gb_shape *shape_of(const gb_program *program, gb_ref value) {
    return &program->values[value].type.shape;
}

static int64_t last_dim(const gb_shape *shape) {
    return shape->dims[shape->rank - 1];
}

/* ---- A mixture of experts ------------------------------------------------------------------------------ */

static const gb_pattern_part experts[GB_EXPERTS_PARTS] = {
    [GB_EXPERTS_SHARED_GATE] = {OP(LINEAR),
                                0,
                                {OPERAND(GB_EXPERTS_X), OPERAND(GB_EXPERTS_SHARED_GATE_WEIGHT)}},
    [GB_EXPERTS_SHARED_UP] = {OP(LINEAR), 0, {OPERAND(GB_EXPERTS_X), OPERAND(GB_EXPERTS_SHARED_UP_WEIGHT)}},
    [GB_EXPERTS_ROUTE] = {OP(ROUTE_TOP_K), WORK, {OPERAND(GB_EXPERTS_LOGITS)}},
    [GB_EXPERTS_GATE_UP] = {OP(EXPERT_LINEAR),
                            0,
                            {OPERAND(GB_EXPERTS_X), OPERAND(GB_EXPERTS_GATE_UP_WEIGHT),
                             PART(GB_EXPERTS_ROUTE)}},
    [GB_EXPERTS_GATE] = {OP(SLICE), 0, {PART(GB_EXPERTS_GATE_UP)}},
    [GB_EXPERTS_UP] = {OP(SLICE), 0, {PART(GB_EXPERTS_GATE_UP)}},
    [GB_EXPERTS_ACTIVATION] = {OP(SILU), 0, {PART(GB_EXPERTS_GATE)}},
    [GB_EXPERTS_INNER] = {OP(MULTIPLY), 0, {PART(GB_EXPERTS_ACTIVATION), PART(GB_EXPERTS_UP)}},
    [GB_EXPERTS_DOWN] = {OP(EXPERT_LINEAR),
                         0,
                         {PART(GB_EXPERTS_INNER), OPERAND(GB_EXPERTS_DOWN_WEIGHT), PART(GB_EXPERTS_ROUTE)}},
    [GB_EXPERTS_COMBINE] = {OP(COMBINE_EXPERTS), 0, {PART(GB_EXPERTS_DOWN), SECOND(GB_EXPERTS_ROUTE)}},
    [GB_EXPERTS_SHARED_ACTIVATION] = {OP(SILU), 0, {PART(GB_EXPERTS_SHARED_GATE)}},
    [GB_EXPERTS_SHARED_INNER] = {OP(MULTIPLY),
                                 0,
                                 {PART(GB_EXPERTS_SHARED_ACTIVATION), PART(GB_EXPERTS_SHARED_UP)}},
    [GB_EXPERTS_SHARED_DOWN] = {OP(LINEAR),
                                0,
                                {PART(GB_EXPERTS_SHARED_INNER), OPERAND(GB_EXPERTS_SHARED_DOWN_WEIGHT)}},
    [GB_EXPERTS_SHARED_FACTOR] = {OP(SIGMOID), 0, {OPERAND(GB_EXPERTS_SHARED_LOGIT)}},
    [GB_EXPERTS_SHARED] = {OP(SCALE_ROWS), 0, {PART(GB_EXPERTS_SHARED_DOWN), PART(GB_EXPERTS_SHARED_FACTOR)}},
    [GB_EXPERTS_BOTH] = {OP(ADD), 0, {PART(GB_EXPERTS_COMBINE), PART(GB_EXPERTS_SHARED)}},
    [GB_EXPERTS_RESULT] = {OP(ADD), RESULT, {OPERAND(GB_EXPERTS_RESIDUAL), PART(GB_EXPERTS_BOTH)}},
};

/* Gates are the first half of both, ups the second one. */
static bool experts_fit(const gb_program *program, const gb_match *match) {
    const gb_node *gate = match->nodes[GB_EXPERTS_GATE], *up = match->nodes[GB_EXPERTS_UP];
    const gb_shape *both = shape_of(program, match->nodes[GB_EXPERTS_GATE_UP]->results[0]);
    const gb_shape *half = shape_of(program, gate->results[0]);
    return half->rank == 3 && 2 * last_dim(half) == last_dim(both) &&
           gb_node_int(gate, GB_ATTRIBUTE_START) == 0 &&
           gb_node_int(up, GB_ATTRIBUTE_START) == last_dim(half);
}

/* ---- A delta net --------------------------------------------------------------------------------------- */

static const gb_pattern_part delta[GB_DELTA_PARTS] = {
    [GB_DELTA_CONVOLUTION] = {OP(CAUSAL_CONV),
                              0,
                              {OPERAND(GB_DELTA_X), OPERAND(GB_DELTA_TAPS), OPERAND(GB_DELTA_SLOTS),
                               OPERAND(GB_DELTA_TAIL)}},
    [GB_DELTA_MIXED] = {OP(SILU), 0, {PART(GB_DELTA_CONVOLUTION)}},
    [GB_DELTA_QUERY] = {OP(SLICE), 0, {PART(GB_DELTA_MIXED)}},
    [GB_DELTA_KEY] = {OP(SLICE), 0, {PART(GB_DELTA_MIXED)}},
    [GB_DELTA_VALUE] = {OP(SLICE), 0, {PART(GB_DELTA_MIXED)}},
    [GB_DELTA_QUERY_UNIT] = {OP(L2_NORMALIZE), 0, {PART(GB_DELTA_QUERY)}},
    [GB_DELTA_KEY_UNIT] = {OP(L2_NORMALIZE), 0, {PART(GB_DELTA_KEY)}},
    [GB_DELTA_DECAY] = {OP(DELTA_DECAY),
                        0,
                        {OPERAND(GB_DELTA_A), OPERAND(GB_DELTA_RATE), OPERAND(GB_DELTA_BIAS)}},
    [GB_DELTA_BETA] = {OP(SIGMOID), 0, {OPERAND(GB_DELTA_B)}},
    [GB_DELTA_RULE] = {OP(GATED_DELTA),
                       0,
                       {PART(GB_DELTA_QUERY_UNIT), PART(GB_DELTA_KEY_UNIT), PART(GB_DELTA_VALUE),
                        PART(GB_DELTA_DECAY), PART(GB_DELTA_BETA), OPERAND(GB_DELTA_SLOTS),
                        OPERAND(GB_DELTA_MEMORY)}},
    [GB_DELTA_NORM] = {OP(RMS_NORM), 0, {PART(GB_DELTA_RULE), OPERAND(GB_DELTA_NORM_WEIGHT)}},
    [GB_DELTA_GATE] = {OP(SILU), 0, {OPERAND(GB_DELTA_Z)}},
    [GB_DELTA_RESULT] = {OP(MULTIPLY), RESULT, {PART(GB_DELTA_NORM), PART(GB_DELTA_GATE)}},
};

/* ---- Attention's heads --------------------------------------------------------------------------------- */

static const gb_pattern_part heads[GB_HEADS_PARTS] = {
    [GB_HEADS_QUERY_SLICE] = {OP(SLICE), OPTIONAL, {OPERAND(GB_HEADS_QUERY)}},
    [GB_HEADS_QUERY_NORM] = {OP(RMS_NORM),
                             OPTIONAL | RESULT,
                             {PART(GB_HEADS_QUERY_SLICE), OPERAND(GB_HEADS_QUERY_WEIGHT)}},
    [GB_HEADS_QUERY_TURN] = {OP(ROPE),
                             OPTIONAL | RESULT,
                             {PART(GB_HEADS_QUERY_NORM), OPERAND(GB_HEADS_POSITIONS),
                              OPERAND(GB_HEADS_FREQUENCIES)}},
    [GB_HEADS_KEY_NORM] = {OP(RMS_NORM),
                           OPTIONAL | RESULT,
                           {OPERAND(GB_HEADS_KEY), OPERAND(GB_HEADS_KEY_WEIGHT)}},
    [GB_HEADS_KEY_TURN] = {OP(ROPE),
                           OPTIONAL | RESULT,
                           {PART(GB_HEADS_KEY_NORM), OPERAND(GB_HEADS_POSITIONS),
                            OPERAND(GB_HEADS_FREQUENCIES)}},
    [GB_HEADS_VALUE_NORM] = {OP(RMS_NORM),
                             OPTIONAL | RESULT,
                             {OPERAND(GB_HEADS_VALUE), OPERAND(GB_HEADS_VALUE_WEIGHT)}},
    [GB_HEADS_ATTENTION] = {OP(ATTENTION),
                            OUTSIDE,
                            {PART(GB_HEADS_QUERY_TURN), PART(GB_HEADS_KEY_TURN), PART(GB_HEADS_VALUE_NORM)}},
};

/* Of a tensor's ops only the last one's result is read by others; all turns are alike. A slice alone is no
 * part of attention. */
static bool heads_fit(const gb_program *program, const gb_match *match) {
    const gb_node *query = match->nodes[GB_HEADS_QUERY_TURN], *key = match->nodes[GB_HEADS_KEY_TURN];
    (void)program;
    if (match->nodes[GB_HEADS_QUERY_SLICE] && !match->nodes[GB_HEADS_QUERY_NORM] && !query)
        return false;
    return !query || !key ||
           (gb_node_int(query, GB_ATTRIBUTE_PAIR_OFFSET) == gb_node_int(key, GB_ATTRIBUTE_PAIR_OFFSET) &&
            gb_node_float(query, GB_ATTRIBUTE_SCALE) == gb_node_float(key, GB_ATTRIBUTE_SCALE));
}

/* ---- Norms around a residual --------------------------------------------------------------------------- */

static const gb_pattern_part norms[GB_NORMS_PARTS] = {
    [GB_NORMS_FIRST] = {OP(RMS_NORM),
                        OPTIONAL | RESULT,
                        {OPERAND(GB_NORMS_X), OPERAND(GB_NORMS_FIRST_WEIGHT)}},
    [GB_NORMS_ADD] = {OP(ADD), OPTIONAL | RESULT, {PART(GB_NORMS_FIRST), OPERAND(GB_NORMS_ADDED)}},
    [GB_NORMS_SCALE] = {OP(SCALE), OPTIONAL | RESULT, {PART(GB_NORMS_ADD), OPERAND(GB_NORMS_SCALE_FACTOR)}},
    [GB_NORMS_LAST] = {OP(RMS_NORM), RESULT, {PART(GB_NORMS_SCALE), OPERAND(GB_NORMS_LAST_WEIGHT)}},
};

/* All of them are of rows of one length. */
static bool norms_fit(const gb_program *program, const gb_match *match) {
    const gb_shape *row = shape_of(program, match->nodes[GB_NORMS_LAST]->results[0]);
    for (uint32_t i = 0; i < GB_NORMS_PARTS; i++)
        if (match->nodes[i] && !gb_shape_equal(shape_of(program, match->nodes[i]->results[0]), row))
            return false;
    return row->rank == 2;
}

/* ---- Gates --------------------------------------------------------------------------------------------- */

static const gb_pattern_part gated[GB_GATED_PARTS] = {
    [GB_GATED_X_SLICE] = {OP(SLICE), OPTIONAL, {OPERAND(GB_GATED_X)}},
    [GB_GATED_OTHER_SLICE] = {OP(SLICE), OPTIONAL, {OPERAND(GB_GATED_OTHER)}},
    [GB_GATED_ACTIVATION] = {ACTIVATIONS, 0, {PART(GB_GATED_X_SLICE)}},
    [GB_GATED_RESULT] = {OP(MULTIPLY), RESULT, {PART(GB_GATED_ACTIVATION), PART(GB_GATED_OTHER_SLICE)}},
};

/* ---- The sampler's token ------------------------------------------------------------------------------- */

/* The sampler is the `if` that its step replaces (sampler.c). */
static const gb_pattern_part logprob[GB_LOGPROB_PARTS] = {
    [GB_LOGPROB_SAMPLER] = {OP(IF), RESULT | WORK, {{GB_SOURCE_ANY, 0, 0}}},
    [GB_LOGPROB_NORMALIZER] = {OP(LOG_NORMALIZER),
                               RESULT | WORK,
                               {OPERAND(GB_SAMPLE_LOGITS), OPERAND(GB_LOGPROB_WANTED)}},
    [GB_LOGPROB_RESULT] = {OP(LOG_PROBABILITY),
                           RESULT,
                           {OPERAND(GB_SAMPLE_LOGITS), PART(GB_LOGPROB_NORMALIZER),
                            PART(GB_LOGPROB_SAMPLER)}},
};

#define PATTERN(KIND, parts, operand_count, root, fewest_nodes, fits)                                        \
    { GB_FUSED_##KIND, parts, sizeof(parts) / sizeof *(parts), operand_count, root, fewest_nodes, fits }

const gb_pattern gb_patterns[] = {
    PATTERN(EXPERTS, experts, GB_EXPERTS_OPERANDS, GB_EXPERTS_RESULT, GB_EXPERTS_PARTS, experts_fit),
    PATTERN(DELTA, delta, GB_DELTA_OPERANDS, GB_DELTA_RESULT, GB_DELTA_PARTS, NULL),
    PATTERN(HEADS, heads, GB_HEADS_OPERANDS, GB_HEADS_ATTENTION, 2, heads_fit),
    PATTERN(GATED, gated, GB_GATED_OPERANDS, GB_GATED_RESULT, 2, NULL),
    PATTERN(NORMS, norms, GB_NORMS_OPERANDS, GB_NORMS_LAST, 1, norms_fit),
    PATTERN(LOGPROB, logprob, GB_LOGPROB_OPERANDS, GB_LOGPROB_RESULT, 3, NULL),
};

const size_t gb_pattern_count = sizeof gb_patterns / sizeof *gb_patterns;

const char *gb_fused_name(gb_fused_kind kind) {
    static const char *const names[GB_FUSED_LIMIT] = {
        [GB_FUSED_EXPERTS] = "experts", [GB_FUSED_DELTA] = "delta_net",
        [GB_FUSED_HEADS] = "heads",     [GB_FUSED_NORMS] = "norms",
        [GB_FUSED_GATED] = "gated",     [GB_FUSED_LOGPROB] = "sample_logprob",
        [GB_FUSED_LINEARS] = "linears", [GB_FUSED_NORM_LINEARS] = "norm_linears",
        [GB_FUSED_ROWS] = "rows",
    };
    return kind > GB_FUSED_NONE && kind < GB_FUSED_LIMIT ? names[kind] : "none";
}
