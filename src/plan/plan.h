/* SPDX-License-Identifier: Apache-2.0
 *
 * From a verified graph to a plan: the list of steps that a backend executes in order, and where in one block
 * of memory each value lies while it is needed. Nothing here knows a backend.
 */
#ifndef GUMBEL_PLAN_PLAN_H
#define GUMBEL_PLAN_PLAN_H

#include "plan/fuse/fused.h"
#include "program/program.h"

typedef enum gb_step_kind {
    GB_STEP_NODE = 1,   /* executes node */
    GB_STEP_SAMPLE = 2, /* draws one token per row; operands by the GB_SAMPLE_ numbers, result i32[B] */
    GB_STEP_BRANCH = 3, /* where operand 0 is false, goes on at target */
    GB_STEP_JUMP = 4,   /* goes on at target */
    GB_STEP_MOVE = 5,   /* result 0 = operand 0, of the same type: a region's yield becomes its if's result */
    GB_STEP_FUSED = 6   /* executes fused; operands by the numbers of its kind */
} gb_step_kind;

typedef struct gb_step {
    gb_step_kind kind;
    bool needs_rows; /* has no effect in a batch without rows, where a backend skips it */
    uint8_t operand_count, result_count;
    uint32_t target;       /* BRANCH and JUMP: a later step, or step_count */
    const gb_node *node;   /* NODE, and of SAMPLE the `if` that it replaces; otherwise NULL */
    const gb_fused *fused; /* FUSED; otherwise NULL */
    /* GB_NO_VALUE: a missing operand. A fused step's results are those that others read, and what its
     * kernels store on the way. */
    gb_ref operands[GB_MAX_STEP_OPERANDS], results[GB_MAX_STEP_RESULTS];
} gb_step;

/* Where a value's bytes are, row-major. */
typedef struct gb_place {
    gb_ref storage;  /* the value itself, or the one whose bytes it views under another shape */
    bool in_arena;   /* otherwise an input, a constant, a state, a view, or never computed */
    uint64_t offset; /* in_arena: into the arena, a multiple of 64 */
    uint64_t size;   /* in_arena: bytes at the largest batch */
} gb_place;

/* Memory of a backend's beside the values, from the step that fills it to the last that reads it. */
typedef struct gb_plan_buffer {
    uint32_t first, last;
    uint64_t offset, size; /* as a gb_place's */
} gb_plan_buffer;

struct gb_plan;

typedef struct gb_plan_options {
    uint32_t step_tokens; /* largest N, at least 1 */
    uint32_t rows;        /* largest B, at least 1 */
    bool fuse;            /* replace sub-graphs by fused steps: the sampler, and what the backend supports */
    /* Whether the backend has a kernel for a fused step; called before the step is put into the plan. What
     * it does not support stays as it is. NULL: it supports none. */
    bool (*supports)(const struct gb_plan *plan, const gb_step *candidate, void *user);
    /* Called when the steps are final, before values are placed: here buffers can be added. NULL: not. */
    gumbel_status (*finish_steps)(struct gb_plan *plan, void *user, gumbel_error *error);
    void *user;
} gb_plan_options;

typedef struct gb_plan {
    const gb_program *program;
    gb_step *steps;
    uint32_t step_count;
    gb_fused *fused;  /* those of the steps */
    gb_place *places; /* [program->value_count] */
    gb_plan_buffer *buffers;
    uint32_t buffer_count;
    size_t buffer_capacity;
    uint64_t arena_bytes;
} gb_plan;

/* Makes the plan of a program, which must outlive it. Outputs stay in place until the next batch. Free with
 * gb_plan_destroy. Errors: MEMORY; FORMAT where sizes overflow. */
gumbel_status gb_plan_create(const gb_program *program, const gb_plan_options *options, gb_plan **plan,
                             gumbel_error *error);
void gb_plan_destroy(gb_plan *plan);

/* Adds a buffer of that many bytes behind those there are. Errors: MEMORY, FORMAT (a size out of range). */
gumbel_status gb_plan_add_buffer(gb_plan *plan, uint32_t first, uint32_t last, uint64_t size,
                                 gumbel_error *error);

/* The last all_gather that every batch with that step executes before it, or the step itself, also where the
 * program branches before. An all_gather's results have their memory from that one on: a rank that has come
 * past it can write into all ranks' memory, since all have come to it. */
uint32_t gb_plan_exchange_before(const gb_plan *plan, uint32_t step);

/* A step's name: its op's, or that of the fused step. */
const char *gb_step_name(const gb_step *step);

/* Whether a value is one of the step's results. */
bool gb_step_produces(const gb_step *step, gb_ref value);

/* The first matrix of weights among a step's operands, or NULL. */
const gb_constant *gb_step_weight(const gb_program *program, const gb_step *step);

/* Bytes that the intermediate values of one step of that size need together: the arena of its plan. */
gumbel_status gb_plan_scratch_bytes(const gb_program *program, const gb_plan_options *options,
                                    uint64_t *bytes, gumbel_error *error);

#endif
