/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/lowering/weight_layouts.h"

#include "backends/cuda/lowering/products.h"
#include "backends/cuda/runtime/expand_codes.h"
#include "base/memory.h"
#include "program/constant_packing.h"
#include "program/shard/shard.h"

/* Inputs in 8 bits go through kernels by pairs of units. */
enum { BYTES_COLUMNS = 64 };

/* Small matrices whose rows are no whole blocks, such as the gate of a shared expert, get rows of zeros. */
enum { MOST_PADDED_ROWS = 1024 };

/* ---- What a constant can be ---------------------------------------------------------------------------- */

static uint64_t padded_rows(uint64_t rows) {
    return (rows + GB_FRAGMENT_ROWS - 1) / GB_FRAGMENT_ROWS * GB_FRAGMENT_ROWS;
}

static bool can_pad(const gb_constant *constant, const gb_constant_use *use) {
    return constant->type.shape.rank == 2 && use->is_multiplied && !use->has_others && !use->is_mixed &&
           !use->is_per_token && gb_cuda_count_all_outputs(constant) <= MOST_PADDED_ROWS;
}

/* A rank's part is left as it is, and so is a file's packing whose blocks are no parts of tiles. */
static bool can_fill_tiles(const gb_constant *constant, const gb_constant_use *use) {
    const gb_shape *shape = &constant->type.shape;
    const uint64_t block = constant->packing.block_rows > 0 ? constant->packing.block_rows : 1;
    return shape->rank >= 2 && !constant->part && use->is_multiplied && !use->has_others &&
           use->is_per_token && !use->is_mixed && GB_TILE_ROWS % block == 0 &&
           (uint64_t)shape->dims[shape->rank - 2] % block == 0;
}

/* Tiles with zeros where rows or columns are no whole ones. */
static bool find_padded_tiles(const gb_constant *constant, const gb_constant_use *use,
                              gb_cuda_weight_layout *layout) {
    gb_padded_tiles tiles;
    if (!can_fill_tiles(constant, use) || !gb_cuda_padded_tiles(constant, &tiles))
        return false;
    layout->packing = tiles.packing;
    layout->planes = tiles.all;
    layout->fills_tiles = true;
    return true;
}

/* Whether inputs of its products are rounded in groups. */
static bool rounds_groups(const gb_constant *constant, const gb_constant_use *use) {
    const gb_shape *shape = &constant->type.shape;
    return use->is_int8 && !use->is_per_token && constant->format.group > 0 &&
           shape->dims[shape->rank - 1] % BYTES_COLUMNS == 0;
}

/* The layout for tensor cores of a wider format. */
static bool find_expanded(const gb_constant *constant, const gb_constant_use *use,
                          gb_cuda_weight_layout *layout) {
    gb_constant wide = *constant;
    uint64_t rows, columns;
    if (!gb_cuda_expanded_format(&constant->format, &wide.format) ||
        !gb_constant_matrix(&wide, &rows, &columns))
        return false;
    *layout = (gb_cuda_weight_layout){.format = wide.format, .is_expanded = true};
    layout->packing = gb_constant_wanted_packing(&wide, use, GB_ORDER_FRAGMENTS);
    layout->int8_input = rounds_groups(&wide, use);
    return layout->packing.block_rows > 0 && gb_format_planes(&wide.format, rows, columns, &layout->planes);
}

/* The layout for tensor cores, or where it has none the canonical one. */
static bool find_packed(const gb_constant *constant, const gb_constant_use *use,
                        gb_cuda_weight_layout *layout) {
    uint64_t rows, columns;
    *layout = (gb_cuda_weight_layout){.format = constant->format};
    if (!gb_constant_matrix(constant, &rows, &columns))
        return false;
    layout->packing = gb_constant_wanted_packing(constant, use, GB_ORDER_FRAGMENTS);
    if (layout->packing.block_rows == 0 && find_padded_tiles(constant, use, layout))
        return true;
    if (layout->packing.block_rows == 0 && can_pad(constant, use)) {
        if (gb_packing_fragments(&constant->format, padded_rows(rows), columns, &layout->packing))
            layout->padded_rows = rows = padded_rows(rows);
        else
            layout->packing = (gb_packing){0};
    }
    layout->int8_input = layout->packing.block_rows > 0 && rounds_groups(constant, use);
    return gb_format_planes(&constant->format, rows, columns, &layout->planes);
}

static bool find_canonical(const gb_constant *constant, gb_cuda_weight_layout *layout) {
    uint64_t rows, columns;
    *layout = (gb_cuda_weight_layout){.format = constant->format};
    return gb_constant_matrix(constant, &rows, &columns) &&
           gb_format_planes(&constant->format, rows, columns, &layout->planes);
}

bool gb_cuda_padded_tiles(const gb_constant *constant, gb_padded_tiles *tiles) {
    const gb_shape *shape = &constant->type.shape;
    uint64_t rows, columns;
    if (!gb_constant_matrix(constant, &rows, &columns))
        return false;
    const uint64_t of_one = (uint64_t)shape->dims[shape->rank - 2];
    return gb_find_padded_tiles(&constant->format, of_one, columns, rows / of_one, tiles);
}

