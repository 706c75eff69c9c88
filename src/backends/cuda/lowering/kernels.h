/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernels as the host sees them: one function per op that describes its launches. ops.def has the
 * equations, the portable CPU kernels are the definition. The order of a sum depends on the op's sizes alone,
 * never on N, B or the neighbours in a batch.
 *
 * Numerics. GEMMs and GEMVs of quantized matrices read activations rounded to bfloat16, or to 8 bits in
 * groups where the program says so (gb_cuda_tensor.int8_input), and accumulate in float32. GEMMs with large
 * bfloat16 matrices read 16 bits of their activations on Hopper. Attention on tensor cores reads 16 bits of
 * float32 numbers; prefill over bfloat16 caches rounds queries and weights to bfloat16; programs whose
 * weights are all float32 use none of this. Everything else is float32 as in the definition, and the sampler
 * has its bits.
 */
#ifndef GUMBEL_BACKENDS_CUDA_LOWERING_KERNELS_H
#define GUMBEL_BACKENDS_CUDA_LOWERING_KERNELS_H

#include "backends/cuda/lowering/launch.h"
#include "plan/plan.h"
#include "program/program.h"

#include <cuda_runtime_api.h>

/* A value in one step, on the device. */
typedef struct gb_cuda_tensor {
    void *data; /* row-major; of a state: of slot 0 */
    gb_dtype dtype;
    int32_t rank;
    size_t dims[GB_MAX_RANK];
    size_t slot_bytes; /* of a state: from one slot's to the next one's */
    gb_format format;  /* of a quantized constant; else dense */
    gb_planes planes;  /* of a quantized constant */
    bool is_packed;    /* for tensor cores: by gb_packing_fragments, whose last block may be padded, or
                        * gb_packing_tiles; otherwise canonical */
    bool int8_input;   /* decode rounds its activations to 8 bits; only where packed */
} gb_cuda_tensor;

enum { GB_CUDA_ARRIVALS = 1 << 16 };

/* Memory that steps share. */
typedef struct gb_cuda_scratch {
    uint8_t *bytes; /* for one op at a time: the largest gb_cuda_scratch_bytes of the plan */
    uint64_t size;
    uint32_t *arrivals;    /* [GB_CUDA_ARRIVALS] zeros, as every kernel leaves them */
    uint32_t wgmma_blocks; /* gb_cuda_wgmma_blocks() */
} gb_cuda_scratch;

/* The batch's runs: run r is the tokens first[r] .. first[r + 1] - 1, all of one slot. */
typedef struct gb_cuda_runs {
    const int32_t *first; /* [count + 1], on the device */
    uint32_t count;
} gb_cuda_runs;

/* Slots of memory in which recurrent states are read and written: [N], on the device. A step of a
 * lookahead writes another slot than it reads. NULL: both are the op's operand. */
typedef struct gb_cuda_versions {
    const int32_t *from, *to;
} gb_cuda_versions;

/* How the rows of a product's input are prepared: gemm/prepared.cuh, gemm/int8/rows.cuh. */
typedef enum gb_cuda_layout {
    GB_CUDA_BF16_ROWS,
    GB_CUDA_BYTES_BY_GROUPS,
    GB_CUDA_BF16_PAIRS,
    GB_CUDA_BF16_PAIRS_AND_REST,
    GB_CUDA_BYTES_SWIZZLED, /* rounded by rows */
    GB_CUDA_BYTES_BY_LANES
} gb_cuda_layout;

/* Prepared rows: a value of the plan, stored by the step that computes it (its epilogue) or by the first
 * product that reads it. */
typedef struct gb_cuda_prepared {
    gb_cuda_layout layout;
    uint32_t group;           /* BYTES_BY_GROUPS: columns of one; else 0 */
    uint32_t rotation;        /* of bytes by rows */
    const gb_cuda_tensor *as; /* the value, in the shape of the product's input */
    void *data;
} gb_cuda_prepared;

/* Of how many rows an op is, by which its kernel is chosen. All other tokens than prompts' are decoded; rows
 * that want a next token are counted like these. */
