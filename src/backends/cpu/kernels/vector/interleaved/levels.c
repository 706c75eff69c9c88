/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cpu/kernels/vector/interleaved/levels.h"

#include "backends/cpu/kernels/vector/interleaved/ahead.h"
#include "tensor/packing.h"

/* One token and a matrix of two levels. Scales are made of their integers in registers, four groups at a time
 * between the codes of these groups, so that both are prefetched all the while. */

enum { QUAD = 4 /* groups */ };

/* The token's activations. */
typedef struct input {
    size_t supers;
    const int8_t *codes;
    const float *scales, *sums;
    const int32_t *starts; /* of each group's integer sum */
    gb_raised_book book;
    float unit; /* of the book */
} input;

/* 16 rows. Codes are prefetched some super-groups before they are used, the few bytes of scales and biases a
 * block before. */
typedef struct block {
    gb_stream low, high; /* codes, their high bits */
    size_t lead;         /* super-groups */
    gb_levels scales, biases;
} block;

/* ---- Products ------------------------------------------------------------------------------------------ */

/* Four groups of inputs from group g on; returns where the next one's x begins. */
GB_INLINE const int8_t *add_quad(int kind, size_t group, const input *in, size_t g, gb_code_place *at,
                                 const int8_t *x, const gb_lanes *scales, const gb_lanes *biases,
                                 gb_lanes *y) {
    const bool has_start = !biases || kind == 8;
    bool is_odd = false;
#pragma GCC unroll 4
    for (size_t i = 0; i < QUAD; i++) {
        gb_wide sums[1][GB_TOKENS];
        sums[0][0] = gb_fill_wide(has_start ? in->starts[g + i] : 0);
        x = gb_add_inputs(kind, 1, 1, group, at, &is_odd, x, sums);
        *y = gb_add_product(*y, gb_multiply_by(scales[i], in->scales[g + i]), gb_floats_of(sums[0][0]));
        if (biases)
            *y = gb_add_scaled(*y, in->sums[g + i], biases[i]);
    }
    return x;
}

/* The next four groups' scales: super * integer. */
GB_INLINE void next_scales(gb_levels *levels, uint32_t scale_bits, gb_lanes super, gb_lanes *scales) {
    const gb_integers four = gb_next_integers(levels, scale_bits);
#pragma GCC unroll 4
    for (int i = 0; i < QUAD; i++)
        scales[i] = gb_multiply_lanes(gb_floats_of(four.group[i]), super);
}

GB_INLINE void multiply_block(int kind, size_t group, uint32_t scale_bits, bool has_bias, const input *in,
                              block b, float *to) {
    const size_t groups = GB_SUPER_GROUP / group;
    gb_code_place at = {b.low.first, b.high.first, 0, 0, &in->book};
    const int8_t *x = in->codes;
    gb_lanes y = gb_zero_lanes();
    gb_stretch stretch = {.end = 0};
    for (size_t s = 0; s < in->supers; s++) {
        if (s == stretch.end) {
            stretch = gb_stretch_from(0, s, in->supers, b.lead);
            at.low_ahead = gb_bytes_ahead(&b.low, 0, 1, &stretch);
            at.high_ahead = gb_bytes_ahead(&b.high, 0, 1, &stretch);
        }
        gb_lanes super = gb_next_super(&b.scales);
        if (kind >= GB_BY_BOOK)
            super = gb_multiply_by(super, in->unit);
        const gb_lanes super_bias = has_bias ? gb_next_super(&b.biases) : gb_zero_lanes();
        for (size_t g = 0; g < groups; g += QUAD) {
            gb_lanes scales[QUAD], biases[QUAD];
            next_scales(&b.scales, scale_bits, super, scales);
            if (has_bias)
                next_scales(&b.biases, scale_bits, super_bias, biases);
#pragma GCC unroll 4
            for (int i = 0; has_bias && i < QUAD; i++)
                biases[i] = gb_negate_lanes(biases[i]);
            x = add_quad(kind, group, in, s * groups + g, &at, x, scales, has_bias ? biases : NULL, &y);
        }
    }
    gb_store_lanes(to, y);
}

