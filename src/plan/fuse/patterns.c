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
#define ANYTHING                                                                                             \
    { GB_SOURCE_ANY, 0, 0 }
#define NO_OPERAND                                                                                           \
    { GB_SOURCE_NONE, 0, 0 }

enum {
    OPTIONAL = GB_PART_OPTIONAL,
    RESULT = GB_PART_RESULT,
    WORK = GB_PART_WORK,
    OUTSIDE = GB_PART_OUTSIDE,
    COPIES = GB_PART_COPIES,
    SECOND_STAYS = GB_PART_SECOND
};

static const gb_shape *shape_of(const gb_program *program, gb_ref value) {
    return &program->values[value].type.shape;
}

static int64_t last_dim(const gb_shape *shape) {
    return shape->dims[shape->rank - 1];
}

/* An op of a pattern, its flags, and where its operands come from. */
#define NODE(ops, flags, ...)                                                                                \
    {                                                                                                        \
        (ops), (flags), {                                                                                    \
            __VA_ARGS__                                                                                      \
        }                                                                                                    \
    }

/* ---- The sampler (docs/sampling.md) -------------------------------------------------------------------- */

enum {
    SAMPLER_BIASED,
    SAMPLER_PENALIZED,
    SAMPLER_MASKED,
    SAMPLER_IS_GREEDY,
    SAMPLER_DRAWS,
    SAMPLER_GREEDY,
    SAMPLER_ONE,
    SAMPLER_DIVISOR,
    SAMPLER_SCALED,
    SAMPLER_CANDIDATES,
#define GB_SETTING(number, NAME, name, dtype, neutral, metadata, kind, ...)                                  \
    GB_OF_MASKS(kind)(SAMPLER_##NAME, )
#include "program/roles.def"
    SAMPLER_BITS,
    SAMPLER_NOISE,
    SAMPLER_NOISY,
    SAMPLER_DRAWN,
    SAMPLER_CHOSEN,
    SAMPLER_RESULT,
    SAMPLER_PARTS
};

static const gb_pattern_part sampler[SAMPLER_PARTS] = {
    [SAMPLER_BIASED] = NODE(OP(APPLY_BIAS), OPTIONAL | RESULT, OPERAND(GB_SAMPLE_LOGITS),
                            OPERAND(GB_SAMPLE_BIAS_IDS), OPERAND(GB_SAMPLE_BIAS_VALUES)),
    [SAMPLER_PENALIZED] = {OP(PENALIZE),
                           OPTIONAL | RESULT,
                           {PART(SAMPLER_BIASED), OPERAND(GB_SAMPLE_COUNTS),
#define GB_SETTING(number, NAME, name, dtype, neutral, metadata, kind, ...)                                  \
    GB_OF_PENALTIES(kind)(OPERAND(GB_SAMPLE_##NAME), )
#include "program/roles.def"
                            OPERAND(GB_SAMPLE_PENALIZE_PROMPT)}},
    [SAMPLER_MASKED] = NODE(OP(APPLY_MASK), OPTIONAL | RESULT, PART(SAMPLER_PENALIZED),
                            OPERAND(GB_SAMPLE_MASKED), OPERAND(GB_SAMPLE_MASK)),
    [SAMPLER_IS_GREEDY] = NODE(OP(IS_ZERO), COPIES, OPERAND(GB_SAMPLE_TEMPERATURE)),
    [SAMPLER_DRAWS] = NODE(OP(ANY_FALSE), 0, PART(SAMPLER_IS_GREEDY)),
    [SAMPLER_GREEDY] = NODE(OP(ARGMAX), COPIES, PART(SAMPLER_MASKED), NO_OPERAND),
    [SAMPLER_ONE] = NODE(OP(FILL_LIKE), 0, ANYTHING),
    [SAMPLER_DIVISOR] =
        NODE(OP(SELECT), 0, PART(SAMPLER_IS_GREEDY), PART(SAMPLER_ONE), OPERAND(GB_SAMPLE_TEMPERATURE)),
    [SAMPLER_SCALED] = NODE(OP(APPLY_TEMPERATURE), 0, PART(SAMPLER_MASKED), PART(SAMPLER_DIVISOR)),
    [SAMPLER_CANDIDATES] = NODE(OP(CANDIDATES), 0, PART(SAMPLER_MASKED)),
#define GB_SETTING(number, NAME, name, dtype, neutral, metadata, kind, ...)                                  \
    GB_OF_MASKS(kind)                                                                                        \
    ([SAMPLER_##NAME] = NODE(OP(NAME##_MASK), OPTIONAL | SECOND_STAYS | RESULT, PART(SAMPLER_SCALED),        \
                             PART(SAMPLER_##NAME - 1), OPERAND(GB_SAMPLE_##NAME)), )
#include "program/roles.def"
    [SAMPLER_BITS] = NODE(OP(RANDOM_BITS), 0, OPERAND(GB_SAMPLE_SEED)),
    [SAMPLER_NOISE] = NODE(OP(GUMBEL_NOISE), 0, PART(SAMPLER_BITS)),
    [SAMPLER_NOISY] = NODE(OP(ADD), 0, PART(SAMPLER_SCALED), PART(SAMPLER_NOISE)),
    [SAMPLER_DRAWN] = NODE(OP(ARGMAX), 0, PART(SAMPLER_NOISY), PART(SAMPLER_BITS - 1)),
    [SAMPLER_CHOSEN] =
        NODE(OP(CHOOSE_TOKEN), 0, PART(SAMPLER_IS_GREEDY), PART(SAMPLER_GREEDY), PART(SAMPLER_DRAWN)),
    [SAMPLER_RESULT] = NODE(OP(IF), 0, PART(SAMPLER_DRAWS), PART(SAMPLER_CHOSEN), PART(SAMPLER_GREEDY)),
};

_Static_assert((int)SAMPLER_PARTS <= (int)GB_MAX_FUSED_NODES, "a match has all parts");

/* Settings are there before the step: fused samplers may read them early. */
static bool settings_are_given(const gb_program *program, const gb_match *match) {
    for (uint32_t i = 0; i < GB_SAMPLE_OPERANDS; i++)
        if (i != GB_SAMPLE_LOGITS && i != GB_SAMPLE_COUNTS && match->operands[i] != GB_NO_VALUE &&
            program->values[match->operands[i]].kind == GB_VALUE_RESULT)
            return false;
    return true;
}

/* It draws one token for each row of the batch from a row of known length. */
static bool sampler_fits(const gb_program *program, const gb_match *match) {
    const gb_shape *logits = shape_of(program, match->operands[GB_SAMPLE_LOGITS]);
    return match->nodes[SAMPLER_RESULT]->result_count == 1 &&
           match->nodes[SAMPLER_DRAWN]->operand_count == 2 &&
           gb_node_float(match->nodes[SAMPLER_ONE], GB_ATTRIBUTE_VALUE) == 1 && logits->rank == 2 &&
           logits->dims[0] == GB_DIM_B && logits->dims[1] > 0 && logits->dims[1] < 1 << 23 &&
           settings_are_given(program, match);
}

/* ---- A mixture of experts ------------------------------------------------------------------------------ */

static const gb_pattern_part experts[GB_EXPERTS_PARTS] = {
    [GB_EXPERTS_SHARED_GATE] =
        NODE(OP(LINEAR), 0, OPERAND(GB_EXPERTS_X), OPERAND(GB_EXPERTS_SHARED_GATE_WEIGHT)),
    [GB_EXPERTS_SHARED_UP] = NODE(OP(LINEAR), 0, OPERAND(GB_EXPERTS_X), OPERAND(GB_EXPERTS_SHARED_UP_WEIGHT)),
    [GB_EXPERTS_ROUTE] = NODE(OP(ROUTE_TOP_K), WORK, OPERAND(GB_EXPERTS_LOGITS)),
    [GB_EXPERTS_WEIGHTS] = NODE(OP(EXPERT_LINEAR), OPTIONAL, SECOND(GB_EXPERTS_ROUTE),
                                OPERAND(GB_EXPERTS_SCALES), PART(GB_EXPERTS_ROUTE)),
    [GB_EXPERTS_GATE_UP] = NODE(OP(EXPERT_LINEAR), 0, OPERAND(GB_EXPERTS_X),
                                OPERAND(GB_EXPERTS_GATE_UP_WEIGHT), PART(GB_EXPERTS_ROUTE)),
    [GB_EXPERTS_GATE] = NODE(OP(SLICE), 0, PART(GB_EXPERTS_GATE_UP)),
    [GB_EXPERTS_UP] = NODE(OP(SLICE), 0, PART(GB_EXPERTS_GATE_UP)),
    [GB_EXPERTS_ACTIVATION] = NODE(OP(SILU) | OP(GELU_TANH), 0, PART(GB_EXPERTS_GATE)),
    [GB_EXPERTS_INNER] = NODE(OP(MULTIPLY), 0, PART(GB_EXPERTS_ACTIVATION), PART(GB_EXPERTS_UP)),
    [GB_EXPERTS_DOWN] = NODE(OP(EXPERT_LINEAR), 0, PART(GB_EXPERTS_INNER), OPERAND(GB_EXPERTS_DOWN_WEIGHT),
                             PART(GB_EXPERTS_ROUTE)),
    [GB_EXPERTS_COMBINE] = NODE(OP(COMBINE_EXPERTS), RESULT, PART(GB_EXPERTS_DOWN), PART(GB_EXPERTS_WEIGHTS)),
    [GB_EXPERTS_SHARED_ACTIVATION] = NODE(OP(SILU) | OP(GELU_TANH), 0, PART(GB_EXPERTS_SHARED_GATE)),
    [GB_EXPERTS_SHARED_INNER] =
        NODE(OP(MULTIPLY), 0, PART(GB_EXPERTS_SHARED_ACTIVATION), PART(GB_EXPERTS_SHARED_UP)),
    [GB_EXPERTS_SHARED_DOWN] =
        NODE(OP(LINEAR), 0, PART(GB_EXPERTS_SHARED_INNER), OPERAND(GB_EXPERTS_SHARED_DOWN_WEIGHT)),
    [GB_EXPERTS_SHARED_FACTOR] = NODE(OP(SIGMOID), 0, OPERAND(GB_EXPERTS_SHARED_LOGIT)),
    [GB_EXPERTS_SHARED] =
        NODE(OP(SCALE_ROWS), 0, PART(GB_EXPERTS_SHARED_DOWN), PART(GB_EXPERTS_SHARED_FACTOR)),
    [GB_EXPERTS_BOTH] = NODE(OP(ADD), OPTIONAL, PART(GB_EXPERTS_COMBINE), PART(GB_EXPERTS_SHARED)),
    [GB_EXPERTS_RESULT] = NODE(OP(ADD), RESULT, OPERAND(GB_EXPERTS_RESIDUAL), PART(GB_EXPERTS_BOTH)),
};

/* Those of gpt-oss. */
static const gb_pattern_part clamped_experts[GB_EXPERTS_PARTS] = {
    [GB_EXPERTS_ROUTE] = NODE(OP(ROUTE_TOP_K), WORK, OPERAND(GB_EXPERTS_LOGITS)),
    [GB_EXPERTS_GATE_UP] = NODE(OP(EXPERT_LINEAR), 0, OPERAND(GB_EXPERTS_X),
                                OPERAND(GB_EXPERTS_GATE_UP_WEIGHT), PART(GB_EXPERTS_ROUTE)),
    [GB_EXPERTS_GATE] = NODE(OP(SLICE), 0, PART(GB_EXPERTS_GATE_UP)),
    [GB_EXPERTS_UP] = NODE(OP(SLICE), 0, PART(GB_EXPERTS_GATE_UP)),
    [GB_EXPERTS_GATE_BIASED] = NODE(OP(ADD_EXPERT_BIAS), OPTIONAL, PART(GB_EXPERTS_GATE),
                                    OPERAND(GB_EXPERTS_GATE_BIAS), PART(GB_EXPERTS_ROUTE)),
    [GB_EXPERTS_UP_BIASED] = NODE(OP(ADD_EXPERT_BIAS), OPTIONAL, PART(GB_EXPERTS_UP),
                                  OPERAND(GB_EXPERTS_UP_BIAS), PART(GB_EXPERTS_ROUTE)),
    [GB_EXPERTS_INNER] =
        NODE(OP(CLAMPED_SWIGLU), 0, PART(GB_EXPERTS_GATE_BIASED), PART(GB_EXPERTS_UP_BIASED)),
    [GB_EXPERTS_DOWN] = NODE(OP(EXPERT_LINEAR), 0, PART(GB_EXPERTS_INNER), OPERAND(GB_EXPERTS_DOWN_WEIGHT),
                             PART(GB_EXPERTS_ROUTE)),
    [GB_EXPERTS_DOWN_BIASED] = NODE(OP(ADD_EXPERT_BIAS), OPTIONAL, PART(GB_EXPERTS_DOWN),
                                    OPERAND(GB_EXPERTS_DOWN_BIAS), PART(GB_EXPERTS_ROUTE)),
    [GB_EXPERTS_COMBINE] =
        NODE(OP(COMBINE_EXPERTS), RESULT, PART(GB_EXPERTS_DOWN_BIASED), SECOND(GB_EXPERTS_ROUTE)),
    [GB_EXPERTS_RESULT] = NODE(OP(ADD), RESULT, OPERAND(GB_EXPERTS_RESIDUAL), PART(GB_EXPERTS_COMBINE)),
};

/* Gates are the first half of both, ups the second one; all have one activation. */
static bool experts_fit(const gb_program *program, const gb_match *match) {
    const gb_node *gate = match->nodes[GB_EXPERTS_GATE], *up = match->nodes[GB_EXPERTS_UP];
    const gb_shape *both = shape_of(program, match->nodes[GB_EXPERTS_GATE_UP]->results[0]);
    const gb_shape *half = shape_of(program, gate->results[0]);
    const gb_node *shared = match->nodes[GB_EXPERTS_SHARED_ACTIVATION];
    return (!shared || shared->op == match->nodes[GB_EXPERTS_ACTIVATION]->op) && half->rank == 3 &&
           2 * last_dim(half) == last_dim(both) && gb_node_int(gate, GB_ATTRIBUTE_START) == 0 &&
           gb_node_int(up, GB_ATTRIBUTE_START) == last_dim(half);
}

/* ---- A delta net --------------------------------------------------------------------------------------- */

static const gb_pattern_part delta[GB_DELTA_PARTS] = {
    [GB_DELTA_CONVOLUTION] = NODE(OP(CAUSAL_CONV), 0, OPERAND(GB_DELTA_X), OPERAND(GB_DELTA_TAPS),
                                  OPERAND(GB_DELTA_SLOTS), OPERAND(GB_DELTA_TAIL)),
    [GB_DELTA_MIXED] = NODE(OP(SILU), 0, PART(GB_DELTA_CONVOLUTION)),
    [GB_DELTA_QUERY] = NODE(OP(SLICE), 0, PART(GB_DELTA_MIXED)),
    [GB_DELTA_KEY] = NODE(OP(SLICE), 0, PART(GB_DELTA_MIXED)),
    [GB_DELTA_VALUE] = NODE(OP(SLICE), 0, PART(GB_DELTA_MIXED)),
    [GB_DELTA_QUERY_UNIT] = NODE(OP(L2_NORMALIZE), 0, PART(GB_DELTA_QUERY)),
    [GB_DELTA_KEY_UNIT] = NODE(OP(L2_NORMALIZE), 0, PART(GB_DELTA_KEY)),
    [GB_DELTA_DECAY] =
        NODE(OP(DELTA_DECAY), 0, OPERAND(GB_DELTA_A), OPERAND(GB_DELTA_RATE), OPERAND(GB_DELTA_BIAS)),
    [GB_DELTA_BETA] = NODE(OP(SIGMOID), 0, OPERAND(GB_DELTA_B)),
    [GB_DELTA_RULE] =
        NODE(OP(GATED_DELTA), 0, PART(GB_DELTA_QUERY_UNIT), PART(GB_DELTA_KEY_UNIT), PART(GB_DELTA_VALUE),
             PART(GB_DELTA_DECAY), PART(GB_DELTA_BETA), OPERAND(GB_DELTA_SLOTS), OPERAND(GB_DELTA_MEMORY)),
    [GB_DELTA_NORM] = NODE(OP(RMS_NORM), 0, PART(GB_DELTA_RULE), OPERAND(GB_DELTA_NORM_WEIGHT)),
    [GB_DELTA_GATE] = NODE(OP(SILU), 0, OPERAND(GB_DELTA_Z)),
    [GB_DELTA_RESULT] = NODE(OP(MULTIPLY), RESULT, PART(GB_DELTA_NORM), PART(GB_DELTA_GATE)),
};

static bool delta_fits(const gb_program *program, const gb_match *match) {
    (void)program;
    return gb_node_int(match->nodes[GB_DELTA_RULE], GB_ATTRIBUTE_CORRECTS) != 0;
}

/* ---- Attention's heads --------------------------------------------------------------------------------- */

static const gb_pattern_part heads[GB_HEADS_PARTS] = {
    [GB_HEADS_QUERY_BIASED] =
        NODE(OP(ADD_BIAS), OPTIONAL | RESULT, OPERAND(GB_HEADS_QUERY), OPERAND(GB_HEADS_QUERY_BIAS)),
    [GB_HEADS_QUERY_SLICE] = NODE(OP(SLICE), OPTIONAL, PART(GB_HEADS_QUERY_BIASED)),
    [GB_HEADS_QUERY_NORM] =
        NODE(OP(RMS_NORM), OPTIONAL | RESULT, PART(GB_HEADS_QUERY_SLICE), OPERAND(GB_HEADS_QUERY_WEIGHT)),
    [GB_HEADS_QUERY_TURN] = NODE(OP(ROPE), OPTIONAL | RESULT, PART(GB_HEADS_QUERY_NORM),
                                 OPERAND(GB_HEADS_POSITIONS), OPERAND(GB_HEADS_FREQUENCIES)),
    [GB_HEADS_KEY_BIASED] =
        NODE(OP(ADD_BIAS), OPTIONAL | RESULT, OPERAND(GB_HEADS_KEY), OPERAND(GB_HEADS_KEY_BIAS)),
    [GB_HEADS_KEY_NORM] =
        NODE(OP(RMS_NORM), OPTIONAL | RESULT, PART(GB_HEADS_KEY_BIASED), OPERAND(GB_HEADS_KEY_WEIGHT)),
    [GB_HEADS_KEY_TURN] = NODE(OP(ROPE), OPTIONAL | RESULT, PART(GB_HEADS_KEY_NORM),
                               OPERAND(GB_HEADS_POSITIONS), OPERAND(GB_HEADS_FREQUENCIES)),
    [GB_HEADS_VALUE_BIASED] =
        NODE(OP(ADD_BIAS), OPTIONAL | RESULT, OPERAND(GB_HEADS_VALUE), OPERAND(GB_HEADS_VALUE_BIAS)),
    [GB_HEADS_VALUE_NORM] =
        NODE(OP(RMS_NORM), OPTIONAL | RESULT, PART(GB_HEADS_VALUE_BIASED), OPERAND(GB_HEADS_VALUE_WEIGHT)),
    [GB_HEADS_ATTENTION] = NODE(OP(ATTENTION), OUTSIDE, PART(GB_HEADS_QUERY_TURN), PART(GB_HEADS_KEY_TURN),
                                PART(GB_HEADS_VALUE_NORM)),
};

/* Of a draft head that reads its program's keys and values, queries alone. */
static const gb_pattern_part query_heads[GB_HEADS_PARTS] = {
    [GB_HEADS_QUERY_NORM] =
        NODE(OP(RMS_NORM), OPTIONAL | RESULT, OPERAND(GB_HEADS_QUERY), OPERAND(GB_HEADS_QUERY_WEIGHT)),
    [GB_HEADS_QUERY_TURN] = NODE(OP(ROPE), OPTIONAL | RESULT, PART(GB_HEADS_QUERY_NORM),
                                 OPERAND(GB_HEADS_POSITIONS), OPERAND(GB_HEADS_FREQUENCIES)),
    [GB_HEADS_ATTENTION] = NODE(OP(ATTEND), OUTSIDE, PART(GB_HEADS_QUERY_TURN)),
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
            gb_node_int(query, GB_ATTRIBUTE_START) == gb_node_int(key, GB_ATTRIBUTE_START) &&
            gb_node_float(query, GB_ATTRIBUTE_SCALE) == gb_node_float(key, GB_ATTRIBUTE_SCALE));
}

/* ---- Norms around a residual --------------------------------------------------------------------------- */

static const gb_pattern_part norms[GB_NORMS_PARTS] = {
    [GB_NORMS_FIRST] =
        NODE(OP(RMS_NORM), OPTIONAL | RESULT, OPERAND(GB_NORMS_X), OPERAND(GB_NORMS_FIRST_WEIGHT)),
    [GB_NORMS_ADD] = NODE(OP(ADD), OPTIONAL | RESULT, PART(GB_NORMS_FIRST), OPERAND(GB_NORMS_ADDED)),
    [GB_NORMS_SCALE] = NODE(OP(SCALE), OPTIONAL | RESULT, PART(GB_NORMS_ADD), OPERAND(GB_NORMS_SCALE_FACTOR)),
    [GB_NORMS_LAST] = NODE(OP(RMS_NORM), RESULT | WORK, PART(GB_NORMS_SCALE), OPERAND(GB_NORMS_LAST_WEIGHT)),
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
    [GB_GATED_X_SLICE] = NODE(OP(SLICE), OPTIONAL, OPERAND(GB_GATED_X)),
    [GB_GATED_OTHER_SLICE] = NODE(OP(SLICE), OPTIONAL, OPERAND(GB_GATED_OTHER)),
    [GB_GATED_ACTIVATION] = NODE(ACTIVATIONS, 0, PART(GB_GATED_X_SLICE)),
    [GB_GATED_RESULT] = NODE(OP(MULTIPLY), RESULT, PART(GB_GATED_ACTIVATION), PART(GB_GATED_OTHER_SLICE)),
};

static const gb_pattern_part clamped[GB_GATED_PARTS] = {
    [GB_GATED_X_SLICE] = NODE(OP(SLICE), OPTIONAL, OPERAND(GB_GATED_X)),
    [GB_GATED_OTHER_SLICE] = NODE(OP(SLICE), OPTIONAL, OPERAND(GB_GATED_OTHER)),
    [GB_GATED_X_BIASED] = NODE(OP(ADD_EXPERT_BIAS), OPTIONAL, PART(GB_GATED_X_SLICE),
                               OPERAND(GB_GATED_X_BIAS), OPERAND(GB_GATED_EXPERTS)),
    [GB_GATED_OTHER_BIASED] = NODE(OP(ADD_EXPERT_BIAS), OPTIONAL, PART(GB_GATED_OTHER_SLICE),
                                   OPERAND(GB_GATED_OTHER_BIAS), OPERAND(GB_GATED_EXPERTS)),
    [GB_GATED_RESULT] =
        NODE(OP(CLAMPED_SWIGLU), RESULT, PART(GB_GATED_X_BIASED), PART(GB_GATED_OTHER_BIASED)),
};

static const gb_pattern_part squared[GB_GATED_PARTS] = {
    [GB_GATED_RESULT] = NODE(OP(RELU_SQUARED), RESULT, OPERAND(GB_GATED_X)),
};

/* ---- The sampler's token ------------------------------------------------------------------------------- */

/* The sampler is the `if` that its step replaces. */
static const gb_pattern_part logprob[GB_LOGPROB_PARTS] = {
    [GB_LOGPROB_SAMPLER] = NODE(OP(IF), RESULT | WORK, ANYTHING),
    [GB_LOGPROB_NORMALIZER] =
        NODE(OP(LOG_NORMALIZER), RESULT | WORK, OPERAND(GB_SAMPLE_LOGITS), OPERAND(GB_LOGPROB_WANTED)),
    [GB_LOGPROB_RESULT] = NODE(OP(LOG_PROBABILITY), RESULT, OPERAND(GB_SAMPLE_LOGITS),
                               PART(GB_LOGPROB_NORMALIZER), PART(GB_LOGPROB_SAMPLER)),
};

/* ---- Products of one input, and norms before them ------------------------------------------------------ */

static const gb_pattern_part linears[] = {NODE(OP(LINEAR), RESULT | WORK, OPERAND(GB_LINEARS_X))};

/* ---- Chains of ops on rows ----------------------------------------------------------------------------- */

/* Row m of their results depends on rows m of their operands alone. All results have memory, for those that
 * do not fit into a block's shared memory. */
static const gb_pattern_part rows[] = {
    {OP(ADD) | OP(ADD_BIAS) | OP(MULTIPLY) | OP(SCALE) | ACTIVATIONS | OP(RELU_SQUARED) | OP(SOFTPLUS) |
         OP(CLAMPED_SWIGLU) | OP(SCALE_COLUMNS) | OP(ADD_EXPERT_BIAS) | OP(SLICE) | OP(RMS_NORM) |
         OP(L2_NORMALIZE) | OP(DELTA_DECAY) | OP(COMBINE_EXPERTS) | OP(SCALE_ROWS) | OP(ROPE),
     RESULT | WORK,
     {ANYTHING}}};

/* Norms within a row of longer parts are left alone, and slices of slices and of wide rows: a chain with
 * slices has a row in one block of threads. */
static bool row_fits(const gb_program *program, const gb_match *match) {
    enum { LONGEST_PART = 1024, WIDE = 4096 };
    const gb_node *node = match->nodes[0];
    const gb_value *x = &program->values[node->operands[0]];
    const gb_shape *shape = &x->type.shape;
    if (node->op == GB_OP_SLICE)
        return (x->kind != GB_VALUE_RESULT || program->nodes[x->index].op != GB_OP_SLICE) &&
               (shape->rank > 2 || last_dim(shape) < WIDE);
    return (node->op != GB_OP_RMS_NORM && node->op != GB_OP_L2_NORMALIZE) || shape->rank <= 2 ||
           last_dim(shape) <= LONGEST_PART;
}

/* ---- The table ----------------------------------------------------------------------------------------- */

#define PARTS_OF(KIND, called, list)                                                                         \
    .kind = GB_FUSED_##KIND, .name = called, .parts = list, .part_count = sizeof(list) / sizeof *(list)
#define GRAPH(KIND, called, list, operands, from, least, condition)                                          \
    {                                                                                                        \
        PARTS_OF(KIND, called, list), .fuse = gb_fuse_graphs, .operand_count = operands, .root = from,       \
                                      .fewest_nodes = least, .fits = condition                               \
    }

const gb_pattern gb_patterns[] = {
    {PARTS_OF(NONE, "sample", sampler), .root = SAMPLER_RESULT, .fits = sampler_fits},
    GRAPH(EXPERTS, "experts", experts, GB_EXPERTS_OPERANDS, GB_EXPERTS_RESULT, 1, experts_fit),
    /* where no sum is right behind them, as in Gemma 4: */
    GRAPH(EXPERTS, "experts", experts, GB_EXPERTS_OPERANDS, GB_EXPERTS_COMBINE, 1, experts_fit),
    GRAPH(EXPERTS, "experts", clamped_experts, GB_EXPERTS_OPERANDS, GB_EXPERTS_RESULT, 1, experts_fit),
    GRAPH(DELTA, "delta_net", delta, GB_DELTA_OPERANDS, GB_DELTA_RESULT, GB_DELTA_PARTS, delta_fits),
    GRAPH(HEADS, "heads", heads, GB_HEADS_OPERANDS, GB_HEADS_ATTENTION, 2, heads_fit),
    GRAPH(HEADS, "heads", query_heads, GB_HEADS_OPERANDS, GB_HEADS_ATTENTION, 2, heads_fit),
    GRAPH(GATED, "gated", gated, GB_GATED_X_BIAS, GB_GATED_RESULT, 2, NULL),
    GRAPH(GATED, "gated", clamped, GB_GATED_OPERANDS, GB_GATED_RESULT, 1, NULL),
    GRAPH(GATED, "gated", squared, GB_GATED_OTHER, GB_GATED_RESULT, 1, NULL),
    {PARTS_OF(NORMS, "norms", norms), .fuse = gb_fuse_graphs, .operand_count = GB_NORMS_OPERANDS,
     .root = GB_NORMS_LAST, .fewest_nodes = 1, .tries_less = true, .fits = norms_fit},
    GRAPH(LOGPROB, "sample_logprob", logprob, GB_LOGPROB_OPERANDS, GB_LOGPROB_RESULT, 3, NULL),
    {PARTS_OF(LINEARS, "linears", linears), .fuse = gb_fuse_followers, .most = GB_MOST_LINEARS},
    {PARTS_OF(NORM_LINEARS, "norm_linears", linears), .fuse = gb_fuse_neighbors, .before = GB_FUSED_NORMS,
     .joins = GB_FUSED_LINEARS, .arrange = gb_arrange_products},
    {PARTS_OF(ROWS, "rows", rows), .fuse = gb_fuse_chains, .most = GB_MOST_ROWS, .fits = row_fits,
     .arrange = gb_arrange_slices},
};

const size_t gb_pattern_count = sizeof gb_patterns / sizeof *gb_patterns;

const gb_pattern *gb_pattern_of(gb_fused_kind kind) {
    for (size_t i = 0; i < gb_pattern_count && kind != GB_FUSED_NONE; i++)
        if (gb_patterns[i].kind == kind)
            return &gb_patterns[i];
    return NULL;
}

const char *gb_fused_name(gb_fused_kind kind) {
    const gb_pattern *pattern = gb_pattern_of(kind);
    return pattern ? pattern->name : "none";
}
