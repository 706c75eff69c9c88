/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/runtime/weights.h"

#include "backends/cuda/runtime/device.h"
#include "backends/cuda/runtime/expand_codes.h"
#include "backends/cuda/runtime/facts.h"
#include "backends/threads/cores.h"
#include "backends/threads/team.h"
#include "base/memory.h"
#include "program/constant_packing.h"
#include "program/shard/shard.h"

#include <stdio.h>
#include <string.h>

enum {
    ALIGNMENT = 256,
    PADDING = 64, /* after each constant: kernels read whole words of its last row */
    STAGING_BYTES = 32 << 20,
    STAGINGS = 2, /* one is filled while the other is copied */
    MOST_THREADS = 16,
    NOTICES = 10
};

static const uint64_t long_upload = (uint64_t)4 << 30; /* bytes from which progress is reported */

static const char doing[] = "copying the weights";

typedef struct upload {
    const gb_backend_options *options;
    gb_cuda_weights *weights;
    cudaStream_t stream;
    gb_team *team;
    unsigned threads;
    uint8_t *staging[STAGINGS];
    uint8_t *canonical; /* STAGING_BYTES, between two packings */
    uint8_t *expanded;  /* as many, where codes are */
    cudaEvent_t copied[STAGINGS];
    unsigned turn;
    uint64_t done;
    unsigned reported; /* notices */
} upload;

/* What the threads put into staging memory: units first .. first + count - 1 of a plane, a unit being as many
 * rows as the blocks of both packings need, or a byte. */
typedef struct piece {
    const upload *upload;
    const gb_constant *constant;
    const gb_packing *wanted;
    gb_plane_kind kind;
    uint64_t columns, unit_rows, unit_bytes;
    uint64_t from_unit_bytes; /* where codes are expanded: of a unit of the constant's */
    uint64_t count;
    const gb_padded_tiles *tiles; /* where they are filled: units are of one, from number `first` on */
    uint64_t first;
    const uint8_t *from;
    uint8_t *to;
} piece;

/* Bytes on the device. */
static uint64_t size_of(const gb_program *program, const gb_cuda_weights *weights, uint32_t i) {
    const gb_cuda_weight_layout *layout = &weights->layouts[i];
    return layout->padded_rows > 0 || layout->fills_tiles || layout->is_expanded ? layout->planes.size
                                                                                 : program->constants[i].size;
}

static gumbel_status place(const gb_program *program, bool may_expand, gb_cuda_weights *weights,
                           gumbel_error *error) {
    *weights = (gb_cuda_weights){0};
    weights->offsets = gb_allocate(program->constant_count, sizeof *weights->offsets);
    weights->layouts = gb_allocate(program->constant_count, sizeof *weights->layouts);
    if (!weights->offsets || !weights->layouts)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for the list of constants");
    GB_TRY(gb_cuda_choose_weight_layouts(program, may_expand, weights->layouts, error));
    for (uint32_t i = 0; i < program->constant_count; i++) {
        const gb_constant *constant = &program->constants[i];
        if (!constant->data && !constant->part)
            return gb_fail(error, GUMBEL_ERROR_UNSUPPORTED, "constant %s has no data: not read from a file",
                           constant->name);
        if (!gb_align_size(weights->size, ALIGNMENT, &weights->offsets[i]) ||
            !gb_add_size(weights->offsets[i], size_of(program, weights, i), &weights->size) ||
            !gb_add_size(weights->size, PADDING, &weights->size))
            return gb_fail(error, GUMBEL_ERROR_FORMAT, "the sizes of the constants are out of range");
    }
    return GUMBEL_OK;
}

/* An embedding that is the head too is there whole and in part. */
static bool is_there_whole(const gb_program *program, const gb_constant *part) {
    for (uint32_t i = 0; i < program->constant_count && part->part; i++)
        if (program->constants[i].data && program->constants[i].data == part->part->whole->data)
            return true;
    return false;
}

