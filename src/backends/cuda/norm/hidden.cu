/* SPDX-License-Identifier: Apache-2.0
 *
 * Hidden states by position, which a draft head reads.
 */
#include "backends/cuda/device/each.cuh"

using namespace gb_cuda;

/* The rows of all slots. */
struct hidden_rows {
    uint8_t *data;
    size_t slot_bytes, rows, width;
    gb_dtype dtype;
    __device__ void *of_slot(int32_t slot) const {
        return data + (size_t)slot * slot_bytes;
    }
};

static hidden_rows hidden_of(const gb_cuda_tensor *state) {
    return {data_of<uint8_t>(state), state->slot_bytes, state->dims[0], state->dims[2], state->dtype};
}

struct keep_hidden_function {
    const float *x;
    const int32_t *positions, *slots;
    hidden_rows hidden;
    int32_t start;
    float *y;
    __device__ void operator()(size_t n, size_t k) const {
        const float value = x[n * hidden.width + k];
        const size_t row = (size_t)(positions[n] + start), at = row * hidden.width + k;
        y[n * hidden.width + k] = value;
        if (row >= hidden.rows)
            return;
        if (hidden.dtype == GB_BF16)
            static_cast<uint16_t *>(hidden.of_slot(slots[n]))[at] = gb_bf16_from_float(value);
        else
            static_cast<float *>(hidden.of_slot(slots[n]))[at] = value;
    }
};

void gb_cuda_keep_hidden(const gb_cuda_call *call) {
    const gb_cuda_tensor *x = call->operands[0];
    add_each(call->launches, "keep_hidden", x->dims[0], x->dims[1],
             keep_hidden_function{data_of<const float>(x), data_of<const int32_t>(call->operands[1]),
                                  data_of<const int32_t>(call->operands[2]), hidden_of(call->operands[3]),
                                  (int32_t)gb_node_int(call->node, GB_ATTRIBUTE_START),
                                  data_of<float>(call->results[0])});
}

struct load_hidden_function {
    const int32_t *positions, *slots;
    hidden_rows hidden;
    int32_t before;
    float *y;
    __device__ void operator()(size_t n, size_t k) const {
        const int32_t row = positions[n] - before;
        y[n * hidden.width + k] =
            row < 0 ? 0 : load_float(hidden.of_slot(slots[n]), hidden.dtype, (size_t)row * hidden.width + k);
    }
};

void gb_cuda_load_hidden(const gb_cuda_call *call) {
    const gb_cuda_tensor *y = call->results[0];
    add_each(call->launches, "load_hidden", y->dims[0], y->dims[1],
             load_hidden_function{data_of<const int32_t>(call->operands[0]),
                                  data_of<const int32_t>(call->operands[1]), hidden_of(call->operands[2]),
                                  (int32_t)gb_node_int(call->node, GB_ATTRIBUTE_BEFORE), data_of<float>(y)});
}