#define ANY_FORMAT(kind)                                                                                     \
    GB_NO_INLINE void multiply_##kind(const gb_format *format, const input *in, const block *b, float *to) { \
        multiply_block(kind, format->group, format->scale_bits, format->has_bias, in, *b, to);               \
    }
ANY_FORMAT(2)
ANY_FORMAT(3)
ANY_FORMAT(4)
ANY_FORMAT(5)
ANY_FORMAT(6)
ANY_FORMAT(8)
ANY_FORMAT(19)
ANY_FORMAT(20)

/* The formats of GGUF's Q2_K to Q6_K and IQ4_XS. */
#define FORMAT(kind, group, scale_bits, has_bias)                                                            \
    GB_NO_INLINE void multiply_##kind##_g##group(const input *in, const block *b, float *to) {               \
        multiply_block(kind, group, scale_bits, has_bias, in, *b, to);                                       \
    }
FORMAT(2, 16, 4, true)
FORMAT(3, 16, 8, false)
FORMAT(4, 32, 6, true)
FORMAT(5, 32, 6, true)
FORMAT(6, 16, 8, false)
FORMAT(20, 32, 8, false)

/* Whether the format is that of a kernel above. */
static bool has_levels(const gb_format *f, uint32_t group, uint32_t scale_bits, bool has_bias) {
    return f->group == group && f->scale_bits == scale_bits && f->has_bias == has_bias;
}

static bool multiply_known(const gb_format *f, const input *in, const block *b, float *to) {
    const int kind = gb_kind_of(f);
    if (kind == 2 && has_levels(f, 16, 4, true))
        multiply_2_g16(in, b, to);
    else if (kind == 3 && has_levels(f, 16, 8, false))
        multiply_3_g16(in, b, to);
    else if (kind == 4 && has_levels(f, 32, 6, true))
        multiply_4_g32(in, b, to);
    else if (kind == 5 && has_levels(f, 32, 6, true))
        multiply_5_g32(in, b, to);
    else if (kind == 6 && has_levels(f, 16, 8, false))
        multiply_6_g16(in, b, to);
    else if (kind == 20 && has_levels(f, 32, 8, false))
        multiply_20_g32(in, b, to);
    else
        return false;
    return true;
}

static void multiply(const gb_format *f, const input *in, const block *b, float *to) {
    static void (*const kernels[GB_KINDS])(const gb_format *format, const input *in, const block *b,
                                           float *to) = {
        [2] = multiply_2, [3] = multiply_3, [4] = multiply_4,   [5] = multiply_5,
        [6] = multiply_6, [8] = multiply_8, [19] = multiply_19, [20] = multiply_20,
    };
    if (!multiply_known(f, in, b, to))
        kernels[gb_kind_of(f)](f, in, b, to);
}

/* ---- Blocks of rows ------------------------------------------------------------------------------------ */

static const uint8_t *plane_at(const gb_quantized_matrix *matrix, const gb_plane *plane, size_t row) {
    return (const uint8_t *)matrix->data + plane->offset + row * plane->row_bytes;
}

static gb_levels levels_at(const gb_quantized_matrix *matrix, const gb_plane *supers,
                           const gb_plane *integers, size_t row) {
    const uint8_t *low = plane_at(matrix, integers, row);
    return (gb_levels){plane_at(matrix, supers, row), low, low + integers->row_bytes / 6 * 4 * GB_ROWS, 0, 0};
}

