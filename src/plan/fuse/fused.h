/* SPDX-License-Identifier: Apache-2.0
 *
 * Fused steps: several ops that one kernel computes. The ops are its definition, and stand in it by the names
 * of the pattern's parts.
 */
#ifndef GUMBEL_PLAN_FUSE_FUSED_H
#define GUMBEL_PLAN_FUSE_FUSED_H

#include "program/program.h"
#include "program/setting_kinds.h"

typedef enum gb_fused_kind {
    GB_FUSED_NONE = 0,
    GB_FUSED_EXPERTS,      /* from routing to the sum with the residual */
    GB_FUSED_DELTA,        /* a delta net from its convolution to its gated, normalized result */
    GB_FUSED_HEADS,        /* norms and rotary positions of queries, keys and values */
    GB_FUSED_NORMS,        /* norms around a residual */
    GB_FUSED_GATED,        /* an activation times another value, of both, or alone */
    GB_FUSED_LOGPROB,      /* the sampler, and the log-probability of what it draws */
    GB_FUSED_LINEARS,      /* products of one input */
    GB_FUSED_NORM_LINEARS, /* norms and products of their last result */
    GB_FUSED_ROWS,         /* ops of which each needs only its own row of the results before */
    GB_FUSED_LIMIT
} gb_fused_kind;

enum { GB_MAX_FUSED_NODES = 21, GB_MAX_STEP_OPERANDS = 16, GB_MAX_STEP_RESULTS = 12 };

/* Operands of a sample step: the settings of roles.def among others; GB_NO_VALUE for biases,
 * penalties or masks that the program does not have. The step may write to its logits, as long as they are as
 * before when it ends. */
