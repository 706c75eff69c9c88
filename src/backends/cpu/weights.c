/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cpu/weights.h"

#include "base/file_map.h"
#include "base/memory.h"
#include "program/constant_packing.h"
#include "program/shard/shard.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

/* The order that kernels like best; they read canonical matrices too. */
static const gb_packing_order ORDER = GB_ORDER_INTERLEAVED;

/* ---- What has to be rearranged ------------------------------------------------------------------------- */

/* Whether the constant can be used as it is; otherwise *wanted is the packing that it gets. A packing that is
 * neither canonical nor the wanted one is undone: going on to the wanted one would take a second pass. */
static bool is_usable(const gb_constant *constant, const gb_constant_use *use, gb_packing *wanted) {
    bool is_packed = constant->packing.block_rows > 0;
    *wanted = gb_constant_wanted_packing(constant, use, ORDER);
    if (is_packed ? gb_packing_equal(&constant->packing, wanted) : wanted->block_rows == 0 || !use->is_int8)
        return true;
    if (is_packed)
        *wanted = (gb_packing){0};
    return false;
}

/* Decides for each constant; those to be rearranged get an offset in memory, kept in data's place until there
 * is one. */
static gumbel_status plan(const gb_program *program, const gb_constant_use *uses, gb_placed_weights *weights,
                          gumbel_error *error) {
    for (uint32_t i = 0; i < program->constant_count; i++) {
        const gb_constant *constant = &program->constants[i];
        gb_placed_weight *weight = &weights->of[i];
        gb_packing wanted;
        if (!constant->data && !constant->part)
            return gb_fail(error, GUMBEL_ERROR_UNSUPPORTED, "constant %s has no data: not read from a file",
                           constant->name);
        const bool is_kept = is_usable(constant, &uses[i], &wanted);
        weight->is_rearranged = !is_kept || constant->part;
        weight->is_interleaved = is_kept ? constant->packing.block_rows > 0 : wanted.block_rows > 0;
        weight->data = constant->data;
        if (weight->is_rearranged &&
            (!gb_add_size(weights->memory_bytes, constant->size, &weights->memory_bytes) ||
             !gb_align_size(weights->memory_bytes, 64, &weights->memory_bytes)))
            return gb_fail(error, GUMBEL_ERROR_MEMORY, "constant %s: too large to be rearranged",
                           constant->name);
    }
    return GUMBEL_OK;
}

/* ---- Rearranging --------------------------------------------------------------------------------------- */

/* One constant, which the team packs or unpacks. */
typedef struct rearrangement {
    const gb_constant *constant;
    gb_packing packing; /* that it has or that it gets */
    bool is_packing;
    gb_planes planes;
    uint64_t rows, columns;
    uint8_t *to;
    unsigned thread_count;
} rearrangement;

/* The thread's blocks of each plane. */
static void rearrange_share(void *user, unsigned index) {
    const rearrangement *r = user;
    uint64_t blocks = r->rows / r->packing.block_rows;
    uint64_t first = blocks * index / r->thread_count * r->packing.block_rows;
    uint64_t count = blocks * (index + 1) / r->thread_count * r->packing.block_rows - first;
    for (gb_plane_kind kind = GB_PLANE_CODES; kind < GB_PLANE_KINDS && count > 0; kind++) {
        const gb_plane *plane = gb_plane_of(&r->planes, kind);
        uint64_t offset = plane->offset + first * plane->row_bytes;
        if (plane->row_bytes > 0)
            (r->is_packing ? gb_pack_rows : gb_unpack_rows)(&r->packing, &r->constant->format, kind, count,
                                                            r->columns, r->constant->data + offset,
                                                            r->to + offset);
    }
}

/* A constant with data, into the packing that it gets. */
static void rearrange_constant(const gb_constant *constant, const gb_constant_use *use, bool is_interleaved,
                               gb_team *team, unsigned thread_count, uint8_t *to) {
    rearrangement r = {.constant = constant,
                       .packing = constant->packing,
                       .is_packing = constant->packing.block_rows == 0,
                       .to = to,
                       .thread_count = thread_count};
    if (is_interleaved == (constant->packing.block_rows > 0)) {
        memcpy(to, constant->data, constant->size);
        return;
    }
    if (r.is_packing)
        r.packing = gb_constant_wanted_packing(constant, use, ORDER);
    gb_constant_planes(constant, &r.planes);
    gb_constant_matrix(constant, &r.rows, &r.columns);
    gb_team_run(team, rearrange_share, &r);
}

