/* SPDX-License-Identifier: Apache-2.0 */
#include "export/gguf/changes.h"

#include "base/memory.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static void insert_dim(gb_tensor *tensor, int32_t at) {
    for (int32_t i = tensor->rank; i > at; i--)
        tensor->dims[i] = tensor->dims[i - 1];
    tensor->dims[at] = 1;
    tensor->rank++;
}

static gumbel_status take_logarithm(gb_tensor *tensor, float **values, gumbel_error *error) {
    if (tensor->dtype != GB_F32)
        return gb_fail(error, GUMBEL_ERROR_UNSUPPORTED, "tensor %s has dtype %s, expected F32", tensor->name,
                       tensor->dtype_name);
    size_t count = (size_t)(tensor->size / sizeof **values);
    *values = gb_allocate(count, sizeof **values);
    if (!*values)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "tensor %s: no memory for %zu values", tensor->name,
                       count);
    for (size_t i = 0; i < count; i++) {
        float value;
        memcpy(&value, tensor->data + i * sizeof value, sizeof value);
        if (!(value <= 0) || isinf(value)) {
            gb_free(*values);
            *values = NULL;
            return gb_fail(error, GUMBEL_ERROR_FORMAT,
                           "tensor %s: value %zu is %g, expected a finite one of 0 or below, as -exp() gives",
                           tensor->name, i, (double)value);
        }
        (*values)[i] = (float)log(-(double)value);
    }
    tensor->data = (const uint8_t *)*values;
    tensor->is_in_memory = true;
    return GUMBEL_OK;
}

gumbel_status gb_gguf_undo(gb_gguf_change change, gb_tensor *tensor, float **values, gumbel_error *error) {
    *values = NULL;
    if (change == GB_GGUF_NO_MIDDLE_DIM && tensor->rank == 2)
        insert_dim(tensor, 1);
    if (change == GB_GGUF_NO_FIRST_DIM && tensor->rank == 1)
        insert_dim(tensor, 0);
    return change == GB_GGUF_MINUS_EXP ? take_logarithm(tensor, values, error) : GUMBEL_OK;
}
