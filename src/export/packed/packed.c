/* SPDX-License-Identifier: Apache-2.0 */
#include "export/packed/packed.h"

#include "base/file_map.h"
#include "export/packed/parts.h"

typedef gumbel_status (*find_function)(const gb_packed_query *query, gb_packed *packed, bool *is_found,
                                       gumbel_error *error);
typedef bool (*name_function)(const gb_packed_query *query, char text[GB_PACKED_NAME]);

typedef struct method {
    find_function find;
    name_function name;
} method;

/* A checkpoint whose configuration is silent may be one of ExecuTorch's, which are torchao's. */
static const method METHODS[] = {
    [GB_QUANTIZATION_NONE] = {gb_packed_find_torchao, gb_packed_torchao_name},
    [GB_QUANTIZATION_MLX] = {gb_packed_find_mlx, gb_packed_mlx_name},
    [GB_QUANTIZATION_COMPRESSED_TENSORS] = {gb_packed_find_compressed, gb_packed_compressed_name},
    [GB_QUANTIZATION_TORCHAO] = {gb_packed_find_torchao, gb_packed_torchao_name},
};

gumbel_status gb_packed_find(const gb_quantization *packing, const gb_checkpoint *checkpoint,
                             const char *name, int32_t rank, const int64_t *dims, gb_packed *packed,
                             bool *is_found, gumbel_error *error) {
    gb_packed_query query = {
        .packing = packing, .checkpoint = checkpoint, .name = name, .rank = rank, .dims = dims};
    *packed = (gb_packed){.rows = 1, .columns = (uint64_t)dims[rank - 1]};
    *is_found = false;
    for (int32_t i = 0; i < rank - 1; i++)
        packed->rows *= (uint64_t)dims[i]; /* of sizes that config.json may have: no overflow */
    GB_TRY(METHODS[packing->method].find(&query, packed, is_found, error));
    return *is_found ? gb_packed_choose_format(&query, packed, error) : GUMBEL_OK;
}

bool gb_packed_has(const gb_quantization *packing, const gb_checkpoint *checkpoint, const char *name) {
    gb_packed_query query = {.packing = packing, .checkpoint = checkpoint, .name = name};
    char text[GB_PACKED_NAME];
    return METHODS[packing->method].name(&query, text) && gb_checkpoint_find(checkpoint, text);
}

bool gb_packed_uses(const gb_packed *packed, const gb_tensor *tensor) {
    return tensor == packed->codes || tensor == packed->scales || tensor == packed->offsets ||
           tensor == packed->shape;
}

static void release_rows(const gb_tensor *tensor, const gb_packed *packed, uint64_t first, uint64_t count) {
    uint64_t row_bytes = tensor->size / packed->rows;
    gb_release_pages(tensor->data + first * row_bytes, count * row_bytes);
}

void gb_packed_release(const gb_packed *packed, uint64_t first, uint64_t count) {
    release_rows(packed->codes, packed, first, count);
    if (packed->row_stride == 1) /* a column for each row: all are read until the end */
        return;
    release_rows(packed->scales, packed, first, count);
    if (packed->offset_kind == GB_OFFSETS_BIASES)
        release_rows(packed->offsets, packed, first, count);
}
