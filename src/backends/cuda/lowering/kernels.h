/* SPDX-License-Identifier: Apache-2.0
 *
 * The device's kernels as the host sees them: one function per op that launches what computes it, in the
 * stream's order. ops.def has the equations and the portable CPU kernels are the definition. The order of
 * every sum depends on the op's sizes alone, never on N, B or the neighbours in a batch.
 *
 * A product of a quantized matrix takes its input rounded to bfloat16, or to 8 bits in groups where the
 * program says so and the kernels can (gb_cuda_tensor.takes_bytes), and adds in float32. Unless the program's
 * weights are all float32, attention over caches whose sizes tensor cores have takes 16 bits of float32
 * numbers, a prompt's over bfloat16 caches takes queries and weights as bfloat16. A prompt's products with
 * large bfloat16 matrices take 16 bits of their inputs on Hopper. Everything else is float32,
 * as in the definition, but for the order of sums. The sampler's ops have the definition's bits.
 */
#ifndef GUMBEL_BACKENDS_CUDA_LOWERING_KERNELS_H
#define GUMBEL_BACKENDS_CUDA_LOWERING_KERNELS_H

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
    bool is_packed;    /* it is in the packing of gb_packing_fragments; otherwise canonical */
    bool takes_bytes;  /* its product with generated tokens rounds them to 8 bits; only where it is packed */
} gb_cuda_tensor;

enum { GB_CUDA_ARRIVALS = 4096 };

/* Memory that steps share. */
typedef struct gb_cuda_scratch {
    uint8_t *bytes; /* for one op at a time: the largest gb_cuda_scratch_bytes of the plan */
    uint64_t size;
    uint32_t *arrivals; /* [GB_CUDA_ARRIVALS] zeros, as every kernel leaves them */
    uint8_t *prepared;  /* rows as products on tensor cores take them (activations.h): those of one tensor */
    uint32_t prefill_blocks; /* gb_cuda_prefill_blocks */
} gb_cuda_scratch;

/* The batch's runs: run r is the tokens first[r] .. first[r + 1] - 1, all of one slot. */
typedef struct gb_cuda_runs {
    const int32_t *first; /* [count + 1], on the device */
    uint32_t count;
} gb_cuda_runs;

/* Where the recurrent states of the batch's tokens are read and written, as slots of their memory: [N], on
 * the device. A step that may have to be undone writes to another slot than it reads. NULL: both are the op's
 * operand. */
typedef struct gb_cuda_versions {
    const int32_t *from, *to;
} gb_cuda_versions;

/* Result 0 is also written to scratch->prepared, as the next product takes it. */
typedef struct gb_cuda_epilogue {
    const gb_cuda_tensor *as;     /* its bytes, in the shape of the product's input */
    const gb_cuda_tensor *weight; /* the product's; NULL: one that takes bfloat16 */
} gb_cuda_epilogue;

typedef struct gb_cuda_call {
    const gb_node *node;                                  /* for its attributes; NULL for a sample step */
    const gb_cuda_tensor *operands[GB_MAX_STEP_OPERANDS]; /* NULL: absent */
    const gb_cuda_tensor *results[GB_MAX_RESULTS];
    gb_cuda_runs runs;
    gb_cuda_versions versions; /* of recurrent states */
    gb_cuda_scratch *scratch;
    /* All tokens are prompts': the kernels for many rows. Otherwise, and where the rows are those that want a
     * next token, the kernels for few rows, however many there are. */
    bool is_prefill;
    bool takes_terms;       /* attention may take numbers as bfloat16: it is no float32 program's call */
    bool has_prepared_rows; /* of a product: scratch->prepared has its input, as it takes it */
    const gb_cuda_epilogue *epilogue; /* NULL: result 0 is written as it is alone */
    cudaStream_t stream;
} gb_cuda_call;

/* What a step of a plan computes: a node's call, or those of a fused step's parts. */
typedef struct gb_cuda_problem {
    const gb_cuda_tensor *const *operands; /* of the step, by number; NULL: one that is missing */
    const gb_cuda_call *const *parts;      /* likewise */
    uint32_t count;
    uint32_t kept; /* bit i: steps behind this one read result 0 of part i */
} gb_cuda_problem;

/* A kernel, or a few that are launched together. What goes wrong in a launch is found by cudaGetLastError. No
 * dim of an operand is 0. */
typedef struct gb_cuda_kernel {
    const char *name;
    bool (*supports)(const gb_cuda_problem *problem); /* NULL: all problems of its registry */
    void (*launch)(const gb_cuda_problem *problem);
    uint64_t (*scratch)(const gb_cuda_problem *problem);  /* bytes; NULL: it takes none. Those of the largest
                                                             batch are enough for all */
    bool (*has_epilogue)(const gb_cuda_problem *problem); /* whether it writes what its calls' epilogue says;
                                                             NULL: never */
    bool takes_prepared; /* its product's input is in scratch->prepared, by this launch or one before it */
} gb_cuda_kernel;

/* Kernels of one kind of problem, the first of which that supports it is chosen. */
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

static inline bool gb_cuda_is_kept(const gb_cuda_problem *problem, uint32_t part) {
    return (problem->kept >> part & 1u) != 0;
}