typedef enum gb_cuda_row_class {
    GB_CUDA_ONE_ROW,
    GB_CUDA_FEW_ROWS,      /* 2 .. GB_CUDA_MOST_FEW_ROWS */
    GB_CUDA_MANY_ROWS,     /* more */
    GB_CUDA_FEW_OF_PROMPT, /* 1 .. GB_CUDA_MOST_FEW_ROWS tokens of prompts */
    GB_CUDA_SHORT_PROMPT,  /* up to GB_CUDA_MOST_SHORT_PROMPT_ROWS */
    GB_CUDA_LONG_PROMPT,   /* more */
    GB_CUDA_ROW_CLASSES
} gb_cuda_row_class;

enum { GB_CUDA_MOST_FEW_ROWS = 16, GB_CUDA_MOST_SHORT_PROMPT_ROWS = 512 };

static inline gb_cuda_row_class gb_cuda_row_class_of(bool is_prompt, size_t rows) {
    if (is_prompt)
        return rows <= GB_CUDA_MOST_FEW_ROWS            ? GB_CUDA_FEW_OF_PROMPT
               : rows <= GB_CUDA_MOST_SHORT_PROMPT_ROWS ? GB_CUDA_SHORT_PROMPT
                                                        : GB_CUDA_LONG_PROMPT;
    return rows <= 1 ? GB_CUDA_ONE_ROW : rows <= GB_CUDA_MOST_FEW_ROWS ? GB_CUDA_FEW_ROWS : GB_CUDA_MANY_ROWS;
}

typedef struct gb_cuda_call {
    const gb_node *node;                                  /* for its attributes; NULL for a sample step */
    const gb_cuda_tensor *operands[GB_MAX_STEP_OPERANDS]; /* NULL: missing */
    const gb_cuda_tensor *results[GB_MAX_RESULTS];
    gb_cuda_runs runs;
    gb_cuda_versions versions; /* of recurrent states */
    gb_cuda_scratch *scratch;
    gb_cuda_row_class row_class;
    bool allows_bf16;                 /* attention may use bfloat16: no call of a float32 program */
    const gb_cuda_prepared *input;    /* of a product whose kernel wants it */
    bool prepares_input;              /* no launch before has stored it */
    const gb_cuda_prepared *epilogue; /* where result 0 is stored, too; NULL: nowhere */
    gb_cuda_launch_list *launches;    /* to which its launches are added */
} gb_cuda_call;

/* What a step of a plan computes: a node's call, or those of a fused step's parts. */
typedef struct gb_cuda_problem {
    const gb_cuda_tensor *const *operands; /* of the step, by number; NULL: one that is missing */
    const gb_cuda_call *const *parts;      /* likewise */
    uint32_t count;
    uint32_t live; /* bit i: steps behind this one read result 0 of part i */
} gb_cuda_problem;

/* How problems of some kind are computed: by one launch or a few. No dim of an operand is 0. */
typedef struct gb_cuda_kernel {
    const char *name;
    /* Whether it has the problem, whose sizes are the largest of its row class; NULL: all of its registry. */
    bool (*supports)(const gb_cuda_problem *problem);
    /* Adds the launches to the calls' lists. Which functions they are depends on the row class alone, and
     * grids, tiles and template arguments on the sizes. */
    void (*describe)(const gb_cuda_problem *problem);
    uint64_t (*scratch)(
        const gb_cuda_problem *problem); /* bytes, NULL: none; the largest batch's are enough for all */
    /* Whether it stores the calls' epilogues; NULL: never. */
    bool (*has_epilogue)(const gb_cuda_problem *problem);
    /* How it wants the input of the products prepared, but for the data; NULL: it reads the value itself. */
    gb_cuda_prepared (*input)(const gb_cuda_problem *problem);
    bool
        wants_packed; /* quantized matrices in the packing for tensor cores; else it reads them as they lie */
} gb_cuda_kernel;

/* Kernels for one kind of problem, in order of preference. */
typedef struct gb_cuda_registry {
    const gb_cuda_kernel *kernels;
    uint32_t count;
} gb_cuda_registry;

/* linears.c (of linear nodes, too), expert_linear.cu, attention.cu */
extern const gb_cuda_registry gb_cuda_linear_kernels, gb_cuda_expert_linear_kernels,
    gb_cuda_attention_kernels;

