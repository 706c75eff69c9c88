/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/lowering/activations.h"
#include "backends/cuda/lowering/lowering.h"
#include "backends/cuda/lowering/steps.h"

#define COUNT(array) (uint32_t)(sizeof(array) / sizeof *(array))
#define REGISTRY(kernels) ((gb_cuda_registry){kernels, COUNT(kernels)})

/* ---- Nodes --------------------------------------------------------------------------------------------- */

/* Views and jumps, of which a plan has no step, and ops with registries of their own. */
#define gb_cuda_split_heads(call) (void)(call)
#define gb_cuda_merge_heads(call) (void)(call)
#define gb_cuda_if(call) (void)(call)
#define gb_cuda_linear(call) (void)(call)
#define gb_cuda_expert_linear(call) (void)(call)
#define gb_cuda_attention(call) (void)(call)
#define gb_cuda_attend(call) (void)(call)

/* An op of ops.def without a kernel does not compile. */
#define GB_OP(number, NAME, name, ...)                                                                       \
    static void describe_##name(const gb_cuda_problem *problem) {                                            \
        gb_cuda_##name(problem->parts[0]);                                                                   \
    }
#include "program/ops.def"
#undef GB_OP

static bool always(const gb_cuda_problem *problem) {
    return problem->count > 0;
}

/* Whether the rows that are normalized are those of the next GEMM. */
static bool norms_whole_rows(const gb_cuda_problem *problem) {
    const gb_cuda_tensor *x = problem->parts[0]->operands[0];
    const gb_cuda_prepared *epilogue = problem->parts[0]->epilogue;
    return epilogue && epilogue->as->dims[epilogue->as->rank - 1] == x->dims[x->rank - 1];
}