static block block_at(const gb_quantized_matrix *matrix, size_t row) {
    const gb_planes *planes = &matrix->planes;
    const size_t bits = matrix->format.bits, low_bits = gb_low_bits(matrix->format.bits);
    const size_t input_bytes = GB_SUPER_GROUP * GB_ROWS / 8; /* of a super-group's codes, a bit of each */
    block b = {.low = {.first = plane_at(matrix, &planes->codes, row),
                       .block_bytes = planes->codes.row_bytes * GB_ROWS,
                       .group_bytes = low_bits * input_bytes},
               .lead = gb_lead_of(bits * input_bytes),
               .scales = levels_at(matrix, &planes->super_scales, &planes->scales, row)};
    b.high = b.low;
    b.high.first += b.low.block_bytes / bits * low_bits;
    b.high.group_bytes = (bits - low_bits) * input_bytes;
    if (matrix->format.has_bias)
        b.biases = levels_at(matrix, &planes->super_biases, &planes->biases, row);
    return b;
}

static size_t distance(const uint8_t *from, const uint8_t *to) {
    return (uintptr_t)to - (uintptr_t)from;
}

/* What comes after the block is prefetched while it is multiplied. */
static void ask_ahead(block *b, const block *next) {
    b->low.next = next->low.first;
    b->high.next = next->high.first;
    b->scales.supers_ahead = distance(b->scales.supers, next->scales.supers);
    b->scales.integers_ahead = distance(b->scales.low, next->scales.low);
    b->biases.supers_ahead = distance(b->biases.supers, next->biases.supers);
    b->biases.integers_ahead = distance(b->biases.low, next->biases.low);
}

/* Looks up the pages of what comes some blocks after this one. */
static void find_pages(const gb_quantized_matrix *matrix, const block *b) {
    const gb_planes *planes = &matrix->planes;
    const size_t rows = (1 + GB_PAGE_LEAD_BYTES / b->low.block_bytes) * GB_ROWS;
    gb_find_page(b->low.first, rows * planes->codes.row_bytes);
    gb_find_page(b->scales.low, rows * planes->scales.row_bytes);
    gb_find_page(b->scales.supers, rows * planes->super_scales.row_bytes);
    if (!matrix->format.has_bias)
        return;
    gb_find_page(b->biases.low, rows * planes->biases.row_bytes);
    gb_find_page(b->biases.supers, rows * planes->super_biases.row_bytes);
}

static const int32_t *starts_of(const gb_linear *l, const int32_t *code_sums, int32_t *starts) {
    const int32_t start = gb_start_factor(&l->quantized->format);
    const size_t groups = l->activations->groups;
    for (size_t g = 0; g < groups; g++)
        starts[g] = start * code_sums[g];
    return starts;
}

static input input_of(const gb_linear *l, int32_t *starts) {
    const gb_activations *x = l->activations;
    const size_t row = gb_linear_input_row(l, 0);
    return (input){.supers = l->inputs / GB_SUPER_GROUP,
                   .codes = x->codes + row * x->stride,
                   .scales = x->scales + row * x->groups,
                   .sums = x->sums + row * x->groups,
                   .starts = starts_of(l, x->code_sums + row * x->groups, starts),
                   .book = gb_raise_book(l->quantized->format.book),
                   .unit = gb_book_unit(l->quantized->format.book)};
}

void GB_FOR_ISA(gb_linear_token_levels)(const gb_linear *l, size_t first, size_t end, void *scratch) {
    const gb_quantized_matrix *matrix = l->quantized;
    const input in = input_of(l, scratch);
    float *y = gb_linear_result(l, 0);
    for (size_t row = first, stop; row < end; row = stop) {
        _Alignas(64) float results[GB_ROWS];
        const size_t in_block = (l->first_row + row) % GB_ROWS;
        stop = end - row < GB_ROWS - in_block ? end : row + GB_ROWS - in_block;
        const size_t next = stop < end ? l->first_row + stop : l->next_row;
        block b = block_at(matrix, l->first_row + row - in_block);
        if (next != GB_NO_ROW) {
            const block then = block_at(matrix, next - next % GB_ROWS);
            ask_ahead(&b, &then);
        }
        find_pages(matrix, &b);
        multiply(&matrix->format, &in, &b, results);
        memcpy(y + row, results + in_block, (stop - row) * sizeof *results);
    }
}
