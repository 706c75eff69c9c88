/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/ranks/split_states.h"

#include "backends/states/saved_rows.h"
#include "base/memory.h"
#include "tensor/cache_codes.h"

#include <string.h>

bool gb_rank_bytes_append(gb_rank_bytes *bytes, const void *data, uint64_t size) {
    void *grown = bytes->data;
    if (size > SIZE_MAX - bytes->size || !gb_grow(&grown, &bytes->capacity, bytes->size + (size_t)size, 1))
        return false;
    bytes->data = grown;
    if (data)
        memcpy(bytes->data + bytes->size, data, (size_t)size);
    bytes->size += (size_t)size;
    return true;
}

/* A state's saved bytes: `outer` times `axis` units, or in rows of codes (tensor/cache_codes.h) units of
 * codes, and behind all of them units of scales. */
typedef struct saved_state {
    const gb_shard *shard;
    uint64_t outer, axis, unit_bytes;
    uint64_t code_bytes; /* of a unit; 0: there are no codes */
} saved_state;

static saved_state saved_of(const gb_split_states *s, uint32_t index) {
    const gb_state *state = &s->program->states[index];
    const gb_shape *shape = &state->type.shape;
    const bool has_rows = state->kind != GB_STATE_RECURRENT;
    uint64_t rows = has_rows ? (uint64_t)shape->dims[0] : 1, count = 1, units = 1;
    saved_state saved = {.shard = &s->shards[index], .outer = 1, .axis = 1};
    const int32_t dim = saved.shard->dim;
    for (int32_t i = 0; i <= dim; i++)
        units *= (uint64_t)shape->dims[i];
    saved.unit_bytes = gb_state_bytes(state) / (dim == GB_WHOLE ? rows : units);
    if (dim != GB_WHOLE && gb_dtype_has_codes(state->type.dtype))
        saved.code_bytes = gb_code_bytes(state->type.dtype, (size_t)shape->dims[shape->rank - 1]);
    if (has_rows) {
        rows = state->kind == GB_STATE_CACHE && s->max_context < rows ? s->max_context : rows;
        count = gb_rows_to_save(state->kind, rows, state->window, s->position).count;
    }
    saved.outer = count;
    for (int32_t i = has_rows; i < dim; i++)
        saved.outer *= (uint64_t)shape->dims[i];
    if (dim != GB_WHOLE)
        saved.axis = (uint64_t)shape->dims[dim];
    return saved;
}

/* Units of one size of a row, which begins there, to or from a rank's bytes. */
static bool copy_units(const gb_split_states *s, const saved_state *saved, uint64_t unit_bytes, uint32_t rank,
                       bool joins, uint8_t *row) {
    gb_rank_bytes *bytes = &s->of[rank];
    for (uint32_t i = 0; i < saved->shard->section_count; i++) {
        const gb_section *section = &saved->shard->sections[i];
        const gb_shard_range range = gb_shard_range_of(section, rank, s->ranks);
        uint8_t *place = row + (uint64_t)range.first * unit_bytes;
        const size_t size = (size_t)((uint64_t)range.count * unit_bytes);
        if (size > bytes->size - bytes->at)
            return false;
        memcpy(joins ? place : bytes->data + bytes->at, joins ? bytes->data + bytes->at : place, size);
        bytes->at += size;
        row += (uint64_t)section->size * unit_bytes;
    }
    return true;
}

/* Copies a rank's bytes of a state to or from where all ranks' lie. */
static bool copy_rank(const gb_split_states *s, const saved_state *saved, uint32_t rank, bool joins,
                      uint8_t *all) {
    const uint64_t row_bytes = saved->axis * saved->unit_bytes;
    const uint64_t first = saved->code_bytes > 0 ? saved->code_bytes : saved->unit_bytes;
    bool fits = true;
    for (uint64_t o = 0; o < saved->outer && fits; o++) {
        uint8_t *row = all + o * row_bytes;
        fits = copy_units(s, saved, first, rank, joins, row);
        if (fits && saved->code_bytes > 0)
            fits = copy_units(s, saved, saved->unit_bytes - first, rank, joins, row + saved->axis * first);
    }
    return fits;
}

static bool copy_ranks(const gb_split_states *s, const saved_state *saved, bool joins, uint8_t *all) {
    /* Of one unit every rank has all. */
    static const gb_shard whole = {.dim = 0, .section_count = 1, .sections = {{1, 1}}};
    saved_state copied = *saved;
    if (saved->shard->dim == GB_WHOLE)
        copied.shard = &whole;
    for (uint32_t rank = 0; rank < s->ranks; rank++)
        if (!copy_rank(s, &copied, rank, joins, all))
            return false;
    return true;
}

static uint64_t rank_size(const gb_split_states *s, const saved_state *saved, uint32_t rank) {
    const uint64_t axis =
        saved->shard->dim == GB_WHOLE ? 1 : (uint64_t)gb_shard_size(saved->shard, rank, s->ranks);
    return saved->outer * axis * saved->unit_bytes;
}

typedef struct state_stream {
    gb_save_stream write;
    gb_load_stream read;
    void *user;
} state_stream;

static gumbel_status join_state(gb_split_states *s, const saved_state *saved, uint8_t *all,
                                const state_stream *stream, gumbel_error *error) {
    if (!copy_ranks(s, saved, true, all))
        return gb_fail(error, GUMBEL_ERROR_BACKEND, "a rank has saved too little of its states");
    return stream->write(stream->user, all, saved->outer * saved->axis * saved->unit_bytes, error);
}

static gumbel_status part_state(gb_split_states *s, const saved_state *saved, uint8_t *all,
                                const state_stream *stream, gumbel_error *error) {
    GB_TRY(stream->read(stream->user, all, saved->outer * saved->axis * saved->unit_bytes, error));
    for (uint32_t rank = 0; rank < s->ranks; rank++)
        if (!gb_rank_bytes_append(&s->of[rank], NULL, rank_size(s, saved, rank)))
            return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for the states of a rank");
    copy_ranks(s, saved, false, all);
    return GUMBEL_OK;
}

static gumbel_status each_state(gb_split_states *s, const state_stream *stream, gumbel_error *error) {
    gumbel_status status = GUMBEL_OK;
    for (uint32_t i = 0; i < s->program->state_count && status == GUMBEL_OK; i++) {
        const saved_state saved = saved_of(s, i);
        const uint64_t size = saved.outer * saved.axis * saved.unit_bytes;
        if ((s->saved == GB_SAVED_WITHOUT_CACHES && s->program->states[i].kind == GB_STATE_CACHE) ||
            size == 0)
            continue;
        uint8_t *all = gb_allocate((size_t)size, 1);
        if (!all)
            return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for a state of all ranks");
        status = (stream->write ? join_state : part_state)(s, &saved, all, stream, error);
        gb_free(all);
    }
    return status;
}

gumbel_status gb_split_states_join(gb_split_states *states, gb_save_stream write, void *user,
                                   gumbel_error *error) {
    return each_state(states, &(state_stream){.write = write, .user = user}, error);
}

gumbel_status gb_split_states_part(gb_split_states *states, gb_load_stream read, void *user,
                                   gumbel_error *error) {
    return each_state(states, &(state_stream){.read = read, .user = user}, error);
}
