/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cpu/kernels/row_kernels.h"
#include "backends/sampler/sampler.h"

/* The nodes of the sampler's chain, a row of the batch per turn; sampler.h says what they compute. */

void gb_kernel_candidates(const gb_kernel_call *call, const gb_worker *worker) {
    const gb_cpu_tensor *logits = call->operands[0], *keep = call->results[0];
    FOR_ROWS_OF(worker, logits, b)
    gb_candidates(ROW(const float, logits, b), row_length(logits), ROW(bool, keep, b));
}

void gb_kernel_apply_temperature(const gb_kernel_call *call, const gb_worker *worker) {
    const gb_cpu_tensor *logits = call->operands[0], *y = call->results[0];
    const float *temperature = call->operands[1]->data;
    FOR_ROWS_OF(worker, logits, b)
    gb_apply_temperature(ROW(const float, logits, b), row_length(logits), temperature[b], ROW(float, y, b));
}

/* The masks of roles.def, each of whose operands are x, what is kept so far, and its setting. */
#define MASK_KERNEL(name, type)                                                                              \
    void gb_kernel_##name##_mask(const gb_kernel_call *call, const gb_worker *worker) {                      \
        const gb_cpu_tensor *x = call->operands[0], *keep = call->operands[1], *kept = call->results[0];     \
        FOR_ROWS_OF(worker, x, b)                                                                            \
        gb_##name##_mask(ROW(const float, x, b), ROW(const bool, keep, b), row_length(x),                    \
                         ITEM(type, call->operands[2], b), ROW(bool, kept, b));                              \
    }
#define GB_SETTING(number, NAME, name, dtype, neutral, metadata, kind, ...)                                  \
    GB_OF_MASKS(kind)(MASK_KERNEL(name, GB_C_TYPE(dtype)))
#include "program/roles.def"

void gb_kernel_random_bits(const gb_kernel_call *call, const gb_worker *worker) {
    const gb_cpu_tensor *bits = call->results[0];
    const uint64_t *seed = call->operands[0]->data;
    FOR_ROWS_OF(worker, bits, b)
    gb_random_bits(seed[b], row_length(bits), ROW(uint32_t, bits, b));
}

void gb_kernel_gumbel_noise(const gb_kernel_call *call, const gb_worker *worker) {
    const gb_cpu_tensor *bits = call->operands[0], *y = call->results[0];
    FOR_ROWS_OF(worker, bits, b)
    gb_gumbel_noise(ROW(const uint32_t, bits, b), row_length(bits), ROW(float, y, b));
}

void gb_kernel_argmax(const gb_kernel_call *call, const gb_worker *worker) {
    const gb_cpu_tensor *x = call->operands[0], *keep = call->operands[1];
    int32_t *index = call->results[0]->data;
    FOR_ROWS_OF(worker, x, b)
    index[b] = gb_argmax(ROW(const float, x, b), keep ? ROW(const bool, keep, b) : NULL, row_length(x));
}

/* An entry of row b, or what is neutral where the program lacks the operand. */
#define SETTING(type, operand, b, neutral)                                                                   \
    (call->operands[operand] ? ITEM(type, call->operands[operand], b) : (neutral))

static gb_row_settings settings_of(const gb_kernel_call *call, size_t b) {
    gb_row_settings settings = {.seed = ITEM(uint64_t, call->operands[GB_SAMPLE_SEED], b)};
#define GB_SETTING(number, NAME, name, dtype, neutral, metadata, kind, ...)                                  \
    GB_OF_DRAW(kind)(settings.name = SETTING(GB_C_TYPE(dtype), GB_SAMPLE_##NAME, b, neutral);)
#include "program/roles.def"
    return settings;
}

static gb_bias_list bias_of(const gb_kernel_call *call, size_t b) {
    const gb_cpu_tensor *ids = call->operands[GB_SAMPLE_BIAS_IDS],
                        *values = call->operands[GB_SAMPLE_BIAS_VALUES];
    if (!ids)
        return (gb_bias_list){.limit = 0};
    return (gb_bias_list){ROW(const int32_t, ids, b), ROW(const float, values, b), row_length(ids)};
}

static gb_penalties penalties_of(const gb_kernel_call *call, size_t b) {
    if (!call->operands[GB_SAMPLE_COUNTS])
        return (gb_penalties){.repetition = 1.0f};
    return gb_penalties_of(&call->operands[GB_SAMPLE_COUNTS], b);
}

/* NULL where every token is allowed. */
static const uint32_t *mask_of(const gb_kernel_call *call, size_t b) {
    const gb_cpu_tensor *masked = call->operands[GB_SAMPLE_MASKED];
    return masked && ITEM(bool, masked, b) ? ROW(const uint32_t, call->operands[GB_SAMPLE_MASK], b) : NULL;
}

void gb_kernel_sample(const gb_kernel_call *call, const gb_worker *worker) {
    const gb_cpu_tensor *logits = call->operands[GB_SAMPLE_LOGITS];
    int32_t *token = call->results[0]->data;
    FOR_ROWS_OF(worker, logits, b) {
        const gb_row_settings settings = settings_of(call, b);
        const gb_adjustments adjustments = {bias_of(call, b), penalties_of(call, b), mask_of(call, b)};
        token[b] = gb_sample_adjusted_row(ROW(float, logits, b), row_length(logits), &adjustments, &settings,
                                          worker->scratch);
    }
}
