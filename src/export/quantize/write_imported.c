/* SPDX-License-Identifier: Apache-2.0 */
#include "export/quantize/write_imported.h"

#include "base/file_map.h"
#include "base/memory.h"
#include "export/parallel.h"
#include "export/quantize/finite.h"

#include <string.h>

static const uint64_t PIECE_WEIGHTS = 16 << 20;

typedef struct imported_writer {
    gb_writer *writer;
    const gb_constant *constant;
    const gb_written_callback *written;
    const gb_imported_rows *source;
    gb_planes planes;
    uint64_t rows, columns;
    uint64_t piece_rows;
    uint64_t first; /* row of the piece */
    uint64_t code_bytes;
    uint8_t *codes;  /* of a piece */
    uint8_t *others; /* the constant's bytes from code_bytes on: the other planes and what is between them */
} imported_writer;

static uint8_t *plane_row(const imported_writer *w, const gb_plane *plane, uint64_t row) {
    return plane->row_bytes ? w->others + (plane->offset - w->code_bytes) + row * plane->row_bytes : NULL;
}

/* Where row i of the piece goes. */
static gb_imported_row place_of_row(const imported_writer *w, uint64_t i) {
    const uint64_t row = w->first + i;
    return (gb_imported_row){.codes = w->codes + i * w->planes.codes.row_bytes,
                             .scales = plane_row(w, &w->planes.scales, row),
                             .biases = plane_row(w, &w->planes.biases, row),
                             .super_scales = plane_row(w, &w->planes.super_scales, row),
                             .super_biases = plane_row(w, &w->planes.super_biases, row)};
}

static void import_rows(void *user, unsigned thread, size_t first, size_t end) {
    const imported_writer *w = user;
    gb_imported_row to[GB_IMPORTED_AT_ONCE];
    (void)thread;
    for (size_t i = first, count; i < end; i += count) {
        count = end - i < GB_IMPORTED_AT_ONCE ? end - i : GB_IMPORTED_AT_ONCE;
        for (size_t k = 0; k < count; k++)
            to[k] = place_of_row(w, i + k);
        w->source->read(w->source->user, w->first + i, count, to);
    }
}

static gumbel_status write_bytes(const imported_writer *w, const void *data, uint64_t size,
                                 gumbel_error *error) {
    GB_TRY(gb_writer_write(w->writer, data, size, error));
    return w->written->advance(w->written->user, size, error);
}

static gumbel_status write_all(imported_writer *w, unsigned threads, gumbel_error *error) {
    for (w->first = 0; w->first < w->rows; w->first += w->piece_rows) {
        uint64_t left = w->rows - w->first, count = left < w->piece_rows ? left : w->piece_rows;
        gb_parallel_for(threads, (size_t)count, import_rows, w);
        w->source->release(w->source->user, w->first, count);
        GB_TRY(write_bytes(w, w->codes, count * w->planes.codes.row_bytes, error));
    }
    GB_TRY(gb_check_finite_scales(w->constant, &w->planes, w->others, w->code_bytes, error));
    return write_bytes(w, w->others, w->planes.size - w->code_bytes, error);
}

static bool reserve(imported_writer *w) {
    uint64_t rows = PIECE_WEIGHTS / w->columns;
    w->piece_rows = rows < 1 ? 1 : rows < w->rows ? rows : w->rows;
    w->code_bytes = w->rows * w->planes.codes.row_bytes; /* within planes.size */
    size_t others = (size_t)(w->planes.size - w->code_bytes);
    w->codes = gb_allocate((size_t)w->piece_rows, (size_t)w->planes.codes.row_bytes);
    w->others = gb_allocate(others, 1);
    if (!w->codes || !w->others)
        return false;
    memset(w->others, 0, others);
    return true;
}

gumbel_status gb_write_imported_rows(gb_writer *writer, const gb_constant *constant,
                                     const gb_imported_rows *rows, unsigned threads,
                                     const gb_written_callback *written, gumbel_error *error) {
    imported_writer w = {.writer = writer, .constant = constant, .written = written, .source = rows};
    const gb_shape *shape = &constant->type.shape;
    uint64_t elements = 0;
    if (!gb_constant_planes(constant, &w.planes) || !gb_shape_elements(shape, &elements))
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "constant %s has no planes", constant->name);
    w.columns = (uint64_t)shape->dims[shape->rank - 1];
    w.rows = elements / w.columns;
    gumbel_status status =
        reserve(&w) ? write_all(&w, threads, error)
                    : gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for rearranging %s", constant->name);
    gb_free(w.codes);
    gb_free(w.others);
    return status;
}

/* ---- Blocks -------------------------------------------------------------------------------------------- */

typedef struct block_rows {
    gb_block_type type;
    const gb_stacked_bytes *blocks;
    uint64_t columns, row_bytes;
} block_rows;

static void read_block_rows(const void *user, uint64_t first, uint64_t count, const gb_imported_row *to) {
    const block_rows *rows = user;
    for (uint64_t i = 0; i < count; i++)
        gb_import_block_row(rows->type, gb_stacked_row(rows->blocks, first + i, rows->row_bytes),
                            rows->columns, &to[i]);
}

static void release_block_rows(const void *user, uint64_t first, uint64_t count) {
    const block_rows *rows = user;
    gb_release_stacked(rows->blocks, first, count, rows->row_bytes);
}

gumbel_status gb_write_imported(gb_writer *writer, const gb_constant *constant, gb_block_type type,
                                const gb_stacked_bytes *blocks, unsigned threads,
                                const gb_written_callback *written, gumbel_error *error) {
    const gb_shape *shape = &constant->type.shape;
    const gb_block_info *info = gb_block_find(type);
    if (!info || shape->rank < 1 || !gb_format_equal(&constant->format, &info->format))
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "constant %s has not the format of its blocks",
                       constant->name);
    block_rows rows = {.type = type, .blocks = blocks, .columns = (uint64_t)shape->dims[shape->rank - 1]};
    rows.row_bytes = rows.columns / info->weights * info->bytes;
    gb_imported_rows source = {read_block_rows, release_block_rows, &rows};
    return gb_write_imported_rows(writer, constant, &source, threads, written, error);
}
