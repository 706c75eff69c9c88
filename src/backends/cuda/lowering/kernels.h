/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernels as the host sees them: one function per op that describes its launches; products.h and steps.h
 * have the others. ops.def has the equations, the portable CPU kernels are the definition. The order of a sum
 * depends on the op's sizes alone, never on N, B or the neighbours in a batch.
 *
 * Numerics. GEMMs and GEMVs of quantized matrices read activations rounded to bfloat16, or to 8 bits in
 * groups where the program says so (gb_cuda_tensor.int8_input), and accumulate in float32; with inputs
 * rounded to 8 bits per row their sums are exact integers. GEMMs with large bfloat16 matrices read 16 bits of
 * their activations on Hopper. Attention on tensor cores reads 16 bits of float32 numbers; prefill over
 * bfloat16 caches rounds queries and weights to bfloat16; programs whose weights are all float32 use none of
 * this. Everything else is float32 as in the definition, and the sampler has its bits.
 */
#ifndef GUMBEL_BACKENDS_CUDA_LOWERING_KERNELS_H
#define GUMBEL_BACKENDS_CUDA_LOWERING_KERNELS_H

#include "backends/cuda/lowering/launch.h"
#include "plan/plan.h"
#include "program/program.h"

#include <cuda_runtime_api.h>

/* A value in one step, on the device. */
typedef struct gb_cuda_tensor {
    void *data; /* row-major; of a state: of slot 0 */
    gb_dtype dtype;
    int32_t rank;
    size_t dims[GB_MAX_RANK];
    size_t slot_bytes;  /* of a state: from one slot's to the next one's */
    bool is_ring;       /* of a state: whose rows a long run of tokens would overwrite before it reads them */
    gb_format format;   /* of a quantized constant; else dense */
    gb_planes planes;   /* of a quantized constant */
    bool is_packed;     /* for tensor cores: by gb_packing_fragments or gb_packing_tiles, whose last
                         * block or tiles may be padded; otherwise canonical */
    bool int8_input;    /* decode rounds its activations to 8 bits; only where packed */
    size_t all_outputs; /* of a matrix: those that all ranks have; 0: the same */
} gb_cuda_tensor;

/* By so many outputs of a matrix kernels and orders of sums are chosen, so that they are those of one device.
 */
static inline size_t gb_cuda_all_outputs(const gb_cuda_tensor *matrix) {
    return matrix->all_outputs > 0 ? matrix->all_outputs : matrix->dims[matrix->rank - 2];
}

enum { GB_CUDA_ARRIVALS = 1 << 20 };

/* Memory that steps share. */
typedef struct gb_cuda_scratch {
    uint8_t *bytes; /* for one op at a time: the largest of the plans */
    uint64_t size;
    uint32_t *arrivals;    /* [GB_CUDA_ARRIVALS] zeros, as every kernel leaves them */
    uint32_t wgmma_blocks; /* gb_cuda_wgmma_blocks() */
    const struct gb_cuda_exchange
        *exchange; /* with other ranks; NULL: there are none (exchange/exchange.h) */
} gb_cuda_scratch;

/* The batch's runs: run r is the tokens first[r] .. first[r + 1] - 1, all of one slot. On the device. */
typedef struct gb_cuda_runs {
    const int32_t *first;     /* [count + 1] */
    const int32_t *positions; /* [count]: of the first tokens */
    uint32_t count;
} gb_cuda_runs;

/* Slots of memory in which recurrent states are read and written: [N], on the device. A step of a
 * lookahead writes another slot than it reads. NULL: both are the op's operand. */
typedef struct gb_cuda_versions {
    const int32_t *from, *to;
} gb_cuda_versions;

/* How the rows of a product's input are prepared: gemm/prepared.cuh, gemm/int8/rows.cuh. */
typedef enum gb_cuda_layout {
    GB_CUDA_BF16_ROWS,
    GB_CUDA_BYTES_BY_GROUPS,
    GB_CUDA_BF16_PAIRS,
    GB_CUDA_BF16_PAIRS_AND_REST,
    GB_CUDA_BYTES_SWIZZLED, /* rounded by rows */
    GB_CUDA_BYTES_BY_LANES
} gb_cuda_layout;

