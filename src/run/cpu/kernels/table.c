/* SPDX-License-Identifier: Apache-2.0 */
#include "run/cpu/kernels/kernels.h"
#include "run/sampler/sampler.h"

/* Of these ops a plan has no step: they are views of their operand, and jumps. */
#define gb_kernel_split_heads NULL
#define gb_kernel_merge_heads NULL
#define gb_kernel_if NULL

/* An op of ops.def without a kernel does not compile. */
static const gb_kernel kernels[GB_OP_LIMIT] = {
#define GB_OP(number, NAME, name, signature, attributes) [number] = gb_kernel_##name,
#include "program/ops.def"
#undef GB_OP
};

static gb_kernel before_kernel(const gb_kernel_call *call) {
    switch (call->node->op) {
    case GB_OP_ATTENTION:
        return gb_kernel_attention_append;
    case GB_OP_COUNT_TOKENS:
        return gb_kernel_count_tokens_append;
    case GB_OP_LINEAR:
    case GB_OP_EXPERT_LINEAR:
        return gb_has_int8_activations(call) ? gb_kernel_quantize : NULL;
    default:
        return NULL;
    }
}

gb_kernel gb_find_kernel(const gb_kernel_call *call, gb_kernel *before) {
    const gb_op op = call->node->op;
    *before = before_kernel(call);
    return (unsigned)op < GB_OP_LIMIT ? kernels[op] : NULL;
}

size_t gb_kernel_scratch_bytes(const gb_row_lengths *longest) {
    size_t sample = gb_sample_adjusted_scratch_bytes(longest->logits, longest->bias, longest->counts);
    size_t count = gb_count_scratch_bytes(longest->counts);
    size_t experts = gb_expert_scratch_bytes(); /* the other kernels need less */
    size_t most = sample > count ? sample : count;
    return most > experts ? most : experts;
}

bool gb_kernel_shared_bytes(const gb_kernel_call *call, size_t rows, uint64_t *bytes) {
    *bytes = 0;
    if (!call->node || before_kernel(call) != gb_kernel_quantize)
        return true;
    const gb_tensor *weight = call->operands[1];
    return gb_activations_bytes(rows, weight->dims[weight->rank - 1],
                                gb_activation_group(&weight->quantized->format), bytes);
}
