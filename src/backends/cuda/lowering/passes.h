/* SPDX-License-Identifier: Apache-2.0
 *
 * What gb_cuda_lower is made of. Only this folder includes it.
 */
#ifndef GUMBEL_BACKENDS_CUDA_LOWERING_PASSES_H
#define GUMBEL_BACKENDS_CUDA_LOWERING_PASSES_H

#include "backends/cuda/lowering/lowering.h"

/* A lowering that is being made. */
typedef struct gb_cuda_lowering {
    const gb_cuda_lowering_options *options;
    gb_cuda_lowered *lowered;
    bool allows_bf16;
} gb_cuda_lowering;

/* ---- problems.c ---------------------------------------------------------------------------------------- */

/* All of a value but where it lies. */
void gb_cuda_describe_tensor(const gb_cuda_lowering_options *options, gb_ref ref, gb_cuda_tensor *tensor);

/* The sizes of a batch take the place of N and B. */
void gb_cuda_bind_dims(const gb_program *program, gb_cuda_tensor *tensors, uint32_t tokens, uint32_t rows);

/* Whether all weights are float32: such a program has none but true float32 products. */
bool gb_cuda_is_float32_program(const gb_program *program);

uint32_t gb_cuda_count_parts(const gb_step *step);

/* Fills in a step's problem, whose memory is given: a call and a part for each of its parts, and a tensor for
 * each of its operands. */
gb_cuda_problem gb_cuda_problem_of(const gb_cuda_lowering *l, const gb_step *step, gb_cuda_call *calls,
                                   const gb_cuda_call **parts, const gb_cuda_tensor **operands);

/* ---- choose_kernels.c ---------------------------------------------------------------------------------- */

/* Whether a candidate for a fused step has a kernel; user: the gb_cuda_lowering. */
bool gb_cuda_supports_step(const gb_plan *plan, const gb_step *candidate, void *user);

/* Chooses the kernels of all steps, whose problems are listed, and the prepared rows between them. Errors:
 * UNSUPPORTED (a step without a kernel), MEMORY. */
gumbel_status gb_cuda_choose_kernels(gb_cuda_lowered *lowered, gumbel_error *error);

/* Whether a value is one of the program's outputs. */
bool gb_cuda_is_output(const gb_plan *plan, gb_ref storage);

/* ---- gathers.c ----------------------------------------------------------------------------------------- */

static inline bool gb_cuda_is_gather(const gb_step *step) {
    return step->kind == GB_STEP_NODE && step->node->op == GB_OP_ALL_GATHER;
}

/* Once kernels are chosen: notes how each all_gather can exchange, and lets steps store what one behind them
 * would copy, where their kernels can. */
void gb_cuda_join_gathers(gb_cuda_lowered *lowered);

/* ---- share_lists.c ------------------------------------------------------------------------------------- */

/* Once kernels are chosen: notes which products find the lists of their experts in the scratch. */
void gb_cuda_share_lists(gb_cuda_lowered *lowered);

/* ---- accesses.c ---------------------------------------------------------------------------------------- */

/* Notes what each step's launches read and write, once kernels are chosen; false: there is no memory. */
bool gb_cuda_list_accesses(gb_cuda_lowered *lowered);

#endif
