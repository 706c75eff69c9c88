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

gb_kernel gb_find_kernel(gb_op op, gb_kernel *before) {
    *before = op == GB_OP_ATTENTION      ? gb_kernel_attention_append
              : op == GB_OP_COUNT_TOKENS ? gb_kernel_count_tokens_append
                                         : NULL;
    return (unsigned)op < GB_OP_LIMIT ? kernels[op] : NULL;
}

size_t gb_kernel_scratch_bytes(const gb_row_lengths *longest) {
    size_t sample = gb_sample_adjusted_scratch_bytes(longest->logits, longest->bias, longest->counts);
    size_t count = gb_count_scratch_bytes(longest->counts);
    size_t experts = gb_expert_scratch_bytes(); /* the other kernels need less */
    size_t most = sample > count ? sample : count;
    return most > experts ? most : experts;
}
