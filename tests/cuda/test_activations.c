/* SPDX-License-Identifier: Apache-2.0
 *
 * Activations and norms' factors, which have fewer instructions than the CPU's, against double: how far they
 * are off, what becomes of infinities, and that what is no number stays none.
 */
#include "cuda/launching.h"

#include <math.h>

enum { COUNT = 1 << 16 };

typedef struct activation_case {
    gb_op op;
    void (*kernel)(const gb_cuda_call *call);
    double (*exact)(double x);
    bool is_share; /* of x; or of 1 */
    float of_infinities[2];
} activation_case;

static double exact_sigmoid(double x) {
    return 1 / (1 + exp(-x));
}

static double exact_silu(double x) {
    return x * exact_sigmoid(x);
}

static double exact_gelu(double x) {
    return x * exact_sigmoid(2 * sqrt(2 / acos(-1)) * (x + 0.044715 * x * x * x));
}

static const activation_case cases[] = {
    {GB_OP_SIGMOID, gb_cuda_sigmoid, exact_sigmoid, false, {0.0f, 1.0f}},
    {GB_OP_SILU, gb_cuda_silu, exact_silu, true, {NAN, INFINITY}},
    {GB_OP_GELU_TANH, gb_cuda_gelu_tanh, exact_gelu, true, {NAN, INFINITY}},
};

static void run_activation(const activation_case *c, const float *x, float *y) {
    const gb_node node = {.op = c->op};
    gb_cuda_tensor from = device_tensor(GB_F32, x, 2, 1, COUNT, 1),
                   to = device_tensor(GB_F32, NULL, 2, 1, COUNT, 1);
    run_op(c->kernel, &(gb_cuda_call){.node = &node, .operands = {&from}, .results = {&to}});
    fetch_tensor(&to, y);
    free_on_device(&from);
    free_on_device(&to);
}

/* An exponent's own rounding counts as often as it is large. share: of what the exact result is a part. */
static double allowed_error(double share, double exact) {
    const double exponent = exact != 0 && share != 0 ? fabs(log(fabs(exact / share))) : 0;
    return 4e-7 * fabs(exact) * (1 + exponent) + 1e-35 + 1e-37 * fabs(share);
}

/* Every float's sixteen upper bits: both signs, all sizes, and what is no number; and infinities. */
static void fill(float x[COUNT]) {
    for (uint32_t i = 0; i < COUNT; i++) {
        const uint32_t bits = i << 16 | 0x5a5a;
        memcpy(&x[i], &bits, sizeof bits);
    }
    x[0] = -INFINITY;
    x[1] = INFINITY;
}

static void check_case(const activation_case *c) {
    static float x[COUNT], y[COUNT];
    fill(x);
    run_activation(c, x, y);
    for (size_t i = 0; i < 2; i++)
        if (isnan(c->of_infinities[i]))
            assert_true(isnan(y[i]));
        else
            assert_true(y[i] == c->of_infinities[i]);
    for (size_t i = 2; i < COUNT; i++) {
        const double exact = c->exact((double)x[i]), share = c->is_share ? (double)x[i] : 1;
        if (isnan(x[i]))
            assert_true(isnan(y[i]));
        else if (fabsf(x[i]) < 1e30f && !(fabs((double)y[i] - exact) <= allowed_error(share, exact)))
            fail_msg("op %d of %g: %g, not %g", (int)c->op, (double)x[i], (double)y[i], exact);
    }
}

static void activations_are_close(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_case(&cases[i]);
}

static double clamp(double x, double limit) {
    return fmax(fmin(x, limit), -limit);
}