/* The kernel of a step of a plan, or NULL where the device has none. */
const gb_cuda_kernel *gb_cuda_choose(const gb_step *step, const gb_cuda_problem *problem);

/* The first kernel of a registry that supports a problem, or NULL. */
const gb_cuda_kernel *gb_cuda_choose_from(const gb_cuda_registry *registry, const gb_cuda_problem *problem);

static inline bool gb_cuda_is_live(const gb_cuda_problem *problem, uint32_t part) {
    return (problem->live >> part & 1u) != 0;
}

/* elementwise.cu; gb_cuda_move copies operand 0 to result 0. */
void gb_cuda_add(const gb_cuda_call *call);
void gb_cuda_add_bias(const gb_cuda_call *call);
void gb_cuda_multiply(const gb_cuda_call *call);
void gb_cuda_scale(const gb_cuda_call *call);
void gb_cuda_gelu_tanh(const gb_cuda_call *call);
void gb_cuda_silu(const gb_cuda_call *call);
void gb_cuda_sigmoid(const gb_cuda_call *call);
void gb_cuda_soft_cap(const gb_cuda_call *call);
void gb_cuda_delta_decay(const gb_cuda_call *call);
void gb_cuda_scale_rows(const gb_cuda_call *call);
void gb_cuda_combine_experts(const gb_cuda_call *call);
void gb_cuda_move(const gb_cuda_call *call);

/* rows.cu */
void gb_cuda_embedding(const gb_cuda_call *call);
void gb_cuda_gather_rows(const gb_cuda_call *call);
void gb_cuda_slice(const gb_cuda_call *call);
void gb_cuda_rms_norm(const gb_cuda_call *call);
void gb_cuda_l2_normalize(const gb_cuda_call *call);
void gb_cuda_rope(const gb_cuda_call *call);

/* route.cu */
void gb_cuda_route_top_k(const gb_cuda_call *call);

/* gemv.cu: decode with packed matrices; whether two can share a launch, and up to GB_MOST_LINEARS that all
 * can. */
bool gb_cuda_gemv_joins(const gb_cuda_call *call, const gb_cuda_call *other);
void gb_cuda_gemv(const gb_cuda_call *const *calls, uint32_t count);
uint64_t gb_cuda_gemv_scratch(const gb_cuda_call *call);

/* gemv_small.cu, gemv_bf16.cu: decode with small matrices that are not quantized, and with large bfloat16
 * ones. gemm_bf16.cu: prefill with bfloat16 ones. Matrices of one input share a launch (large ones of
 * decode where they join). */
bool gb_cuda_supports_gemv_small(const gb_cuda_call *call);
void gb_cuda_gemv_small(const gb_cuda_call *const *calls, uint32_t count);
bool gb_cuda_supports_gemv_bf16(const gb_cuda_call *call);
bool gb_cuda_gemv_bf16_joins(const gb_cuda_call *call, const gb_cuda_call *other); /* of the same x */
void gb_cuda_gemv_bf16(const gb_cuda_call *const *calls, uint32_t count);
bool gb_cuda_supports_gemm_bf16(const gb_cuda_call *call);
void gb_cuda_gemm_bf16(const gb_cuda_call *const *calls, uint32_t count);

/* One matrix each: gemm_wgmma.cu, gemm_quantized.cu, gemm_float.cu, gemv_float.cu. */
void gb_cuda_gemm_wgmma(const gb_cuda_call *call);
void gb_cuda_gemv_quantized(const gb_cuda_call *call);
void gb_cuda_gemm_quantized(const gb_cuda_call *call);
void gb_cuda_gemm_float(const gb_cuda_call *call);
void gb_cuda_gemv_float(const gb_cuda_call *call);

/* Most matrices of one launch. */
enum { GB_CUDA_MOST_JOINED = 6 };

/* Limits of matrices [outputs, columns] that kernels fuse with the norms of their input: small ones, and
 * quantized ones by columns. */
