/* SPDX-License-Identifier: Apache-2.0
 *
 * Several ops on rows in one launch: a block has one row of all of them and goes from op to op, with what is
 * only needed on the way in shared memory. The functions and the order of sums are those of the ops' own
 * kernels, so that the bits are the same. Where every op is of single elements, or of heads, several blocks
 * share a row.
 */
#ifndef GUMBEL_RUN_CUDA_DEVICE_ROW_CHAIN_CUH
#define GUMBEL_RUN_CUDA_DEVICE_ROW_CHAIN_CUH

#include "run/cuda/device/prepared.cuh"
#include "run/cuda/device/row_ops.cuh"

extern "C" {
#include "run/cuda/arrange.h"
}

namespace gb_cuda {

enum { SHARED_COLUMNS = 1024 }; /* of a block that shares its row */

enum chain_kind {
    CHAIN_ADD,
    CHAIN_MULTIPLY,
    CHAIN_SCALE,
    CHAIN_GELU,
    CHAIN_SILU,
    CHAIN_SIGMOID,
    CHAIN_COPY,
    CHAIN_DECAY,
    CHAIN_SCALE_ROWS,
    CHAIN_COMBINE,
    CHAIN_NORM,
    CHAIN_ROTATE
};

/* A row of an operand: element i is at i, or where inner is not 0 at i / inner * outer + i % inner. */
struct row_view {
    const float *data; /* of row 0; NULL: in shared memory */
    size_t stride;     /* from row to row */
    unsigned offset;   /* in shared memory */
    unsigned inner, outer;
    uint64_t inverse; /* 2^32 / inner, rounded up: exact for columns below 65536 */
};

struct chain_op {
    chain_kind kind;
    bool waits;     /* other threads have made what it reads */
    unsigned width; /* elements of a row of the result */
    row_view a, b;
    float *kept;        /* where rows of the result are needed later; or NULL */
    int offset;         /* of the result in shared memory; -1: it is not there */
    normalization norm; /* of other ops than norms: its weight alone */
    const void *bias;   /* DECAY */
    gb_dtype bias_dtype;
    const int32_t *positions; /* ROTATE */
    unsigned size;            /* of a head: ROTATE */
    unsigned count;           /* choices of COMBINE; frequencies of ROTATE */
    unsigned pair_offset;     /* ROTATE */
    prepared_rows prepared;   /* of the result, if its values are somewhere */
    unsigned prepared_columns;
};

struct row_chain {
    chain_op ops[GB_CUDA_MOST_CHAINED];
    unsigned count;
    unsigned columns; /* of a block, along the grid's second dim; 0: it has whole rows */
};

/* Whether a view is a row in memory that no op of the chain made, as it stands there. */
inline bool is_outside(const row_view &view) {
    return view.data && !view.inner;
}

/* Whether op k's operand has been there before the chain, as it stands or as parts of it. */
inline bool is_made_before(const row_chain &chain, unsigned k, const row_view &view) {
    for (unsigned i = 0; i < k; i++) {
        const float *kept = chain.ops[i].kept;
        if (kept && view.data >= kept && view.data < kept + chain.ops[i].width)
            return false;
    }
    return view.data != nullptr;
}

/* Whether a view is an op's result. */
inline bool is_result(const row_view &view, const chain_op &op) {
    return !view.inner &&
           (view.data ? view.data == op.kept : op.offset >= 0 && view.offset == (unsigned)op.offset);
}

/* Element i of a row, where it lies from the view's first one on. */
__host__ __device__ inline unsigned place_of(const row_view &view, unsigned i) {
    if (!view.inner)
        return i;
    const unsigned part = (unsigned)((uint64_t)i * view.inverse >> 32);
    return i + part * (view.outer - view.inner);
}

} // namespace gb_cuda

/* Kernels of one kind of chain each, which they launch; false: it is another one.
 * norm_chain.cu: long norms with what stands between them.
 * head_chain.cu: norms and rotary positions of heads.
 * gate_chain.cu: products with an activation, for generated tokens. */
bool gb_cuda_norm_chain(const gb_cuda::row_chain &chain, unsigned rows, cudaStream_t stream);
bool gb_cuda_head_chain(const gb_cuda::row_chain &chain, unsigned rows, cudaStream_t stream);
bool gb_cuda_gate_chain(const gb_cuda::row_chain &chain, unsigned rows, cudaStream_t stream);

/* norm_chain.cu: launches a norm of long rows x alone; false: it does not have such ones. */
bool gb_cuda_long_norm(const gb_cuda_call *call, const gb_cuda::normalization &norm,
                       const gb_cuda::prepared_rows &prepared);

#endif
