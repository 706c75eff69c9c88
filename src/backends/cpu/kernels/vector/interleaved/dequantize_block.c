/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cpu/kernels/vector/interleaved/span_scales.h"

/* 16 rows at once: four codes of each row lie in one register, so that rows are taken apart four codes at a
 * time and only then widened. */

enum { SPAN = GB_SUPER_GROUP, STEPS = SPAN / 4 };

_Static_assert((int)SPAN == GB_DEQUANTIZED_SPAN, "a span holds whole super-groups");

/* Codes of a span, a byte each. */
typedef struct span {
    uint32_t codes[GB_ROWS][STEPS];
    gb_span_scales by;
} span;

/* ---- Codes --------------------------------------------------------------------------------------------- */

GB_INLINE void put_step(gb_codes codes, size_t step, span *to) {
    uint32_t rows[GB_ROWS];
    memcpy(rows, &codes, sizeof rows);
#pragma GCC unroll 16
    for (size_t r = 0; r < GB_ROWS; r++)
        to->codes[r][step] = rows[r];
}

GB_INLINE void unpack_units(int kind, gb_code_place at, size_t units, span *to) {
    const int bits = gb_kind_bits(kind), chunk_steps = gb_chunk_steps(bits);
    for (size_t u = 0; u < units; u++, at.low += GB_CHUNK * GB_UNIT_STEPS / chunk_steps) {
        const bool is_odd = u % 2 == 1;
        const gb_codes over =
            gb_has_high_bits(bits) ? gb_high_of_unit(bits, &at, is_odd) : gb_load_codes(at.low);
#pragma GCC unroll 4
        for (int s = 0; s < GB_UNIT_STEPS; s++) {
            const gb_codes chunk = gb_load_codes(at.low + GB_CHUNK * (s / chunk_steps));
            gb_codes codes = gb_codes_of_step(bits, chunk, over, s);
            if (kind >= GB_BY_BOOK)
                codes = gb_look_up(at.book, codes);
            put_step(codes, u * GB_UNIT_STEPS + (size_t)s, to);
        }
        at.high += gb_high_step(bits, is_odd);
    }
}

/* The codes of count inputs from first on, a multiple of 32. */
static void unpack_span(const gb_quantized_matrix *matrix, size_t row, size_t first, size_t count, span *to) {
    const gb_plane *plane = &matrix->planes.codes;
    const size_t bits = matrix->format.bits, low_bits = gb_low_bits(matrix->format.bits);
    const size_t row_inputs = plane->row_bytes * 8 / bits, units = count / GB_UNIT;
    const uint8_t *block = gb_interleaved_block(matrix, plane, row, 0);
    const gb_raised_book book = gb_raise_book(matrix->format.book);
    const gb_code_place at = {block + first * GB_ROWS * low_bits / 8,
                              block + (row_inputs * low_bits + first * (bits - low_bits)) * GB_ROWS / 8, 0, 0,
                              &book};
    switch (gb_kind_of(&matrix->format)) {
    case 2:
        unpack_units(2, at, units, to);
        break;
    case 3:
        unpack_units(3, at, units, to);
        break;
    case 4:
        unpack_units(4, at, units, to);
        break;
    case 5:
        unpack_units(5, at, units, to);
        break;
    case 6:
        unpack_units(6, at, units, to);
        break;
    case 19:
        unpack_units(19, at, units, to);
        break;
    case 20:
        unpack_units(20, at, units, to);
        break;
    default:
        for (size_t s = 0; s < count / 4; s++)
            put_step(gb_load_codes(block + (first / 4 + s) * GB_CHUNK), s, to);
    }
}

/* ---- Numbers ------------------------------------------------------------------------------------------- */

/* The steps and their order of gb_dequantize. Results come 16 at a time, the last ones perhaps past count. */
GB_INLINE void scale_group(const uint8_t *codes, size_t count, int32_t center, bool has_offset, float scale,
                           float bias, float *to) {
    for (size_t i = 0; i < count; i += GB_LANES) {
        gb_lanes lanes;
#pragma GCC unroll 4
        for (int p = 0; p < GB_PARTS; p++) {
            const gb_vector_bits bytes = gb_widen_bytes(codes + i + p * GB_VECTOR_LANES);
            lanes.part[p] = __builtin_convertvector((gb_vector_integers)bytes - center, gb_vector) * scale;
            if (has_offset)
                lanes.part[p] += bias;
        }
        gb_store_lanes(to + i, lanes);
    }
}

static void scale_row(const gb_format *format, const span *s, size_t r, size_t group, size_t count,
                      float *to) {
    const uint8_t *codes = (const uint8_t *)s->codes[r];
    for (size_t g = 0, first = 0; first < count; g++, first += group) {
        const size_t run = count - first < group ? count - first : group;
        if (gb_format_has_offset(format))
            scale_group(codes + first, run, 0, true, s->by.scales[g][r], s->by.biases[g][r], to + first);
        else
            scale_group(codes + first, run, gb_raise_of(format), false, s->by.scales[g][r], 0, to + first);
    }
}

void GB_FOR_ISA(gb_dequantize_block)(const gb_quantized_matrix *matrix, size_t row, size_t first,
                                     size_t count, float *to, size_t stride) {
    const size_t group = (size_t)matrix->planes.group, end = first + count;
    span s;
    for (size_t at = first; at < end; at += SPAN, to += SPAN) {
        const size_t run = end - at < SPAN ? end - at : SPAN;
        gb_load_span_scales(matrix, row, at / group, (run + group - 1) / group, &s.by);
        unpack_span(matrix, row, at, run, &s);
        for (size_t r = 0; r < GB_ROWS; r++)
            scale_row(&matrix->format, &s, r, group, run, to + r * stride);
    }
}
