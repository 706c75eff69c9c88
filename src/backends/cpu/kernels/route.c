/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cpu/kernels/kernels.h"
#include "backends/math.h"

#include <float.h>
#include <math.h>

_Static_assert(2 * GB_MAX_EXPERTS * sizeof(float) <= GB_LINEAR_SCRATCH, "the scratch holds two rows");

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

/* The first of the largest keys, without those that were taken, which are -inf. Below count while some are
 * left, also when keys are NaNs. */
static size_t best_left(const float *keys, size_t count) {
    size_t best = count;
    for (size_t i = 0; i < count; i++)
        if (keys[i] != -INFINITY && (best == count || keys[i] > keys[best]))
            best = i;
    return best;
}

/* Of one token. */
typedef struct routes {
    int32_t *experts;
    float *weights;
    size_t count;
} routes;

static routes routes_of(const gb_kernel_call *call, size_t m) {
    const size_t count = call->results[0]->dims[1];
    return (routes){(int32_t *)call->results[0]->data + m * count,
                    (float *)call->results[1]->data + m * count, count};
}

/* A correction of -inf, which a file may hold, does not make an expert one that was taken. */
static void keep_apart(float *keys, size_t count) {
    for (size_t i = 0; i < count; i++)
        keys[i] = keys[i] < -FLT_MAX ? -FLT_MAX : keys[i];
}

/* Takes the experts with the largest keys; their weights are their values, whose sum it returns. */
static float take_best(routes to, float *keys, const float *values, size_t experts) {
    float sum = 0;
    for (size_t t = 0; t < to.count; t++) {
        const size_t best = best_left(keys, experts);
        to.experts[t] = (int32_t)best;
        sum += to.weights[t] = values[best];
        keys[best] = -INFINITY;
    }
    return sum;
}

/* operands: logits [M,X]; results: experts [M,T], weights [M,T]. */
void gb_kernel_route_top_k(const gb_kernel_call *call, const gb_worker *worker) {
    const gb_cpu_tensor *logits = call->operands[0];
    const size_t experts = logits->dims[1];
    const bool normalize = gb_node_int(call->node, GB_ATTRIBUTE_NORMALIZE) != 0;
    float *p = worker->scratch;
    const gb_share share = gb_tokens_of(worker, logits->dims[0]);
    for (size_t m = share.first; m < share.end; m++) {
        const routes to = routes_of(call, m);
        softmax(gb_floats(logits) + m * experts, experts, p);
        const float sum = take_best(to, p, p, experts);
        for (size_t t = 0; normalize && t < to.count; t++)
            to.weights[t] /= sum;
    }
}

/* operands: logits [M,X], correction [X]; results: experts [M,T], weights [M,T]. */
void gb_kernel_route_sigmoid(const gb_kernel_call *call, const gb_worker *worker) {
    const gb_cpu_tensor *logits = call->operands[0], *correction = call->operands[1];
    const size_t experts = logits->dims[1];
    const bool normalize = gb_node_int(call->node, GB_ATTRIBUTE_NORMALIZE) != 0;
    const float scale = (float)gb_node_float(call->node, GB_ATTRIBUTE_SCALE);
    const float epsilon = (float)gb_node_float(call->node, GB_ATTRIBUTE_EPSILON);
    float *p = worker->scratch, *keys = p + GB_MAX_EXPERTS;
    const gb_share share = gb_tokens_of(worker, logits->dims[0]);
    for (size_t m = share.first; m < share.end; m++) {
        const routes to = routes_of(call, m);
        call->vector->sigmoid(gb_floats(logits) + m * experts, experts, p);
        call->vector->widen(correction->data, correction->dtype, experts, keys);
        call->vector->add(keys, p, experts, keys);
        keep_apart(keys, experts);
        const float sum = take_best(to, keys, p, experts);
        for (size_t t = 0; t < to.count; t++)
            to.weights[t] = (normalize ? to.weights[t] / (sum + epsilon) : to.weights[t]) * scale;
    }
}