/* Prepared rows: a value of the plan, stored by the step that computes it (its epilogue) or by the first
 * product that reads it. */
typedef struct gb_cuda_prepared {
    gb_cuda_layout layout;
    uint32_t group;           /* BYTES_BY_GROUPS: columns of one; else 0 */
    uint32_t rotation;        /* of bytes by rows */
    const gb_cuda_tensor *as; /* the value, in the shape of the product's input */
    void *data;
} gb_cuda_prepared;

/* Of how many rows an op is, by which its kernel is chosen. All other tokens than prompts' are decoded; rows
 * that want a next token are counted like these. */
typedef enum gb_cuda_row_class {
    GB_CUDA_ONE_ROW,
    GB_CUDA_FEW_ROWS,      /* 2 .. GB_CUDA_MOST_FEW_ROWS */
    GB_CUDA_MANY_ROWS,     /* more */
    GB_CUDA_FEW_OF_PROMPT, /* 1 .. GB_CUDA_MOST_FEW_ROWS tokens of prompts */
    GB_CUDA_SHORT_PROMPT,  /* up to GB_CUDA_MOST_SHORT_PROMPT_ROWS */
    GB_CUDA_LONG_PROMPT,   /* more */
    GB_CUDA_ROW_CLASSES
} gb_cuda_row_class;

enum { GB_CUDA_MOST_FEW_ROWS = 16, GB_CUDA_MOST_SHORT_PROMPT_ROWS = 512 };

static inline gb_cuda_row_class gb_cuda_row_class_of(bool is_prompt, size_t rows) {
    if (is_prompt)
        return rows <= GB_CUDA_MOST_FEW_ROWS            ? GB_CUDA_FEW_OF_PROMPT
               : rows <= GB_CUDA_MOST_SHORT_PROMPT_ROWS ? GB_CUDA_SHORT_PROMPT
                                                        : GB_CUDA_LONG_PROMPT;
    return rows <= 1 ? GB_CUDA_ONE_ROW : rows <= GB_CUDA_MOST_FEW_ROWS ? GB_CUDA_FEW_ROWS : GB_CUDA_MANY_ROWS;
}

typedef struct gb_cuda_call {
    const gb_node *node;                                  /* for its attributes; NULL for a sample step */
    const gb_cuda_tensor *operands[GB_MAX_STEP_OPERANDS]; /* NULL: missing */
    const gb_cuda_tensor *results[GB_MAX_RESULTS];
    gb_cuda_runs runs;
    gb_cuda_versions versions; /* of recurrent states */
    gb_cuda_scratch *scratch;
    gb_cuda_row_class row_class;
    bool is_last_with_state;          /* no later node has the state that is its last operand */
    bool allows_bf16;                 /* attention may use bfloat16: no call of a float32 program */
    const gb_cuda_prepared *input;    /* of a product whose kernel wants it */
    bool prepares_input;              /* no launch before has stored it */
    bool has_lists;                   /* of an expert_linear: the scratch has those of its experts */
    const gb_cuda_prepared *epilogue; /* where result 0 is prepared, too; NULL: nowhere */
    gb_cuda_launch_list *launches;    /* to which its launches are added */
    bool is_free_since_exchange;      /* of an all_gather: its result's memory, since the exchange before */
    bool is_stored_before; /* likewise: the step before has stored or rounded its result on all ranks */
    const gb_cuda_tensor *gathered; /* an all_gather's result, of whose rows it stores its columns on all
                                       ranks, and no result of its own; NULL: none */
    bool rounds_for_ranks;          /* the epilogue's rows have columns of all ranks */
} gb_cuda_call;

/* What a step of a plan computes: a node's call, or those of a fused step's parts. */
typedef struct gb_cuda_problem {
    const gb_cuda_tensor *const *operands; /* of the step, by number; NULL: one that is missing */
    const gb_cuda_call *const *parts;      /* likewise */
    uint32_t count;
    uint32_t live; /* bit i: steps behind this one read result 0 of part i, and not only its prepared rows */
} gb_cuda_problem;

