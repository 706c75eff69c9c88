/* SPDX-License-Identifier: Apache-2.0 */
#include "export/quantize/write_quantized.h"

#include "base/file_map.h"
#include "base/memory.h"
#include "export/parallel.h"
#include "export/quantize/finite.h"
#include "export/random_weights.h"
#include "tensor/convert.h"

#include <stdatomic.h>
#include <string.h>

static const uint64_t PIECE_WEIGHTS = 16 << 20;

typedef struct quantized_writer {
    gb_writer *writer;
    const gb_constant *constant;
    const gb_quantized_source *source;
    const gb_written_callback *written;
    unsigned threads;
    gb_planes planes;
    uint64_t rows, columns, groups; /* groups of a row */
    uint64_t piece_rows;
    uint64_t code_bytes, begin; /* of the tensor; what of it is a multiple of GB_PLANE_ALIGNMENT */
    uint8_t *codes;             /* of a piece */
    uint8_t *others;            /* the constant's bytes from `begin` on: planes are aligned */
    float *values;              /* thread_values for each thread: rows */
    uint64_t thread_values;
    uint64_t first;            /* row of the piece */
    atomic_uint_least64_t bad; /* the lowest row that cannot be quantized; rows: none */
} quantized_writer;

/* ---- Rows of a tensor ---------------------------------------------------------------------------------- */

uint64_t gb_source_row_bytes(const gb_quantized_source *source, uint64_t columns) {
    return source->fp8.list ? gb_fp8_row_bytes(source->fp8.list, columns)
                            : columns * gb_dtype_size(source->dtype);
}

void gb_read_source_row(const gb_quantized_source *source, uint64_t columns, uint64_t row, float *to) {
    if (source->fp8.list) {
        gb_fp8_read(&source->fp8, &source->data, columns, row, 0, columns, to);
        return;
    }
    const uint8_t *from = gb_stacked_row(&source->data, row, gb_source_row_bytes(source, columns));
    if (source->dtype == GB_F32) {
        memcpy(to, from, columns * sizeof *to);
        return;
    }
    for (uint64_t i = 0; i < columns; i++) {
        uint16_t half;
        memcpy(&half, from + 2 * i, sizeof half);
        to[i] = source->dtype == GB_BF16 ? gb_float_from_bf16(half) : gb_float_from_f16(half);
    }
}

static void report_bad(quantized_writer *w, uint64_t row) {
    uint64_t lowest = atomic_load(&w->bad);
    while (row < lowest && !atomic_compare_exchange_weak(&w->bad, &lowest, row))
        ;
}

/* A row as it is quantized. */
static void read_rotated_row(const quantized_writer *w, uint64_t row, float *to) {
    gb_read_source_row(w->source, w->columns, row, to);
    if (w->source->rotation > 0)
        gb_rotate_row(to, w->columns, w->source->rotation);
}

static gb_quantized_row row_of_piece(const quantized_writer *w, size_t i) {
    return gb_quantized_row_in(&w->constant->format, &w->planes, w->first + i,
                               w->codes + i * w->planes.codes.row_bytes, w->others, w->begin);
}

static void quantize_rows(void *user, unsigned thread, size_t first, size_t end) {
    quantized_writer *w = user;
    float *values = w->values + thread * w->thread_values;
    for (size_t i = first; i < end; i++) {
        const gb_quantized_row to = row_of_piece(w, i);
        read_rotated_row(w, w->first + i, values);
        if (!gb_quantize_row(w->source->method, &w->constant->format, values, w->columns, &to))
            report_bad(w, w->first + i);
    }
}

