/* SPDX-License-Identifier: Apache-2.0
 *
 * Several ops on rows in one launch: a block has a row of all of them and goes from op to op, with
 * intermediate results in shared memory. The bits are those of the ops' own kernels. Where every op is of
 * single elements, or of heads, several blocks share a row.
 */
#ifndef GUMBEL_BACKENDS_CUDA_NORM_ROW_CHAIN_CUH
#define GUMBEL_BACKENDS_CUDA_NORM_ROW_CHAIN_CUH

#include "backends/cuda/gemm/prepared.cuh"
#include "backends/cuda/norm/row_ops.cuh"

namespace gb_cuda {

enum {
    SHARED_COLUMNS = 1024, /* of a block that shares its row */
    ELEMENT_COLUMNS = 4    /* of a thread of element_chain.cu */
};

enum chain_kind {
    CHAIN_ADD,
    CHAIN_ADD_BIAS,
    CHAIN_MULTIPLY,
    CHAIN_SCALE,
    CHAIN_GELU,
    CHAIN_SILU,
    CHAIN_SIGMOID,
    CHAIN_RELU_SQUARED,
    CHAIN_SOFTPLUS,
    CHAIN_CLAMPED_SWIGLU,
    CHAIN_SCALE_COLUMNS,
    CHAIN_ADD_EXPERT_BIAS,
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
    bool waits;     /* other threads compute what it reads */
    unsigned width; /* elements of a row of the result */
    row_view a, b;
    float *stored;      /* where the result is stored; or NULL */
    int offset;         /* of the result in shared memory; -1: it is not there */
    normalization norm; /* of other ops than norms: its weight alone */
    const void *bias;   /* DECAY */
    gb_dtype bias_dtype;
    const int32_t *indices; /* positions of ROTATE; experts of ADD_EXPERT_BIAS */
    unsigned size;          /* of a head: ROTATE; columns of an expert's row, or of a factor */
    unsigned count;         /* choices of experts; frequencies of ROTATE */
    unsigned pair_offset;   /* ROTATE */
    int32_t start;          /* ROTATE: of the positions */
    float scale;            /* ROTATE; alpha of CLAMPED_SWIGLU */
    float limit;            /* CLAMPED_SWIGLU */
    prepared_rows prepared; /* of the result, if its values are somewhere */
    unsigned prepared_columns;
};

struct row_chain {
    chain_op ops[GB_MOST_ROWS];
    unsigned count;
    unsigned columns; /* of a block, along the grid's second dim; 0: it has whole rows */
};

/* Both operands are rows of the same width. */
__host__ __device__ inline bool has_two_rows(chain_kind kind) {
    return kind == CHAIN_ADD || kind == CHAIN_MULTIPLY || kind == CHAIN_CLAMPED_SWIGLU;
}

/* Whether another element of the weight than i counts with column i of a row: weight_place. */
__host__ __device__ inline bool has_weight_place(chain_kind kind) {
    return kind == CHAIN_SCALE_COLUMNS || kind == CHAIN_ADD_EXPERT_BIAS;
}

/* Which element of the weight that is: each is for `size` columns, or for the expert that those are of. */
__device__ inline size_t weight_place(chain_kind kind, const int32_t *experts, unsigned count, unsigned size,
                                      size_t row, unsigned i) {
    const unsigned part = i / size;
    return kind == CHAIN_SCALE_COLUMNS ? part
                                       : (size_t)experts[row * count + part] * size + (i - part * size);
}

inline unsigned row_width(const gb_cuda_tensor *tensor) {
    return (unsigned)(gb_cuda_elements(tensor) / tensor->dims[0]);
}

/* Rows as they stand in memory. */
inline row_view view_of_rows(const gb_cuda_tensor *x) {
    row_view view = {};
    view.data = data_of<const float>(x);
    view.stride = row_width(x);
    return view;
}

/* A slice's part of its operand's rows, which are seen so; those must not be a slice. */
inline row_view slice_of(row_view view, const gb_cuda_call *slice) {
    const gb_cuda_tensor *x = slice->operands[0], *y = slice->results[0];
    const unsigned start = (unsigned)gb_node_int(slice->node, GB_ATTRIBUTE_START);
    if (view.data)
        view.data += start;
    else
        view.offset += start;
    if (x->rank > 2) {
        view.inner = (unsigned)y->dims[y->rank - 1];
        view.outer = (unsigned)x->dims[x->rank - 1];
        view.inverse = (((uint64_t)1 << 32) + view.inner - 1) / view.inner;
    }
    return view;
}

/* Element i of a row, where it lies from the view's first one on. */
__host__ __device__ inline unsigned place_of(const row_view &view, unsigned i) {
    if (!view.inner)
        return i;
    const unsigned part = (unsigned)((uint64_t)i * view.inverse >> 32);
    return i + part * (view.outer - view.inner);
}

/* Whether neighbouring columns, that many of which are within an inner part, can be loaded four at a time. */
inline bool is_loadable_by_four(const row_view &view, unsigned columns) {
    return view.data && (uintptr_t)view.data % 16 == 0 && view.stride % 4 == 0 && view.inner % columns == 0 &&
           view.outer % 4 == 0;
}

} // namespace gb_cuda

/* element_chain.cu: describes the launch of a chain with ELEMENT_COLUMNS of a block, without inner slices and
 * epilogues; false: its ops are not functions of single elements, one after the other. */
bool gb_cuda_element_chain(const gb_cuda::row_chain &chain, unsigned rows, gb_cuda_launch_list *launches);

/* norm_chain.cu: describes the launch of a norm of long rows; false: it does not have such ones. */
bool gb_cuda_long_norm(const gb_cuda_call *call, const gb_cuda::normalization &norm,
                       const gb_cuda::prepared_rows &prepared);

#endif
