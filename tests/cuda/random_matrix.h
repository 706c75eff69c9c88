/* SPDX-License-Identifier: Apache-2.0
 *
 * Random quantized matrices on the device, with their canonical bytes beside them.
 */
#ifndef GUMBEL_TESTS_CUDA_RANDOM_MATRIX_H
#define GUMBEL_TESTS_CUDA_RANDOM_MATRIX_H

#include "cuda/device_memory.h"
#include "cuda/packed_tiles.h"
#include "tensor/convert.h"

typedef struct matrix_case {
    gb_format format;
    size_t outputs, inputs, rotation;
    bool is_in_fragments; /* if it can be; otherwise in tiles if it can be, with zeros */
} matrix_case;

typedef struct matrix {
    const matrix_case *of;
    uint8_t *data; /* canonical */
    gb_planes planes;
    gb_cuda_tensor tensor;
} matrix;

static inline void put_halves(const matrix *m, const gb_plane *plane, size_t row, uint64_t *random) {
    for (size_t at = 0; at < plane->row_bytes; at += sizeof(uint16_t)) {
        const float value = next_float(random);
        const uint16_t half =
            m->of->format.scale == GB_BF16 ? gb_bf16_from_float(value) : gb_f16_from_float(value);
        memcpy(m->data + plane->offset + row * plane->row_bytes + at, &half, sizeof half);
    }
}

static inline uint8_t random_group(uint32_t bits, uint64_t *random) {
    const uint32_t zero = next_random(random) % (1u << bits);
    const uint32_t scale = 1 + next_random(random) % gb_largest_group_scale(bits, zero);
    return gb_put_group_integers(bits, (gb_group_integers){zero, scale});
}

static inline void fill(matrix *m, size_t rows, uint64_t *random) {
    const gb_format *format = &m->of->format;
    const bool has_groups = format->kind == GB_FORMAT_PROGRESSIVE;
    for (uint64_t i = 0; i < m->planes.size; i++)
        m->data[i] = (uint8_t)next_random(random);
    for (size_t row = 0; row < rows; row++) {
        put_halves(m, has_groups ? &m->planes.super_scales : &m->planes.scales, row, random);
        put_halves(m, &m->planes.biases, row, random);
        for (uint64_t g = 0; has_groups && g < m->planes.scales.row_bytes; g++)
            m->data[m->planes.scales.offset + row * m->planes.scales.row_bytes + g] =
                random_group(format->bits, random);
    }
}

/* Puts the matrix into fragments on the device; false where it cannot be. */
static inline bool put_fragments(matrix *m, size_t rows) {
    const matrix_case *c = m->of;
    gb_packing packing;
    if (!c->is_in_fragments || !gb_packing_fragments(&c->format, rows, c->inputs, &packing))
        return false;
    uint8_t *packed = malloc(m->planes.size);
    assert_non_null(packed);
    gb_pack_matrix(&packing, &c->format, rows, c->inputs, m->data, packed);
    m->tensor.data = device_copy(packed, m->planes.size);
    free(packed);
    return true;
}

/* The same in tiles, which zeros fill. */
static inline bool put_tiles(matrix *m, size_t experts) {
    const matrix_case *c = m->of;
    gb_planes planes;
    uint8_t *packed = c->is_in_fragments
                          ? NULL
                          : pack_in_tiles(&c->format, c->outputs, c->inputs, experts, m->data, &planes);
    if (!packed)
        return false;
    m->tensor.planes = planes;
    m->tensor.data = device_copy(packed, planes.size);
    free(packed);
    return true;
}

/* Of `experts` matrices, packed where it can be. */
static inline matrix new_matrix(const matrix_case *c, size_t experts, uint64_t *random) {
    matrix m = {.of = c};
    const size_t rows = experts * c->outputs;
    assert_true(gb_format_planes(&c->format, rows, c->inputs, &m.planes));
    m.data = malloc(m.planes.size);
    assert_non_null(m.data);
    fill(&m, rows, random);
    m.tensor = (gb_cuda_tensor){
        .dtype = GB_QUANTIZED, .rank = 2, .dims = {rows, c->inputs}, .format = c->format, .planes = m.planes};
    if (experts > 1) {
        m.tensor.rank = 3;
        m.tensor.dims[0] = experts;
        m.tensor.dims[1] = c->outputs;
        m.tensor.dims[2] = c->inputs;
    }
    m.tensor.is_packed = put_fragments(&m, rows) || put_tiles(&m, experts);
    if (!m.tensor.is_packed)
        m.tensor.data = device_copy(m.data, m.planes.size);
    return m;
}

static inline void free_matrix(matrix *m) {
    free_on_device(&m->tensor);
    free(m->data);
}

#endif
