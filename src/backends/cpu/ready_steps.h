/* SPDX-License-Identifier: Apache-2.0
 *
 * The steps of a plan with their kernels and tensors, in the order in which every thread walks over them, and
 * for each batch how they are split and where the threads meet.
 */
#ifndef GUMBEL_BACKENDS_CPU_READY_STEPS_H
#define GUMBEL_BACKENDS_CPU_READY_STEPS_H

#include "backends/backend.h"
#include "backends/cpu/kernels/chain.h"
#include "backends/cpu/schedule.h"

/* A kernel that runs before or after another one is a step of its own. */
typedef struct gb_ready_step {
    const gb_step *planned;
    gb_step_kind kind;
    bool needs_rows;     /* left out of a batch without rows */
    size_t least_tokens; /* left out of a batch of fewer */
    bool is_product;     /* a linear or expert_linear, not the kernel before it */
    bool reads_masks;    /* all threads meet before it where masks are made late */
    bool meets_first;    /* in this batch: all threads meet before it */
    bool is_target;      /* of a branch or jump */
    uint32_t target;     /* of BRANCH and JUMP: a ready step, or their count */
    gb_kernel kernel;    /* NULL: BRANCH or JUMP */
    gb_kernel_traits traits;
    gb_kernel_call call;
    gb_work_queue queue; /* the call's, in batches that need one */
} gb_ready_step;

/* Of a batch of so many tokens and rows. */
static inline bool gb_is_left_out(const gb_ready_step *step, uint32_t tokens, uint32_t rows) {
    return (step->needs_rows && rows == 0) || tokens < step->least_tokens;
}

/* What a batch's schedule was made for; all zero: none was. */
typedef struct gb_batch_shape {
    uint32_t tokens, rows;
    unsigned thread_count;
    size_t positions; /* that slots hold at most, about */
    uint64_t least_shared_work;
    const void *shared;
} gb_batch_shape;

typedef struct gb_ready_steps {
    gb_ready_step *list;
    uint32_t count;
    uint64_t shared_bytes; /* that kernels keep for the kernels after them, at the largest batch */
    bool is_single;        /* in this batch: thread 0 executes every step */
    uint64_t work;         /* of this batch, about, as gb_kernel_work has it */
    uint32_t mask_step; /* in this batch: before it threads make late masks; the others begin without them */
    gb_batch_shape shape; /* of this batch */
    gb_schedule schedule;
    gb_chain *chains; /* of fused steps */
    uint32_t chain_count;
    gb_work_part *parts; /* of all queues: [count, thread_count] */
} gb_ready_steps;

/* Resolves the plan's steps. tensors: of each of the program's values; both must outlive the steps. Inputs
 * that several products in a row share are rounded to 8 bits once. thread_count: the most of a batch. Free
 * with gb_ready_steps_free, also after a failure. Errors: UNSUPPORTED (an op without a kernel), MEMORY. */
gumbel_status gb_ready_steps_create(const gb_plan *plan, const gb_cpu_tensor *tensors,
                                    const gb_vector_kernels *vector, const gb_rank *rank,
                                    unsigned thread_count, gb_ready_steps *steps, gumbel_error *error);
void gb_ready_steps_free(gb_ready_steps *steps);

/* Who does what of the batch's steps. Steps of less work than least_shared_work multiplications, about, are
 * thread 0's, unless the others can go on with what they have. Changes no bits of the results. shared: the
 * kernels' shared memory, of shared_bytes. */
void gb_ready_steps_schedule(gb_ready_steps *steps, const gb_batch *batch, unsigned thread_count,
                             uint64_t least_shared_work, const void *shared);

#endif
