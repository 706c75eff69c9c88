/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes as a safetensors file: refused, or every tensor lies inside. Reading each tensor's first and last
 * byte lets the sanitizer check that.
 */
#include "export/checkpoint/safetensors.h"

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    gb_safetensors file;
    gumbel_error error;
    if (gb_safetensors_parse("fuzz", data, size, &file, &error) != GUMBEL_OK)
        return 0;
    volatile uint8_t sink = 0;
    for (size_t i = 0; i < file.tensor_count; i++)
        if (file.tensors[i].size > 0)
            sink = (uint8_t)(sink ^ file.tensors[i].data[0] ^ file.tensors[i].data[file.tensors[i].size - 1]);
    gb_safetensors_close(&file);
    return 0;
}
