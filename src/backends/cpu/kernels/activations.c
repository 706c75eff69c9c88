/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cpu/kernels/vector/vector_kernels.h"
#include "base/memory.h"

/* Sums of groups of 32 make those of every progressive format's groups. */
enum { CODE_ALIGNMENT = 64, TOKEN_SUM_GROUP = 32 };

gb_rounding gb_round_per_group(const gb_format *format) {
    return (gb_rounding){.group = format->group ? format->group : GB_INT8_ROW_GROUP};
}

gb_rounding gb_round_per_token(uint32_t rotation) {
    return (gb_rounding){.kind = GB_ROUND_TOKENS, .group = TOKEN_SUM_GROUP, .rotation = rotation};
}

gb_rounding gb_round_to_bfloat16(void) {
    return (gb_rounding){.kind = GB_ROUND_BFLOAT16};
}

bool gb_rounding_equal(const gb_rounding *a, const gb_rounding *b) {
    return a->kind == b->kind && a->group == b->group && a->rotation == b->rotation;
}

static size_t groups_of(size_t inputs, size_t group) {
    return inputs / group + (inputs % group != 0);
}

/* Numbers of 4 bytes that a row has beside its codes: sums of codes, scales, and per group their products. */
static size_t numbers_of(size_t groups, const gb_rounding *rounding) {
    return rounding->kind == GB_ROUND_TOKENS ? groups + 1 : 3 * groups;
}

bool gb_activations_bytes(size_t rows, size_t inputs, const gb_rounding *rounding, uint64_t *bytes) {
    uint64_t codes, numbers;
    if (rounding->kind == GB_ROUND_BFLOAT16)
        return gb_align_size(inputs, CODE_ALIGNMENT, &codes) && gb_multiply_size(codes, rows, &codes) &&
               gb_multiply_size(codes, sizeof(uint16_t), bytes);
    return gb_align_size(inputs, CODE_ALIGNMENT, &codes) && gb_multiply_size(codes, rows, &codes) &&
           gb_multiply_size(numbers_of(groups_of(inputs, rounding->group), rounding), sizeof(float),
                            &numbers) &&
           gb_multiply_size(numbers, rows, &numbers) && gb_add_size(codes, numbers, bytes);
}

static size_t scales_of(const gb_activations *activations) {
    return activations->rounding.kind == GB_ROUND_TOKENS ? 1 : activations->groups;
}

gb_activations gb_place_activations(void *memory, size_t rows, size_t inputs, const gb_rounding *rounding) {
    gb_activations placed = {.rows = rows, .inputs = inputs, .rounding = *rounding, .group = rounding->group};
    placed.stride = (inputs + CODE_ALIGNMENT - 1) / CODE_ALIGNMENT * CODE_ALIGNMENT;
    if (rounding->kind == GB_ROUND_BFLOAT16) {
        placed.halves = memory;
        return placed;
    }
    placed.groups = groups_of(inputs, placed.group);
    placed.codes = memory;
    placed.scales = (float *)(void *)(placed.codes + rows * placed.stride);
    float *end = placed.scales + rows * scales_of(&placed);
    if (rounding->kind == GB_ROUND_GROUPS) {
        placed.sums = end;
        end += rows * placed.groups;
    }
    placed.code_sums = (int32_t *)(void *)end;
    return placed;
}

gb_activations gb_activations_from(const gb_activations *activations, size_t row) {
    gb_activations from = *activations;
    from.rows -= row;
    if (from.halves) {
        from.halves += row * from.stride;
        return from;
    }
    from.codes += row * from.stride;
    from.scales += row * scales_of(&from);
    if (from.sums)
        from.sums += row * from.groups;
    from.code_sums += row * from.groups;
    return from;
}
