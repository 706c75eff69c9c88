/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernels: one function per op, the op's exact definition (ops.def has the equations). All threads of the
 * team call a kernel, each computes its share of the outputs, and there is a barrier before anything that
 * needs another thread's. Which thread computes an output never changes its bits. Kernels do not allocate.
 */
#ifndef GUMBEL_BACKENDS_CPU_KERNELS_KERNELS_H
#define GUMBEL_BACKENDS_CPU_KERNELS_KERNELS_H

#include "backends/cpu/kernels/vector/vector_kernels.h"
#include "backends/cpu/kernels/work_queue.h"
#include "backends/cpu/row_log.h"
#include "backends/ranks/meeting.h"
#include "plan/plan.h"
#include "program/op_traits.h"

/* A value in one step: the dims that are N or B in the graph have this batch's sizes. */
typedef struct gb_cpu_tensor {
    void *data; /* row-major; of a state: of slot 0 */
    gb_dtype dtype;
    int32_t rank;
    size_t dims[GB_MAX_RANK];
    size_t slot_bytes;                    /* of a state: from one slot's to the next one's */
    const gb_quantized_matrix *quantized; /* of a constant of that dtype: its data; else NULL */
    const gb_state_log *log;              /* of a recurrent state of an engine that takes drafts; else NULL */
} gb_cpu_tensor;

typedef enum gb_shared_use { GB_SHARED_UNUSED, GB_SHARED_READ, GB_SHARED_WRITTEN } gb_shared_use;

/* What a kernel promises about the bytes that a thread touches. */
typedef struct gb_kernel_traits {
    unsigned splits;      /* the ways that it can be split, besides ALONE */
    unsigned own_tokens;  /* by operand, a bit: split by TOKENS a thread touches only its tokens of it */
    unsigned own_columns; /* by operand, a bit: split by COLUMNS a thread touches only its columns of it */
    unsigned changed;     /* by operand, a bit: the kernel writes to it */
    gb_shared_use shared; /* what it does with the worker's shared memory */
} gb_kernel_traits;

typedef struct gb_chain gb_chain;

typedef struct gb_kernel_call {
    const gb_node *node;                                 /* for its attributes; NULL for a fused step */
    const gb_cpu_tensor *operands[GB_MAX_STEP_OPERANDS]; /* NULL: missing */
    const gb_cpu_tensor *results[GB_MAX_STEP_RESULTS];
    const gb_vector_kernels *vector;
    gb_split split;             /* in this batch; with ALONE the worker is the only one */
    const gb_work_queue *queue; /* split OWN: of gb_kernel_units; NULL: threads have fixed shares */
    const gb_chain *chain;      /* of a fused step (chain.h); otherwise NULL */
    const gb_rank *rank;        /* of a program that is sharded; NULL: of one that is not */
} gb_kernel_call;

/* The calling thread. */
typedef struct gb_worker {
    size_t index, count; /* of the team */
    void *scratch;       /* its own: gb_kernel_scratch_bytes, 64-byte aligned, content arbitrary */
    void *shared;        /* the team's: gb_kernel_shared_bytes, 64-byte aligned; kept from before to kernel */
} gb_worker;

typedef void (*gb_kernel)(const gb_kernel_call *call, const gb_worker *worker);

/* The kernel of a call's node, or NULL for an op that a plan has no step of. Where *before is not NULL, it is
 * to run first, as a step of its own on the same operands and without results. */
gb_kernel gb_find_kernel(const gb_kernel_call *call, gb_kernel *before);

/* What runs after the kernel of a call's node in a step of at least so many tokens, on the same operands and
 * without results: where several nodes share their states, after the last of them. NULL: nothing. */
gb_kernel gb_find_kernel_after(const gb_kernel_call *call, size_t *least_tokens);

/* The traits of an op's kernel, or of the one that runs before it, as ops.def has them. GB_OP_NONE: of a
 * kernel that splits its work in its own way. */
