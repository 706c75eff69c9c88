/* SPDX-License-Identifier: Apache-2.0 */
#include "export/quantize/write_quantized.h"

#include "base/file_map.h"
#include "base/memory.h"
#include "export/parallel.h"
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
    uint8_t *codes;            /* of a piece */
    uint16_t *scales, *biases; /* of the tensor */
    float *values;             /* a row for each thread */
    uint64_t first;            /* row of the piece */
    uint64_t position;         /* bytes of the constant that are written */
    atomic_uint_least64_t bad; /* the lowest row that cannot be quantized; rows: none */
} quantized_writer;

/* ---- Rows of a tensor ---------------------------------------------------------------------------------- */

static void read_row(const quantized_writer *w, uint64_t row, float *to) {
    const gb_quantized_source *source = w->source;
    const uint8_t *from = gb_stacked_row(&source->data, row, w->columns * gb_dtype_size(source->dtype));
    if (source->dtype == GB_F32) {
        memcpy(to, from, w->columns * sizeof *to);
        return;
    }
    for (uint64_t i = 0; i < w->columns; i++) {
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

static void quantize_rows(void *user, unsigned thread, size_t first, size_t end) {
    quantized_writer *w = user;
    float *values = w->values + thread * w->columns;
    for (size_t i = first; i < end; i++) {
        uint64_t row = w->first + i;
        read_row(w, row, values);
        gb_quantized_row to = {w->codes + i * w->planes.codes.row_bytes, w->scales + row * w->groups,
                               w->biases + row * w->groups};
        if (!gb_quantize_row(w->source->method, &w->constant->format, values, w->columns, &to))
            report_bad(w, row);
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

/* Scales around the one with which evenly drawn codes have the right width, and biases that center them. */
static void draw_scales(void *user, unsigned thread, size_t first, size_t end) {
    quantized_writer *w = user;
    (void)thread;
    const gb_format *format = &w->constant->format;
    float steps = (float)((1u << format->bits) - 1u), scale = 2.0f * w->source->half_width / steps;
    gb_random_fill(gb_random_stream(w->source->stream, "scales"), (gb_uniform){0.75f * scale, 1.25f * scale},
                   format->scale, first, end - first, w->scales + first);
    for (size_t i = first; format->has_bias && i < end; i++) {
        float bias = gb_widen_half(w->scales[i], format->scale) * (-0.5f * steps);
        w->biases[i] = gb_round_half(bias, format->scale);
    }
}

/* ---- Writing ------------------------------------------------------------------------------------------- */

static gumbel_status write_bytes(quantized_writer *w, const void *data, uint64_t size, gumbel_error *error) {
    GB_TRY(gb_writer_write(w->writer, data, size, error));
    w->position += size;
    return w->written->advance(w->written->user, size, error);
}

static gumbel_status write_plane(quantized_writer *w, const gb_plane *plane, const void *data,
                                 gumbel_error *error) {
    static const uint8_t zeros[GB_PLANE_ALIGNMENT];
    GB_TRY(write_bytes(w, zeros, plane->offset - w->position, error));
    return write_bytes(w, data, plane->row_bytes * w->rows, error);
}

static gumbel_status write_piece(quantized_writer *w, uint64_t count, gumbel_error *error) {
    const gb_quantized_source *source = w->source;
    gb_parallel_for(w->threads, (size_t)count, source->data.parts[0] ? quantize_rows : draw_codes, w);
    uint64_t bad = atomic_load(&w->bad);
    if (bad < w->rows)
        return gb_fail(error, GUMBEL_ERROR_FORMAT,
                       "tensor %s: row %llu holds a number that is not finite or too large for %s scales",
                       w->constant->name, (unsigned long long)bad, gb_dtype_name(w->constant->format.scale));
    if (source->is_mapped)
        gb_release_stacked(&source->data, w->first, count, w->columns * gb_dtype_size(source->dtype));
    return write_bytes(w, w->codes, count * w->planes.codes.row_bytes, error);
}

static gumbel_status write_all(quantized_writer *w, gumbel_error *error) {
    for (w->first = 0; w->first < w->rows; w->first += w->piece_rows) {
        uint64_t left = w->rows - w->first;
        GB_TRY(write_piece(w, left < w->piece_rows ? left : w->piece_rows, error));
    }
    if (!w->source->data.parts[0])
        gb_parallel_for(w->threads, (size_t)(w->rows * w->groups), draw_scales, w);
    GB_TRY(write_plane(w, &w->planes.scales, w->scales, error));
    return w->constant->format.has_bias ? write_plane(w, &w->planes.biases, w->biases, error) : GUMBEL_OK;
}

static bool reserve(quantized_writer *w) {
    uint64_t rows = PIECE_WEIGHTS / w->columns;
    w->piece_rows = rows < 1 ? 1 : rows < w->rows ? rows : w->rows;
    uint64_t code_bytes, numbers;
    if (!gb_multiply_size(w->piece_rows, w->planes.codes.row_bytes, &code_bytes) ||
        !gb_multiply_size(w->rows, w->groups, &numbers))
        return false;
    w->codes = gb_allocate((size_t)code_bytes, 1);
    w->scales = gb_allocate((size_t)numbers, sizeof *w->scales);
    w->biases = gb_allocate(w->constant->format.has_bias ? (size_t)numbers : 0, sizeof *w->biases);
    w->values = gb_allocate((size_t)w->columns * w->threads, sizeof *w->values);
    return w->codes && w->scales && w->biases && w->values;
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
    gb_free(w.scales);
    gb_free(w.biases);
    gb_free(w.values);
    return status;
}
