/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cpu/kernels/kernels.h"

#include <string.h>

/* Elements that follow one another in every operand and in the result. */
typedef struct stretch {
    size_t first, count;
    const float *x; /* of operand 0 */
    float *y;
} stretch;

typedef void (*stretch_kernel)(const gb_kernel_call *call, const stretch *s);

/* Calls kernel for each stretch of the worker's part: whole rows follow one another. */
static void for_stretches(const gb_kernel_call *call, const gb_worker *worker, stretch_kernel kernel) {
    const gb_cpu_tensor *y = call->results[0];
    gb_part part = gb_part_of(call, worker, y);
    size_t width = part.columns.end - part.columns.first, columns = y->rank > 1 ? y->dims[y->rank - 1] : 1;
    size_t at_once = width == columns ? part.rows.end - part.rows.first : 1;
    if (width == 0 || at_once == 0)
        return;
    for (size_t row = part.rows.first; row < part.rows.end; row += at_once) {
        size_t at = row * columns + part.columns.first;
        stretch s = {at, width * at_once, gb_floats(call->operands[0]) + at, (float *)y->data + at};
        kernel(call, &s);
    }
}

static void add(const gb_kernel_call *call, const stretch *s) {
    call->vector->add(s->x, gb_floats(call->operands[1]) + s->first, s->count, s->y);
}

static void multiply(const gb_kernel_call *call, const stretch *s) {
    call->vector->multiply(s->x, gb_floats(call->operands[1]) + s->first, s->count, s->y);
}

static void scale(const gb_kernel_call *call, const stretch *s) {
    float factor;
    call->vector->widen(call->operands[1]->data, call->operands[1]->dtype, 1, &factor);
    call->vector->scale(s->x, factor, s->count, s->y);
}

static void gelu_tanh(const gb_kernel_call *call, const stretch *s) {
    call->vector->gelu_tanh(s->x, s->count, s->y);
}

static void silu(const gb_kernel_call *call, const stretch *s) {
    call->vector->silu(s->x, s->count, s->y);
}

static void clamped_swiglu(const gb_kernel_call *call, const stretch *s) {
    const gb_swiglu_clamp clamp = {(float)gb_node_float(call->node, GB_ATTRIBUTE_ALPHA),
                                   (float)gb_node_float(call->node, GB_ATTRIBUTE_LIMIT)};
    call->vector->clamped_swiglu(s->x, gb_floats(call->operands[1]) + s->first, clamp, s->count, s->y);
}

static void sigmoid(const gb_kernel_call *call, const stretch *s) {
    call->vector->sigmoid(s->x, s->count, s->y);
}

static void softplus(const gb_kernel_call *call, const stretch *s) {
    call->vector->softplus(s->x, s->count, s->y);
}

static void relu_squared(const gb_kernel_call *call, const stretch *s) {
    call->vector->relu_squared(s->x, s->count, s->y);
}

static void soft_cap(const gb_kernel_call *call, const stretch *s) {
    float cap = (float)gb_node_float(call->node, GB_ATTRIBUTE_CAP);
    call->vector->soft_cap(s->x, cap, s->count, s->y);
}

#define KERNEL(name)                                                                                         \
    void gb_kernel_##name(const gb_kernel_call *call, const gb_worker *worker) {                             \
        for_stretches(call, worker, name);                                                                   \
    }

KERNEL(add)
KERNEL(multiply)
KERNEL(scale)
KERNEL(gelu_tanh)
KERNEL(silu)
KERNEL(clamped_swiglu)
KERNEL(sigmoid)
KERNEL(softplus)
KERNEL(relu_squared)
KERNEL(soft_cap)

/* operands: x [M,K], bias [K], which is widened once for all rows of the part. */
void gb_kernel_add_bias(const gb_kernel_call *call, const gb_worker *worker) {
    enum { AT_ONCE = 256 };
    const gb_cpu_tensor *x = call->operands[0], *bias = call->operands[1], *y = call->results[0];
    const size_t width = x->dims[1];
    const gb_part part = gb_part_of(call, worker, y);
    for (size_t k = part.columns.first; k < part.columns.end; k += AT_ONCE) {
        float wide[AT_ONCE];
        const size_t left = part.columns.end - k, count = left < AT_ONCE ? left : AT_ONCE;
        call->vector->widen(gb_element(bias, k), bias->dtype, count, wide);
        for (size_t m = part.rows.first; m < part.rows.end; m++)
            call->vector->add(gb_floats(x) + m * width + k, wide, count, (float *)y->data + m * width + k);
    }
}

enum { FACTORS_AT_ONCE = 256 };

/* The factors of columns k and following, of which each has `shared`. */
static void spread_factors(const gb_kernel_call *call, size_t shared, size_t k, size_t count, float *wide) {
    const gb_cpu_tensor *factor = call->operands[1];
    float narrow[FACTORS_AT_ONCE];
    const size_t first = k / shared, end = (k + count - 1) / shared + 1;
    call->vector->widen(gb_element(factor, first), factor->dtype, end - first, narrow);
    for (size_t i = 0; i < count; i++)
        wide[i] = narrow[(k + i) / shared - first];
}

/* operands: x [M,K], factor [F]. */
void gb_kernel_scale_columns(const gb_kernel_call *call, const gb_worker *worker) {
    const gb_cpu_tensor *x = call->operands[0], *y = call->results[0];
    const size_t width = x->dims[1], shared = width / call->operands[1]->dims[0];
    const gb_part part = gb_part_of(call, worker, y);
    for (size_t k = part.columns.first; k < part.columns.end; k += FACTORS_AT_ONCE) {
        float wide[FACTORS_AT_ONCE];
        const size_t left = part.columns.end - k, count = left < FACTORS_AT_ONCE ? left : FACTORS_AT_ONCE;
        spread_factors(call, shared, k, count, wide);
        for (size_t m = part.rows.first; m < part.rows.end; m++)
            call->vector->multiply(gb_floats(x) + m * width + k, wide, count,
                                   (float *)y->data + m * width + k);
    }
}

void gb_kernel_move(const gb_kernel_call *call, const gb_worker *worker) {
    const gb_cpu_tensor *from = call->operands[0], *to = call->results[0];
    size_t size = gb_dtype_size(to->dtype);
    gb_share s = gb_share_of(worker, gb_elements(to), 1);
    if (s.first < s.end)
        memcpy((uint8_t *)to->data + s.first * size, gb_element(from, s.first), (s.end - s.first) * size);
}