gb_kernel_traits gb_find_traits(gb_op op, bool before);

/* About how many multiplications a call takes, where slots hold at most that many positions. */
uint64_t gb_kernel_work(const gb_kernel_call *call, size_t positions);

/* Work that the threads may share out by a queue: of linear GB_COLUMN_UNIT rows of the weight each, of
 * expert_linear equal parts of all work. */
typedef struct gb_kernel_units {
    uint32_t count; /* 0: the kernel takes none */
    uint32_t least; /* that are worth taking at once */
} gb_kernel_units;

/* The units of a call: of products with matrices so large that threads which read memory, or with many tokens
 * multiply floats, at different speeds would wait for each other longer than a barrier takes. */
gb_kernel_units gb_find_kernel_units(const gb_kernel_call *call);

/* The most tokens of a product for which reading the weight is what takes the time. */
enum { GB_MOST_QUEUE_TOKENS = 8 };

/* Whether what a worker reads of the call's weight is known before its input is: of a linear of few tokens
 * that the threads share. */
bool gb_kernel_can_fetch(const gb_kernel_call *call);

/* Prefetches a part of what such a call reads first, so that it comes to the core's own cache: of the codes
 * (or of a matrix that is not quantized) so many bytes from offset on, and what belongs to them. Returns how
 * many there were, 0 at the end of the worker's share. */
size_t gb_kernel_fetch(const gb_kernel_call *call, const gb_worker *worker, size_t offset, size_t bytes);

/* The longest rows that a plan's sampling works on. */
typedef struct gb_row_lengths {
    uint32_t logits, bias, counts;
} gb_row_lengths;

/* Bytes of scratch that each thread needs for the kernels of such a plan. */
size_t gb_kernel_scratch_bytes(const gb_row_lengths *longest);

/* Bytes that before leaves to the kernel of such a call, whose operand 0 has `rows` rows. False on overflow.
 */
bool gb_kernel_shared_bytes(const gb_kernel_call *call, size_t rows, uint64_t *bytes);

/* Of such a call of attention, of so many tokens; and the most tokens of one slot that need none. */
bool gb_attention_room_bytes(const gb_kernel_call *call, size_t tokens, uint64_t *bytes);
size_t gb_longest_run_in_ring(const gb_kernel_call *call);

/* Of the scratch, what expert_linear needs: the linear kernel's, and lists of the tokens of each expert. */
size_t gb_expert_scratch_bytes(void);

/* The kernel of each op of ops.def; those of which a plan has no step are not defined. */
#define GB_OP(number, NAME, name, ...)                                                                       \
    void gb_kernel_##name(const gb_kernel_call *call, const gb_worker *worker);
#include "program/ops.def"
#undef GB_OP

/* What runs before some of them: gb_kernel_quantize makes the activations that the kernel reads where
 * gb_has_rounded_activations; gb_kernel_NAME_append stores the step's tokens in the states, or in the team's
 * shared memory those that gb_kernel_attention_append_after stores when all have been read. */
void gb_kernel_quantize(const gb_kernel_call *call, const gb_worker *worker);
#define GB_DECLARE_NONE(name)
#define GB_DECLARE_ROUND(name)
#define GB_DECLARE_APPEND(name)                                                                              \
    void gb_kernel_##name##_append(const gb_kernel_call *call, const gb_worker *worker);
#define GB_OP(number, NAME, name, signature, attributes, before, ...) GB_DECLARE_##before(name)
#include "program/ops.def"
#undef GB_OP
void gb_kernel_attention_append_after(const gb_kernel_call *call, const gb_worker *worker);

/* Takes the slot's logged tokens into the recurrent state that the call changes, if it changes one. scratch:
 * GB_LINEAR_SCRATCH bytes. */
void gb_kernel_take_logged(const gb_kernel_call *call, size_t slot, void *scratch);

/* gb_kernel_sample has the operands of a sample step (plan.h); gb_kernel_move copies operand 0 to result 0.
 */
