/* SPDX-License-Identifier: Apache-2.0
 *
 * Activations, which have fewer instructions than the CPU's, against double: how far they are off, at the
 * ends of their ranges too, and that what is no number stays none.
 */
#include "cuda/launching.h"

#include <math.h>

enum { COUNT = 1 << 16 };

typedef struct activation_case {
    gb_op op;
    void (*kernel)(const gb_cuda_call *call);
    double (*exact)(double x);
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
    {GB_OP_SIGMOID, gb_cuda_sigmoid, exact_sigmoid},
    {GB_OP_SILU, gb_cuda_silu, exact_silu},
    {GB_OP_GELU_TANH, gb_cuda_gelu_tanh, exact_gelu},
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

/* An exponent's own rounding counts as often as it is large. */
static double allowed_error(double x, double exact) {
    const double exponent = exact != 0 && x != 0 ? fabs(log(fabs(exact / x))) : 0;
    return 4e-7 * fabs(exact) * (1 + exponent) + 1e-35 + 1e-37 * fabs(x);
}

/* Every float's sixteen upper bits: both signs, all sizes, and what is no number. */
static void check_case(const activation_case *c) {
    static float x[COUNT], y[COUNT];
    for (uint32_t i = 0; i < COUNT; i++) {
        const uint32_t bits = i << 16 | 0x5a5a;
        memcpy(&x[i], &bits, sizeof bits);
    }
    run_activation(c, x, y);
    for (size_t i = 0; i < COUNT; i++) {
        const double exact = c->exact((double)x[i]);
        if (isnan(x[i]))
            assert_true(isnan(y[i]));
        else if (fabsf(x[i]) < 1e30f && !(fabs((double)y[i] - exact) <= allowed_error((double)x[i], exact)))
            fail_msg("op %d of %g: %g, not %g", (int)c->op, (double)x[i], (double)y[i], exact);
    }
}

static void are_close(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_case(&cases[i]);
}

int main(void) {
    need_device();
    const struct CMUnitTest tests[] = {cmocka_unit_test(are_close)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