/* Of all ranks together: as if one device had them. */
static uint64_t size_of_all(const gb_program *program, const gb_cuda_weights *weights) {
    uint64_t size = 0;
    for (uint32_t i = 0; i < program->constant_count; i++) {
        const gb_constant *constant = &program->constants[i];
        const double parts =
            constant->part ? (double)constant->part->whole->size / (double)constant->size : 1;
        if (!is_there_whole(program, constant))
            size += (uint64_t)(parts * (double)size_of(program, weights, i));
    }
    return size;
}

/* Whether codes of books may become 8 bits follows from the kind of GPU, as the bits of products then do: all
 * weights take half of its memory at most, caches the rest. */
gumbel_status gb_cuda_weights_place(const gb_program *program, gb_cuda_weights *weights,
                                    gumbel_error *error) {
    GB_TRY(place(program, true, weights, error));
    if (size_of_all(program, weights) <= gb_cuda_find_facts()->memory_bytes / 2)
        return GUMBEL_OK;
    gb_cuda_weights_destroy(weights);
    return place(program, false, weights, error);
}

static void tell_progress(upload *u) {
    char line[80];
    if (!u->options->log || u->weights->size < long_upload)
        return;
    unsigned part = (unsigned)(u->done * NOTICES / u->weights->size);
    if (part == u->reported)
        return;
    u->reported = part;
    snprintf(line, sizeof line, "cuda: %.1f of %.1f GB of weights are on the device", (double)u->done / 1e9,
             (double)u->weights->size / 1e9);
    u->options->log(u->options->log_user, GUMBEL_LOG_INFO, line);
}

/* The next staging memory, once what was in it has been copied. */
static gumbel_status take_staging(upload *u, uint8_t **staging, gumbel_error *error) {
    unsigned turn = u->turn % STAGINGS;
    *staging = u->staging[turn];
    return gb_cuda_check(cudaEventSynchronize(u->copied[turn]), doing, error);
}

/* Copies what was put into the staging memory. */
static gumbel_status send_staging(upload *u, uint8_t *to, size_t size, gumbel_error *error) {
    unsigned turn = u->turn++ % STAGINGS;
    GB_TRY(gb_cuda_check(cudaMemcpyAsync(to, u->staging[turn], size, cudaMemcpyHostToDevice, u->stream),
                         doing, error));
    GB_TRY(gb_cuda_check(cudaEventRecord(u->copied[turn], u->stream), doing, error));
    u->done += size;
    tell_progress(u);
    return GUMBEL_OK;
}

/* ---- Filling the staging memory ------------------------------------------------------------------------ */

/* The thread's share of a piece, from one packing into the other. */
static void rearrange_share(void *user, unsigned index) {
    const piece *p = user;
    const gb_constant *constant = p->constant;
    const gb_format *format = &constant->format;
    uint64_t first = p->count * index / p->upload->threads;
    uint64_t rows = (p->count * (index + 1) / p->upload->threads - first) * p->unit_rows;
    const uint8_t *from = p->from + first * p->unit_bytes;
    uint8_t *to = p->to + first * p->unit_bytes;
    if (rows == 0)
        return;
    if (constant->packing.block_rows > 0) {
        uint8_t *canonical = p->wanted->block_rows > 0 ? p->upload->canonical + first * p->unit_bytes : to;
        gb_unpack_rows(&constant->packing, format, p->kind, rows, p->columns, from, canonical);
        from = canonical;
    }
    if (p->wanted->block_rows > 0)
        gb_pack_rows(p->wanted, format, p->kind, rows, p->columns, from, to);
}

static void copy_share(void *user, unsigned index) {
    const piece *p = user;
    uint64_t first = p->count * index / p->upload->threads;
    uint64_t end = p->count * (index + 1) / p->upload->threads;
    memcpy(p->to + first, p->from + first, (size_t)(end - first));
}

