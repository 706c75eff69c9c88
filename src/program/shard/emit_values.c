/* SPDX-License-Identifier: Apache-2.0 */
#include "program/shard/emit.h"

#include "base/memory.h"

#include <stdio.h>

gb_shard_range gb_shard_range_of(const gb_section *section, uint32_t rank, uint32_t ranks) {
    const int64_t unit = section->size / section->units,
                  count = section->units > ranks ? section->units / ranks : 1;
    return (gb_shard_range){(int64_t)rank * section->units / ranks * unit, count * unit};
}

int64_t gb_shard_size(const gb_shard *shard, uint32_t rank, uint32_t ranks) {
    int64_t size = 0;
    for (uint32_t i = 0; i < shard->section_count; i++)
        size += gb_shard_range_of(&shard->sections[i], rank, ranks).count;
    return size;
}

static int64_t own_size(const gb_emitter *e, const gb_shard *shard) {
    return gb_shard_size(shard, e->options->rank, e->options->ranks);
}

static bool is_same(const gb_shard *a, const gb_shard *b) {
    bool same = a->dim == b->dim && (a->dim == GB_WHOLE || a->section_count == b->section_count);
    for (uint32_t i = 0; same && a->dim != GB_WHOLE && i < a->section_count; i++)
        same = a->sections[i].size == b->sections[i].size && a->sections[i].units == b->sections[i].units;
    return same;
}

/* ---- Gathering ----------------------------------------------------------------------------------------- */

/* all_gather has sections of one size, of which each rank has its own units. */
static bool can_gather(const gb_emitter *e, const gb_shard *shard) {
    for (uint32_t i = 0; i < shard->section_count; i++)
        if (shard->sections[i].size != shard->sections[0].size ||
            shard->sections[i].units % e->options->ranks != 0)
            return false;
    return true;
}

static gb_ref gather_columns(gb_emitter *e, gb_ref own, const gb_shard *shard) {
    const gb_attribute attributes[] = {gb_int(GB_ATTRIBUTE_RANKS, e->options->ranks),
                                       gb_int(GB_ATTRIBUTE_SECTIONS, shard->section_count)};
    return gb_build_op(e->builder, GB_OP_ALL_GATHER, &own, 1, attributes, 2);
}

/* Heads are gathered as columns. */
static gb_ref gather_heads(gb_emitter *e, gb_ref own, const gb_shard *shard, int64_t heads) {
    const gb_attribute attribute = gb_int(GB_ATTRIBUTE_HEADS, heads);
    const gb_ref merged = gb_build_op(e->builder, GB_OP_MERGE_HEADS, &own, 1, NULL, 0);
    const gb_ref gathered = gather_columns(e, merged, shard);
    return gb_build_op(e->builder, GB_OP_SPLIT_HEADS, &gathered, 1, &attribute, 1);
}

gb_ref gb_emit_whole(gb_emitter *e, gb_ref value) {
    gb_emitted *v = &e->values[value];
    const gb_shape *shape = &e->program->values[value].type.shape;
    if (v->whole != GB_NO_VALUE)
        return v->whole;
    if (v->shard.dim == GB_WHOLE)
        v->whole = v->own;
    else if (!can_gather(e, &v->shard))
        gb_builder_fail(e->builder, GUMBEL_ERROR_UNSUPPORTED, "value %u cannot be gathered from %u ranks",
                        value, e->options->ranks);
    else
        v->whole = v->shard.dim == shape->rank - 1 ? gather_columns(e, v->own, &v->shard)
                                                   : gather_heads(e, v->own, &v->shard, shape->dims[1]);
    return v->whole;
}

/* ---- Constants and states ------------------------------------------------------------------------------ */

/* The rank's constant with that part, NULL: not there; or any part of it. */
static const gb_emitted_constant *find_constant(const gb_emitter *e, uint32_t whole, const gb_shard *shard) {
    for (size_t i = 0; i < e->constant_count; i++)
        if (e->constants[i].whole == whole && (!shard || is_same(&e->constants[i].shard, shard)))
            return &e->constants[i];
    return NULL;
}

static gb_shape own_shape(const gb_emitter *e, const gb_type *type, const gb_shard *shard) {
    gb_shape shape = type->shape;
    if (shard->dim != GB_WHOLE)
        shape.dims[shard->dim] = own_size(e, shard);
    return shape;
}

/* One that is needed whole and in part, such as an embedding that is the head too, is there twice, the second
 * time with its number. */
static gb_ref build_constant(gb_emitter *e, const gb_constant *constant, bool is_there,
                             const gb_shard *shard) {
    const gb_shape shape = own_shape(e, &constant->type, shard);
    char name[512];
    if (is_there)
        snprintf(name, sizeof name, "%s (%zu)", constant->name, e->constant_count);
    else
        snprintf(name, sizeof name, "%s", constant->name);
    return constant->type.dtype == GB_QUANTIZED
               ? gb_build_quantized(e->builder, name, &constant->format, shape.rank, shape.dims)
               : gb_build_constant(e->builder, name, constant->type.dtype, shape.rank, shape.dims);
}

gb_ref gb_emit_constant(gb_emitter *e, gb_ref value, const gb_shard *shard) {
    const uint32_t whole = e->program->values[value].index;
    const gb_emitted_constant *found = find_constant(e, whole, shard);
    if (found)
        return found->own;
    void *grown = e->constants;
    if (!gb_grow(&grown, &e->constant_capacity, e->constant_count + 1, sizeof *e->constants)) {
        gb_builder_fail(e->builder, GUMBEL_ERROR_MEMORY, "no memory for the constants of a rank");
        return GB_NO_VALUE;
    }
    e->constants = grown;
    const gb_ref own =
        build_constant(e, &e->program->constants[whole], find_constant(e, whole, NULL) != NULL, shard);
    e->constants[e->constant_count++] = (gb_emitted_constant){whole, own, *shard};
    return own;
}

/* Several attention nodes may have the same states, which they cut alike. */
gb_ref gb_emit_state(gb_emitter *e, gb_ref value, const gb_shard *shard) {
    const uint32_t index = e->program->values[value].index;
    const gb_state *state = &e->program->states[index];
    gb_emitted *v = &e->values[value];
    if (v->own != GB_NO_VALUE)
        return v->own;
    const gb_shape shape = own_shape(e, &state->type, shard);
    v->own = gb_build_state(e->builder, state->name, state->kind, state->type.dtype, shape.rank, shape.dims,
                            state->window);
    e->states[index] = *shard;
    e->state_order[e->state_count++] = index;
    return v->own;
}
