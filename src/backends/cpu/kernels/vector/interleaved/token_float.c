/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cpu/kernels/vector/interleaved/span_scales.h"

/* A token in float32: lanes are rows, so that codes need not be taken apart by rows, and the 16 partial
 * sums of each row are 16 registers. */

enum { SPAN = GB_SUPER_GROUP };

/* What the products of a group need of its 16 rows. */
typedef struct affine {
    gb_lanes scale, bias;
} affine;

/* Four inputs, which have the partial sums of sums[0] .. sums[3]. */
GB_INLINE void add_step(gb_codes codes, bool has_offset, int32_t center, const affine *a, const float *x,
                        gb_lanes *sums) {
#pragma GCC unroll 4
    for (int j = 0; j < 4; j++)
#pragma GCC unroll 4
        for (int p = 0; p < GB_PARTS; p++) {
            const gb_vector_integers code = (gb_vector_integers)(codes.part[p] >> 8 * j & 255u) - center;
            gb_vector weight = __builtin_convertvector(code, gb_vector) * a->scale.part[p];
            if (has_offset)
                weight += a->bias.part[p];
            sums[j].part[p] += weight * x[j];
        }
}

/* A unit of 16 inputs. */
GB_INLINE void add_unit(int kind, bool has_offset, int32_t center, gb_code_place *at, bool is_odd,
                        const affine *a, const float *x, gb_lanes *sums) {
    const int bits = gb_kind_bits(kind), chunk_steps = gb_chunk_steps(bits);
    const gb_codes high = gb_has_high_bits(bits) ? gb_high_of_unit(bits, at, is_odd) : gb_load_codes(at->low);
#pragma GCC unroll 4
    for (int s = 0; s < GB_UNIT_STEPS; s++) {
        const gb_codes chunk = gb_load_codes(at->low + GB_CHUNK * (s / chunk_steps));
        gb_codes codes = gb_codes_of_step(bits, chunk, high, s);
        if (kind >= GB_BY_BOOK)
            codes = gb_look_up(at->book, codes);
        add_step(codes, has_offset, center, a, x + 4 * s, sums + 4 * s);
    }
    at->low += GB_CHUNK * GB_UNIT_STEPS / chunk_steps;
    at->high += gb_high_step(bits, is_odd);
}

/* What the row has past the last whole unit, steps of bytes. */
GB_INLINE void add_rest(bool has_offset, int32_t center, const uint8_t *low, size_t count, const affine *a,
                        const float *x, gb_lanes *sums) {
    for (size_t i = 0; i < count; i += 4)
        add_step(gb_load_codes(low + i / 4 * GB_CHUNK), has_offset, center, a, x + i, sums + i);
}

/* The tree of gb_sum_lanes. */
GB_INLINE gb_lanes sum_of(const gb_lanes *sums) {
    gb_lanes sum;
#pragma GCC unroll 4
    for (int p = 0; p < GB_PARTS; p++) {
        gb_vector four[4];
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++)
            four[i] = (sums[i].part[p] + sums[i + 8].part[p]) + (sums[i + 4].part[p] + sums[i + 12].part[p]);
        sum.part[p] = (four[0] + four[2]) + (four[1] + four[3]);
    }
    return sum;
}

static gb_code_place place_of(const gb_quantized_matrix *matrix, size_t row, const gb_raised_book *book) {
    const gb_plane *plane = &matrix->planes.codes;
    const uint8_t *low = gb_interleaved_block(matrix, plane, row, 0);
    const size_t bits = matrix->format.bits, low_bits = gb_low_bits(matrix->format.bits);
    const size_t low_bytes = plane->row_bytes * GB_ROWS / bits * low_bits;
    return (gb_code_place){low, bits > low_bits ? low + low_bytes : low, 0, 0, book};
}

GB_INLINE gb_lanes multiply_block(int kind, bool has_offset, const gb_quantized_matrix *matrix, size_t row,
                                  const float *x, size_t inputs) {
    const int32_t center = kind >= GB_BY_BOOK ? GB_BOOK_RAISE : has_offset ? 0 : 1 << (kind - 1);
    const gb_raised_book book = gb_raise_book(matrix->format.book);
    const size_t group = (size_t)matrix->planes.group;
    gb_code_place at = place_of(matrix, row, &book);
    gb_span_scales by;
    gb_lanes sums[GB_LANES];
#pragma GCC unroll 16
    for (int i = 0; i < GB_LANES; i++)
        sums[i] = gb_zero_lanes();
    for (size_t first = 0, run; first < inputs; first += run) {
        run = inputs - first < SPAN ? inputs - first : SPAN;
        gb_load_span_scales(matrix, row, first / group, (run + group - 1) / group, &by);
        for (size_t g = 0, i = 0; i < run; g++) {
            const affine a = {gb_load_lanes(by.scales[g], GB_F32, 0),
                              has_offset ? gb_load_lanes(by.biases[g], GB_F32, 0) : gb_zero_lanes()};
            for (const size_t end = run - i < group ? run : i + group; i < end; i += GB_UNIT, x += GB_UNIT)
                if (kind == 8 && run - i < GB_UNIT)
                    add_rest(has_offset, center, at.low, run - i, &a, x, sums);
                else
                    add_unit(kind, has_offset, center, &at, i / GB_UNIT % 2 == 1, &a, x, sums);
        }
    }
    return sum_of(sums);
}

#define FORMATS(kind)                                                                                        \
    GB_NO_INLINE gb_lanes multiply_##kind(const gb_quantized_matrix *matrix, size_t row, const float *x,     \
                                          size_t inputs) {                                                   \
        return gb_format_has_offset(&matrix->format) ? multiply_block(kind, true, matrix, row, x, inputs)    \
                                                     : multiply_block(kind, false, matrix, row, x, inputs);  \
    }
#define BOOK(kind)                                                                                           \
    GB_NO_INLINE gb_lanes multiply_##kind(const gb_quantized_matrix *matrix, size_t row, const float *x,     \
                                          size_t inputs) {                                                   \
        return multiply_block(kind, false, matrix, row, x, inputs);                                          \
    }
FORMATS(2)
FORMATS(3)
FORMATS(4)
FORMATS(5)
FORMATS(6)
FORMATS(8)
BOOK(19)
BOOK(20)

static gb_lanes multiply(const gb_quantized_matrix *matrix, size_t row, const float *x, size_t inputs) {
    static gb_lanes (*const kernels[GB_KINDS])(const gb_quantized_matrix *matrix, size_t row, const float *x,
                                               size_t inputs) = {
        [2] = multiply_2, [3] = multiply_3, [4] = multiply_4,   [5] = multiply_5,
        [6] = multiply_6, [8] = multiply_8, [19] = multiply_19, [20] = multiply_20,
    };
    return kernels[gb_kind_of(&matrix->format)](matrix, row, x, inputs);
}

/* Several tokens take the block one after the other, while it is in the cache. */
void GB_FOR_ISA(gb_linear_token_float)(const gb_linear *l, size_t first, size_t end) {
    for (size_t row = first, stop; row < end; row = stop) {
        const size_t in_block = (l->first_row + row) % GB_ROWS;
        stop = end - row < GB_ROWS - in_block ? end : row + GB_ROWS - in_block;
        for (size_t token = 0; token < l->tokens; token++) {
            float results[GB_ROWS];
            const float *x = gb_linear_input(l, token);
            gb_store_lanes(results, multiply(l->quantized, l->first_row + row - in_block, x, l->inputs));
            memcpy(gb_linear_result(l, token) + row, results + in_block, (stop - row) * sizeof *results);
        }
    }
}