/* Takes the bytes of a plane, or any, through the staging memory. */
static gumbel_status send_pieces(upload *u, uint8_t *to, piece p, uint64_t size, gb_team_work fill,
                                 gumbel_error *error) {
    uint64_t most = STAGING_BYTES / p.unit_bytes * p.unit_bytes;
    if (most == 0)
        return gb_fail(error, GUMBEL_ERROR_UNSUPPORTED, "constant %s: its packed rows are too long",
                       p.constant->name);
    const uint8_t *from = p.from;
    for (uint64_t done = 0; done < size; done += most) {
        uint64_t part = size - done < most ? size - done : most;
        GB_TRY(take_staging(u, &p.to, error));
        p.from = from + done;
        p.count = part / p.unit_bytes;
        gb_team_run(u->team, fill, &p);
        GB_TRY(send_staging(u, to + done, (size_t)part, error));
    }
    return GUMBEL_OK;
}

static uint64_t common_multiple(uint64_t a, uint64_t b) {
    uint64_t multiple = a;
    while (multiple % b != 0)
        multiple += a;
    return multiple;
}

static gumbel_status rearrange_constant(upload *u, uint8_t *to, const gb_constant *constant,
                                        const gb_packing *wanted, gumbel_error *error) {
    uint64_t rows, columns;
    gb_planes planes;
    if (!gb_constant_matrix(constant, &rows, &columns) || !gb_constant_planes(constant, &planes))
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "constant %s has no format", constant->name);
    uint64_t from_rows = constant->packing.block_rows, to_rows = wanted->block_rows;
    piece p = {.upload = u, .constant = constant, .wanted = wanted, .columns = columns};
    p.unit_rows = common_multiple(from_rows ? from_rows : 1, to_rows ? to_rows : 1);
    for (p.kind = GB_PLANE_CODES; p.kind < GB_PLANE_KINDS; p.kind++) {
        const gb_plane *plane = gb_plane_of(&planes, p.kind);
        p.unit_bytes = p.unit_rows * plane->row_bytes;
        p.from = constant->data + plane->offset;
        if (plane->row_bytes > 0)
            GB_TRY(send_pieces(u, to + plane->offset, p, rows * plane->row_bytes, rearrange_share, error));
    }
    return GUMBEL_OK;
}

/* The thread's share of codes, from the file's packing into the wanted one of 8 bits. */
static void expand_share(void *user, unsigned index) {
    const piece *p = user;
    const gb_constant *constant = p->constant;
    const uint64_t first = p->count * index / p->upload->threads;
    const uint64_t rows = (p->count * (index + 1) / p->upload->threads - first) * p->unit_rows;
    const uint8_t *from = p->from + first * p->from_unit_bytes;
    uint8_t *canonical = p->upload->canonical + first * p->from_unit_bytes,
            *expanded = p->upload->expanded + first * p->unit_bytes;
    gb_format wide;
    if (rows == 0 || !gb_cuda_expanded_format(&constant->format, &wide))
        return;
    if (constant->packing.block_rows > 0) {
        gb_unpack_rows(&constant->packing, &constant->format, GB_PLANE_CODES, rows, p->columns, from,
                       canonical);
        from = canonical;
    }
    gb_cuda_expand_codes(&constant->format, from, rows * p->columns, expanded);
    gb_pack_rows(p->wanted, &wide, GB_PLANE_CODES, rows, p->columns, expanded, p->to + first * p->unit_bytes);
}

static gumbel_status send_expanded(upload *u, uint8_t *to, piece p, uint64_t units, gumbel_error *error) {
    const uint64_t most = STAGING_BYTES / p.unit_bytes;
    const uint8_t *from = p.from;
    if (most == 0)
        return gb_fail(error, GUMBEL_ERROR_UNSUPPORTED, "constant %s: its packed rows are too long",
                       p.constant->name);
    for (uint64_t done = 0; done < units; done += p.count) {
        p.count = units - done < most ? units - done : most;
        p.from = from + done * p.from_unit_bytes;
        GB_TRY(take_staging(u, &p.to, error));
        gb_team_run(u->team, expand_share, &p);
        GB_TRY(send_staging(u, to + done * p.unit_bytes, (size_t)(p.count * p.unit_bytes), error));
    }
    return GUMBEL_OK;
}

