/* SPDX-License-Identifier: Apache-2.0 */
#include "run/cuda/kernels.h"

/* Of these ops a plan has no step: they are views of their operand, and jumps. */
#define gb_cuda_split_heads NULL
#define gb_cuda_merge_heads NULL
#define gb_cuda_if NULL

/* An op of ops.def without a kernel does not compile. */
static const gb_cuda_kernel kernels[GB_OP_LIMIT] = {
#define GB_OP(number, NAME, name, ...) [number] = gb_cuda_##name,
#include "program/ops.def"
#undef GB_OP
};

gb_cuda_kernel gb_cuda_find_kernel(const gb_step *step) {
    switch (step->kind) {
    case GB_STEP_SAMPLE:
        return gb_cuda_sample;
    case GB_STEP_MOVE:
        return gb_cuda_move;
    case GB_STEP_NODE:
        return (unsigned)step->node->op < GB_OP_LIMIT ? kernels[step->node->op] : NULL;
    default:
        return NULL;
    }
}

uint64_t gb_cuda_scratch_bytes(const gb_cuda_call *call, const gb_step *step) {
    if (step->kind == GB_STEP_SAMPLE)
        return gb_cuda_sample_scratch(call);
    if (step->kind != GB_STEP_NODE)
        return 0;
    switch (step->node->op) {
    case GB_OP_ATTENTION:
        return gb_cuda_attention_scratch(call);
    case GB_OP_LINEAR:
        return gb_cuda_linear_scratch(call);
    case GB_OP_EXPERT_LINEAR:
        return gb_cuda_expert_linear_scratch(call);
    case GB_OP_COUNT_TOKENS:
        return gb_cuda_count_tokens_scratch(call);
    case GB_OP_LOG_NORMALIZER:
        return gb_cuda_log_normalizer_scratch(call);
    case GB_OP_TOP_IDS:
        return gb_cuda_top_ids_scratch(call);
    default:
        return 0;
    }
}