static const gb_cuda_kernel node_kernels[GB_OP_LIMIT] = {
#define GB_OP(number, NAME, name, ...)                                                                       \
    [number] = {#name, NULL, describe_##name, NULL, NULL, NULL, false, false},
#include "program/ops.def"
#undef GB_OP
};

static const gb_cuda_kernel count_tokens[] = {
    {.name = "count_tokens", .describe = describe_count_tokens, .scratch = gb_cuda_count_tokens_scratch}};
static const gb_cuda_kernel log_normalizer[] = {{.name = "log_normalizer",
                                                 .describe = describe_log_normalizer,
                                                 .scratch = gb_cuda_log_normalizer_scratch}};
static const gb_cuda_kernel top_ids[] = {
    {.name = "top_ids", .describe = describe_top_ids, .scratch = gb_cuda_top_ids_scratch}};
static const gb_cuda_kernel multiply[] = {
    {.name = "multiply", .describe = describe_multiply, .has_epilogue = always}};
static const gb_cuda_kernel rms_norm[] = {
    {.name = "rms_norm", .describe = describe_rms_norm, .has_epilogue = norms_whole_rows}};
static const gb_cuda_kernel all_gather[] = {
    {.name = "all_gather", .describe = gb_cuda_gather, .has_epilogue = gb_cuda_gather_has_epilogue}};

static gb_cuda_registry registry_of_op(gb_op op) {
    switch (op) {
    case GB_OP_LINEAR:
        return gb_cuda_linear_kernels;
    case GB_OP_EXPERT_LINEAR:
        return gb_cuda_expert_linear_kernels;
    case GB_OP_ATTENTION:
        return gb_cuda_attention_kernels;
    case GB_OP_ATTEND:
        return gb_cuda_attend_kernels;
    case GB_OP_COUNT_TOKENS:
        return REGISTRY(count_tokens);
    case GB_OP_LOG_NORMALIZER:
        return REGISTRY(log_normalizer);
    case GB_OP_TOP_IDS:
        return REGISTRY(top_ids);
    case GB_OP_MULTIPLY:
        return REGISTRY(multiply);
    case GB_OP_RMS_NORM:
        return REGISTRY(rms_norm);
    case GB_OP_ALL_GATHER:
        return REGISTRY(all_gather);
    case GB_OP_SPLIT_HEADS:
    case GB_OP_MERGE_HEADS:
    case GB_OP_IF:
        return (gb_cuda_registry){NULL, 0};
    default:
        return (gb_cuda_registry){&node_kernels[op], node_kernels[op].describe ? 1 : 0};
    }
}

/* ---- Other steps --------------------------------------------------------------------------------------- */

static void describe_sample(const gb_cuda_problem *problem) {
    gb_cuda_sample(problem->parts[0]);
}
static uint64_t sample_scratch(const gb_cuda_problem *problem) {
    return gb_cuda_sample_scratch(problem->parts[0]);
}
static void describe_move(const gb_cuda_problem *problem) {
    gb_cuda_move(problem->parts[0]);
}

static const gb_cuda_kernel sample[] = {
    {.name = "sample", .describe = describe_sample, .scratch = sample_scratch}};
static const gb_cuda_kernel move[] = {{.name = "move", .describe = describe_move}};

static gb_cuda_prepared input_of_experts(const gb_cuda_problem *problem) {
    return gb_cuda_input_of(problem->parts[GB_EXPERTS_GATE_UP]);
}

static const gb_cuda_kernel experts[] = {{"expert_mlp", gb_cuda_supports_experts, gb_cuda_expert_mlp,
                                          gb_cuda_experts_scratch, NULL, input_of_experts, true, false},
                                         {"expert_mlp_int8", gb_cuda_supports_experts_int8,
                                          gb_cuda_expert_mlp_int8, gb_cuda_experts_scratch, NULL, NULL, true,
                                          false}};
enum { DELTA_PROMPT = 1 };
static const gb_cuda_kernel delta[] = {{"delta_step", gb_cuda_supports_delta, gb_cuda_delta_step, NULL,
                                        gb_cuda_delta_has_epilogue, NULL, false, false},
                                       {"delta_prompt", gb_cuda_supports_delta_prompt, gb_cuda_delta_prompt,
                                        gb_cuda_delta_prompt_scratch, gb_cuda_delta_prompt_has_epilogue, NULL,
                                        false, false}};
static const gb_cuda_kernel heads[] = {
    {"head_chain", gb_cuda_supports_heads, gb_cuda_head_chain, NULL, NULL, NULL, false, false}};
static const gb_cuda_kernel norms[] = {{"norm_chain", gb_cuda_supports_norms, gb_cuda_norm_chain, NULL,
                                        gb_cuda_norms_have_epilogue, NULL, false, false}};
static const gb_cuda_kernel gated[] = {{"gate_chain", gb_cuda_supports_gated, gb_cuda_gate_chain, NULL,
                                        gb_cuda_gated_has_epilogue, NULL, false, false}};
static const gb_cuda_kernel logprob[] = {{"sample_logprob", NULL, gb_cuda_sample_with_logprob,
                                          gb_cuda_sample_logprob_scratch, NULL, NULL, false, false}};
static const gb_cuda_kernel norm_linears[] = {{"norm_gemv_small", gb_cuda_supports_norm_gemv_small,
                                               gb_cuda_norm_gemv_small, NULL, gb_cuda_norms_have_epilogue,
                                               NULL, false, false},
                                              {"norm_gemv", gb_cuda_supports_norm_gemv, gb_cuda_norm_gemv,
                                               NULL, gb_cuda_norm_gemv_has_epilogue, NULL, true, false},
                                              {"norm_gemv_int8", gb_cuda_supports_norm_gemv_int8,
                                               gb_cuda_norm_gemv_int8, NULL, NULL, NULL, true, false}};
static const gb_cuda_kernel rows[] = {
    {"row_chain", gb_cuda_supports_rows, gb_cuda_row_chain, NULL, always, NULL, false, false}};

static gb_cuda_registry registry_of_kind(gb_fused_kind kind) {
    switch (kind) {
    case GB_FUSED_EXPERTS:
        return REGISTRY(experts);
    case GB_FUSED_DELTA:
        return REGISTRY(delta);
    case GB_FUSED_HEADS:
        return REGISTRY(heads);
    case GB_FUSED_NORMS:
        return REGISTRY(norms);
    case GB_FUSED_GATED:
        return REGISTRY(gated);
    case GB_FUSED_LOGPROB:
        return REGISTRY(logprob);
    case GB_FUSED_LINEARS:
        return gb_cuda_linear_kernels;
    case GB_FUSED_NORM_LINEARS:
        return REGISTRY(norm_linears);
    case GB_FUSED_ROWS:
        return REGISTRY(rows);
    default:
        return (gb_cuda_registry){NULL, 0};
    }
}

static gb_cuda_registry registry_of(const gb_step *step) {
    switch (step->kind) {
    case GB_STEP_SAMPLE:
        return REGISTRY(sample);
    case GB_STEP_MOVE:
        return REGISTRY(move);
    case GB_STEP_FUSED:
        return registry_of_kind(step->fused->kind);
    case GB_STEP_NODE:
        if ((unsigned)step->node->op < GB_OP_LIMIT)
            return registry_of_op(step->node->op);
        break;
    default:
        break;
    }
    return (gb_cuda_registry){NULL, 0};
}

const gb_cuda_kernel *gb_cuda_choose_from(const gb_cuda_registry *registry, const gb_cuda_problem *problem) {
    for (uint32_t i = 0; i < registry->count; i++)
        if (!registry->kernels[i].supports || registry->kernels[i].supports(problem))
            return &registry->kernels[i];
    return NULL;
}

const gb_cuda_kernel *gb_cuda_choose(const gb_step *step, const gb_cuda_problem *problem) {
    const gb_cuda_registry registry = registry_of(step);
    return gb_cuda_choose_from(&registry, problem);
}

uint32_t gb_cuda_lowered_grain(const gb_cuda_lowered *lowered) {
    for (uint32_t i = 0; i < lowered->plan->step_count; i++)
        if (lowered->steps[i].kernel == &delta[DELTA_PROMPT])
            return GB_CUDA_DELTA_CHUNK;
    return 1;
}
