/* SPDX-License-Identifier: Apache-2.0
 *
 * Ops whose elements do not depend on each other.
 */
#include "backends/cuda/device/each.cuh"
#include "backends/cuda/gemm/prepared.cuh"
#include "backends/cuda/norm/row_ops.cuh"

using namespace gb_cuda;

/* A thread has some elements, so that their loads are in flight at the same time. */
template <typename Function>
struct stored {
    static constexpr size_t OF_THREAD = 4;
    Function function;
    float *y;
    size_t count;
    __device__ void operator()(size_t, size_t thread) const {
        const size_t first = thread / EACH_THREADS * EACH_THREADS * OF_THREAD + thread % EACH_THREADS;
        float values[OF_THREAD] = {};
#pragma unroll
        for (size_t i = 0; i < OF_THREAD; i++)
            if (first + i * EACH_THREADS < count)
                values[i] = function(first + i * EACH_THREADS);
#pragma unroll
        for (size_t i = 0; i < OF_THREAD; i++)
            if (first + i * EACH_THREADS < count)
                y[first + i * EACH_THREADS] = values[i];
    }
};

template <typename Function>
static void add_stored(const gb_cuda_call *call, const char *name, Function function) {
    typedef stored<Function> all;
    const size_t count = gb_cuda_elements(call->results[0]);
    add_each(call->launches, name, 1, blocks_for(count, all::OF_THREAD * EACH_THREADS) * (size_t)EACH_THREADS,
             all{function, data_of<float>(call->results[0]), count});
}

struct add_function {
    const float *a, *b;
    __device__ float operator()(size_t i) const {
        return a[i] + b[i];
    }
};
struct add_bias_function {
    const float *x;
    const void *bias;
    gb_dtype dtype;
    size_t width;
    __device__ float operator()(size_t i) const {
        return x[i] + load_float(bias, dtype, i % width);
    }
};
struct multiply_function {
    const float *a, *b;
    __device__ float operator()(size_t i) const {
        return a[i] * b[i];
    }
};
struct scale_function {
    const float *x;
    const void *factor;
    gb_dtype dtype;
    __device__ float operator()(size_t i) const {
        return x[i] * load_float(factor, dtype, 0);
    }
};
struct gelu_function {
    const float *x;
    __device__ float operator()(size_t i) const {
        return gelu_tanh(x[i]);
    }
};
struct silu_function {
    const float *x;
    __device__ float operator()(size_t i) const {
        return silu(x[i]);
    }
};
struct clamped_swiglu_function {
    const float *gate, *up;
    float alpha, limit;
    __device__ float operator()(size_t i) const {
        return clamped_swiglu(gate[i], up[i], alpha, limit);
    }
};
struct sigmoid_function {
    const float *x;
    __device__ float operator()(size_t i) const {
        return sigmoid(x[i]);
    }
};
struct softplus_function {
    const float *x;
    __device__ float operator()(size_t i) const {
        return softplus(x[i]);
    }
};
struct relu_squared_function {
    const float *x;
    __device__ float operator()(size_t i) const {
        return relu_squared(x[i]);
    }
};
struct scale_columns_function {
    const float *x;
    const void *factor;
    gb_dtype dtype;
    size_t width, shared; /* columns of a row, and of a factor */
    __device__ float operator()(size_t i) const {
        return x[i] * load_float(factor, dtype, i % width / shared);
    }
};
struct soft_cap_function {
    const float *x;
    float cap;
    __device__ float operator()(size_t i) const {
        return cap * gb_tanh(x[i] / cap);
    }
};
struct delta_decay_function {
    const float *x;
    const void *a_log, *bias;
    gb_dtype a_log_dtype, bias_dtype;
    size_t heads;
    __device__ float operator()(size_t i) const {
        const size_t h = i % heads;
        return delta_decay(x[i], load_float(a_log, a_log_dtype, h), load_float(bias, bias_dtype, h));
    }
};
struct scale_rows_function {
    const float *x, *factor;
    size_t width;
    __device__ float operator()(size_t i) const {
        return x[i] * factor[i / width];
    }
};
struct add_expert_bias_function {
    const float *x;
    const void *bias;
    gb_dtype dtype;
    const int32_t *experts;
    size_t width;
    __device__ float operator()(size_t i) const {
        return x[i] + load_float(bias, dtype, (size_t)experts[i / width] * width + i % width);
    }
};
struct combine_function {
    const float *x, *weights;
    size_t choices, width;
    __device__ float operator()(size_t i) const {
        const size_t m = i / width, k = i % width;
        const float *from = x + m * choices * width + k, *weight = weights + m * choices;
        float sum = from[0] * weight[0];
        for (size_t t = 1; t < choices; t++)
            sum += from[t * width] * weight[t];
        return sum;
    }
};

static const float *operand(const gb_cuda_call *call, int i) {
    return data_of<const float>(call->operands[i]);
}

/* Products that are prepared as well; a row of the result is that of the product that follows. */
struct prepared_multiply {
    multiply_function function;
    size_t columns;
    prepared_rows prepared;
    float *y;
    __device__ void operator()(size_t row, size_t quarter) const {
        float v[8];
        for (size_t i = 0; i < 8; i++) {
            const size_t column = quarter * 8 + i;
            v[i] = 0;
            if (column < columns)
                y[row * columns + column] = v[i] = function(row * columns + column);
        }
        prepare_quarter(prepared, row, quarter, v);
    }
};