void gb_kernel_sample(const gb_kernel_call *call, const gb_worker *worker);
void gb_kernel_move(const gb_kernel_call *call, const gb_worker *worker);

/* ---- For the kernels ----------------------------------------------------------------------------------- */

static inline size_t gb_elements(const gb_cpu_tensor *tensor) {
    size_t count = 1;
    for (int32_t i = 0; i < tensor->rank; i++)
        count *= tensor->dims[i];
    return count;
}

/* The range first .. end - 1 of count things that is the worker's: contiguous, in whole units, so that small
 * work stays with one thread: of one unit, with thread 0. */
typedef struct gb_share {
    size_t first, end;
} gb_share;

static inline gb_share gb_share_of(const gb_worker *worker, size_t count, size_t unit) {
    size_t units = count / unit + (count % unit != 0), round_up = worker->count - 1;
    size_t first = (units * worker->index + round_up) / worker->count * unit;
    size_t end = (units * (worker->index + 1) + round_up) / worker->count * unit;
    return (gb_share){first < count ? first : count, end < count ? end : count};
}

/* Shares by the first and by the last dim of a tensor, the same for all tensors with that dim. */
enum { GB_COLUMN_UNIT = 16 };

static inline gb_share gb_tokens_of(const gb_worker *worker, size_t tokens) {
    return gb_share_of(worker, tokens, 1);
}

static inline gb_share gb_columns_of(const gb_worker *worker, size_t columns) {
    return gb_share_of(worker, columns, GB_COLUMN_UNIT);
}

/* The worker's part of a tensor [..., columns]: rows first .. end - 1, and of each the columns. */
typedef struct gb_part {
    gb_share rows, columns;
} gb_part;

static inline gb_part gb_part_of(const gb_kernel_call *call, const gb_worker *worker,
                                 const gb_cpu_tensor *tensor) {
    size_t columns = tensor->rank > 1 ? tensor->dims[tensor->rank - 1] : 1;
    size_t rows = columns ? gb_elements(tensor) / columns : 0;
    size_t tokens = tensor->rank > 0 ? tensor->dims[0] : 1;
    if (call->split == GB_SPLIT_COLUMNS)
        return (gb_part){{0, rows}, gb_columns_of(worker, columns)};
    gb_share share = gb_tokens_of(worker, tokens);
    size_t each = tokens ? rows / tokens : 0;
    return (gb_part){{share.first * each, share.end * each}, {0, columns}};
}

/* The end of the run of tokens of one slot that begins at first, of at most `most` tokens. */
static inline size_t gb_end_of_run(const gb_cpu_tensor *slots, size_t first, size_t most) {
    const int32_t *slot = slots->data;
    size_t end = first + 1;
    while (end < slots->dims[0] && end - first < most && slot[end] == slot[first])
        end++;
    return end;
}

/* Whether the weight, operand 1 of a linear or expert_linear, is multiplied with rounded activations, and how
 * they are rounded then. */
bool gb_has_rounded_activations(const gb_kernel_call *call);
gb_rounding gb_rounding_of(const gb_kernel_call *call);

/* Those of operand 0, in the team's shared memory. */
gb_activations gb_shared_activations(const gb_kernel_call *call, const gb_worker *worker);

/* Rows first .. end - 1 of the weight, with the kernel for what it and the activations are. scratch:
 * GB_LINEAR_SCRATCH bytes. */
void gb_multiply_rows(const gb_vector_kernels *vector, const gb_linear *linear, size_t first, size_t end,
                      void *scratch);

static inline const float *gb_floats(const gb_cpu_tensor *tensor) {
    return tensor->data;
}

/* Element index of a tensor of a float dtype. */
static inline const void *gb_element(const gb_cpu_tensor *tensor, size_t index) {
    return (const uint8_t *)tensor->data + index * gb_dtype_size(tensor->dtype);
}

#endif
