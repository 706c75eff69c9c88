/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernels: one function per op, the op's exact definition (ops.def has the equations). All threads of the
 * team call a kernel together; each computes its share of the outputs, and there is a barrier before the
 * next. Which thread computes an output never changes its bits. Kernels do not allocate.
 */
#ifndef GUMBEL_RUN_CPU_KERNELS_KERNELS_H
#define GUMBEL_RUN_CPU_KERNELS_KERNELS_H

#include "program/program.h"
#include "run/cpu/kernels/vector/vector_kernels.h"

/* A value in one step: the dims that are N or B in the graph have this batch's sizes. */
typedef struct gb_tensor {
    void *data; /* row-major; of a state: of slot 0 */
    gb_dtype dtype;
    int32_t rank;
    size_t dims[GB_MAX_RANK];
    size_t slot_bytes;                    /* of a state: from one slot's to the next one's */
    const gb_quantized_matrix *quantized; /* of a constant of that dtype: its data; else NULL */
} gb_tensor;

typedef struct gb_kernel_call {
    const gb_node *node;                        /* for its attributes; NULL for a fused step */
    const gb_tensor *operands[GB_MAX_OPERANDS]; /* NULL: absent */
    const gb_tensor *results[GB_MAX_RESULTS];
    const gb_vector_kernels *vector;
} gb_kernel_call;

/* The calling thread. */
typedef struct gb_worker {
    size_t index, count; /* of the team */
    void *scratch;       /* its own: gb_kernel_scratch_bytes, 64-byte aligned, content arbitrary */
} gb_worker;

typedef void (*gb_kernel)(const gb_kernel_call *call, const gb_worker *worker);

/* The kernel of an op, or NULL for one that a plan has no step of. Where *before is not NULL, all threads run
 * it first and meet at a barrier between the two. */
gb_kernel gb_find_kernel(gb_op op, gb_kernel *before);

/* About how many multiplications a call takes, where slots hold at most that many positions. */
uint64_t gb_kernel_work(const gb_kernel_call *call, size_t positions);

/* Bytes of scratch that each thread needs for kernels on rows of at most `longest` elements. */
size_t gb_kernel_scratch_bytes(uint32_t longest);

/* embedding.c, linear.c, norm.c, rope.c, gather.c */
void gb_kernel_embedding(const gb_kernel_call *call, const gb_worker *worker);
void gb_kernel_linear(const gb_kernel_call *call, const gb_worker *worker);
void gb_kernel_rms_norm(const gb_kernel_call *call, const gb_worker *worker);
void gb_kernel_rope(const gb_kernel_call *call, const gb_worker *worker);
void gb_kernel_gather_rows(const gb_kernel_call *call, const gb_worker *worker);

/* attention.c: gb_kernel_attention_append stores keys and values, gb_kernel_attention reads them. */
void gb_kernel_attention_append(const gb_kernel_call *call, const gb_worker *worker);
void gb_kernel_attention(const gb_kernel_call *call, const gb_worker *worker);

/* elementwise.c; gb_kernel_move copies operand 0 to result 0. */
void gb_kernel_add(const gb_kernel_call *call, const gb_worker *worker);
void gb_kernel_multiply(const gb_kernel_call *call, const gb_worker *worker);
void gb_kernel_scale(const gb_kernel_call *call, const gb_worker *worker);
void gb_kernel_gelu_tanh(const gb_kernel_call *call, const gb_worker *worker);
void gb_kernel_soft_cap(const gb_kernel_call *call, const gb_worker *worker);
void gb_kernel_move(const gb_kernel_call *call, const gb_worker *worker);

/* choice.c */
void gb_kernel_is_zero(const gb_kernel_call *call, const gb_worker *worker);
void gb_kernel_any_false(const gb_kernel_call *call, const gb_worker *worker);
void gb_kernel_select(const gb_kernel_call *call, const gb_worker *worker);
void gb_kernel_fill_like(const gb_kernel_call *call, const gb_worker *worker);
void gb_kernel_choose_token(const gb_kernel_call *call, const gb_worker *worker);

/* sampling.c; gb_kernel_sample has the operands of a sample step (plan.h). */
void gb_kernel_candidates(const gb_kernel_call *call, const gb_worker *worker);
void gb_kernel_apply_temperature(const gb_kernel_call *call, const gb_worker *worker);
void gb_kernel_top_k_mask(const gb_kernel_call *call, const gb_worker *worker);
void gb_kernel_top_p_mask(const gb_kernel_call *call, const gb_worker *worker);
void gb_kernel_random_bits(const gb_kernel_call *call, const gb_worker *worker);
void gb_kernel_gumbel_noise(const gb_kernel_call *call, const gb_worker *worker);
void gb_kernel_argmax(const gb_kernel_call *call, const gb_worker *worker);
void gb_kernel_sample(const gb_kernel_call *call, const gb_worker *worker);

/* ---- For the kernels ----------------------------------------------------------------------------------- */

static inline size_t gb_elements(const gb_tensor *tensor) {
    size_t count = 1;
    for (int32_t i = 0; i < tensor->rank; i++)
        count *= tensor->dims[i];
    return count;
}

/* The range first .. end - 1 of count things that is the worker's: contiguous, in whole units, so that small
 * work stays with one thread. */
typedef struct gb_share {
    size_t first, end;
} gb_share;

static inline gb_share gb_share_of(const gb_worker *worker, size_t count, size_t unit) {
    size_t units = count / unit + (count % unit != 0);
    size_t first = units * worker->index / worker->count * unit;
    size_t end = units * (worker->index + 1) / worker->count * unit;
    return (gb_share){first < count ? first : count, end < count ? end : count};
}

static inline const float *gb_floats(const gb_tensor *tensor) {
    return tensor->data;
}

/* Element index of a tensor of a float dtype. */
static inline const void *gb_element(const gb_tensor *tensor, size_t index) {
    return (const uint8_t *)tensor->data + index * gb_dtype_size(tensor->dtype);
}

#endif