/* Codes become bytes; scales are rearranged as they are. */
static gumbel_status expand_constant(upload *u, uint8_t *to, uint32_t index, const gb_constant *constant,
                                     gumbel_error *error) {
    const gb_cuda_weight_layout *layout = &u->weights->layouts[index];
    uint64_t rows, columns;
    gb_planes planes;
    if (!gb_constant_matrix(constant, &rows, &columns) || !gb_constant_planes(constant, &planes))
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "constant %s has no format", constant->name);
    if (!u->expanded && !(u->expanded = gb_allocate(STAGING_BYTES, 1)))
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for laying the weights out");
    const uint64_t from_rows = constant->packing.block_rows;
    piece p = {.upload = u, .constant = constant, .wanted = &layout->packing, .columns = columns};
    p.unit_rows = common_multiple(from_rows ? from_rows : 1, layout->packing.block_rows);
    p.from_unit_bytes = p.unit_rows * planes.codes.row_bytes;
    p.unit_bytes = p.unit_rows * layout->planes.codes.row_bytes;
    p.from = constant->data + planes.codes.offset;
    GB_TRY(send_expanded(u, to + layout->planes.codes.offset, p, rows / p.unit_rows, error));
    p.kind = GB_PLANE_SCALES;
    p.unit_bytes = p.unit_rows * planes.scales.row_bytes;
    p.from = constant->data + planes.scales.offset;
    return send_pieces(u, to + layout->planes.scales.offset, p, rows * planes.scales.row_bytes,
                       rearrange_share, error);
}

/* A constant where rows of zeros fill the last block. */
static gumbel_status pad_constant(upload *u, uint8_t *to, uint32_t index, const gb_constant *constant,
                                  gumbel_error *error) {
    const gb_cuda_weight_layout *layout = &u->weights->layouts[index];
    const gb_planes *planes = &layout->planes;
    const uint64_t rows = (uint64_t)constant->type.shape.dims[0],
                   columns = (uint64_t)constant->type.shape.dims[1];
    uint8_t *canonical = gb_allocate((size_t)planes->size, 1), *packed = gb_allocate((size_t)planes->size, 1);
    gumbel_status status = canonical && packed
                               ? GUMBEL_OK
                               : gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for laying the weights out");
    if (status == GUMBEL_OK) {
        for (gb_plane_kind kind = GB_PLANE_CODES; kind < GB_PLANE_KINDS; kind++)
            gb_constant_canonical_rows(constant, kind, 0, rows,
                                       canonical + gb_plane_of(planes, kind)->offset);
        gb_pack_matrix(&layout->packing, &constant->format, layout->padded_rows, columns, canonical, packed);
        const piece bytes = {.upload = u, .constant = constant, .unit_bytes = 1, .from = packed};
        status = send_pieces(u, to, bytes, planes->size, copy_share, error);
    }
    gb_free(canonical);
    gb_free(packed);
    return status;
}

/* The thread's share of tiles, which get their zeros. */
static void fill_share(void *user, unsigned index) {
    const piece *p = user;
    const uint64_t end = p->count * (index + 1) / p->upload->threads;
    for (uint64_t i = p->count * index / p->upload->threads; i < end; i++) {
        uint8_t *to = p->to + i * p->unit_bytes, *scratch = p->upload->canonical + i * p->unit_bytes;
        const uint64_t rows = gb_padded_tile_rows(p->tiles, p->first + i);
        gb_constant_canonical_rows(p->constant, p->kind, gb_padded_tile_first(p->tiles, p->first + i), rows,
                                   to);
        gb_pack_padded_tile(p->tiles, p->kind, rows, to, scratch, to);
    }
}