/* Four bytes at a time, or the last ones. */
struct move_function {
    size_t size;
    const uint8_t *from;
    uint8_t *to;
    __device__ void operator()(size_t, size_t word) const {
        const size_t at = word * sizeof(uint32_t);
        if (at + sizeof(uint32_t) <= size)
            *reinterpret_cast<uint32_t *>(to + at) = *reinterpret_cast<const uint32_t *>(from + at);
        else
            for (size_t i = at; i < size; i++)
                to[i] = from[i];
    }
};

void gb_cuda_add(const gb_cuda_call *call) {
    add_stored(call, "add", add_function{operand(call, 0), operand(call, 1)});
}
void gb_cuda_add_bias(const gb_cuda_call *call) {
    const gb_cuda_tensor *bias = call->operands[1];
    add_stored(call, "add_bias", add_bias_function{operand(call, 0), bias->data, bias->dtype, bias->dims[0]});
}
void gb_cuda_multiply(const gb_cuda_call *call) {
    const multiply_function function = {operand(call, 0), operand(call, 1)};
    const gb_cuda_tensor *y = call->results[0];
    if (!call->epilogue) {
        add_stored(call, "multiply", function);
        return;
    }
    const size_t columns = gb_cuda_epilogue_columns(call);
    const prepared_rows prepared = gb_cuda_epilogue_rows(call);
    const size_t quarters = blocks_for(prepared.units * 4, WARP) * (size_t)WARP;
    add_each(call->launches, "multiply", gb_cuda_elements(y) / columns, quarters,
             prepared_multiply{function, columns, prepared, data_of<float>(y)});
}
void gb_cuda_scale(const gb_cuda_call *call) {
    add_stored(call, "scale",
               scale_function{operand(call, 0), call->operands[1]->data, call->operands[1]->dtype});
}
void gb_cuda_gelu_tanh(const gb_cuda_call *call) {
    add_stored(call, "gelu", gelu_function{operand(call, 0)});
}
void gb_cuda_silu(const gb_cuda_call *call) {
    add_stored(call, "silu", silu_function{operand(call, 0)});
}
void gb_cuda_clamped_swiglu(const gb_cuda_call *call) {
    add_stored(call, "clamped_swiglu",
               clamped_swiglu_function{operand(call, 0), operand(call, 1),
                                       (float)gb_node_float(call->node, GB_ATTRIBUTE_ALPHA),
                                       (float)gb_node_float(call->node, GB_ATTRIBUTE_LIMIT)});
}
void gb_cuda_sigmoid(const gb_cuda_call *call) {
    add_stored(call, "sigmoid", sigmoid_function{operand(call, 0)});
}
void gb_cuda_softplus(const gb_cuda_call *call) {
    add_stored(call, "softplus", softplus_function{operand(call, 0)});
}
void gb_cuda_relu_squared(const gb_cuda_call *call) {
    add_stored(call, "relu_squared", relu_squared_function{operand(call, 0)});
}
void gb_cuda_scale_columns(const gb_cuda_call *call) {
    const gb_cuda_tensor *factor = call->operands[1];
    const size_t width = call->operands[0]->dims[1];
    add_stored(call, "scale_columns",
               scale_columns_function{operand(call, 0), factor->data, factor->dtype, width,
                                      width / factor->dims[0]});
}
void gb_cuda_soft_cap(const gb_cuda_call *call) {
    add_stored(call, "soft_cap",
               soft_cap_function{operand(call, 0), (float)gb_node_float(call->node, GB_ATTRIBUTE_CAP)});
}
void gb_cuda_delta_decay(const gb_cuda_call *call) {
    const gb_cuda_tensor *a_log = call->operands[1], *bias = call->operands[2];
    add_stored(call, "delta_decay",
               delta_decay_function{operand(call, 0), a_log->data, bias->data, a_log->dtype, bias->dtype,
                                    call->operands[0]->dims[1]});
}
void gb_cuda_scale_rows(const gb_cuda_call *call) {
    add_stored(call, "scale_rows",
               scale_rows_function{operand(call, 0), operand(call, 1), call->operands[0]->dims[1]});
}
void gb_cuda_add_expert_bias(const gb_cuda_call *call) {
    const gb_cuda_tensor *bias = call->operands[1];
    add_stored(call, "add_expert_bias",
               add_expert_bias_function{operand(call, 0), bias->data, bias->dtype,
                                        data_of<const int32_t>(call->operands[2]), bias->dims[1]});
}
void gb_cuda_combine_experts(const gb_cuda_call *call) {
    const gb_cuda_tensor *x = call->operands[0];
    add_stored(call, "combine", combine_function{operand(call, 0), operand(call, 1), x->dims[1], x->dims[2]});
}
void gb_cuda_move(const gb_cuda_call *call) {
    const gb_cuda_tensor *to = call->results[0];
    const size_t size = gb_cuda_elements(to) * gb_dtype_size(to->dtype);
    add_each(call->launches, "move", 1, blocks_for(size, sizeof(uint32_t)),
             move_function{size, data_of<const uint8_t>(call->operands[0]), data_of<uint8_t>(to)});
}
