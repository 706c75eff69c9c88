/* SPDX-License-Identifier: Apache-2.0
 *
 * gumbel_pack: a program's weights in another order. They are read in pieces, put into canonical order where
 * they have another one, and written by the program's writer, which packs them; so the file is the one that
 * an export for that backend would have made.
 */
#include "base/file_map.h"
#include "base/memory.h"
#include "base/versioned.h"
#include "export/backend_order.h"
#include "export/parallel.h"
#include "program/draft_head.h"
#include "program/file/reader.h"
#include "program/file/writer.h"

#define XXH_STATIC_LINKING_ONLY /* for a state that is part of the job */
#include <xxhash.h>

static const uint64_t PIECE_BYTES = 8 << 20;

typedef struct pack_job {
    XXH3_state_t hash; /* of the constant as it was; 64-byte aligned */
    gumbel_pack_options options;
    gb_program *program;
    gb_constant *from; /* the file's constants as they were; the program's are changed for the new file */
    gb_writer *writer;
    uint8_t *canonical; /* a piece */
    uint64_t capacity, done, total;
} pack_job;

static gumbel_status advance(pack_job *job, uint64_t bytes, gumbel_error *error) {
    const gumbel_pack_options *options = &job->options;
    job->done += bytes;
    if (!options->progress || options->progress(options->progress_user, "weights", job->done, job->total))
        return GUMBEL_OK;
    return gb_fail(error, GUMBEL_ERROR_CANCELLED, "packing was cancelled");
}

/* ---- Pieces -------------------------------------------------------------------------------------------- */

/* Takes note of bytes of the old file that have been used. */
static void leave(pack_job *job, const uint8_t *data, uint64_t size) {
    XXH3_64bits_update(&job->hash, data, (size_t)size);
    gb_release_pages(data, size);
}

static gumbel_status write_as_it_is(pack_job *job, const uint8_t *data, uint64_t size, gumbel_error *error) {
    for (uint64_t at = 0; at < size; at += PIECE_BYTES) {
        uint64_t piece = size - at < PIECE_BYTES ? size - at : PIECE_BYTES;
        GB_TRY(gb_writer_write(job->writer, data + at, piece, error));
        leave(job, data + at, piece);
        GB_TRY(advance(job, piece, error));
    }
    return GUMBEL_OK;
}

/* Blocks of rows of one plane, which all threads unpack. */
typedef struct unpack_work {
    const gb_constant *constant;
    gb_plane_kind kind;
    uint64_t first, row_bytes;
    uint8_t *to;
} unpack_work;

static void unpack_blocks(void *user, unsigned thread, size_t first, size_t end) {
    const unpack_work *work = user;
    uint64_t rows = work->constant->packing.block_rows;
    (void)thread;
    gb_constant_canonical_rows(work->constant, work->kind, work->first + first * rows, (end - first) * rows,
                               work->to + first * rows * work->row_bytes);
}

static bool reserve(pack_job *job, uint64_t bytes) {
    if (bytes <= job->capacity)
        return true;
    gb_free(job->canonical);
    job->canonical = gb_allocate((size_t)bytes, 1);
    job->capacity = job->canonical ? bytes : 0;
    return job->canonical != NULL;
}

static gumbel_status unpack_plane(pack_job *job, const gb_constant *constant, gb_plane_kind kind,
                                  const gb_plane *plane, uint64_t rows, gumbel_error *error) {
    uint64_t block_bytes = constant->packing.block_rows * plane->row_bytes;
    uint64_t blocks = block_bytes < PIECE_BYTES ? PIECE_BYTES / block_bytes : 1;
    uint64_t piece_rows = blocks * constant->packing.block_rows;
    unpack_work work = {.constant = constant, .kind = kind, .row_bytes = plane->row_bytes};
    if (!reserve(job, blocks * block_bytes))
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for unpacking %s", constant->name);
    work.to = job->canonical;
    for (work.first = 0; work.first < rows; work.first += piece_rows) {
        uint64_t count = rows - work.first < piece_rows ? rows - work.first : piece_rows;
        uint64_t bytes = count * plane->row_bytes;
        gb_parallel_for(gb_export_threads(), (size_t)(count / constant->packing.block_rows), unpack_blocks,
                        &work);
        GB_TRY(gb_writer_write(job->writer, job->canonical, bytes, error));
        leave(job, constant->data + plane->offset + work.first * plane->row_bytes, bytes);
        GB_TRY(advance(job, bytes, error));
    }
    return GUMBEL_OK;
}

