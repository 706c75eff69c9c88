/* SPDX-License-Identifier: Apache-2.0
 *
 * Log-probabilities, for the rows that want them; sampler.h says what is computed.
 */
#include "backends/cpu/kernels/row_kernels.h"

void gb_kernel_log_normalizer(const gb_kernel_call *call, const gb_worker *worker) {
    const gb_cpu_tensor *x = call->operands[0];
    FOR_ROWS_OF(worker, x, b) {
        float *y = ROW(float, call->results[0], b);
        y[0] = y[1] = 0.0f;
        if (ITEM(bool, call->operands[1], b))
            gb_log_normalizer(ROW(const float, x, b), row_length(x), y);
    }
}

void gb_kernel_log_probability(const gb_kernel_call *call, const gb_worker *worker) {
    const gb_cpu_tensor *x = call->operands[0], *normalizer = call->operands[1], *ids = call->operands[2];
    const size_t each = ids->rank == 2 ? ids->dims[1] : 1;
    float *y = call->results[0]->data;
    FOR_ROWS_OF(worker, x, b) {
        for (size_t i = b * each; i < (b + 1) * each; i++)
            y[i] = gb_log_probability(ROW(const float, x, b), row_length(x), ROW(const float, normalizer, b),
                                      ITEM(int32_t, ids, i));
    }
}

void gb_kernel_top_ids(const gb_kernel_call *call, const gb_worker *worker) {
    const gb_cpu_tensor *x = call->operands[0], *ids = call->results[0];
    FOR_ROWS_OF(worker, x, b) {
        int32_t *row = ROW(int32_t, ids, b);
        if (ITEM(bool, call->operands[1], b))
            gb_top_ids(ROW(const float, x, b), row_length(x), row_length(ids), row);
        for (size_t i = 0; !ITEM(bool, call->operands[1], b) && i < ids->dims[1]; i++)
            row[i] = -1;
    }
}
