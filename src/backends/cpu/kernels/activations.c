/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cpu/kernels/vector/vector_kernels.h"
#include "base/memory.h"

enum { CODE_ALIGNMENT = 64 };

size_t gb_activation_group(const gb_format *format) {
    return format->group ? format->group : GB_INT8_ROW_GROUP;
}

static size_t groups_of(size_t inputs, size_t group) {
    return inputs / group + (inputs % group != 0);
}

bool gb_activations_bytes(size_t rows, size_t inputs, size_t group, uint64_t *bytes) {
    const uint64_t group_bytes = 2 * sizeof(float) + sizeof(int32_t);
    uint64_t codes, numbers;
    return gb_align_size(inputs, CODE_ALIGNMENT, &codes) && gb_multiply_size(codes, rows, &codes) &&
           gb_multiply_size(groups_of(inputs, group), group_bytes, &numbers) &&
           gb_multiply_size(numbers, rows, &numbers) && gb_add_size(codes, numbers, bytes);
}

gb_activations gb_place_activations(void *memory, size_t rows, size_t inputs, size_t group) {
    gb_activations placed = {.rows = rows, .inputs = inputs, .group = group};
    placed.groups = groups_of(inputs, group);
    placed.stride = (inputs + CODE_ALIGNMENT - 1) / CODE_ALIGNMENT * CODE_ALIGNMENT;
    placed.codes = memory;
    placed.scales = (float *)(void *)(placed.codes + rows * placed.stride);
    placed.sums = placed.scales + rows * placed.groups;
    placed.code_sums = (int32_t *)(void *)(placed.sums + rows * placed.groups);
    return placed;
}
