/* SPDX-License-Identifier: Apache-2.0 */
#include "run/cpu/kernels/kernels.h"
#include "run/plan/plan.h"
#include "run/sampler/sampler.h"

/* The nodes of the sampler's chain, a row of the batch per turn; sampler.h says what they compute. */

static size_t row_count(const gb_tensor *tensor) {
    return tensor->dims[0];
}

static uint32_t row_length(const gb_tensor *tensor) {
    return (uint32_t)tensor->dims[1];
}

/* Element 0 of row b of operand or result tensor, as a pointer to type. */
#define ROW(type, tensor, b) ((type *)(tensor)->data + (b) * (tensor)->dims[1])
#define FOR_ROWS_OF(worker, tensor, b)                                                                       \
    for (size_t b = (worker)->index; b < row_count(tensor); b += (worker)->count)

void gb_kernel_candidates(const gb_kernel_call *call, const gb_worker *worker) {
    const gb_tensor *logits = call->operands[0], *keep = call->results[0];
    FOR_ROWS_OF(worker, logits, b)
    gb_candidates(ROW(const float, logits, b), row_length(logits), ROW(bool, keep, b));
}

void gb_kernel_apply_temperature(const gb_kernel_call *call, const gb_worker *worker) {
    const gb_tensor *logits = call->operands[0], *y = call->results[0];
    const float *temperature = call->operands[1]->data;
    FOR_ROWS_OF(worker, logits, b)
    gb_apply_temperature(ROW(const float, logits, b), row_length(logits), temperature[b], ROW(float, y, b));
}

void gb_kernel_top_k_mask(const gb_kernel_call *call, const gb_worker *worker) {
    const gb_tensor *x = call->operands[0], *keep = call->operands[1], *kept = call->results[0];
    const int32_t *top_k = call->operands[2]->data;
    FOR_ROWS_OF(worker, x, b)
    gb_top_k_mask(ROW(const float, x, b), ROW(const bool, keep, b), row_length(x), top_k[b],
                  ROW(bool, kept, b));
}

void gb_kernel_top_p_mask(const gb_kernel_call *call, const gb_worker *worker) {
    const gb_tensor *x = call->operands[0], *keep = call->operands[1], *kept = call->results[0];
    const float *top_p = call->operands[2]->data;
    FOR_ROWS_OF(worker, x, b)
    gb_top_p_mask(ROW(const float, x, b), ROW(const bool, keep, b), row_length(x), top_p[b],
                  ROW(bool, kept, b));
}

void gb_kernel_random_bits(const gb_kernel_call *call, const gb_worker *worker) {
    const gb_tensor *bits = call->results[0];
    const uint64_t *seed = call->operands[0]->data;
    FOR_ROWS_OF(worker, bits, b)
    gb_random_bits(seed[b], row_length(bits), ROW(uint32_t, bits, b));
}

void gb_kernel_gumbel_noise(const gb_kernel_call *call, const gb_worker *worker) {
    const gb_tensor *bits = call->operands[0], *y = call->results[0];
    FOR_ROWS_OF(worker, bits, b)
    gb_gumbel_noise(ROW(const uint32_t, bits, b), row_length(bits), ROW(float, y, b));
}

void gb_kernel_argmax(const gb_kernel_call *call, const gb_worker *worker) {
    const gb_tensor *x = call->operands[0], *keep = call->operands[1];
    int32_t *index = call->results[0]->data;
    FOR_ROWS_OF(worker, x, b)
    index[b] = gb_argmax(ROW(const float, x, b), keep ? ROW(const bool, keep, b) : NULL, row_length(x));
}

void gb_kernel_sample(const gb_kernel_call *call, const gb_worker *worker) {
    const gb_tensor *logits = call->operands[GB_SAMPLE_LOGITS];
    const float *temperature = call->operands[GB_SAMPLE_TEMPERATURE]->data;
    const gb_tensor *top_k = call->operands[GB_SAMPLE_TOP_K], *top_p = call->operands[GB_SAMPLE_TOP_P];
    const uint64_t *seed = call->operands[GB_SAMPLE_SEED]->data;
    int32_t *token = call->results[0]->data;
    FOR_ROWS_OF(worker, logits, b) {
        gb_row_settings settings = {
            .temperature = temperature[b],
            .top_k = top_k ? ((const int32_t *)top_k->data)[b] : 0,
            .top_p = top_p ? ((const float *)top_p->data)[b] : 1.0f,
            .seed = seed[b],
        };
        token[b] = gb_sample_row(ROW(const float, logits, b), row_length(logits), &settings, worker->scratch);
    }
}