enum {
    GB_CUDA_MOST_SMALL_OUTPUTS = 1024,
    GB_CUDA_MOST_SMALL_NORM_COLUMNS = 2048,
    GB_CUDA_MOST_NORM_COLUMNS = 6144
};

/* ---- Fused steps: parts by the numbers of fuse/fused.h ------------------------------------------------- */

/* expert_mlp.cu: the experts of a decode step in two launches. */
bool gb_cuda_supports_experts(const gb_cuda_problem *problem);
void gb_cuda_expert_mlp(const gb_cuda_problem *problem);
uint64_t gb_cuda_experts_scratch(const gb_cuda_problem *problem);

/* delta_step.cu: the delta net of a decode step, for heads and convolutions of these sizes. */
enum { GB_CUDA_DELTA_SIZE = 128, GB_CUDA_DELTA_WIDTH = 4 };
bool gb_cuda_supports_delta(const gb_cuda_problem *problem);
void gb_cuda_delta_step(const gb_cuda_problem *problem);
bool gb_cuda_delta_has_epilogue(const gb_cuda_problem *problem);

/* head_chain.cu, gate_chain.cu, norm_chain.cu */
bool gb_cuda_supports_heads(const gb_cuda_problem *problem);
void gb_cuda_head_chain(const gb_cuda_problem *problem);
bool gb_cuda_supports_gated(const gb_cuda_problem *problem);
void gb_cuda_gate_chain(const gb_cuda_problem *problem);
bool gb_cuda_supports_norms(const gb_cuda_problem *problem);
void gb_cuda_norm_chain(const gb_cuda_problem *problem);

/* norm_gemv.cu, norm_gemv_small.cu: norms and GEMVs of their last result for one token, with quantized
 * matrices and with small ones that are not. */
bool gb_cuda_supports_norm_gemv(const gb_cuda_problem *problem);
bool gb_cuda_norm_gemv_has_epilogue(const gb_cuda_problem *problem);
void gb_cuda_norm_gemv(const gb_cuda_problem *problem);
bool gb_cuda_supports_norm_gemv_small(const gb_cuda_problem *problem);
void gb_cuda_norm_gemv_small(const gb_cuda_problem *problem);

/* row_chain.cu */
bool gb_cuda_supports_rows(const gb_cuda_problem *problem);
void gb_cuda_row_chain(const gb_cuda_problem *problem);

/* gemm_int8.cu: products of inputs that are rounded to 8 bits per row, whose sums are exact integers; those
 * of packed matrices on tensor cores (gemm_mma_int8.cu), and of many rows on Hopper (gemm_wgmma_int8.cu), of
 * up to GB_MOST_LINEARS that share a launch. They have the same bits. */
bool gb_cuda_supports_int8(const gb_cuda_call *call);
void gb_cuda_gemm_int8(const gb_cuda_call *call);
bool gb_cuda_supports_mma_int8(const gb_cuda_call *call);
void gb_cuda_gemm_mma_int8(const gb_cuda_call *const *calls, uint32_t count);
void gb_cuda_gemv_int8(const gb_cuda_call *const *calls, uint32_t count);
bool gb_cuda_supports_wgmma_int8(const gb_cuda_call *call);
bool gb_cuda_packed_int8_joins(const gb_cuda_call *call, const gb_cuda_call *other);
void gb_cuda_gemm_wgmma_int8(const gb_cuda_call *const *calls, uint32_t count);
uint64_t gb_cuda_gemm_wgmma_int8_scratch(const gb_cuda_call *call);

/* gemm_wgmma.cu: how many blocks of its GEMM run at a time; 0 where the device or the build has no wgmma. */
uint32_t gb_cuda_wgmma_blocks(void);

/* Whether wgmma computes a call with that weight (NULL: none): its tokens are prompts', the device has it,
 * and the weight is packed with 4-bit codes or a large bfloat16 matrix. */
bool gb_cuda_supports_wgmma(const gb_cuda_call *call, const gb_cuda_tensor *weight);

/* gemm_wgmma_bf16.cu: whether a weight is one for its kernel. */
bool gb_cuda_is_large_bf16(const gb_cuda_tensor *weight);

/* delta_net.cu */
void gb_cuda_causal_conv(const gb_cuda_call *call);
void gb_cuda_gated_delta(const gb_cuda_call *call);

