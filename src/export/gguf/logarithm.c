/* SPDX-License-Identifier: Apache-2.0 */
#include "export/gguf/logarithm.h"

#include "base/memory.h"

#include <math.h>
#include <string.h>

gumbel_status gb_gguf_take_logarithm(gb_tensor *tensor, float **values, gumbel_error *error) {
    *values = NULL;
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
