/* SPDX-License-Identifier: Apache-2.0
 *
 * A plan with its kernels and memory resolved, and the walk over it that all threads of a team do together.
 */
#ifndef GUMBEL_BACKENDS_CPU_EXECUTOR_H
#define GUMBEL_BACKENDS_CPU_EXECUTOR_H

#include "backends/backend.h"
#include "backends/cpu/kernels/vector/vector_kernels.h"
#include "backends/cpu/row_log.h"
#include "backends/cpu/weights.h"
#include "backends/ranks/meeting.h"
#include "backends/states/states.h"
#include "backends/threads/team.h"
#include "plan/plan.h"

typedef struct gb_executor gb_executor;

typedef struct gb_executor_options {
    const gb_plan *plan;
    const gb_states *states;
    gb_row_log *log;
    const gb_placed_weights *weights;
    const gb_vector_kernels *vector;
    const gb_rank *rank; /* see kernels.h */
    gb_team *team;
    unsigned thread_count;
    uint64_t least_shared_work;      /* multiplications, about: smaller steps are left to thread 0 */
    gumbel_profile_callback profile; /* called by thread 0 after each step of the plan; or NULL */
    void *profile_user;
    gumbel_observe_callback observe; /* called by every thread before each product; or NULL */
    void *observe_user;
} gb_executor_options;

/* Resolves the plan's steps and reserves the arena and the threads' scratch. What the options point to must
 * outlive the executor. Errors: UNSUPPORTED (an op without a kernel), MEMORY. */
gumbel_status gb_executor_create(const gb_executor_options *options, gb_executor **executor,
                                 gumbel_error *error);
void gb_executor_destroy(gb_executor *executor);

/* Takes the slot's logged tokens into its recurrent states. */
void gb_executor_take_logged(gb_executor *executor, uint32_t slot);

/* Executes one step of the program: fills batch->next and batch->logits. Does not allocate. */
void gb_executor_run(gb_executor *executor, gb_batch *batch);

#endif
