/* SPDX-License-Identifier: Apache-2.0 */
#include "run/cuda/delta_layer.h"

#include "run/cuda/arrange.h"

/* ---- Finding it ---------------------------------------------------------------------------------------- */

enum { LAYER_STEPS = 13 };

typedef struct call_list {
    const gb_cuda_call *const *calls;
    uint32_t count;
} call_list;

/* The call of that op which makes x, or NULL. */
static const gb_cuda_call *maker_of(const call_list *list, const gb_cuda_tensor *x, gb_op op) {
    for (uint32_t i = 0; i < list->count; i++)
        if (list->calls[i]->results[0]->data == x->data)
            return list->calls[i]->node->op == op ? list->calls[i] : NULL;
    return NULL;
}

static const gb_cuda_call *first_of(const call_list *list, gb_op op) {
    for (uint32_t i = 0; i < list->count; i++)
        if (list->calls[i]->node->op == op)
            return list->calls[i];
    return NULL;
}

/* A norm's slice, or NULL. */
static const gb_cuda_call *normalized_slice(const call_list *list, const gb_cuda_call *norm) {
    return norm ? maker_of(list, norm->operands[0], GB_OP_SLICE) : NULL;
}

/* What the memory takes; then the rest. */
static bool find_inputs(const call_list *list, gb_cuda_delta_layer *l) {
    l->delta = first_of(list, GB_OP_GATED_DELTA);
    if (!l->delta)
        return false;
    l->query_norm = maker_of(list, l->delta->operands[0], GB_OP_L2_NORMALIZE);
    l->key_norm = maker_of(list, l->delta->operands[1], GB_OP_L2_NORMALIZE);
    l->query = normalized_slice(list, l->query_norm);
    l->key = normalized_slice(list, l->key_norm);
    l->value = maker_of(list, l->delta->operands[2], GB_OP_SLICE);
    l->decay = maker_of(list, l->delta->operands[3], GB_OP_DELTA_DECAY);
    l->beta = maker_of(list, l->delta->operands[4], GB_OP_SIGMOID);
    if (!l->query || !l->key || !l->value || !l->decay || !l->beta)
        return false;
    const gb_cuda_tensor *mixed = l->query->operands[0];
    const gb_cuda_call *silu = maker_of(list, mixed, GB_OP_SILU);
    l->convolution = silu ? maker_of(list, silu->operands[0], GB_OP_CAUSAL_CONV) : NULL;
    return l->convolution && l->key->operands[0]->data == mixed->data &&
           l->value->operands[0]->data == mixed->data;
}

static bool find_outputs(const call_list *list, gb_cuda_delta_layer *l) {
    l->norm = first_of(list, GB_OP_RMS_NORM);
    l->result = list->calls[list->count - 1];
    if (!l->norm || l->norm->operands[0]->data != l->delta->results[0]->data ||
        l->result->node->op != GB_OP_MULTIPLY)
        return false;
    const bool is_first = l->result->operands[0]->data == l->norm->results[0]->data;
    if (!is_first && l->result->operands[1]->data != l->norm->results[0]->data)
        return false;
    l->gate = maker_of(list, l->result->operands[is_first ? 1 : 0], GB_OP_SILU);
    return l->gate != NULL;
}

static bool has_shapes(const gb_cuda_delta_layer *l) {
    const gb_cuda_tensor *memory = l->delta->operands[6], *norm = l->norm->operands[0];
    return memory->dims[1] == GB_CUDA_DELTA_SIZE && memory->dims[2] == GB_CUDA_DELTA_SIZE &&
           l->convolution->operands[1]->dims[2] == GB_CUDA_DELTA_WIDTH &&
           norm->dims[norm->rank - 1] == GB_CUDA_DELTA_SIZE &&
           l->delta->operands[1]->dims[1] <= GB_CUDA_ARRIVALS;
}

bool gb_cuda_find_delta_layer(const gb_cuda_call *const *calls, const bool *is_kept, uint32_t count,
                              gb_cuda_delta_layer *layer) {
    const call_list list = {calls, count};
    if (count != LAYER_STEPS || !find_inputs(&list, layer) || !find_outputs(&list, layer))
        return false;
    for (uint32_t i = 0; i + 1 < count; i++)
        if (is_kept[i])
            return false;
    return has_shapes(layer);
}

/* ---- Launching it -------------------------------------------------------------------------------------- */

static bool has_own_kernel(const gb_cuda_call *call) {
    return call->node->op == GB_OP_CAUSAL_CONV || call->node->op == GB_OP_GATED_DELTA;
}

/* Whether one of the calls takes x. */
static bool is_read(const gb_cuda_call *const *calls, uint32_t count, const gb_cuda_tensor *x) {
    for (uint32_t i = 0; i < count; i++)
        for (int j = 0; j < GB_MAX_STEP_OPERANDS; j++)
            if (calls[i]->operands[j] && calls[i]->operands[j]->data == x->data)
                return true;
    return false;
}

/* Launches the calls up to `end` of all that join, as a chain of ops on rows. */
static void launch_rows(const gb_cuda_call *const *calls, const bool *is_kept, uint32_t end, uint32_t count) {
    bool kept[GB_CUDA_MOST_CHAINED];
    for (uint32_t i = 0; i < end; i++)
        kept[i] = is_kept[i] || is_read(calls + end, count - end, calls[i]->results[0]);
    gb_cuda_row_chain(calls, kept, end);
}

void gb_cuda_delta_layer_calls(const gb_cuda_call *const *calls, const bool *is_kept, uint32_t count) {
    gb_cuda_delta_layer layer;
    if (!calls[0]->is_prefill && gb_cuda_find_delta_layer(calls, is_kept, count, &layer)) {
        gb_cuda_delta_step(&layer);
        return;
    }
    for (uint32_t first = 0, end; first < count; first = end) {
        end = first + 1;
        if (calls[first]->node->op == GB_OP_CAUSAL_CONV) {
            gb_cuda_causal_conv(calls[first]);
        } else if (calls[first]->node->op == GB_OP_GATED_DELTA) {
            gb_cuda_gated_delta(calls[first]);
        } else {
            while (end < count && end - first < GB_CUDA_MOST_CHAINED && !has_own_kernel(calls[end]))
                end++;
            launch_rows(calls + first, is_kept + first, end - first, count - first);
        }
    }
}
