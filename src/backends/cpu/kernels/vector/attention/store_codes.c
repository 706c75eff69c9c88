/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cpu/kernels/vector/hadamard.h"
#include "backends/cpu/kernels/vector/vector_sources.h"
#include "tensor/cache_codes.h"

/* Blocks are whole groups, so that the rotated ones of a long row need no room of their own. */
void GB_FOR_ISA(gb_store_codes)(const float *x, size_t count, gb_dtype dtype, uint32_t rotation, void *row) {
    const size_t block = rotation > GB_CODE_GROUP ? rotation : GB_CODE_GROUP;
    const size_t group_codes = gb_code_bytes(dtype, GB_CODE_GROUP);
    uint8_t *codes = row, *scales = codes + gb_code_bytes(dtype, count);
    for (size_t at = 0; at < count; at += block) {
        _Alignas(64) float rotated[GB_MOST_HADAMARD];
        if (rotation > 0)
            gb_hadamard_orthonormal(x + at, block, rotation, rotated);
        const float *from = rotation > 0 ? rotated : x + at;
        for (size_t i = 0; i < block; i += GB_CODE_GROUP) {
            gb_round_group(from + i, dtype, codes, scales);
            codes += group_codes;
            scales += gb_code_scale_bytes(GB_CODE_GROUP);
        }
    }
}