static void clamped_gates_are_close(void **state) {
    (void)state;
    enum { LIMIT = 7 };
    const float alpha = 1.702f;
    static float gates[COUNT], values[COUNT], y[COUNT];
    const gb_node node = {
        .op = GB_OP_CLAMPED_SWIGLU,
        .attribute_count = 2,
        .attributes = {gb_float(GB_ATTRIBUTE_ALPHA, (double)alpha), gb_float(GB_ATTRIBUTE_LIMIT, LIMIT)}};
    fill(gates);
    gates[0] = gates[1] = 0;
    for (size_t i = 0; i < COUNT; i++)
        values[i] = (float)(i % 41) - 20;
    gb_cuda_tensor gate = device_tensor(GB_F32, gates, 2, 1, COUNT, 1),
                   value = device_tensor(GB_F32, values, 2, 1, COUNT, 1),
                   to = device_tensor(GB_F32, NULL, 2, 1, COUNT, 1);
    run_op(gb_cuda_clamped_swiglu,
           &(gb_cuda_call){.node = &node, .operands = {&gate, &value}, .results = {&to}});
    fetch_tensor(&to, y);
    for (size_t i = 0; i < COUNT; i++) {
        const double g = fmin((double)gates[i], LIMIT), u = clamp((double)values[i], LIMIT) + 1,
                     exact = g * exact_sigmoid((double)alpha * g) * u;
        if (isnan(gates[i]))
            assert_true(isnan(y[i]));
        else if (fabsf(gates[i]) < 1e30f && !(fabs((double)y[i] - exact) <= allowed_error(g * u, exact)))
            fail_msg("%g and %g: %g, not %g", (double)gates[i], (double)values[i], (double)y[i], exact);
    }
    free_on_device(&gate);
    free_on_device(&value);
    free_on_device(&to);
}

enum { NORM_SIZE = 64, NORM_ROWS = 80 };

/* The first number of each row's norm, of which all others are zeros. */
static void norms_of_one(double epsilon, const float x[NORM_ROWS], float y[NORM_ROWS]) {
    static float rows[NORM_ROWS][NORM_SIZE], found[NORM_ROWS][NORM_SIZE], ones[NORM_SIZE];
    const gb_node node = {
        .op = GB_OP_RMS_NORM,
        .attribute_count = 2,
        .attributes = {gb_float(GB_ATTRIBUTE_EPSILON, epsilon), gb_float(GB_ATTRIBUTE_WEIGHT_OFFSET, 0)}};
    for (size_t i = 0; i < NORM_SIZE; i++)
        ones[i] = 1;
    for (size_t row = 0; row < NORM_ROWS; row++)
        rows[row][0] = x[row];
    gb_cuda_tensor from = device_tensor(GB_F32, rows, 2, NORM_ROWS, NORM_SIZE, 1),
                   weight = device_tensor(GB_F32, ones, 1, NORM_SIZE, 1, 1),
                   to = device_tensor(GB_F32, NULL, 2, NORM_ROWS, NORM_SIZE, 1);
    run_op(gb_cuda_rms_norm, &(gb_cuda_call){.node = &node, .operands = {&from, &weight}, .results = {&to}});
    fetch_tensor(&to, found);
    for (size_t row = 0; row < NORM_ROWS; row++)
        y[row] = found[row][0];
    free_on_device(&from);
    free_on_device(&weight);
    free_on_device(&to);
}

/* What is too large for a sum of squares becomes zero, as on the CPU; what is too small keeps its size. */
static void norms_are_close(void **state) {
    (void)state;
    static const double epsilons[] = {0, 1e-6};
    float x[NORM_ROWS], y[NORM_ROWS];
    for (int row = 0; row < NORM_ROWS; row++)
        x[row] = (float)((row % 7 + 1) * pow(10, row % 39 - 19));
    x[0] = 2e19f;
    x[1] = 2e-21f;
    for (size_t e = 0; e < 2; e++) {
        norms_of_one(epsilons[e], x, y);
        assert_true(y[0] == 0);
        for (size_t row = 1; row < NORM_ROWS; row++) {
            const double of = (double)x[row], exact = of / sqrt(of * of / NORM_SIZE + epsilons[e]);
            const bool is_small = epsilons[e] == 0 && of<1e-17, is_large = of> 1.8e19;
            if (!is_large && !(fabs((double)y[row] - exact) <= (is_small ? 0.1 : 4e-7) * exact))
                fail_msg("%g, epsilon %g: %g, not %g", of, epsilons[e], (double)y[row], exact);
        }
    }
}

int main(void) {
    need_device();
    const struct CMUnitTest tests[] = {cmocka_unit_test(activations_are_close),
                                       cmocka_unit_test(clamped_gates_are_close),
                                       cmocka_unit_test(norms_are_close)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