/* The same by feedback, several rows at once. */
static void quantize_with_feedback(void *user, unsigned thread, size_t first, size_t end) {
    quantized_writer *w = user;
    float *values = w->values + thread * w->thread_values;
    gb_quantized_row to[GB_FEEDBACK_ROWS];
    for (size_t i = first; i < end;) {
        size_t count = 0;
        for (; count < GB_FEEDBACK_ROWS && i + count < end; count++) {
            read_rotated_row(w, w->first + i + count, values + count * w->columns);
            to[count] = row_of_piece(w, i + count);
        }
        const uint64_t bad =
            gb_quantize_rows(w->source->method, &w->constant->format, w->source->feedback, values, count, to);
        if (bad < count)
            report_bad(w, w->first + i + bad);
        i += count;
    }
}

/* ---- Drawn codes and scales ---------------------------------------------------------------------------- */

static void draw_codes(void *user, unsigned thread, size_t first, size_t end) {
    quantized_writer *w = user;
    (void)thread;
    uint64_t row_bytes = w->planes.codes.row_bytes;
    gb_random_bytes(w->source->stream, (w->first + first) * row_bytes, (end - first) * row_bytes,
                    w->codes + first * row_bytes);
}

/* A plane of 16-bit numbers from the others. */
static uint16_t *halves_of(const quantized_writer *w, const gb_plane *plane) {
    return (uint16_t *)(void *)(w->others + (plane->offset - w->begin));
}

/* A fourth around the scale with which evenly drawn codes have the right width. */
static void draw_halves(const quantized_writer *w, float scale, size_t first, size_t count, uint16_t *to) {
    gb_random_fill(gb_random_stream(w->source->stream, "scales"), (gb_uniform){0.75f * scale, 1.25f * scale},
                   w->constant->format.scale, first, count, to);
}

/* And biases that center them. */
static void draw_scales(const quantized_writer *w, float width, size_t first, size_t end) {
    const gb_format *format = &w->constant->format;
    const float steps = (float)((1u << format->bits) - 1u);
    uint16_t *scales = halves_of(w, &w->planes.scales);
    uint16_t *biases = format->has_bias ? halves_of(w, &w->planes.biases) : NULL;
    draw_halves(w, width / steps, first, end - first, scales + first);
    for (size_t i = first; format->has_bias && i < end; i++) {
        float bias = gb_widen_half(scales[i], format->scale) * (-0.5f * steps);
        biases[i] = gb_round_half(bias, format->scale);
    }
}

/* Zeros at the middle, and scales from the largest that goes with them down to half of it. */
static void draw_groups(const quantized_writer *w, float width, size_t first, size_t end) {
    const uint32_t bits = w->constant->format.bits, middle = (1u << (bits - 1)) - 1;
    const uint32_t most = gb_largest_group_scale(bits, middle), scales = (most + 1) / 2;
    const float mean = (float)most - 0.5f * (float)(scales - 1), steps = (float)((1u << bits) - 1u);
    uint8_t *bytes = w->others + (w->planes.scales.offset - w->begin);
    gb_random_bytes(gb_random_stream(w->source->stream, "groups"), first * w->groups,
                    (end - first) * w->groups, bytes + first * w->groups);
    for (size_t i = first * w->groups; i < end * w->groups; i++)
        bytes[i] = gb_put_group_integers(
            bits, (gb_group_integers){middle + (bytes[i] & 1), most - (uint32_t)(bytes[i] >> 1) % scales});
    draw_halves(w, width / (steps * mean), first, end - first, halves_of(w, &w->planes.super_scales) + first);
}

/* Rows first .. end - 1. */
static void draw_others(void *user, unsigned thread, size_t first, size_t end) {
    const quantized_writer *w = user;
    (void)thread;
    const float width = 2.0f * w->source->half_width;
    if (w->constant->format.kind == GB_FORMAT_PROGRESSIVE)
        draw_groups(w, width, first, end);
    else
        draw_scales(w, width, first * w->groups, end * w->groups);
}

/* ---- Writing ------------------------------------------------------------------------------------------- */

static gumbel_status write_bytes(const quantized_writer *w, const void *data, uint64_t size,
                                 gumbel_error *error) {
    GB_TRY(gb_writer_write(w->writer, data, size, error));
    return w->written->advance(w->written->user, size, error);
}