/* How problems of some kind are computed: by one launch or a few. No dim of an operand is 0. */
typedef struct gb_cuda_kernel {
    const char *name;
    /* Whether it has the problem, whose sizes are the largest of its row class; NULL: all of its registry. */
    bool (*supports)(const gb_cuda_problem *problem);
    /* Adds the launches to the calls' lists. Which functions they are depends on the row class alone, and
     * grids, tiles and template arguments on the sizes. */
    void (*describe)(const gb_cuda_problem *problem);
    uint64_t (*scratch)(
        const gb_cuda_problem *problem); /* bytes, NULL: none; the largest batch's are enough for all */
    /* Whether it stores the calls' epilogues; NULL: never. */
    bool (*has_epilogue)(const gb_cuda_problem *problem);
    /* How it wants the input of the products prepared, but for the data; NULL: it reads the value itself. */
    gb_cuda_prepared (*input)(const gb_cuda_problem *problem);
    bool
        wants_packed; /* quantized matrices in the packing for tensor cores; else it reads them as they lie */
    bool stores_gathered; /* it can store results where an all_gather has them */
} gb_cuda_kernel;

/* Kernels for one kind of problem, in order of preference. */
typedef struct gb_cuda_registry {
    const gb_cuda_kernel *kernels;
    uint32_t count;
} gb_cuda_registry;

/* linears.c (of linear nodes, too), expert_linear.cu, attention.cu */
extern const gb_cuda_registry gb_cuda_linear_kernels, gb_cuda_expert_linear_kernels,
    gb_cuda_attention_kernels, gb_cuda_attend_kernels;

/* The kernel of a step of a plan, or NULL where the device has none. */
const gb_cuda_kernel *gb_cuda_choose(const gb_step *step, const gb_cuda_problem *problem);

/* The first kernel of a registry that supports a problem, or NULL. */
const gb_cuda_kernel *gb_cuda_choose_from(const gb_cuda_registry *registry, const gb_cuda_problem *problem);

static inline bool gb_cuda_is_live(const gb_cuda_problem *problem, uint32_t part) {
    return (problem->live >> part & 1u) != 0;
}

/* Whether no other part of a problem has an epilogue than that one. */
static inline bool gb_cuda_is_epilogue_of(const gb_cuda_problem *problem, uint32_t part) {
    for (uint32_t p = 0; p < problem->count; p++)
        if (p != part && problem->parts[p] && problem->parts[p]->epilogue)
            return false;
    return true;
}

/* Describes the launches of an op, beside its kernels. Views, jumps and ops with a registry have none. */
#define GB_OP(number, NAME, name, ...) void gb_cuda_##name(const gb_cuda_call *call);
#include "program/ops.def"
#undef GB_OP

/* Where a call's recurrent states are read and written; slots is its operand. */
static inline gb_cuda_versions gb_cuda_versions_of(const gb_cuda_call *call, const gb_cuda_tensor *slots) {
    const int32_t *in_place = (const int32_t *)slots->data;
    const gb_cuda_versions both = {in_place, in_place};
    return call->versions.from ? call->versions : both;
}

/* Whether a linear or expert_linear rounds its input to 8 bits per row. */
static inline bool gb_cuda_is_int8_per_token(const gb_node *node) {
    return gb_node_int(node, GB_ATTRIBUTE_ACTIVATION) == GB_ACTIVATION_INT8_PER_TOKEN;
}

/* Whether a call's tokens are prompts': GEMM kernels. Others are decode's, and have GEMV kernels. */
static inline bool gb_cuda_is_prompt(const gb_cuda_call *call) {
    return call->row_class >= GB_CUDA_FEW_OF_PROMPT;
}

/* Whether it has GB_CUDA_MOST_FEW_ROWS or fewer. */
static inline bool gb_cuda_has_few_rows(const gb_cuda_call *call) {
    return call->row_class <= GB_CUDA_FEW_ROWS || call->row_class == GB_CUDA_FEW_OF_PROMPT;
}

static inline size_t gb_cuda_elements(const gb_cuda_tensor *tensor) {
    size_t count = 1;
    for (int32_t i = 0; i < tensor->rank; i++)
        count *= tensor->dims[i];
    return count;
}

#endif