static gumbel_status unpack(pack_job *job, const gb_constant *constant, gumbel_error *error) {
    uint64_t rows, columns, at = 0;
    gb_planes planes;
    if (!gb_constant_planes(constant, &planes) || !gb_constant_matrix(constant, &rows, &columns))
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "constant %s has no planes", constant->name);
    for (gb_plane_kind kind = GB_PLANE_CODES; kind < GB_PLANE_KINDS; kind++) {
        const gb_plane *plane = gb_plane_of(&planes, kind);
        if (plane->row_bytes == 0)
            continue;
        GB_TRY(write_as_it_is(job, constant->data + at, plane->offset - at, error));
        GB_TRY(unpack_plane(job, constant, kind, plane, rows, error));
        at = plane->offset + rows * plane->row_bytes;
    }
    return GUMBEL_OK;
}

/* ---- The program --------------------------------------------------------------------------------------- */

static gumbel_status pack_constant(pack_job *job, uint32_t index, gumbel_error *error) {
    const gb_constant *from = &job->from[index];
    XXH3_64bits_reset(&job->hash);
    GB_TRY(gb_writer_begin_constant(job->writer, index, error));
    GB_TRY(from->packing.block_rows > 0 ? unpack(job, from, error)
                                        : write_as_it_is(job, from->data, from->size, error));
    if (XXH3_64bits_digest(&job->hash) != from->checksum)
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "the checksum of the constant %s does not match",
                       from->name);
    return GUMBEL_OK;
}

static gumbel_status pack_constants(pack_job *job, gumbel_error *error) {
    job->total = gb_program_weight_bytes(job->program) + gb_head_own_bytes(job->program);
    GB_TRY(advance(job, 0, error));
    for (uint32_t i = 0; i < gb_file_constant_count(job->program); i++)
        if (!gb_file_constant(job->program, i)->same)
            GB_TRY(pack_constant(job, i, error));
    return GUMBEL_OK;
}

static gumbel_status keep_constants(pack_job *job, gumbel_error *error) {
    const uint32_t count = gb_file_constant_count(job->program);
    job->from = gb_allocate(count, sizeof *job->from);
    if (!job->from)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for the list of weights");
    for (uint32_t i = 0; i < count; i++)
        job->from[i] = *gb_file_constant(job->program, i);
    return GUMBEL_OK;
}

static gumbel_status pack_program(pack_job *job, const char *source, const char *path, gumbel_error *error) {
    gb_packing_order order;
    GB_TRY(gb_backend_order(job->options.backend, &order, error));
    GB_TRY(gb_program_read(source, &job->program, error));
    GB_TRY(keep_constants(job, error));
    GB_TRY(gb_program_choose_packings(job->program, order, error));
    GB_TRY(gb_writer_create(path, NULL, job->program, &job->writer, error));
    gb_writer_use_threads(job->writer, gb_parallel_for, gb_export_threads());
    gumbel_status status = pack_constants(job, error);
    if (status != GUMBEL_OK) {
        gb_writer_abort(job->writer);
        return status == GUMBEL_ERROR_FORMAT ? gb_prefix(error, status, "%s", source) : status;
    }
    return gb_writer_finish(job->writer, error);
}

gumbel_status gumbel_pack(const char *program, const char *path, const gumbel_pack_options *given,
                          gumbel_error *error) {
    gumbel_pack_options options;
    GB_TRY(gb_read_versioned(given, "pack options", &options, sizeof options, error));
    pack_job *job = gb_allocate_aligned(1, sizeof *job);
    if (!job)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for packing %s", program);
    job->options = options;
    gumbel_status status = pack_program(job, program, path, error);
    gb_program_destroy(job->program);
    gb_free(job->from);
    gb_free(job->canonical);
    gb_free(job);
    return status;
}