/* Counts of tokens that a sample step reads at once. */
enum { GB_CUDA_COUNTS_TOGETHER = 2048 };

/* count_tokens.cu. The list of a row with penalties goes on after its end with ids of -1, up to the next
 * multiple of GB_CUDA_COUNTS_TOGETHER and there as well (or up to its limit); nothing else is written. */
void gb_cuda_count_tokens(const gb_cuda_call *call);
uint64_t gb_cuda_count_tokens_scratch(const gb_cuda_call *call);

/* sample.cu, sample_finish.cu: a sample step; its operands are those of plan.h. */
void gb_cuda_sample(const gb_cuda_call *call);
uint64_t gb_cuda_sample_scratch(const gb_cuda_call *call);
/* The same with the log_normalizer of its logits and the log_probability of its tokens; both 0 for rows that
 * do not want them. */
void gb_cuda_sample_with_logprob(const gb_cuda_problem *problem);
uint64_t gb_cuda_sample_logprob_scratch(const gb_cuda_problem *problem);

/* chain.cu: the sampler's nodes one by one. */
void gb_cuda_is_zero(const gb_cuda_call *call);
void gb_cuda_any_false(const gb_cuda_call *call);
void gb_cuda_select(const gb_cuda_call *call);
void gb_cuda_fill_like(const gb_cuda_call *call);
void gb_cuda_choose_token(const gb_cuda_call *call);
void gb_cuda_candidates(const gb_cuda_call *call);
void gb_cuda_apply_temperature(const gb_cuda_call *call);
#define GB_SETTING(number, NAME, name, dtype, neutral, metadata, kind, ...)                                  \
    GB_OF_MASKS(kind)(void gb_cuda_##name##_mask(const gb_cuda_call *call);)
#include "program/roles.def"
void gb_cuda_random_bits(const gb_cuda_call *call);
void gb_cuda_gumbel_noise(const gb_cuda_call *call);
void gb_cuda_argmax(const gb_cuda_call *call);
void gb_cuda_apply_bias(const gb_cuda_call *call);
void gb_cuda_apply_mask(const gb_cuda_call *call);
void gb_cuda_penalize(const gb_cuda_call *call);

/* logprob.cu */
void gb_cuda_log_normalizer(const gb_cuda_call *call);
uint64_t gb_cuda_log_normalizer_scratch(const gb_cuda_call *call);
void gb_cuda_log_probability(const gb_cuda_call *call);
void gb_cuda_top_ids(const gb_cuda_call *call);
uint64_t gb_cuda_top_ids_scratch(const gb_cuda_call *call);

/* Where a call's recurrent states are read and written; slots is its operand. */
static inline gb_cuda_versions gb_cuda_versions_of(const gb_cuda_call *call, const gb_cuda_tensor *slots) {
    const int32_t *in_place = (const int32_t *)slots->data;
    const gb_cuda_versions both = {in_place, in_place};
    return call->versions.from ? call->versions : both;
}

/* Whether a linear or expert_linear rounds its input to 8 bits per row. */
static inline bool gb_cuda_is_int8_per_token(const gb_node *node) {
    return gb_node_int(node, GB_ATTRIBUTE_ACTIVATION) == GB_ACTIVATION_INT8_PER_TOKEN;
}

/* Whether a call's tokens are prompts': GEMM kernels. Others are decode's, and have GEMV kernels. */
static inline bool gb_cuda_is_prompt(const gb_cuda_call *call) {
    return call->row_class >= GB_CUDA_FEW_OF_PROMPT;
}

/* Whether it has GB_CUDA_MOST_FEW_ROWS or fewer. */
static inline bool gb_cuda_has_few_rows(const gb_cuda_call *call) {
    return call->row_class <= GB_CUDA_FEW_ROWS || call->row_class == GB_CUDA_FEW_OF_PROMPT;
}

static inline size_t gb_cuda_elements(const gb_cuda_tensor *tensor) {
    size_t count = 1;
    for (int32_t i = 0; i < tensor->rank; i++)
        count *= tensor->dims[i];
    return count;
}

#endif
