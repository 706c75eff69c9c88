/* SPDX-License-Identifier: Apache-2.0 */
#include "program/constant_packing.h"

#include "base/memory.h"
#include "program/draft_head.h"

#include <string.h>

enum { WEIGHT_OPERAND = 1 }; /* of linear and expert_linear */

/* A product's use of its weight. */
static gb_constant_use use_of(const gb_node *product) {
    const int64_t activation = gb_node_int(product, GB_ATTRIBUTE_ACTIVATION);
    return (gb_constant_use){.is_multiplied = true,
                             .is_int8 = gb_activation_is_int8(activation),
                             .is_per_token = activation == GB_ACTIVATION_INT8_PER_TOKEN};
}

static void note_operand(const gb_program *program, const gb_node *node, uint32_t operand,
                         gb_constant_use *uses) {
    gb_ref ref = node->operands[operand];
    if (ref == GB_NO_VALUE || program->values[ref].kind != GB_VALUE_CONSTANT)
        return;
    if (node->op == GB_OP_EMBEDDING)
        return; /* rows are read from every packing */
    gb_constant_use *use = &uses[program->values[ref].index];
    if (operand != WEIGHT_OPERAND || (node->op != GB_OP_LINEAR && node->op != GB_OP_EXPERT_LINEAR)) {
        use->has_others = true;
        return;
    }
    const gb_constant_use of = use_of(node);
    use->is_mixed = use->is_mixed || (use->is_multiplied &&
                                      (use->is_int8 != of.is_int8 || use->is_per_token != of.is_per_token));
    use->is_multiplied = true;
    use->is_int8 = use->is_int8 || of.is_int8;
    use->is_per_token = use->is_per_token || of.is_per_token;
}

void gb_find_constant_uses(const gb_program *program, gb_constant_use *uses) {
    memset(uses, 0, program->constant_count * sizeof *uses);
    for (uint32_t n = 0; n < program->node_count; n++)
        for (uint32_t i = 0; i < program->nodes[n].operand_count; i++)
            note_operand(program, &program->nodes[n], i, uses);
}

/* For tensor cores. Where inputs are rounded per row, 4-bit codes with integers for scales lie in tiles. */
static bool choose_fragments(const gb_constant *constant, const gb_constant_use *use, uint64_t rows,
                             uint64_t columns, gb_packing *packing) {
    const bool wants_tiles = use->is_per_token && constant->format.kind == GB_FORMAT_PROGRESSIVE;
    return (wants_tiles ? gb_packing_tiles : gb_packing_fragments)(&constant->format, rows, columns, packing);
}

gb_packing gb_constant_wanted_packing(const gb_constant *constant, const gb_constant_use *use,
                                      gb_packing_order order) {
    const gb_shape *shape = &constant->type.shape;
    uint64_t rows, columns;
    gb_packing packing;
    if (order == GB_ORDER_CANONICAL || !use->is_multiplied || constant->type.dtype != GB_QUANTIZED ||
        !gb_constant_matrix(constant, &rows, &columns))
        return (gb_packing){0};
    const bool is_possible =
        order == GB_ORDER_INTERLEAVED
            ? gb_packing_interleaved(&constant->format, rows, columns, &packing)
            : !use->has_others && !use->is_mixed && choose_fragments(constant, use, rows, columns, &packing);
    if (is_possible && shape->dims[shape->rank - 2] % packing.block_rows == 0)
        return packing;
    return (gb_packing){0};
}

static gumbel_status choose_packings(gb_program *program, gb_packing_order order, gumbel_error *error) {
    gb_constant_use *uses = gb_allocate(program->constant_count, sizeof *uses);
    if (!uses)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for choosing packings");
    gb_find_constant_uses(program, uses);
    for (uint32_t i = 0; i < program->constant_count; i++)
        program->constants[i].packing = gb_constant_wanted_packing(&program->constants[i], &uses[i], order);
    gb_free(uses);
    return GUMBEL_OK;
}

gumbel_status gb_program_choose_packings(gb_program *program, gb_packing_order order, gumbel_error *error) {
    GB_TRY(choose_packings(program, order, error));
    if (!program->head)
        return GUMBEL_OK;
    GB_TRY(choose_packings(program->head, order, error));
    return gb_share_constants(program, error);
}

const char *gb_constant_packing_text(const gb_constant *constant) {
    uint64_t rows, columns;
    gb_packing known;
    if (constant->packing.block_rows == 0)
        return "canonical";
    if (!gb_constant_matrix(constant, &rows, &columns))
        return "packed";
    if (gb_packing_interleaved(&constant->format, rows, columns, &known) &&
        gb_packing_equal(&constant->packing, &known))
        return "interleaved 16";
    if (gb_packing_fragments(&constant->format, rows, columns, &known) &&
        gb_packing_equal(&constant->packing, &known))
        return "fragments 16";
    if (gb_packing_tiles(&constant->format, rows, columns, &known) &&
        gb_packing_equal(&constant->packing, &known))
        return "tiles 128";
    return "packed";
}

void gb_constant_canonical_rows(const gb_constant *constant, gb_plane_kind kind, uint64_t first,
                                uint64_t count, uint8_t *canonical) {
    uint64_t rows, columns;
    gb_planes planes;
    if (!gb_constant_matrix(constant, &rows, &columns) || !gb_constant_planes(constant, &planes))
        return;
    const gb_plane *plane = gb_plane_of(&planes, kind);
    const uint8_t *from = constant->data + plane->offset + first * plane->row_bytes;
    if (constant->packing.block_rows == 0)
        memcpy(canonical, from, count * plane->row_bytes);
    else if (plane->row_bytes > 0)
        gb_unpack_rows(&constant->packing, &constant->format, kind, count, columns, from, canonical);
}

void gb_constant_canonical(const gb_constant *constant, uint8_t *canonical) {
    uint64_t rows, columns;
    if (constant->packing.block_rows > 0 && gb_constant_matrix(constant, &rows, &columns))
        gb_unpack_matrix(&constant->packing, &constant->format, rows, columns, constant->data, canonical);
    else
        memcpy(canonical, constant->data, constant->size);
}
