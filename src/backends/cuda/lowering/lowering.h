/* SPDX-License-Identifier: Apache-2.0
 *
 * The lowering of a program for a class of batches: a plan whose fused steps have kernels, and the kernel of
 * each step. What differs within a class is data: sizes, runs of tokens, places of states.
 */
#ifndef GUMBEL_BACKENDS_CUDA_LOWERING_LOWERING_H
#define GUMBEL_BACKENDS_CUDA_LOWERING_LOWERING_H

#include "backends/backend.h"
#include "backends/cuda/lowering/kernels.h"
#include "backends/cuda/runtime/weights.h"
#include "backends/states/states.h"
#include "plan/plan.h"

/* Batches with the same kernels, by their tokens and by the rows that want a next token. Decoded tokens are
 * rows; those that want none are counted with them. */
typedef struct gb_cuda_class {
    gb_cuda_row_class tokens, rows;
} gb_cuda_class;

enum { GB_CUDA_CLASSES = 11 };
extern const gb_cuda_class gb_cuda_classes[GB_CUDA_CLASSES];

/* The number of a batch's class. */
uint32_t gb_cuda_class_of(bool is_prompt, uint32_t tokens, uint32_t rows);

/* The fewest and the most tokens and rows of a class in an engine; false: it has no such batch. */
typedef struct gb_cuda_class_range {
    uint32_t tokens, most_tokens, rows, most_rows;
} gb_cuda_class_range;
bool gb_cuda_class_find_range(gb_cuda_class class, const gb_backend_options *options,
                              gb_cuda_class_range *range);

/* Memory that launches read, or write and may read. Those of a step have the same: its operands and results,
 * with the prepared rows of both or these alone. Beside it they have the scratch, and read the batch's runs
 * and versions. */
typedef struct gb_cuda_access {
    const gb_cuda_tensor *tensor; /* NULL: rows. Of a state, in the slots that the batch names */
    const gb_cuda_prepared *rows;
    bool writes;
} gb_cuda_access;

/* Where it begins and how many bytes it has, of a state those of one slot. */
typedef struct gb_cuda_range {
    const uint8_t *data;
    uint64_t size;
} gb_cuda_range;
gb_cuda_range gb_cuda_range_of(const gb_cuda_access *access);

/* A step of the plan, and what it launches. */
typedef struct gb_cuda_step {
    const gb_step *step;
    const gb_cuda_kernel *kernel; /* NULL: a branch or jump */
    gb_cuda_problem problem;
    gb_cuda_call *calls;      /* [problem.count], of its parts */
    gb_cuda_access *accesses; /* [access_count] */
    uint32_t access_count;
    uint32_t first_launch, end_launch; /* in the list; none where the step is left out */
} gb_cuda_step;

/* Prepared rows in the arena, from the step that stores them to the last that reads them. */
typedef struct gb_cuda_prepared_value {
    gb_cuda_prepared rows;
    gb_ref storage; /* of the value that is prepared */
    uint32_t first, last;
} gb_cuda_prepared_value;

static inline gb_cuda_prepared_value *gb_cuda_prepared_value_of(const gb_cuda_prepared *rows) {
    return (gb_cuda_prepared_value *)(uintptr_t)rows; /* it is the first member */
}

typedef struct gb_cuda_lowered {
    gb_cuda_class class;
    gb_plan *plan;
    gb_cuda_tensor *tensors; /* by value of the program */
    gb_cuda_step *steps;     /* [plan->step_count], in order */
    gb_cuda_call *calls;     /* memory of theirs */
    const gb_cuda_call **parts;
    const gb_cuda_tensor **operands;
    gb_cuda_access *accesses;         /* memory of theirs */
    gb_cuda_prepared_value *prepared; /* [prepared_count], as the plan's buffers */
    uint32_t prepared_count;
    gb_cuda_launch_list launches; /* of the bound sizes */
    uint32_t described;           /* steps whose launches are in it */
    bool has_branches;
    uint32_t rows;      /* that are bound */
    uint32_t first_row; /* where its logits go, of the batch's */
} gb_cuda_lowered;

typedef struct gb_cuda_lowering_options {
    const gb_program *program;
    const gb_backend_options *backend;
    gb_cuda_class class;
    const gb_cuda_weights *weights; /* how the constants lie */
    const gb_states *states;
    gb_cuda_scratch *scratch; /* which all calls share */
} gb_cuda_lowering_options;

/* Makes the plan and chooses its kernels; allocates nothing on the device. The class is one that an engine of
 * those options has. What options point to must outlive it, but for options->backend, and lowered must stay
 * where it is. Safe to destroy after a failure. Errors: UNSUPPORTED (a step without a kernel), MEMORY, FORMAT
 * (sizes that overflow). */
gumbel_status gb_cuda_lower(const gb_cuda_lowering_options *options, gb_cuda_lowered *lowered,
                            gumbel_error *error);
void gb_cuda_lowered_destroy(gb_cuda_lowered *lowered);

/* The sizes of a batch take the place of N and B. */
void gb_cuda_lowered_bind(gb_cuda_lowered *lowered, uint32_t tokens, uint32_t rows, const gb_cuda_runs *runs,
                          const gb_cuda_versions *versions);

/* Describes the launches of the first `steps` steps for the bound sizes, as far as that is not done: the
 * device can begin before the host has described all. Errors: MEMORY. */
gumbel_status gb_cuda_lowered_describe(gb_cuda_lowered *lowered, uint32_t steps, gumbel_error *error);

/* Tokens of a prompt that one of its kernels computes as a block; 1: each by itself. */
uint32_t gb_cuda_lowered_grain(const gb_cuda_lowered *lowered);

/* Bytes of scratch that the launches of the bound sizes take. */
uint64_t gb_cuda_lowered_scratch(const gb_cuda_lowered *lowered);

#endif
