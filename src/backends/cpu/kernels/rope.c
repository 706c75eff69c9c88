/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cpu/kernels/kernels.h"

/* operands: x [M,H,D], positions [M], frequencies [R]. A share is heads of one token after another: of whole
 * tokens, or, split in its own way, any. */
void gb_kernel_rope(const gb_kernel_call *call, const gb_worker *worker) {
    const gb_cpu_tensor *x = call->operands[0], *y = call->results[0];
    const int32_t *positions = call->operands[1]->data;
    const int32_t start = (int32_t)gb_node_int(call->node, GB_ATTRIBUTE_START);
    size_t heads = x->dims[1], size = x->dims[2];
    gb_rotation rotation = {
        .size = size,
        .frequencies = call->operands[2]->data,
        .frequency_count = call->operands[2]->dims[0],
        .pair_offset = (size_t)gb_node_int(call->node, GB_ATTRIBUTE_PAIR_OFFSET),
        .scale = (float)gb_node_float(call->node, GB_ATTRIBUTE_SCALE),
    };
    gb_share share = call->split == GB_SPLIT_TOKENS ? gb_part_of(call, worker, x).rows
                                                    : gb_share_of(worker, x->dims[0] * heads, 1);
    for (size_t at = share.first; at < share.end; at += rotation.heads) {
        size_t token = at / heads, left = heads - at % heads;
        rotation.heads = left < share.end - at ? left : share.end - at;
        rotation.x = gb_floats(x) + at * size;
        rotation.y = (float *)y->data + at * size;
        rotation.position = (float)(positions[token] + start);
        call->vector->rotate(&rotation);
    }
}
