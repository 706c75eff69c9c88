/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cpu/kernels/kernels.h"
#include "backends/sampler/sampler.h"

/* Of these ops a plan has no step: they are views of their operand, and jumps. */
#define gb_kernel_split_heads NULL
#define gb_kernel_merge_heads NULL
#define gb_kernel_if NULL

/* An op of ops.def without a kernel does not compile. */
static const gb_kernel kernels[GB_OP_LIMIT] = {
#define GB_OP(number, NAME, name, ...) [number] = gb_kernel_##name,
#include "program/ops.def"
#undef GB_OP
};

#define BEFORE_NONE(name) NULL
#define BEFORE_ROUND(name) gb_kernel_quantize
#define BEFORE_APPEND(name) gb_kernel_##name##_append
static const gb_kernel kernels_before[GB_OP_LIMIT] = {
#define GB_OP(number, NAME, name, signature, attributes, before, ...) [number] = BEFORE_##before(name),
#include "program/ops.def"
#undef GB_OP
};

static gb_kernel before_kernel(const gb_kernel_call *call) {
    const gb_op op = call->node->op;
    const gb_kernel before = (unsigned)op < GB_OP_LIMIT ? kernels_before[op] : NULL;
    return before == gb_kernel_quantize && !gb_has_rounded_activations(call) ? NULL : before;
}

gb_kernel gb_find_kernel(const gb_kernel_call *call, gb_kernel *before) {
    const gb_op op = call->node->op;
    *before = before_kernel(call);
    return (unsigned)op < GB_OP_LIMIT ? kernels[op] : NULL;
}

gb_kernel gb_find_kernel_after(const gb_kernel_call *call, size_t *least_tokens) {
    if (call->node->op != GB_OP_ATTENTION || gb_longest_run_in_ring(call) == SIZE_MAX)
        return NULL;
    *least_tokens = gb_longest_run_in_ring(call) + 1;
    return gb_kernel_attention_append_after;
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
    if (call->node && call->node->op == GB_OP_ATTENTION)
        return gb_attention_room_bytes(call, rows / call->operands[0]->dims[1], bytes);
    if (!call->node || before_kernel(call) != gb_kernel_quantize)
        return true;
    const gb_cpu_tensor *weight = call->operands[1];
    const gb_rounding rounding = gb_rounding_of(call);
    return gb_activations_bytes(rows, weight->dims[weight->rank - 1], &rounding, bytes);
}