/* A row that no scales fit: it is not finite, or too large. */
static gumbel_status refuse_row(const quantized_writer *w, uint64_t row, gumbel_error *error) {
    gb_read_source_row(w->source, w->columns, row, w->values);
    GB_TRY(gb_check_finite_row(w->constant, w->values, row, error));
    return gb_fail(error, GUMBEL_ERROR_FORMAT, "tensor %s: row %llu holds a number too large for %s scales",
                   w->constant->name, (unsigned long long)row, gb_dtype_name(w->constant->format.scale));
}

static gumbel_status write_piece(quantized_writer *w, uint64_t count, gumbel_error *error) {
    const gb_quantized_source *source = w->source;
    const gb_parallel_work work = !source->data.parts ? draw_codes
                                  : source->feedback  ? quantize_with_feedback
                                                      : quantize_rows;
    gb_parallel_for(w->threads, (size_t)count, work, w);
    uint64_t bad = atomic_load(&w->bad);
    if (bad < w->rows)
        return refuse_row(w, bad, error);
    if (source->is_mapped)
        gb_release_stacked(&source->data, w->first, count, gb_source_row_bytes(source, w->columns));
    return write_bytes(w, w->codes, count * w->planes.codes.row_bytes, error);
}

static gumbel_status write_all(quantized_writer *w, gumbel_error *error) {
    for (w->first = 0; w->first < w->rows; w->first += w->piece_rows) {
        uint64_t left = w->rows - w->first;
        GB_TRY(write_piece(w, left < w->piece_rows ? left : w->piece_rows, error));
    }
    if (!w->source->data.parts)
        gb_parallel_for(w->threads, (size_t)w->rows, draw_others, w);
    return write_bytes(w, w->others + (w->code_bytes - w->begin), w->planes.size - w->code_bytes, error);
}

static bool reserve(quantized_writer *w) {
    uint64_t rows = PIECE_WEIGHTS / w->columns;
    w->piece_rows = rows < 1 ? 1 : rows < w->rows ? rows : w->rows;
    w->code_bytes = w->rows * w->planes.codes.row_bytes; /* within planes.size */
    w->begin = w->code_bytes / GB_PLANE_ALIGNMENT * GB_PLANE_ALIGNMENT;
    const size_t others = (size_t)(w->planes.size - w->begin);
    w->codes = gb_allocate((size_t)w->piece_rows, (size_t)w->planes.codes.row_bytes);
    w->others = gb_allocate_aligned(others, 1);
    w->thread_values = w->columns * (w->source->feedback ? GB_FEEDBACK_ROWS : 1);
    w->values = gb_allocate((size_t)w->thread_values * w->threads, sizeof *w->values);
    if (!w->codes || !w->others || !w->values)
        return false;
    memset(w->others, 0, others);
    return true;
}

gumbel_status gb_write_quantized(gb_writer *writer, const gb_constant *constant,
                                 const gb_quantized_source *source, unsigned threads,
                                 const gb_written_callback *written, gumbel_error *error) {
    quantized_writer w = {
        .writer = writer, .constant = constant, .source = source, .written = written, .threads = threads};
    const gb_shape *shape = &constant->type.shape;
    uint64_t elements = 0;
    if (!gb_constant_planes(constant, &w.planes) || !gb_shape_elements(shape, &elements))
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "constant %s has no planes", constant->name);
    w.columns = (uint64_t)shape->dims[shape->rank - 1];
    w.rows = elements / w.columns;
    w.groups = w.columns / w.planes.group;
    atomic_init(&w.bad, w.rows);
    gumbel_status status =
        reserve(&w) ? write_all(&w, error)
                    : gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for quantizing %s", constant->name);
    gb_free(w.codes);
    gb_free(w.others);
    gb_free(w.values);
    return status;
}