/* A part of a constant is read first. */
static gumbel_status rearrange_part(const gb_constant *part, const gb_constant_use *use, bool is_interleaved,
                                    gb_team *team, unsigned thread_count, uint8_t *to, gumbel_error *error) {
    gb_constant constant = *part;
    uint8_t *bytes = gb_allocate_aligned((size_t)part->size, 1);
    if (!bytes)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for a rank's part of %s", part->name);
    const gumbel_status status = gb_constant_part_read(part, bytes, error);
    constant.data = bytes;
    if (status == GUMBEL_OK)
        rearrange_constant(&constant, use, is_interleaved, team, thread_count, to);
    gb_free(bytes);
    return status;
}

static gumbel_status rearrange(const gb_program *program, const gb_constant_use *uses, gb_team *team,
                               unsigned thread_count, gb_placed_weights *weights, gumbel_error *error) {
    uint8_t *to = weights->memory;
    for (uint32_t i = 0; i < program->constant_count; i++) {
        const gb_constant *constant = &program->constants[i];
        gb_placed_weight *weight = &weights->of[i];
        if (!weight->is_rearranged)
            continue;
        if (constant->part)
            GB_TRY(rearrange_part(constant, &uses[i], weight->is_interleaved, team, thread_count, to, error));
        else
            rearrange_constant(constant, &uses[i], weight->is_interleaved, team, thread_count, to);
        if (program->map.data)
            gb_release_pages(constant->data, constant->size);
        weight->data = to;
        to += (constant->size + 63) / 64 * 64;
    }
    return GUMBEL_OK;
}

/* A rank's parts are in memory whatever their packing is. */
static void report(const gb_program *program, const gb_placed_weights *weights, gumbel_log_callback log,
                   void *log_user) {
    char line[256];
    if (!log || program->ranks > 0)
        return;
    snprintf(
        line, sizeof line,
        "laid out %.1f MB of weights for the cpu backend, in memory; gumbel pack makes a program that is "
        "used where it is mapped",
        (double)weights->memory_bytes / 1e6);
    log(log_user, GUMBEL_LOG_INFO, line);
}

/* ---- All of it ----------------------------------------------------------------------------------------- */

static gumbel_status place(const gb_program *program, gb_constant_use *uses, gb_team *team,
                           unsigned thread_count, gb_placed_weights *weights, gumbel_error *error) {
    gb_find_constant_uses(program, uses);
    GB_TRY(plan(program, uses, weights, error));
    if (weights->memory_bytes == 0)
        return GUMBEL_OK;
    void *memory = weights->memory_bytes > SIZE_MAX
                       ? MAP_FAILED
                       : mmap(NULL, (size_t)weights->memory_bytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return gb_fail(error, GUMBEL_ERROR_MEMORY,
                       "no memory for laying out %" PRIu64 " bytes of weights; gumbel pack does it in a file",
                       weights->memory_bytes);
    weights->memory = memory;
    return rearrange(program, uses, team, thread_count, weights, error);
}

gumbel_status gb_place_weights(const gb_program *program, gb_team *team, unsigned thread_count,
                               gumbel_log_callback log, void *log_user, gb_placed_weights *weights,
                               gumbel_error *error) {
    *weights = (gb_placed_weights){.count = program->constant_count};
    weights->of = gb_allocate(program->constant_count, sizeof *weights->of);
    gb_constant_use *uses = gb_allocate(program->constant_count, sizeof *uses);
    gumbel_status status = weights->of && uses
                               ? place(program, uses, team, thread_count, weights, error)
                               : gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for the list of weights");
    gb_free(uses);
    if (status != GUMBEL_OK)
        gb_free_weights(weights);
    else if (weights->memory_bytes > 0)
        report(program, weights, log, log_user);
    return status;
}

void gb_free_weights(gb_placed_weights *weights) {
    if (weights->memory)
        munmap(weights->memory, (size_t)weights->memory_bytes);
    gb_free(weights->of);
    *weights = (gb_placed_weights){0};
}
