/* SPDX-License-Identifier: Apache-2.0 */
#include "run/cpu/kernels/kernels.h"

#include <string.h>

/* The (token, choice) pairs are sorted by expert, so that each chosen expert's weights are read once, and by
 * none that was not chosen. Every thread sorts for itself, which costs less than a barrier. Each output is
 * one of the linear kernel's, so neighbours do not change it. */

enum {
    MOST_PAIRS = 16384 /* larger batches are sorted in parts */
};

_Static_assert((int)MOST_PAIRS >= (int)GB_MAX_EXPERTS, "a part has the choices of one token or more");

typedef struct workspace {
    uint8_t linear[GB_LINEAR_SCRATCH];  /* first: it is aligned as the scratch is */
    uint32_t begin[GB_MAX_EXPERTS + 1]; /* of each expert's pairs, and at last their end */
    uint32_t pairs[MOST_PAIRS];
} workspace;

size_t gb_expert_scratch_bytes(void) {
    return sizeof(workspace);
}

/* A counting sort: after it the pairs of expert e are begin[e] .. begin[e + 1] - 1, in order. */
static void sort_pairs(const int32_t *experts, size_t pair_count, size_t expert_count, workspace *space) {
    uint32_t *next =
        space->begin + 1; /* where the next pair of an expert goes: at last, where the next begins */
    memset(space->begin, 0, (expert_count + 1) * sizeof *space->begin);
    for (size_t p = 0; p < pair_count; p++)
        next[experts[p]]++;
    uint32_t before = 0;
    for (size_t e = 0; e < expert_count; e++) {
        uint32_t count = next[e];
        next[e] = before;
        before += count;
    }
    for (size_t p = 0; p < pair_count; p++)
        space->pairs[next[experts[p]]++] = (uint32_t)p;
}

/* Tokens m .. m + count - 1; each thread takes some rows of each of their experts. */
static void run_part(const gb_kernel_call *call, const gb_worker *worker, size_t m, size_t count) {
    const gb_tensor *x = call->operands[0], *weight = call->operands[1], *experts = call->operands[2];
    size_t choices = experts->dims[1], inputs = weight->dims[2], outputs = weight->dims[1];
    size_t x_rows = x->rank == 3 ? choices : 1; /* of one token */
    workspace *space = worker->scratch;
    gb_share share = gb_columns_of(worker, outputs);
    sort_pairs((const int32_t *)experts->data + m * choices, count * choices, weight->dims[0], space);
    gb_linear linear = {
        .inputs = inputs,
        .x_reuse = (uint32_t)(choices / x_rows),
        .x = gb_floats(x) + m * x_rows * inputs,
        .x_stride = inputs,
        .weight_stride = inputs,
        .dtype = weight->dtype,
        .quantized = weight->quantized,
        .y = (float *)call->results[0]->data + m * choices * outputs,
        .y_stride = outputs,
    };
    bool is_int8 = weight->quantized && gb_node_int(call->node, GB_ATTRIBUTE_ACTIVATION) != 0;
    for (size_t e = 0; e < weight->dims[0]; e++) {
        linear.tokens = space->begin[e + 1] - space->begin[e];
        linear.rows = space->pairs + space->begin[e];
        if (weight->quantized)
            linear.first_row = e * outputs;
        else
            linear.weight = gb_element(weight, e * outputs * inputs);
        if (linear.tokens == 0 || share.first == share.end)
            continue;
        if (is_int8)
            call->vector->linear_int8(&linear, share.first, share.end, space->linear);
        else
            call->vector->linear(&linear, share.first, share.end, space->linear);
    }
}

/* operands: x [M,K] or [M,T,K], weight [X,O,K], experts [M,T], which the verifier knows to be below X. */
void gb_kernel_expert_linear(const gb_kernel_call *call, const gb_worker *worker) {
    const gb_tensor *experts = call->operands[2];
    size_t tokens = experts->dims[0], most = MOST_PAIRS / experts->dims[1];
    for (size_t m = 0; m < tokens; m += most)
        run_part(call, worker, m, tokens - m < most ? tokens - m : most);
}