static gumbel_status send_tiles(upload *u, uint8_t *to, piece p, gumbel_error *error) {
    const uint64_t most = STAGING_BYTES / p.unit_bytes, all = gb_padded_tile_count(p.tiles);
    if (most == 0)
        return gb_fail(error, GUMBEL_ERROR_UNSUPPORTED, "constant %s: its packed rows are too long",
                       p.constant->name);
    for (p.first = 0; p.first < all; p.first += p.count) {
        p.count = all - p.first < most ? all - p.first : most;
        GB_TRY(take_staging(u, &p.to, error));
        gb_team_run(u->team, fill_share, &p);
        GB_TRY(send_staging(u, to + p.first * p.unit_bytes, (size_t)(p.count * p.unit_bytes), error));
    }
    return GUMBEL_OK;
}

/* A constant whose last tiles get zeros. */
static gumbel_status fill_tiles(upload *u, uint8_t *to, const gb_constant *constant, gumbel_error *error) {
    gb_padded_tiles tiles;
    if (!gb_cuda_padded_tiles(constant, &tiles))
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "constant %s has no tiles", constant->name);
    piece p = {.upload = u, .constant = constant, .tiles = &tiles};
    for (p.kind = GB_PLANE_CODES; p.kind < GB_PLANE_KINDS; p.kind++) {
        const gb_plane *plane = gb_plane_of(&tiles.all, p.kind);
        p.unit_bytes = GB_TILE_ROWS * plane->row_bytes;
        if (plane->row_bytes > 0)
            GB_TRY(send_tiles(u, to + plane->offset, p, error));
    }
    return GUMBEL_OK;
}

/* A constant with data, which the caller gives until it has been copied. */
static gumbel_status copy_constant(upload *u, uint32_t i, const gb_constant *constant, gumbel_error *error) {
    const gb_cuda_weight_layout *layout = &u->weights->layouts[i];
    uint8_t *to = u->weights->memory + u->weights->offsets[i];
    const piece bytes = {.upload = u, .constant = constant, .unit_bytes = 1, .from = constant->data};
    if (layout->is_expanded)
        return expand_constant(u, to, i, constant, error);
    if (layout->fills_tiles)
        return fill_tiles(u, to, constant, error);
    if (layout->padded_rows > 0)
        return pad_constant(u, to, i, constant, error);
    if (!gb_packing_equal(&constant->packing, &layout->packing))
        return rearrange_constant(u, to, constant, &layout->packing, error);
    return send_pieces(u, to, bytes, constant->size, copy_share, error);
}

/* A rank's part of a constant is put together first. */
static gumbel_status copy_part(upload *u, uint32_t i, const gb_constant *part, gumbel_error *error) {
    gb_constant constant = *part;
    uint8_t *bytes = gb_allocate((size_t)part->size, 1);
    if (!bytes)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for a rank's part of %s", part->name);
    gumbel_status status = gb_constant_part_read(part, bytes, error);
    constant.data = bytes;
    if (status == GUMBEL_OK)
        status = copy_constant(u, i, &constant, error);
    gb_free(bytes);
    return status;
}

static gumbel_status copy_constants(upload *u, const gb_program *program, gumbel_error *error) {
    for (uint32_t i = 0; i < program->constant_count; i++) {
        const gb_constant *constant = &program->constants[i];
        GB_TRY((constant->part ? copy_part : copy_constant)(u, i, constant, error));
    }
    return gb_cuda_check(cudaStreamSynchronize(u->stream), doing, error);
}

