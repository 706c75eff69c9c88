/* SPDX-License-Identifier: Apache-2.0 */
#include "program/file/pack_stream.h"

#include "base/memory.h"

#include <string.h>

static const uint64_t PIECE_BYTES = 8 << 20;

void gb_pack_stream_begin(gb_pack_stream *stream, const gb_constant *constant) {
    stream->constant = constant;
    stream->position = stream->held_bytes = 0;
    gb_constant_planes(constant, &stream->planes);
    gb_constant_matrix(constant, &stream->rows, &stream->columns);
}

void gb_pack_stream_end(gb_pack_stream *stream) {
    gb_free(stream->held);
    gb_free(stream->packed);
    *stream = (gb_pack_stream){0};
}

/* ---- Blocks -------------------------------------------------------------------------------------------- */

/* Blocks of one plane that are packed together. */
typedef struct block_work {
    const gb_pack_stream *stream;
    gb_plane_kind kind;
    uint64_t block_bytes;
    const uint8_t *canonical;
} block_work;

static void pack_blocks(void *user, unsigned thread, size_t first, size_t end) {
    const block_work *work = user;
    const gb_pack_stream *stream = work->stream;
    const gb_packing *packing = &stream->constant->packing;
    (void)thread;
    gb_pack_rows(packing, &stream->constant->format, work->kind, (end - first) * packing->block_rows,
                 stream->columns, work->canonical + first * work->block_bytes,
                 stream->packed + first * work->block_bytes);
}

static void pack(const gb_pack_stream *stream, block_work *work, uint64_t blocks) {
    if (stream->loop)
        stream->loop(stream->threads, (size_t)blocks, pack_blocks, work);
    else
        pack_blocks(work, 0, 0, (size_t)blocks);
}

static bool reserve(gb_pack_stream *stream, uint64_t block_bytes) {
    uint64_t capacity = block_bytes > PIECE_BYTES ? block_bytes : PIECE_BYTES;
    if (capacity <= stream->capacity)
        return true;
    gb_free(stream->held);
    gb_free(stream->packed);
    stream->held = gb_allocate((size_t)capacity, 1);
    stream->packed = gb_allocate((size_t)capacity, 1);
    stream->capacity = stream->held && stream->packed ? capacity : 0;
    return stream->capacity > 0;
}

/* ---- The stream ---------------------------------------------------------------------------------------- */

/* The plane that the position is in or before, and where it begins and ends; at the end of all, none. */
static gb_plane_kind plane_at(const gb_pack_stream *stream, uint64_t *begin, uint64_t *end) {
    gb_plane_kind kind = GB_PLANE_CODES;
    for (; kind < GB_PLANE_KINDS; kind++) {
        const gb_plane *plane = gb_plane_of(&stream->planes, kind);
        *begin = plane->offset;
        *end = plane->offset + stream->rows * plane->row_bytes;
        if (plane->row_bytes > 0 && stream->position < *end)
            break;
    }
    return kind;
}

static uint64_t smaller(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

/* Takes size bytes of a plane that lie within one or more blocks; returns how many. */
static uint64_t take_blocks(gb_pack_stream *stream, block_work *work, const uint8_t *data, uint64_t size,
                            const uint8_t **written, uint64_t *written_size) {
    uint64_t block = work->block_bytes;
    if (stream->held_bytes == 0 && size >= block) {
        uint64_t blocks = smaller(size, stream->capacity) / block;
        work->canonical = data;
        pack(stream, work, blocks);
        *written = stream->packed;
        *written_size = blocks * block;
        return blocks * block;
    }
    uint64_t taken = smaller(size, block - stream->held_bytes);
    memcpy(stream->held + stream->held_bytes, data, (size_t)taken);
    stream->held_bytes += taken;
    if (stream->held_bytes == block) {
        work->canonical = stream->held;
        pack(stream, work, 1);
        stream->held_bytes = 0;
        *written = stream->packed;
        *written_size = block;
    }
    return taken;
}

gumbel_status gb_pack_stream_next(gb_pack_stream *stream, const uint8_t **data, uint64_t *size,
                                  const uint8_t **written, uint64_t *written_size, gumbel_error *error) {
    uint64_t begin, end, taken;
    gb_plane_kind kind = plane_at(stream, &begin, &end);
    *written = *data;
    *written_size = 0;
    if (kind == GB_PLANE_KINDS || stream->position < begin) { /* what lies between planes */
        taken = kind == GB_PLANE_KINDS ? *size : smaller(*size, begin - stream->position);
        *written_size = taken;
    } else {
        uint64_t row_bytes = gb_plane_of(&stream->planes, kind)->row_bytes;
        block_work work = {
            .stream = stream, .kind = kind, .block_bytes = stream->constant->packing.block_rows * row_bytes};
        if (!reserve(stream, work.block_bytes))
            return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for packing %s", stream->constant->name);
        taken =
            take_blocks(stream, &work, *data, smaller(*size, end - stream->position), written, written_size);
    }
    stream->position += taken;
    *data += taken;
    *size -= taken;
    return GUMBEL_OK;
}