enum {
    GB_SAMPLE_LOGITS,
    GB_SAMPLE_SEED,
#define GB_SETTING(number, NAME, name, dtype, neutral, metadata, kind, ...)                                  \
    GB_OF_DRAW(kind)(GB_SAMPLE_##NAME, )
#include "program/roles.def"
    GB_SAMPLE_BIAS_IDS, /* both or none of the two */
    GB_SAMPLE_BIAS_VALUES,
    GB_SAMPLE_COUNTS, /* these and the penalties: all or none; in the order of penalize's operands */
#define GB_SETTING(number, NAME, name, dtype, neutral, metadata, kind, ...)                                  \
    GB_OF_PENALTIES(kind)(GB_SAMPLE_##NAME, )
#include "program/roles.def"
    GB_SAMPLE_PENALIZE_PROMPT,
    GB_SAMPLE_MASKED, /* both or none of the two */
    GB_SAMPLE_MASK,
    GB_SAMPLE_OPERANDS
};

/* ---- Operands and parts of each kind; a part is a node of gb_fused.nodes, an operand one of the step's ----
 */

/* GB_FUSED_LOGPROB: operands of the sample step, and: */
enum { GB_LOGPROB_WANTED = GB_SAMPLE_OPERANDS, GB_LOGPROB_OPERANDS };
enum { GB_LOGPROB_SAMPLER, GB_LOGPROB_NORMALIZER, GB_LOGPROB_RESULT, GB_LOGPROB_PARTS };

/* result = residual + (combined + shared), as src/export/nn/experts.c builds them, of which the shared expert
 * may be missing, the residual, and that each expert's weight is scaled. Experts with a clamped SwiGLU, which
 * may have biases, have no part ACTIVATION. */
enum {
    GB_EXPERTS_X,
    GB_EXPERTS_LOGITS,       /* of the router */
    GB_EXPERTS_SHARED_LOGIT, /* of how much the shared expert counts */
    GB_EXPERTS_RESIDUAL,
    GB_EXPERTS_GATE_UP_WEIGHT, /* [experts, 2 * size, hidden]: gates above ups */
    GB_EXPERTS_DOWN_WEIGHT,
    GB_EXPERTS_SHARED_GATE_WEIGHT,
    GB_EXPERTS_SHARED_UP_WEIGHT,
    GB_EXPERTS_SHARED_DOWN_WEIGHT,
    GB_EXPERTS_SCALES,    /* of the chosen experts' weights: [experts, 1, 1] */
    GB_EXPERTS_GATE_BIAS, /* [experts, size] */
    GB_EXPERTS_UP_BIAS,
    GB_EXPERTS_DOWN_BIAS, /* [experts, hidden] */
    GB_EXPERTS_OPERANDS
};
enum {
    GB_EXPERTS_SHARED_GATE,
    GB_EXPERTS_SHARED_UP,
    GB_EXPERTS_ROUTE,
    GB_EXPERTS_WEIGHTS, /* that are scaled */
    GB_EXPERTS_GATE_UP,
    GB_EXPERTS_GATE,
    GB_EXPERTS_UP,
    GB_EXPERTS_GATE_BIASED,
    GB_EXPERTS_UP_BIASED,
    GB_EXPERTS_ACTIVATION,
    GB_EXPERTS_INNER,
    GB_EXPERTS_DOWN,
    GB_EXPERTS_DOWN_BIASED,
    GB_EXPERTS_COMBINE,
    GB_EXPERTS_SHARED_ACTIVATION,
    GB_EXPERTS_SHARED_INNER,
    GB_EXPERTS_SHARED_DOWN,
    GB_EXPERTS_SHARED_FACTOR,
    GB_EXPERTS_SHARED,
    GB_EXPERTS_BOTH,
    GB_EXPERTS_RESULT,
    GB_EXPERTS_PARTS
};

/* mixed = silu(convolution(x));  query, key, value = slices of mixed
 * y = delta(l2_normalize(query), l2_normalize(key), value, decay(a), sigmoid(b))
 * result = rms_norm(y) * silu(z) */
enum {
    GB_DELTA_X,
    GB_DELTA_TAPS,
    GB_DELTA_SLOTS,
    GB_DELTA_TAIL,
    GB_DELTA_A,
    GB_DELTA_RATE,
    GB_DELTA_BIAS,
    GB_DELTA_B,
    GB_DELTA_MEMORY,
    GB_DELTA_NORM_WEIGHT,
    GB_DELTA_Z,
    GB_DELTA_OPERANDS
};
enum {
    GB_DELTA_CONVOLUTION,
    GB_DELTA_MIXED,
    GB_DELTA_QUERY,
    GB_DELTA_KEY,
    GB_DELTA_VALUE,
    GB_DELTA_QUERY_UNIT,
    GB_DELTA_KEY_UNIT,
    GB_DELTA_DECAY,
    GB_DELTA_BETA,
    GB_DELTA_RULE,
    GB_DELTA_NORM,
    GB_DELTA_GATE,
    GB_DELTA_RESULT,
    GB_DELTA_PARTS
};

/* Each of query, key and value as it comes from its product, of which the bias, the norm and the turn may be
 * missing. */
enum {
    GB_HEADS_QUERY,
    GB_HEADS_KEY,
    GB_HEADS_VALUE,
    GB_HEADS_POSITIONS,
    GB_HEADS_FREQUENCIES,
    GB_HEADS_QUERY_WEIGHT,
    GB_HEADS_KEY_WEIGHT,
    GB_HEADS_VALUE_WEIGHT,
    GB_HEADS_QUERY_BIAS,
    GB_HEADS_KEY_BIAS,
    GB_HEADS_VALUE_BIAS,
    GB_HEADS_OPERANDS
};
enum {
    GB_HEADS_QUERY_BIASED,
    GB_HEADS_QUERY_SLICE,
    GB_HEADS_QUERY_NORM,
    GB_HEADS_QUERY_TURN,
    GB_HEADS_KEY_BIASED,
    GB_HEADS_KEY_NORM,
    GB_HEADS_KEY_TURN,
    GB_HEADS_VALUE_BIASED,
    GB_HEADS_VALUE_NORM,
    GB_HEADS_ATTENTION, /* is not replaced */
    GB_HEADS_PARTS
};

/* last = norm((norm(x) + added) * scale), of which all but the last norm may be missing. */
enum {
    GB_NORMS_X,
    GB_NORMS_ADDED,
    GB_NORMS_SCALE_FACTOR,
    GB_NORMS_FIRST_WEIGHT,
    GB_NORMS_LAST_WEIGHT,
    GB_NORMS_OPERANDS
};
enum { GB_NORMS_FIRST, GB_NORMS_ADD, GB_NORMS_SCALE, GB_NORMS_LAST, GB_NORMS_PARTS };

/* result = activation(x) * other, each of which may be a slice; or clamped_swiglu of both, to each of which
 * experts' biases may have been added; or relu_squared of x. */
enum {
    GB_GATED_X,
    GB_GATED_OTHER,
    GB_GATED_X_BIAS,
    GB_GATED_OTHER_BIAS,
    GB_GATED_EXPERTS,
    GB_GATED_OPERANDS
};
enum {
    GB_GATED_X_SLICE,
    GB_GATED_OTHER_SLICE,
    GB_GATED_X_BIASED,
    GB_GATED_OTHER_BIASED,
    GB_GATED_ACTIVATION,
    GB_GATED_RESULT,
    GB_GATED_PARTS
};

/* Operand 0 is x, the others are the weights; parts and results are the products. Of norm_linears the
 * operands and parts of norms come first. */
enum { GB_LINEARS_X, GB_LINEARS_WEIGHTS };
enum { GB_MOST_LINEARS = 4, GB_MOST_ROWS = 12 };

typedef struct gb_fused {
    gb_fused_kind kind;
    uint32_t node_count;                      /* parts */
    const gb_node *nodes[GB_MAX_FUSED_NODES]; /* by part, in an order of execution; NULL: it is missing */
    uint32_t live;                            /* bit i: a later step reads result 0 of part i */
} gb_fused;

/* "experts" */
const char *gb_fused_name(gb_fused_kind kind);

#endif
