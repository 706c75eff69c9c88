/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cpu/kernels/chain.h"

enum { MOST_ELEMENT_WORK = 16, ROUNDING_WORK = 4 };

static uint64_t work_of(const gb_work *work, const gb_kernel_call *call, size_t positions) {
    const gb_cpu_tensor *operand = call->operands[work->operand], *result = call->results[0];
    const uint64_t elements = gb_elements(operand), results = result ? gb_elements(result) : 0;
    const gb_cpu_tensor *cache;
    switch (work->kind) {
    case GB_WORK_RESULTS:
        return results * work->factor;
    case GB_WORK_PRODUCTS:
        return results * work->factor * operand->dims[work->dim];
    case GB_WORK_POSITIONS:
        return result->dims[0] * positions * work->factor;
    case GB_WORK_ATTENTION:
        cache = operand;
        return (gb_elements(call->operands[0]) + results) *
               (positions < cache->dims[0] ? positions : cache->dims[0]);
    default:
        return (elements > results ? elements : results) * work->factor;
    }
}

static uint64_t work_of_chain(const gb_chain *chain, size_t positions) {
    uint64_t work = 0;
    for (uint32_t i = 0; i < chain->count; i++)
        work += gb_kernel_work(&chain->parts[i].call, positions);
    return work;
}

uint64_t gb_kernel_work(const gb_kernel_call *call, size_t positions) {
    if (call->chain)
        return work_of_chain(call->chain, positions);
    static const gb_work fused = GB_PER_ELEMENT(MOST_ELEMENT_WORK), rounding = GB_PER_ELEMENT(ROUNDING_WORK);
    const gb_op_traits *traits = call->node ? gb_op_traits_find(call->node->op) : NULL;
    if (!traits)
        return work_of(&fused, call, positions);
    if (call->results[0])
        return work_of(&traits->work, call, positions);
    return work_of(traits->work_before.kind ? &traits->work_before : &rounding, call, positions);
}

/* Pieces of so many bytes take long enough, at what a thread reads in a microsecond, that taking them does
 * not show; matrices are so large that a few percent of the time are more than a barrier. */
enum { PIECE_BYTES = 64 * 1024, LEAST_QUEUE_BYTES = 2 << 20, EXPERT_UNIT_ROWS = 32 };
enum { PIECE_PRODUCTS = 4 << 20, LEAST_QUEUE_PIECES = 8 };

static size_t weight_bytes(const gb_cpu_tensor *weight) {
    return weight->quantized ? (size_t)weight->quantized->planes.size
                             : gb_elements(weight) * gb_dtype_size(weight->dtype);
}

/* Units of so many rows; what several tokens prepare for a piece has to be worth it too. */
static gb_kernel_units units_of_rows(const gb_cpu_tensor *weight, size_t rows, size_t unit_rows,
                                     size_t tokens) {
    const size_t all_rows = gb_elements(weight) / weight->dims[weight->rank - 1];
    const size_t unit_bytes = weight_bytes(weight) / all_rows * unit_rows + 1;
    const size_t units = (rows + unit_rows - 1) / unit_rows;
    if (units * unit_bytes < LEAST_QUEUE_BYTES || units > UINT32_MAX)
        return (gb_kernel_units){0};
    return (gb_kernel_units){(uint32_t)units, (uint32_t)(PIECE_BYTES * tokens / unit_bytes + 1)};
}

/* With many tokens arithmetic counts. Rounded inputs make products so fast that a stage of several ops
 * between two barriers is worth more than equal shares. */
static gb_kernel_units units_of_products(const gb_kernel_call *call) {
    const gb_cpu_tensor *x = call->operands[0], *weight = call->operands[1];
    const uint64_t rows = weight->dims[0], of_unit = gb_elements(x) * GB_COLUMN_UNIT;
    if (gb_has_rounded_activations(call) ||
        rows / GB_COLUMN_UNIT < LEAST_QUEUE_PIECES * PIECE_PRODUCTS / of_unit)
        return (gb_kernel_units){0};
    return (gb_kernel_units){(uint32_t)((rows + GB_COLUMN_UNIT - 1) / GB_COLUMN_UNIT),
                             (uint32_t)(PIECE_PRODUCTS / of_unit + 1)};
}

gb_kernel_units gb_find_kernel_units(const gb_kernel_call *call) {
    const gb_op op = call->node ? call->node->op : GB_OP_NONE;
    if (!call->results[0] || (op != GB_OP_LINEAR && op != GB_OP_EXPERT_LINEAR))
        return (gb_kernel_units){0};
    const gb_cpu_tensor *weight = call->operands[1];
    const size_t tokens = call->operands[0]->dims[0];
    if (gb_elements(weight) == 0)
        return (gb_kernel_units){0};
    if (tokens > GB_MOST_QUEUE_TOKENS && op == GB_OP_LINEAR)
        return units_of_products(call);
    if (tokens > GB_MOST_QUEUE_TOKENS)
        return (gb_kernel_units){0};
    if (op == GB_OP_LINEAR)
        return units_of_rows(weight, weight->dims[0], GB_COLUMN_UNIT, tokens);
    /* Of experts that several tokens have chosen there are fewer rows; a unit is then less than these. */
    return units_of_rows(weight, tokens * call->operands[2]->dims[1] * weight->dims[1], EXPERT_UNIT_ROWS, 1);
}
