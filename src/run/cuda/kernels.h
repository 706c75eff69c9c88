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
#ifndef GUMBEL_RUN_CUDA_KERNELS_H
#define GUMBEL_RUN_CUDA_KERNELS_H

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
    /* Rows as products on tensor cores take them (activations.h), kept while further products take the same.
     */
    uint8_t *prepared;
    const gb_cuda_tensor *prepared_from; /* NULL: none */
    uint32_t prepared_kind;              /* how they are (prepare.cu) */
    uint32_t prefill_blocks;             /* gb_cuda_prefill_blocks */
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
    bool takes_terms; /* attention may take numbers as bfloat16: it is no float32 program's call */
    bool is_made;     /* of a product: the launch before this one has made its result in passing */
    bool prepares; /* the next quantized product takes result 0: a kernel that can prepares it in passing */
    const gb_cuda_tensor *prepares_as;  /* its bytes, in the shape that the product takes */
    const gb_cuda_tensor *prepares_for; /* that product's weight */
    cudaStream_t stream;
} gb_cuda_call;

/* Launches; what goes wrong is found by cudaGetLastError. No dim of an operand is 0. */
typedef void (*gb_cuda_kernel)(const gb_cuda_call *call);

/* The kernel of a step of a plan, or NULL where it is none of the device's. */
gb_cuda_kernel gb_cuda_find_kernel(const gb_step *step);

/* Bytes of scratch that a call takes; those of the largest batch are enough for all. */
uint64_t gb_cuda_scratch_bytes(const gb_cuda_call *call, const gb_step *step);

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

/* linear_dense.cu chooses between itself and the other linear_*.cu;
 * expert_linear.cu */
void gb_cuda_linear(const gb_cuda_call *call);
uint64_t gb_cuda_linear_scratch(const gb_cuda_call *call);
void gb_cuda_expert_linear(const gb_cuda_call *call);
uint64_t gb_cuda_expert_linear_scratch(const gb_cuda_call *call);

/* expert_mlp.cu: the calls of a mixture of experts' steps (expert_steps.h) in two launches behind the
 * router's, where the kernels can: with the bits of the calls one by one. False: nothing was done. Some
 * memory of the scratch. */
bool gb_cuda_expert_mlp(const gb_cuda_call *const *calls);
uint64_t gb_cuda_expert_values_bytes(size_t tokens, size_t choices, size_t size);

/* Products of one launch. */
enum { GB_CUDA_MOST_JOINED = 6 };

/* linear_group.c: products of the same x with several weights, in one launch where the kernels can, but for
 * those that are made already. Each has the bits that it has alone. */
void gb_cuda_linear_group(const gb_cuda_call *const *calls, uint32_t count);

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

/* linear_few.cu: products of generated tokens with packed weights, whether two can be of one launch, and up
 * to GB_CUDA_MOST_JOINED that all can. */
bool gb_cuda_linear_joins(const gb_cuda_call *call, const gb_cuda_call *other);
void gb_cuda_few_linears(const gb_cuda_call *const *calls, uint32_t count);

/* row_chain.cu: the calls of steps that join (arrange.h), of one of which at a time is_kept says whether its
 * result is needed later. */
void gb_cuda_row_chain(const gb_cuda_call *const *calls, const bool *is_kept, uint32_t count);

/* The same in one launch with products of the chain's last result, which share no bytes with what the chain
 * reads and makes; false: that cannot be, and nothing was done. */
bool gb_cuda_row_chain_with(const gb_cuda_call *const *calls, const bool *is_kept, uint32_t count,
                            const gb_cuda_call *const *products, uint32_t product_count);

/* linear_prefill.cu: how many blocks of Hopper's products of a prompt's tokens run at a time; 0 where the
 * device or this build does not have them. */
uint32_t gb_cuda_prefill_blocks(void);

/* Whether the products of a call with that weight (NULL: none) are such: its tokens are a prompt's, the
 * device can, and the weight has 4-bit codes in the packing for tensor cores or is a large bfloat16 matrix.
 */
bool gb_cuda_takes_prefill(const gb_cuda_call *call, const gb_cuda_tensor *weight);

/* linear_prefill_bf16.cu: whether a weight is one for its kernel. */
bool gb_cuda_is_large_bf16(const gb_cuda_tensor *weight);

/* attention.cu chooses between attention_decode.cu, attention_prompt.cu and attention_float.cu. */
void gb_cuda_attention(const gb_cuda_call *call);
uint64_t gb_cuda_attention_scratch(const gb_cuda_call *call);

/* delta_net.cu */
void gb_cuda_causal_conv(const gb_cuda_call *call);
void gb_cuda_gated_delta(const gb_cuda_call *call);

/* delta_layer.c: the calls of steps that join a convolution (arrange.h), in as few launches as can be. */
void gb_cuda_delta_layer_calls(const gb_cuda_call *const *calls, const bool *is_kept, uint32_t count);

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
void gb_cuda_sample_with_logprob(const gb_cuda_call *sample, const gb_cuda_call *normalizer,
                                 const gb_cuda_call *logprob);

/* chain.cu: the sampler's nodes one by one. */
void gb_cuda_is_zero(const gb_cuda_call *call);
void gb_cuda_any_false(const gb_cuda_call *call);
void gb_cuda_select(const gb_cuda_call *call);
void gb_cuda_fill_like(const gb_cuda_call *call);
void gb_cuda_choose_token(const gb_cuda_call *call);
void gb_cuda_candidates(const gb_cuda_call *call);
void gb_cuda_apply_temperature(const gb_cuda_call *call);
void gb_cuda_top_k_mask(const gb_cuda_call *call);
void gb_cuda_top_p_mask(const gb_cuda_call *call);
void gb_cuda_min_p_mask(const gb_cuda_call *call);
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
