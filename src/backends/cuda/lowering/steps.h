/* SPDX-License-Identifier: Apache-2.0
 *
 * What registry.c lists beside the functions of ops: steps that are no op's, and scratch.
 */
#ifndef GUMBEL_BACKENDS_CUDA_LOWERING_STEPS_H
#define GUMBEL_BACKENDS_CUDA_LOWERING_STEPS_H

#include "backends/cuda/lowering/kernels.h"

/* elementwise.cu: copies operand 0 to result 0. */
void gb_cuda_move(const gb_cuda_call *call);

/* all_gather.cu, all_gather_rounded.cu: an all_gather, whose epilogue rounds rows before they are exchanged.
 */
void gb_cuda_gather(const gb_cuda_problem *problem);
bool gb_cuda_gather_has_epilogue(const gb_cuda_problem *problem);
void gb_cuda_all_gather_rounded(const gb_cuda_call *call);

/* Counts of tokens that a sample step reads at once. */
enum { GB_CUDA_COUNTS_TOGETHER = 2048 };

/* count_tokens.cu. The list of a row with penalties goes on after its end with ids of -1, up to the next
 * multiple of GB_CUDA_COUNTS_TOGETHER and there as well (or up to its limit); nothing else is written. */
uint64_t gb_cuda_count_tokens_scratch(const gb_cuda_problem *problem);

/* logprob.cu */
uint64_t gb_cuda_log_normalizer_scratch(const gb_cuda_problem *problem);
uint64_t gb_cuda_top_ids_scratch(const gb_cuda_problem *problem);

/* sample.cu, sample_finish.cu: a sample step; its operands are those of plan.h. */
void gb_cuda_sample(const gb_cuda_call *call);
uint64_t gb_cuda_sample_scratch(const gb_cuda_call *call);
/* The same with the log_normalizer of its logits and the log_probability of its tokens; both 0 for rows that
 * do not want them. */
void gb_cuda_sample_with_logprob(const gb_cuda_problem *problem);
uint64_t gb_cuda_sample_logprob_scratch(const gb_cuda_problem *problem);

/* ---- Fused steps: parts by the numbers of fuse/fused.h ------------------------------------------------- */

/* expert_mlp.cu, expert_mlp_int8.cu: the experts of a decode step in two launches, with inputs in 8 bits per
 * group and, of one token, with exact sums. Both have the same scratch. */
bool gb_cuda_supports_experts(const gb_cuda_problem *problem);
void gb_cuda_expert_mlp(const gb_cuda_problem *problem);
bool gb_cuda_supports_experts_int8(const gb_cuda_problem *problem);
void gb_cuda_expert_mlp_int8(const gb_cuda_problem *problem);
uint64_t gb_cuda_experts_scratch(const gb_cuda_problem *problem);

/* delta_step.cu: the delta net of a decode step, for heads and convolutions of these sizes. */
enum { GB_CUDA_DELTA_SIZE = 128, GB_CUDA_DELTA_WIDTH = 4 };
bool gb_cuda_supports_delta(const gb_cuda_problem *problem);
void gb_cuda_delta_step(const gb_cuda_problem *problem);
bool gb_cuda_delta_has_epilogue(const gb_cuda_problem *problem);

/* delta_prompt.cu: the same of prompts, in chunks of so many tokens, on Hopper. */
enum { GB_CUDA_DELTA_CHUNK = 64 };
bool gb_cuda_supports_delta_prompt(const gb_cuda_problem *problem);
void gb_cuda_delta_prompt(const gb_cuda_problem *problem);
uint64_t gb_cuda_delta_prompt_scratch(const gb_cuda_problem *problem);
bool gb_cuda_delta_prompt_has_epilogue(const gb_cuda_problem *problem);

/* head_chain.cu, gate_chain.cu, norm_chain.cu; the last two round rows, too. */
bool gb_cuda_supports_heads(const gb_cuda_problem *problem);
void gb_cuda_head_chain(const gb_cuda_problem *problem);
bool gb_cuda_supports_gated(const gb_cuda_problem *problem);
void gb_cuda_gate_chain(const gb_cuda_problem *problem);
bool gb_cuda_gated_has_epilogue(const gb_cuda_problem *problem);
bool gb_cuda_supports_norms(const gb_cuda_problem *problem);
void gb_cuda_norm_chain(const gb_cuda_problem *problem);
bool gb_cuda_norms_have_epilogue(const gb_cuda_problem *problem); /* of norm_gemv_small.cu, too */

/* norm_gemv.cu, norm_gemv_int8.cu, norm_gemv_small.cu: norms and GEMVs of their last result, for one token
 * with quantized matrices and with those whose sums are exact, for up to 16 with small ones that are not
 * quantized. */
bool gb_cuda_supports_norm_gemv(const gb_cuda_problem *problem);
bool gb_cuda_norm_gemv_has_epilogue(const gb_cuda_problem *problem);
void gb_cuda_norm_gemv(const gb_cuda_problem *problem);
bool gb_cuda_supports_norm_gemv_int8(const gb_cuda_problem *problem);
void gb_cuda_norm_gemv_int8(const gb_cuda_problem *problem);
bool gb_cuda_supports_norm_gemv_small(const gb_cuda_problem *problem);
void gb_cuda_norm_gemv_small(const gb_cuda_problem *problem);

/* row_chain.cu */
bool gb_cuda_supports_rows(const gb_cuda_problem *problem);
void gb_cuda_row_chain(const gb_cuda_problem *problem);

#endif
