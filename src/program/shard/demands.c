/* SPDX-License-Identifier: Apache-2.0 */
#include "program/shard/demands.h"

#include "program/shard/letters.h"

#include <string.h>

typedef struct seeker {
    const gb_program *program;
    gb_demand *demands;
} seeker;

/* ---- One demand ---------------------------------------------------------------------------------------- */

static bool has_section(gb_demand *demand, gb_demanded_section section) {
    for (uint32_t i = 0; i < demand->count; i++)
        if (demand->sections[i].start == section.start && demand->sections[i].size == section.size) {
            if (demand->sections[i].units == 0)
                demand->sections[i].units = section.units;
            return true;
        }
    return false;
}

/* Heads, which come before their columns, are what matters where both are demanded. */
static void add(gb_demand *demand, int32_t dim, gb_demanded_section section) {
    if (demand->count > 0 && dim > demand->dim)
        return;
    if (dim < demand->dim)
        *demand = (gb_demand){0};
    demand->dim = dim;
    if (has_section(demand, section))
        return;
    uint32_t at = demand->count;
    if (at == GB_MOST_SECTIONS) {
        demand->is_contradictory = true;
        return;
    }
    for (; at > 0 && demand->sections[at - 1].start > section.start; at--)
        demand->sections[at] = demand->sections[at - 1];
    demand->sections[at] = section;
    demand->count++;
}

static bool add_to_shard(gb_shard *shard, int64_t size, int64_t units) {
    if (size < 0 || shard->section_count == GB_MOST_SECTIONS)
        return false;
    if (size > 0)
        shard->sections[shard->section_count++] = (gb_section){size, units > 0 ? units : size};
    return true;
}

gb_shard gb_demanded_shard(const gb_demand *demand, const gb_type *type, int32_t dim) {
    const int64_t size = type->shape.dims[dim];
    const uint32_t count = demand->dim == dim ? demand->count : 0;
    gb_shard shard = {.dim = dim};
    int64_t at = 0;
    bool fits = !demand->is_contradictory;
    for (uint32_t i = 0; i < count && fits; i++) {
        const gb_demanded_section *section = &demand->sections[i];
        fits = add_to_shard(&shard, section->start - at, 0) &&
               add_to_shard(&shard, section->size, section->units);
        at = section->start + section->size;
    }
    if (!fits || !add_to_shard(&shard, size - at, 0))
        shard.dim = GB_WHOLE;
    return shard;
}

bool gb_demands_heads(const gb_demand *demand) {
    for (uint32_t i = 0; i < demand->count; i++)
        if (demand->sections[i].units > 0)
            return true;
    return false;
}

/* ---- What ops demand ----------------------------------------------------------------------------------- */

static const gb_shape *shape_of(const seeker *s, gb_ref value) {
    return &s->program->values[value].type.shape;
}

/* Rows of heads are cut as the heads are. */
static void demand_heads(const seeker *s, const gb_node *node) {
    const gb_demand *wanted = &s->demands[node->results[0]];
    const int64_t width = shape_of(s, node->results[0])->dims[2],
                  heads = shape_of(s, node->results[0])->dims[1];
    gb_demand *x = &s->demands[node->operands[0]];
    if (wanted->count == 0 || wanted->dim != 1)
        add(x, 1, (gb_demanded_section){0, heads * width, heads});
    for (uint32_t i = 0; i < wanted->count && wanted->dim == 1; i++) {
        const gb_demanded_section *section = &wanted->sections[i];
        add(x, 1,
            (gb_demanded_section){section->start * width, section->size * width,
                                  section->units > 0 ? section->units : section->size});
    }
}

static void demand_slice(const seeker *s, const gb_node *node) {
    const gb_demand *wanted = &s->demands[node->results[0]];
    const int64_t start = gb_node_int(node, GB_ATTRIBUTE_START),
                  count = gb_node_int(node, GB_ATTRIBUTE_COUNT);
    const int32_t last = shape_of(s, node->results[0])->rank - 1;
    gb_demand *x = &s->demands[node->operands[0]];
    if (wanted->count == 0)
        add(x, last, (gb_demanded_section){start, count, 0});
    for (uint32_t i = 0; i < wanted->count; i++) {
        gb_demanded_section section = wanted->sections[i];
        section.start += wanted->dim == last ? start : 0;
        add(x, wanted->dim, section);
    }
}

/* What attends or remembers is cut by heads. Where value head h has key head h mod G, a rank's key heads
 * belong to heads of each G. */
static void demand_attending(const seeker *s, const gb_node *node) {
    enum { KEY = 1 };
    gb_signature signature;
    const bool is_tiled = node->op == GB_OP_GATED_DELTA && gb_node_int(node, GB_ATTRIBUTE_TILED);
    const int64_t keys = shape_of(s, node->operands[KEY])->dims[1];
    for (uint32_t i = 0; i < node->operand_count && gb_signature_parse(gb_op_find(node->op), &signature);
         i++) {
        const gb_shape *shape = shape_of(s, node->operands[i]);
        if (shape->rank < 2 ||
            !gb_op_cuts(node->op, gb_letter_of(node->op, &signature.operands[i], shape->rank, 1)))
            continue;
        const int64_t heads = shape->dims[1], size = is_tiled ? keys : heads;
        for (int64_t start = 0; start < heads; start += size)
            add(&s->demands[node->operands[i]], 1, (gb_demanded_section){start, size, size});
    }
}

/* What is demanded of the result goes on to the operands that are cut with it. */
static void pass_on(const seeker *s, const gb_node *node) {
    const gb_demand *wanted = &s->demands[node->results[0]];
    gb_signature signature;
    if (wanted->count == 0 || !gb_signature_parse(gb_op_find(node->op), &signature))
        return;
    const int32_t letter =
        gb_letter_of(node->op, &signature.results[0], shape_of(s, node->results[0])->rank, wanted->dim);
    for (uint32_t i = 0; i < node->operand_count && gb_op_cuts(node->op, letter); i++) {
        const int32_t dim =
            gb_dim_of_letter(node->op, &signature.operands[i], shape_of(s, node->operands[i])->rank, letter);
        for (uint32_t j = 0; j < wanted->count && dim != GB_WHOLE; j++)
            add(&s->demands[node->operands[i]], dim, wanted->sections[j]);
    }
}

static void demand(const seeker *s, const gb_node *node) {
    if (node->op == GB_OP_SPLIT_HEADS)
        demand_heads(s, node);
    else if (node->op == GB_OP_SLICE)
        demand_slice(s, node);
    else if (node->op == GB_OP_GATED_DELTA || node->op == GB_OP_ATTENTION || node->op == GB_OP_ATTEND)
        demand_attending(s, node);
    else if (node->result_count > 0)
        pass_on(s, node);
}

void gb_find_demands(const gb_program *program, gb_demand *demands) {
    const seeker s = {program, demands};
    const gb_region *body = &program->regions[0];
    for (uint32_t n = body->node_count; n-- > 0;)
        demand(&s, &program->nodes[body->first_node + n]);
}
