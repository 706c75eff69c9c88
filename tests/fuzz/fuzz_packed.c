/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes as a configuration (up to the first zero byte) and a safetensors file (after it): refused, or the
 * packed matrix, or that of 8-bit floats, that the configuration's keys name, rows and columns ask for can be
 * read.
 */
#include "base/memory.h"
#include "export/packed/fp8.h"
#include "export/packed/packed.h"

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_SIZE = 512 };

/* Reads every row into planes of one row, and dequantizes it. */
static void read_rows(const gb_packed *packed) {
    gb_planes planes;
    if (!gb_format_planes(&packed->format, 1, packed->columns, &planes))
        return;
    uint8_t *bytes = gb_allocate((size_t)planes.size, 1);
    float *values = gb_allocate((size_t)packed->columns, sizeof *values);
    for (uint64_t row = 0; bytes && values && row < packed->rows; row++) {
        gb_imported_row to = {.codes = bytes + planes.codes.offset,
                              .scales = bytes + planes.scales.offset,
                              .biases = packed->format.has_bias ? bytes + planes.biases.offset : NULL};
        gb_packed_rows(packed, row, 1, &to);
        gb_format_dequantize(&packed->format, &planes, bytes, 0, 0, packed->columns, values);
        gb_packed_release(packed, row, 1);
    }
    gb_free(values);
    gb_free(bytes);
}

static void read_floats(const gb_fp8_found *found, const int64_t dims[2]) {
    const uint8_t *const parts[] = {found->matrix.codes};
    const gb_stacked_bytes codes = {.parts = parts};
    const gb_fp8_tensors tensors = {&found->matrix, 1};
    float values[MAX_SIZE];
    for (uint64_t row = 0; row < (uint64_t)dims[0]; row++)
        gb_fp8_read(&tensors, &codes, (uint64_t)dims[1], row, 0, (uint64_t)dims[1], values);
}

static void find_floats(const gb_quantization *packing, const gb_checkpoint *checkpoint, const char *name,
                        const int64_t dims[2]) {
    gb_fp8_found found;
    bool is_found = false;
    if (gb_fp8_find(packing, checkpoint, name, dims, &found, &is_found, NULL) == GUMBEL_OK && is_found)
        read_floats(&found, dims);
    const int64_t stack[] = {2, dims[0], dims[1]};
    if (gb_fp8_find_stack(packing, checkpoint, name, stack, &found, &is_found, NULL) != GUMBEL_OK ||
        !is_found)
        return;
    for (uint64_t i = 0; i < 2; i++) {
        gb_fp8_found member = found;
        member.matrix = gb_fp8_member(&found, 2, i);
        read_floats(&member, dims);
    }
}

static void find_matrix(const gb_config *root, const gb_checkpoint *checkpoint) {
    gb_quantization packing;
    if (gb_quantization_read(root, &packing, NULL) != GUMBEL_OK)
        return;
    const int64_t dims[] = {gb_config_integer(root, "rows", 4, 1, MAX_SIZE),
                            gb_config_integer(root, "columns", 64, 1, MAX_SIZE)};
    const char *name = gb_config_string(root, "name", "m.weight");
    gb_packed packed = {0};
    bool is_found = false;
    gb_packed_has(&packing, checkpoint, name);
    if (gb_packed_find(&packing, checkpoint, name, 2, dims, &packed, &is_found, NULL) == GUMBEL_OK &&
        is_found)
        read_rows(&packed);
    gb_packed_free(&packed);
    find_floats(&packing, checkpoint, name, dims);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const uint8_t *end = size ? memchr(data, 0, size) : NULL;
    size_t length = end ? (size_t)(end - data) : 0;
    json_t *object = end ? json_loadb((const char *)data, length, 0, NULL) : NULL;
    gb_config_file *config = NULL;
    gb_checkpoint *checkpoint = NULL;
    if (json_is_object(object) && gb_config_from_json("fuzz", object, &config, NULL) == GUMBEL_OK &&
        gb_checkpoint_parse("fuzz", end + 1, size - length - 1, &checkpoint, NULL) == GUMBEL_OK) {
        gb_config root = gb_config_root(config);
        find_matrix(&root, checkpoint);
    }
    gb_checkpoint_close(checkpoint);
    gb_config_close(config);
    json_decref(object);
    return 0;
}