/* elementwise.cu; gb_cuda_move copies operand 0 to result 0. */
void gb_cuda_add(const gb_cuda_call *call);
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

/* linear_few.cu: products of generated tokens with packed weights, whether two can be of one launch, and up
 * to GB_MOST_LINEARS that all can. */
bool gb_cuda_linear_joins(const gb_cuda_call *call, const gb_cuda_call *other);
void gb_cuda_few_linears(const gb_cuda_call *const *calls, uint32_t count);
uint64_t gb_cuda_linear_scratch(const gb_cuda_call *call);

/* linear_dense_few.cu, linear_dense_rows.cu, linear_dense_prompt.cu: products of generated tokens with small
 * matrices that are not quantized and with large bfloat16 ones, and of a prompt's with bfloat16 ones, and
 * which they take: those of the same x are one launch (that join, of large ones). */
bool gb_cuda_takes_dense_few(const gb_cuda_call *call);
void gb_cuda_dense_few(const gb_cuda_call *const *calls, uint32_t count);
bool gb_cuda_takes_dense_rows(const gb_cuda_call *call);
bool gb_cuda_dense_rows_join(const gb_cuda_call *call, const gb_cuda_call *other); /* of the same x */
void gb_cuda_dense_rows(const gb_cuda_call *const *calls, uint32_t count);
bool gb_cuda_takes_dense_prompt(const gb_cuda_call *call);
void gb_cuda_dense_prompt(const gb_cuda_call *const *calls, uint32_t count);

/* One product each: linear_prefill.cu, linear_quantized.cu, linear_dense_prefill.cu, linear_dense.cu. */
void gb_cuda_linear_prefill(const gb_cuda_call *call);
void gb_cuda_linear_quantized(const gb_cuda_call *call);
void gb_cuda_dense_prefill(const gb_cuda_call *call);
void gb_cuda_linear_dense(const gb_cuda_call *call);

/* Most matrices of one launch. */
enum { GB_CUDA_MOST_JOINED = 6 };

/* Matrices [outputs, columns] whose products a kernel can make with the row that they multiply: small ones,
 * and quantized ones of rows of so many columns. */
enum {
    GB_CUDA_MOST_FEW_OUTPUTS = 1024,
    GB_CUDA_MOST_MADE_COLUMNS = 2048,
    GB_CUDA_MOST_NORMED_COLUMNS = 6144
};

/* ---- Fused steps: parts by the numbers of fuse/fused.h ------------------------------------------------- */

/* expert_mlp.cu: generated tokens' experts in two launches. */
bool gb_cuda_takes_experts(const gb_cuda_problem *problem);
void gb_cuda_expert_mlp(const gb_cuda_problem *problem);
uint64_t gb_cuda_experts_scratch(const gb_cuda_problem *problem);

/* delta_step.cu: generated tokens' delta net, of heads and convolutions of these sizes. */
enum { GB_CUDA_DELTA_SIZE = 128, GB_CUDA_DELTA_WIDTH = 4 };
bool gb_cuda_takes_delta(const gb_cuda_problem *problem);
void gb_cuda_delta_step(const gb_cuda_problem *problem);
bool gb_cuda_delta_has_epilogue(const gb_cuda_problem *problem);

/* head_chain.cu, gate_chain.cu, norm_chain.cu */
bool gb_cuda_takes_heads(const gb_cuda_problem *problem);
void gb_cuda_head_chain(const gb_cuda_problem *problem);
bool gb_cuda_takes_gated(const gb_cuda_problem *problem);
void gb_cuda_gate_chain(const gb_cuda_problem *problem);
bool gb_cuda_takes_norms(const gb_cuda_problem *problem);
void gb_cuda_norm_chain(const gb_cuda_problem *problem);

/* norm_linear.cu, norm_products.cu: one token's norms and products of their last result, with quantized
 * matrices and with small ones that are not. */
bool gb_cuda_takes_norm_linear(const gb_cuda_problem *problem);
void gb_cuda_norm_linear(const gb_cuda_problem *problem);
bool gb_cuda_takes_norm_products(const gb_cuda_problem *problem);
void gb_cuda_norm_products(const gb_cuda_problem *problem);

/* row_chain.cu */
bool gb_cuda_takes_rows(const gb_cuda_problem *problem);
void gb_cuda_row_chain(const gb_cuda_problem *problem);

/* linear_prefill.cu: how many blocks of Hopper's products of a prompt's tokens run at a time; 0 where the
 * device or this build does not have them. */
uint32_t gb_cuda_prefill_blocks(void);

/* Whether the products of a call with that weight (NULL: none) are such: its tokens are a prompt's, the
 * device can, and the weight has 4-bit codes in the packing for tensor cores or is a large bfloat16 matrix.
 */
bool gb_cuda_takes_prefill(const gb_cuda_call *call, const gb_cuda_tensor *weight);

/* linear_prefill_bf16.cu: whether a weight is one for its kernel. */
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

static inline size_t gb_cuda_elements(const gb_cuda_tensor *tensor) {
    size_t count = 1;
    for (int32_t i = 0; i < tensor->rank; i++)
        count *= tensor->dims[i];
    return count;
}

#endif
