/* SPDX-License-Identifier: Apache-2.0 */
#include "program/shard/shard.h"

#include "base/memory.h"
#include "program/constant_packing.h"

#include <string.h>

/* A constant as units of bytes: of `outer` times `axis` units each part has ranges of every axis. */
typedef struct stripes {
    const gb_constant_part *part;
    uint64_t outer, axis, unit_bytes;
} stripes;

static uint64_t product_of(const gb_shape *shape, int32_t first, int32_t end) {
    uint64_t product = 1;
    for (int32_t i = first; i < end; i++)
        product *= (uint64_t)shape->dims[i];
    return product;
}

/* Returns where it ends. */
static uint8_t *copy_stripes(const stripes *s, const uint8_t *from, uint8_t *to) {
    for (uint64_t o = 0; o < s->outer; o++)
        for (uint32_t i = 0; i < s->part->range_count; i++) {
            const gb_shard_range *range = &s->part->ranges[i];
            const uint64_t size = (uint64_t)range->count * s->unit_bytes;
            memcpy(to, from + (o * s->axis + (uint64_t)range->first) * s->unit_bytes, size);
            to += size;
        }
    return to;
}

static gumbel_status read_dense(const gb_constant *constant, uint8_t *to) {
    const gb_constant_part *part = constant->part;
    const gb_shape *shape = &part->whole->type.shape;
    const stripes s = {part, product_of(shape, 0, part->dim), (uint64_t)shape->dims[part->dim],
                       product_of(shape, part->dim + 1, shape->rank) * gb_dtype_size(constant->type.dtype)};
    copy_stripes(&s, part->whole->data, to);
    return GUMBEL_OK;
}

/* Rows of one plane; of a packed matrix whole blocks, unless canonical is a place to unpack it to. */
static void read_plane(const gb_constant *constant, gb_plane_kind kind, const gb_planes *whole,
                       const gb_planes *own, uint8_t *canonical, uint8_t *to) {
    const gb_constant_part *part = constant->part;
    const gb_shape *shape = &part->whole->type.shape;
    const gb_plane *plane = gb_plane_of(whole, kind);
    const stripes s = {part, product_of(shape, 0, part->dim), (uint64_t)shape->dims[part->dim],
                       plane->row_bytes};
    const uint8_t *from = part->whole->data + plane->offset;
    if (plane->row_bytes == 0)
        return;
    if (canonical) {
        gb_constant_canonical_rows(part->whole, kind, 0, s.outer * s.axis, canonical);
        from = canonical;
    }
    copy_stripes(&s, from, to + gb_plane_of(own, kind)->offset);
}

static gumbel_status read_quantized(const gb_constant *constant, uint8_t *to, gumbel_error *error) {
    const gb_constant *whole = constant->part->whole;
    gb_planes from, own;
    uint8_t *canonical = NULL;
    if (!gb_constant_planes(whole, &from) || !gb_constant_planes(constant, &own))
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "constant %s has no format", constant->name);
    if (whole->packing.block_rows > 0 && constant->packing.block_rows == 0) {
        canonical = gb_allocate((size_t)whole->size, 1);
        if (!canonical)
            return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for unpacking %s", constant->name);
    }
    memset(to, 0, (size_t)constant->size); /* also what lies between planes */
    for (gb_plane_kind kind = GB_PLANE_CODES; kind < GB_PLANE_KINDS; kind++)
        read_plane(constant, kind, &from, &own, canonical, to);
    gb_free(canonical);
    return GUMBEL_OK;
}

gumbel_status gb_constant_part_read(const gb_constant *constant, uint8_t *to, gumbel_error *error) {
    return constant->type.dtype == GB_QUANTIZED ? read_quantized(constant, to, error)
                                                : read_dense(constant, to);
}