/* Says how much is laid out in another way. */
static void tell_rearranging(const gb_program *program, const upload *u) {
    char line[160];
    uint64_t size = 0;
    for (uint32_t i = 0; i < program->constant_count; i++)
        if (!gb_packing_equal(&program->constants[i].packing, &u->weights->layouts[i].packing) &&
            u->weights->layouts[i].padded_rows == 0 && !u->weights->layouts[i].fills_tiles &&
            !u->weights->layouts[i].is_expanded)
            /* no file has those so */
            size += program->constants[i].size;
    if (size == 0 || !u->options->log)
        return;
    snprintf(line, sizeof line,
             "cuda: %.1f MB of weights are laid out for this backend while they are copied; gumbel pack "
             "--backend cuda makes a program that has them so",
             (double)size / 1e6);
    u->options->log(u->options->log_user, GUMBEL_LOG_INFO, line);
}

/* Says how much has another format than in the program, or would have it if there were more memory. */
static void tell_expanding(const gb_program *program, const upload *u) {
    uint64_t size[2] = {0}; /* in 4 bits, in 8 */
    char line[160];
    for (uint32_t i = 0; i < program->constant_count; i++) {
        const gb_constant *constant = &program->constants[i];
        const gb_cuda_weight_layout *layout = &u->weights->layouts[i];
        gb_format wide;
        if (constant->type.dtype == GB_QUANTIZED && gb_cuda_expanded_format(&constant->format, &wide))
            size[layout->is_expanded] += size_of(program, u->weights, i);
    }
    if (size[0] + size[1] == 0 || !u->options->log)
        return;
    snprintf(line, sizeof line,
             size[1] > 0 ? "cuda: weights with code books take %.1f MB as 8 bits, for faster kernels"
                         : "cuda: %.1f MB of weights with code books go through slow kernels: as 8 bits all "
                           "weights would take more than half of the device's memory",
             (double)(size[1] > 0 ? size[1] : size[0]) / 1e6);
    u->options->log(u->options->log_user, GUMBEL_LOG_INFO, line);
}

static gumbel_status begin_upload(upload *u, gumbel_error *error) {
    unsigned cores = gb_available_cores();
    u->threads = cores < MOST_THREADS ? cores : MOST_THREADS;
    GB_TRY(gb_team_create(u->threads, &u->team, error));
    u->canonical = gb_allocate(STAGING_BYTES, 1);
    if (!u->canonical)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for laying the weights out");
    for (unsigned i = 0; i < STAGINGS; i++) {
        void *staging;
        GB_TRY(gb_cuda_allocate_pinned(STAGING_BYTES, doing, &staging, error));
        u->staging[i] = staging;
        GB_TRY(gb_cuda_check(cudaEventCreate(&u->copied[i]), "making an event", error));
    }
    return GUMBEL_OK;
}

static void end_upload(upload *u) {
    gb_team_destroy(u->team);
    gb_free(u->canonical);
    gb_free(u->expanded);
    for (unsigned i = 0; i < STAGINGS; i++) {
        gb_cuda_free_pinned(u->staging[i]);
        if (u->copied[i])
            cudaEventDestroy(u->copied[i]);
    }
}

gumbel_status gb_cuda_weights_create(const gb_program *program, const gb_backend_options *options,
                                     cudaStream_t stream, gb_cuda_weights *weights, gumbel_error *error) {
    *weights = (gb_cuda_weights){0};
    GB_TRY(gb_cuda_weights_place(program, weights, error));
    void *memory;
    GB_TRY(gb_cuda_allocate(weights->size, "the weights", &memory, error));
    weights->memory = memory;
    upload u = {.options = options, .weights = weights, .stream = stream};
    tell_rearranging(program, &u);
    tell_expanding(program, &u);
    gumbel_status status = begin_upload(&u, error);
    if (status == GUMBEL_OK)
        status = copy_constants(&u, program, error);
    end_upload(&u);
    return status;
}

void gb_cuda_weights_destroy(gb_cuda_weights *weights) {
    gb_cuda_free(weights->memory);
    gb_free(weights->offsets);
    gb_free(weights->layouts);
    *weights = (gb_cuda_weights){0};
}