/* ---- What kernels want --------------------------------------------------------------------------------- */

size_t gb_cuda_count_all_outputs(const gb_constant *constant) {
    const gb_shape *shape = constant->part ? &constant->part->whole->type.shape : &constant->type.shape;
    return shape->rank >= 2 ? (size_t)shape->dims[shape->rank - 2] : 0;
}

static gb_cuda_tensor tensor_of(const gb_program *program, gb_ref ref, size_t tokens) {
    const gb_type *type = &program->values[ref].type;
    gb_cuda_tensor tensor = {.dtype = type->dtype, .rank = type->shape.rank};
    for (int32_t i = 0; i < tensor.rank; i++)
        tensor.dims[i] = type->shape.dims[i] > 0 ? (size_t)type->shape.dims[i] : tokens;
    return tensor;
}

/* Whether the kernel of a product by itself, of that many tokens, wants its weight in that layout. */
static bool is_wanted(const gb_program *program, const gb_node *product, const gb_cuda_weight_layout *layout,
                      bool is_prompt, size_t tokens) {
    gb_cuda_scratch scratch = {.wgmma_blocks = gb_cuda_wgmma_blocks()};
    gb_cuda_tensor operands[3], result = tensor_of(program, product->results[0], tokens);
    gb_cuda_call call = {.node = product,
                         .results = {&result},
                         .scratch = &scratch,
                         .row_class = gb_cuda_row_class_of(is_prompt, tokens)};
    for (uint32_t i = 0; i < product->operand_count && i < 3; i++) {
        operands[i] = tensor_of(program, product->operands[i], tokens);
        call.operands[i] = &operands[i];
    }
    operands[1].format = layout->format;
    operands[1].planes = layout->planes;
    operands[1].is_packed = true;
    operands[1].all_outputs =
        gb_cuda_count_all_outputs(&program->constants[program->values[product->operands[1]].index]);
    operands[1].int8_input = layout->int8_input;
    const gb_cuda_call *const part = &call;
    const gb_cuda_problem problem = {.operands = call.operands, .parts = &part, .count = 1, .live = 1};
    const gb_cuda_kernel *kernel = gb_cuda_choose_from(
        product->op == GB_OP_LINEAR ? &gb_cuda_linear_kernels : &gb_cuda_expert_linear_kernels, &problem);
    return kernel && kernel->wants_packed;
}

/* Notes the constants whose packing the kernel of some product wants, decoding or of a long prompt. */
static void find_wanted(const gb_program *program, const gb_cuda_weight_layout *layouts, bool *wanted) {
    enum { PROMPT = GB_CUDA_MOST_SHORT_PROMPT_ROWS + 1 };
    for (uint32_t n = 0; n < program->node_count; n++) {
        const gb_node *node = &program->nodes[n];
        if (node->op != GB_OP_LINEAR && node->op != GB_OP_EXPERT_LINEAR)
            continue;
        const gb_value *weight = &program->values[node->operands[1]];
        if (weight->kind == GB_VALUE_CONSTANT && layouts[weight->index].packing.block_rows > 0)
            wanted[weight->index] = wanted[weight->index] ||
                                    is_wanted(program, node, &layouts[weight->index], false, 1) ||
                                    is_wanted(program, node, &layouts[weight->index], true, PROMPT);
    }
}

/* ---- Choosing ------------------------------------------------------------------------------------------ */

static bool choose(const gb_program *program, const gb_constant_use *uses, bool may_expand, bool *wanted,
                   gb_cuda_weight_layout *layouts) {
    for (uint32_t i = 0; i < program->constant_count; i++) {
        const gb_constant *constant = &program->constants[i];
        if (constant->type.dtype == GB_QUANTIZED &&
            !(may_expand && find_expanded(constant, &uses[i], &layouts[i])) &&
            !find_packed(constant, &uses[i], &layouts[i]))
            return false;
    }
    find_wanted(program, layouts, wanted);
    for (uint32_t i = 0; i < program->constant_count; i++)
        if (layouts[i].packing.block_rows > 0 && !wanted[i] &&
            !find_canonical(&program->constants[i], &layouts[i]))
            return false;
    return true;
}

gumbel_status gb_cuda_choose_weight_layouts(const gb_program *program, bool may_expand,
                                            gb_cuda_weight_layout *layouts, gumbel_error *error) {
    gb_constant_use *uses = gb_allocate(program->constant_count, sizeof *uses);
    bool *wanted = gb_allocate(program->constant_count, sizeof *wanted);
    const bool is_allocated = uses && wanted;
    if (is_allocated)
        gb_find_constant_uses(program, uses);
    const bool is_chosen = is_allocated && choose(program, uses, may_expand, wanted, layouts);
    gb_free(uses);
    gb_free(wanted);
    if (!is_allocated)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for the list of constants");
    return is_chosen ? GUMBEL_OK
                     : gb_fail(error, GUMBEL_ERROR_FORMAT, "a quantized constant is no matrix of its format");
}
