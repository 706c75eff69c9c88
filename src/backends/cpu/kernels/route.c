/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cpu/kernels/kernels.h"
#include "backends/math.h"

_Static_assert(GB_MAX_EXPERTS * sizeof(float) <= GB_LINEAR_SCRATCH, "the scratch holds a row");

/* Softmax in float32: the exponentials are added in order, then each is divided by the sum. */
static void softmax(const float *x, size_t count, float *p) {
    float largest = x[0], sum = 0;
    for (size_t i = 1; i < count; i++)
        largest = x[i] > largest ? x[i] : largest;
    for (size_t i = 0; i < count; i++)
        sum += p[i] = gb_exp(x[i] - largest);
    for (size_t i = 0; i < count; i++)
        p[i] /= sum;
}

/* The first of the largest of p, without those that were taken, which are negative. Below count while some
 * are left, also when p are NaNs. */
static size_t best_left(const float *p, size_t count) {
    size_t best = count;
    for (size_t i = 0; i < count; i++)
        if (!(p[i] < 0) && (best == count || p[i] > p[best]))
            best = i;
    return best;
}

/* operands: logits [M,X]; results: experts [M,T], weights [M,T]. */
void gb_kernel_route_top_k(const gb_kernel_call *call, const gb_worker *worker) {
    const gb_cpu_tensor *logits = call->operands[0], *experts = call->results[0], *weights = call->results[1];
    size_t choices = logits->dims[1], count = experts->dims[1];
    bool normalize = gb_node_int(call->node, GB_ATTRIBUTE_NORMALIZE) != 0;
    float *p = worker->scratch;
    gb_share share = gb_tokens_of(worker, logits->dims[0]);
    for (size_t m = share.first; m < share.end; m++) {
        int32_t *expert = (int32_t *)experts->data + m * count;
        float *weight = (float *)weights->data + m * count, sum = 0;
        softmax(gb_floats(logits) + m * choices, choices, p);
        for (size_t t = 0; t < count; t++) {
            size_t best = best_left(p, choices);
            expert[t] = (int32_t)best;
            weight[t] = p[best];
            sum += p[best];
            p[best] = -1;
        }
        for (size_t t = 0; normalize && t < count; t++)
            weight[t] /= sum;
    }
}
