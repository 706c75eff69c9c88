/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu/kernel_check.h"

#include <math.h>

static const gb_dtype dtypes[] = {GB_F32, GB_F16, GB_BF16};

static gb_node node_with(gb_attribute a, gb_op op) {
    return (gb_node){.op = op, .attribute_count = 1, .attributes = {a}};
}

static void rms_norm(void **unused) {
    (void)unused;
    uint64_t state = 1;
    gb_node node = node_with(gb_float(GB_ATTRIBUTE_EPSILON, 1e-6), GB_OP_RMS_NORM);
    for (int round = 0; round < 40; round++) {
        size_t a = 1 + random_below(&state, 5), b = 1 + random_below(&state, 4);
        size_t size = 1 + random_below(&state, 150);
        gb_cpu_tensor x = random_tensor(&state, GB_F32, 3, a, b, size), y = new_tensor(GB_F32, 3, a, b, size);
        gb_cpu_tensor weight = random_tensor(&state, dtypes[round % 3], 1, size, 1, 1);
        bool weighted = round % 4 != 0;
        double offset = round % 5 == 0 ? 1 : 0;
        const double scale = round % 7 == 0 ? 0.375 : 1;
        node.attributes[1] = gb_float(GB_ATTRIBUTE_SCALE, scale);
        node.attributes[2] = gb_float(GB_ATTRIBUTE_WEIGHT_OFFSET, offset);
        node.attribute_count = offset > 0 ? 3 : scale != 1 ? 2 : 1;
        gb_kernel_call call = {&node, {&x, weighted ? &weight : NULL}, {&y}, NULL, GB_SPLIT_OWN, NULL, NULL,
                               NULL};
        check_kernel(gb_kernel_rms_norm, &call);
        for (size_t r = 0; r < a * b; r++) {
            double sum = 0;
            for (size_t d = 0; d < size; d++)
                sum += pow((double)element(&x, r * size + d), 2);
            for (size_t d = 0; d < size; d++) {
                double expected = scale * element(&x, r * size + d) / sqrt(sum / (double)size + 1e-6) *
                                  (weighted ? offset + (double)element(&weight, d) : 1);
                assert_near(element(&y, r * size + d), expected, 2e-6 * (1 + fabs(expected)), "rms_norm");
            }
        }
        free_tensor(&x);
        free_tensor(&y);
        free_tensor(&weight);
    }
}

static void l2_normalize(void **unused) {
    (void)unused;
    uint64_t state = 6;
    for (int round = 0; round < 20; round++) {
        size_t rows = 1 + random_below(&state, 9), size = 1 + random_below(&state, 150);
        double scale = round % 3 ? 1 / sqrt((double)size) : 1, epsilon = round % 2 ? 1e-6 : 0.25;
        gb_cpu_tensor x = random_tensor(&state, GB_F32, 3, rows, 1, size),
                      y = new_tensor(GB_F32, 3, rows, 1, size);
        gb_node node = node_with(gb_float(GB_ATTRIBUTE_EPSILON, epsilon), GB_OP_L2_NORMALIZE);
        node.attributes[node.attribute_count++] = gb_float(GB_ATTRIBUTE_SCALE, scale);
        gb_kernel_call call = {&node, {&x}, {&y}, NULL, GB_SPLIT_OWN, NULL, NULL, NULL};
        check_kernel(gb_kernel_l2_normalize, &call);
        for (size_t r = 0; r < rows; r++) {
            double sum = epsilon;
            for (size_t d = 0; d < size; d++)
                sum += pow((double)element(&x, r * size + d), 2);
            for (size_t d = 0; d < size; d++)
                assert_near(element(&y, r * size + d), scale * element(&x, r * size + d) / sqrt(sum), 1e-6,
                            "l2_normalize");
        }
        free_tensor(&x);
        free_tensor(&y);
    }
}

static void slice(void **unused) {
    (void)unused;
    uint64_t state = 7;
    static const size_t cases[][4] = {{1, 1, 0, 1}, {3, 20, 0, 7}, {5, 33, 32, 1}, {2, 100, 17, 66}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        size_t rows = cases[c][0] * 2, width = cases[c][1], start = cases[c][2], count = cases[c][3];
        gb_cpu_tensor x = random_tensor(&state, GB_F32, 3, cases[c][0], 2, width);
        gb_cpu_tensor y = new_tensor(GB_F32, 3, cases[c][0], 2, count);
        gb_node node = node_with(gb_int(GB_ATTRIBUTE_START, (int64_t)start), GB_OP_SLICE);
        gb_kernel_call call = {&node, {&x}, {&y}, NULL, GB_SPLIT_OWN, NULL, NULL, NULL};
        check_kernel(gb_kernel_slice, &call);
        for (size_t r = 0; r < rows; r++)
            assert_memory_equal((float *)y.data + r * count, (float *)x.data + r * width + start,
                                count * sizeof(float));
        free_tensor(&x);
        free_tensor(&y);
    }
}

static void concatenate(void **unused) {
    (void)unused;
    uint64_t state = 9;
    static const size_t cases[][3] = {{1, 1, 1}, {3, 20, 7}, {5, 1, 33}, {2, 100, 100}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        const size_t rows = cases[c][0] * 2, widths[] = {cases[c][1], cases[c][2]};
        gb_cpu_tensor a = random_tensor(&state, GB_F32, 3, cases[c][0], 2, widths[0]),
                      b = random_tensor(&state, GB_F32, 3, cases[c][0], 2, widths[1]),
                      y = new_tensor(GB_F32, 3, cases[c][0], 2, widths[0] + widths[1]);
        gb_kernel_call call = {NULL, {&a, &b}, {&y}, NULL, GB_SPLIT_OWN, NULL, NULL, NULL};
        check_kernel(gb_kernel_concatenate, &call);
        for (size_t r = 0; r < rows; r++) {
            const float *row = (float *)y.data + r * (widths[0] + widths[1]);
            assert_memory_equal(row, (float *)a.data + r * widths[0], widths[0] * sizeof *row);
            assert_memory_equal(row + widths[0], (float *)b.data + r * widths[1], widths[1] * sizeof *row);
        }
        free_tensor(&a);
        free_tensor(&b);
        free_tensor(&y);
    }
}

static void check_rope(uint64_t *state, size_t tokens, size_t heads, size_t pairs, size_t offset, size_t size,
                       double scale) {
    gb_node node = node_with(gb_int(GB_ATTRIBUTE_PAIR_OFFSET, (int64_t)offset), GB_OP_ROPE);
    node.attributes[node.attribute_count++] = gb_float(GB_ATTRIBUTE_SCALE, scale);
    gb_cpu_tensor x = random_tensor(state, GB_F32, 3, tokens, heads, size);
    gb_cpu_tensor y = new_tensor(GB_F32, 3, tokens, heads, size);
    gb_cpu_tensor positions = new_tensor(GB_I32, 1, tokens, 1, 1);
    gb_cpu_tensor frequencies = random_tensor(state, GB_F32, 1, pairs, 1, 1);
    for (size_t m = 0; m < tokens; m++)
        ((int32_t *)positions.data)[m] = (int32_t)random_below(state, 100000);
    gb_kernel_call call = {&node, {&x, &positions, &frequencies}, {&y}, NULL, GB_SPLIT_OWN, NULL, NULL, NULL};
    check_kernel(gb_kernel_rope, &call);
    for (size_t at = 0; at < tokens * heads * size; at++) {
        size_t d = at % size, m = at / size / heads, i = d < offset ? d : d - offset;
        double expected = element(&x, at);
        if (i < pairs) {
            float angle = (float)((int32_t *)positions.data)[m] * element(&frequencies, i);
            double other = element(&x, d < offset ? at + offset : at - offset);
            expected =
                scale * (expected * cos((double)angle) + (d < offset ? -other : other) * sin((double)angle));
        }
        assert_near(element(&y, at), expected, 1e-6, "rope");
    }
    free_tensor(&x);
    free_tensor(&y);
    free_tensor(&positions);
    free_tensor(&frequencies);
}

static void rope(void **unused) {
    (void)unused;
    uint64_t state = 2;
    check_rope(&state, 1, 1, 1, 1, 2, 1);
    check_rope(&state, 5, 3, 4, 4, 8, 1);
    check_rope(&state, 2, 7, 3, 5, 9, 1);     /* dims between and after the pairs stay */
    check_rope(&state, 3, 2, 16, 64, 128, 1); /* a quarter of the pairs, as in global layers */
    check_rope(&state, 4, 2, 130, 130, 261, 1);
    check_rope(&state, 3, 2, 48, 48, 128, 1.19); /* dims after the pairs are not scaled */
}

static void embedding(void **unused) {
    (void)unused;
    uint64_t state = 3;
    gb_node node = node_with(gb_float(GB_ATTRIBUTE_SCALE, sqrt(33.0)), GB_OP_EMBEDDING);
    for (size_t d = 0; d < 3; d++) {
        enum { WORDS = 11, WIDTH = 333, TOKENS = 9 };
        gb_cpu_tensor table = random_tensor(&state, dtypes[d], 2, WORDS, WIDTH, 1);
        gb_cpu_tensor tokens = new_tensor(GB_I32, 1, TOKENS, 1, 1),
                      y = new_tensor(GB_F32, 2, TOKENS, WIDTH, 1);
        int32_t *ids = tokens.data;
        for (size_t m = 0; m < TOKENS; m++)
            ids[m] = (int32_t)random_below(&state, WORDS);
        ids[3] = WORDS;
        ids[4] = -1;
        gb_kernel_call call = {&node, {&table, &tokens}, {&y}, NULL, GB_SPLIT_OWN, NULL, NULL, NULL};
        check_kernel(gb_kernel_embedding, &call);
        for (size_t at = 0; at < TOKENS * WIDTH; at++) {
            size_t m = at / WIDTH;
            bool inside = ids[m] >= 0 && ids[m] < WORDS;
            float expected =
                inside ? element(&table, (size_t)ids[m] * WIDTH + at % WIDTH) * (float)sqrt(33.0) : 0;
            assert_float_equal(element(&y, at), expected, 0);
        }
        free_tensor(&table);
        free_tensor(&tokens);
        free_tensor(&y);
    }
}

static void gather_rows(void **unused) {
    (void)unused;
    uint64_t state = 4;
    enum { TOKENS = 7, WIDTH = 19, ROWS = 5 };
    gb_cpu_tensor x = random_tensor(&state, GB_F32, 2, TOKENS, WIDTH, 1);
    gb_cpu_tensor rows = new_tensor(GB_I32, 1, ROWS, 1, 1), y = new_tensor(GB_F32, 2, ROWS, WIDTH, 1);
    static const int32_t wanted[ROWS] = {6, 0, 3, 3, 1};
    memcpy(rows.data, wanted, sizeof wanted);
    gb_kernel_call call = {NULL, {&x, &rows}, {&y}, NULL, GB_SPLIT_OWN, NULL, NULL, NULL};
    check_kernel(gb_kernel_gather_rows, &call);
    for (size_t b = 0; b < ROWS; b++)
        assert_memory_equal((float *)y.data + b * WIDTH, (float *)x.data + (size_t)wanted[b] * WIDTH,
                            WIDTH * sizeof(float));
    free_tensor(&x);
    free_tensor(&rows);
    free_tensor(&y);
}

/* 0 before the first position. */
static float hidden_element(const gb_cpu_tensor *hidden, int32_t slot, int32_t position, size_t k) {
    return position < 0
               ? 0
               : element(hidden, ((size_t)slot * hidden->dims[0] + (size_t)position) * hidden->dims[2] + k);
}

/* Rows of two slots, each kept at its position or behind it, but for those past the end. */
static void check_hidden(gb_dtype dtype, int32_t start, uint64_t *state) {
    enum { TOKENS = 5, WIDTH = 19, ROWS = 8, SLOTS = 2 };
    static const int32_t positions_of[TOKENS] = {0, 1, 5, 6, 7}, slots_of[TOKENS] = {0, 0, 1, 1, 1};
    gb_cpu_tensor x = random_tensor(state, GB_F32, 2, TOKENS, WIDTH, 1),
                  y = new_tensor(GB_F32, 2, TOKENS, WIDTH, 1);
    gb_cpu_tensor positions = new_tensor(GB_I32, 1, TOKENS, 1, 1),
                  slots = new_tensor(GB_I32, 1, TOKENS, 1, 1);
    gb_cpu_tensor all = random_tensor(state, dtype, 3, ROWS * SLOTS, 1, WIDTH), hidden = all;
    const gb_vector_kernels *vector = gb_available_vector_kernels(0);
    const gb_node node = node_with(gb_int(GB_ATTRIBUTE_START, start), GB_OP_KEEP_HIDDEN);
    memcpy(positions.data, positions_of, sizeof positions_of);
    memcpy(slots.data, slots_of, sizeof slots_of);
    hidden.dims[0] = ROWS;
    hidden.slot_bytes = ROWS * WIDTH * gb_dtype_size(dtype);
    gb_kernel_call keep = {&node, {&x, &positions, &slots, &hidden}, {&y}, vector, GB_SPLIT_OWN, NULL, NULL,
                           NULL};
    check_kernel(gb_kernel_keep_hidden, &keep);
    assert_memory_equal(y.data, x.data, TOKENS * WIDTH * sizeof(float));
    const gb_node here = node_with(gb_int(GB_ATTRIBUTE_BEFORE, 0), GB_OP_LOAD_HIDDEN);
    gb_kernel_call load = {&here, {&positions, &slots, &hidden}, {&y}, vector, GB_SPLIT_OWN, NULL, NULL,
                           NULL};
    check_kernel(gb_kernel_load_hidden, &load);
    for (size_t n = 0; n < TOKENS; n++)
        for (size_t k = 0; k < WIDTH; k++) {
            const bool is_kept = start == 0 || n == 1 || n > 2; /* by the token before it */
            const float value =
                is_kept ? element(&x, (n - (size_t)start) * WIDTH + k)
                        : element(&all, (size_t)(slots_of[n] * ROWS + positions_of[n]) * WIDTH + k);
            const float rounded = dtype == GB_BF16 ? gb_float_from_bf16(gb_bf16_from_float(value)) : value;
            assert_true(element(&y, n * WIDTH + k) == rounded);
        }
    const gb_node one_before = node_with(gb_int(GB_ATTRIBUTE_BEFORE, 1), GB_OP_LOAD_HIDDEN);
    load.node = &one_before;
    check_kernel(gb_kernel_load_hidden, &load);
    for (size_t n = 0; n < TOKENS; n++)
        for (size_t k = 0; k < WIDTH; k++)
            assert_true(element(&y, n * WIDTH + k) ==
                        hidden_element(&hidden, slots_of[n], positions_of[n] - 1, k));
    const gb_cpu_tensor *used[] = {&x, &y, &positions, &slots, &all};
    for (size_t i = 0; i < sizeof used / sizeof *used; i++)
        free_tensor(used[i]);
}

static void hidden_rows(void **unused) {
    (void)unused;
    uint64_t state = 5;
    for (int32_t start = 0; start < 2; start++) {
        check_hidden(GB_F32, start, &state);
        check_hidden(GB_BF16, start, &state);
    }
}

static double gelu(double x) {
    return 0.5 * x * (1 + tanh(sqrt(2 / 3.14159265358979323846) * (x + 0.044715 * x * x * x)));
}

static void elementwise(void **unused) {
    (void)unused;
    uint64_t state = 5;
    gb_node cap = node_with(gb_float(GB_ATTRIBUTE_CAP, 30), GB_OP_SOFT_CAP);
    static const size_t sizes[] = {1, 15, 16, 17, 33, 1023, 1024, 1025, 5000};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        gb_cpu_tensor a = random_tensor(&state, GB_F32, 2, 1, sizes[s], 1);
        gb_cpu_tensor b = random_tensor(&state, GB_F32, 2, 1, sizes[s], 1);
        gb_cpu_tensor y = new_tensor(GB_F32, 2, 1, sizes[s], 1), factor = new_tensor(GB_BF16, 1, 1, 1, 1);
        set_element(&factor, 0, 0.4375f);
        for (size_t i = 0; i < sizes[s]; i++)
            set_element(&a, i, element(&a, i) * 8);
        gb_kernel_call call = {&cap, {&a, &b}, {&y}, NULL, GB_SPLIT_OWN, NULL, NULL, NULL};
        check_kernel(gb_kernel_add, &call);
        for (size_t i = 0; i < sizes[s]; i++)
            assert_float_equal(element(&y, i), element(&a, i) + element(&b, i), 0);
        check_kernel(gb_kernel_multiply, &call);
        for (size_t i = 0; i < sizes[s]; i++)
            assert_float_equal(element(&y, i), element(&a, i) * element(&b, i), 0);
        check_kernel(gb_kernel_gelu_tanh, &call);
        for (size_t i = 0; i < sizes[s]; i++)
            assert_near(element(&y, i), gelu(element(&a, i)), 2e-6, "gelu_tanh");
        check_kernel(gb_kernel_silu, &call);
        for (size_t i = 0; i < sizes[s]; i++)
            assert_near(element(&y, i), element(&a, i) / (1 + exp(-(double)element(&a, i))), 2e-6, "silu");
        check_kernel(gb_kernel_sigmoid, &call);
        for (size_t i = 0; i < sizes[s]; i++)
            assert_near(element(&y, i), 1 / (1 + exp(-(double)element(&a, i))), 3e-7, "sigmoid");
        check_kernel(gb_kernel_softplus, &call);
        for (size_t i = 0; i < sizes[s]; i++)
            assert_near(element(&y, i), log1p(exp((double)element(&a, i))), 2e-6, "softplus");
        check_kernel(gb_kernel_relu_squared, &call);
        for (size_t i = 0; i < sizes[s]; i++)
            assert_float_equal(element(&y, i), element(&a, i) > 0 ? element(&a, i) * element(&a, i) : 0, 0);
        check_kernel(gb_kernel_soft_cap, &call);
        for (size_t i = 0; i < sizes[s]; i++)
            assert_near(element(&y, i), 30 * tanh(element(&a, i) / 30.0), 3e-6, "soft_cap");
        check_kernel(gb_kernel_move, &call);
        assert_memory_equal(y.data, a.data, sizes[s] * sizeof(float));
        call.operands[1] = &factor;
        check_kernel(gb_kernel_scale, &call);
        for (size_t i = 0; i < sizes[s]; i++)
            assert_float_equal(element(&y, i), element(&a, i) * 0.4375f, 0);
        free_tensor(&a);
        free_tensor(&b);
        free_tensor(&y);
        free_tensor(&factor);
    }
}

static void add_bias(void **unused) {
    (void)unused;
    uint64_t state = 8;
    for (size_t round = 0; round < 30; round++) {
        size_t rows = 1 + random_below(&state, 6), width = 1 + random_below(&state, 700);
        gb_cpu_tensor x = random_tensor(&state, GB_F32, 2, rows, width, 1);
        gb_cpu_tensor bias = random_tensor(&state, dtypes[round % 3], 1, width, 1, 1);
        gb_cpu_tensor y = new_tensor(GB_F32, 2, rows, width, 1);
        gb_kernel_call call = {NULL, {&x, &bias}, {&y}, NULL, GB_SPLIT_OWN, NULL, NULL, NULL};
        check_kernel(gb_kernel_add_bias, &call);
        for (size_t at = 0; at < rows * width; at++)
            assert_float_equal(element(&y, at), element(&x, at) + element(&bias, at % width), 0);
        free_tensor(&x);
        free_tensor(&bias);
        free_tensor(&y);
    }
}

static void scale_columns(void **unused) {
    (void)unused;
    uint64_t state = 11;
    for (size_t round = 0; round < 40; round++) {
        const size_t rows = 1 + random_below(&state, 6), factors = 1 + random_below(&state, 300);
        const size_t shared = 1 + random_below(&state, round % 2 ? 1 : 9), width = factors * shared;
        gb_cpu_tensor x = random_tensor(&state, GB_F32, 2, rows, width, 1);
        gb_cpu_tensor factor = random_tensor(&state, dtypes[round % 3], 1, factors, 1, 1);
        gb_cpu_tensor y = new_tensor(GB_F32, 2, rows, width, 1);
        gb_kernel_call call = {NULL, {&x, &factor}, {&y}, NULL, GB_SPLIT_OWN, NULL, NULL, NULL};
        check_kernel(gb_kernel_scale_columns, &call);
        for (size_t at = 0; at < rows * width; at++)
            assert_float_equal(element(&y, at), element(&x, at) * element(&factor, at % width / shared), 0);
        free_tensor(&x);
        free_tensor(&factor);
        free_tensor(&y);
    }
}

static double clamped(double x, double least, double most) {
    return x < least ? least : x > most ? most : x;
}

static void clamped_swiglu(void **unused) {
    (void)unused;
    uint64_t state = 9;
    gb_node node = {.op = GB_OP_CLAMPED_SWIGLU,
                    .attribute_count = 2,
                    .attributes = {gb_float(GB_ATTRIBUTE_ALPHA, 1.702), gb_float(GB_ATTRIBUTE_LIMIT, 3)}};
    for (size_t round = 0; round < 30; round++) {
        const size_t rows = 1 + random_below(&state, 6), width = 1 + random_below(&state, 700);
        gb_cpu_tensor gate = random_tensor(&state, GB_F32, 2, rows, width, 1);
        gb_cpu_tensor up = random_tensor(&state, GB_F32, 2, rows, width, 1);
        gb_cpu_tensor y = new_tensor(GB_F32, 2, rows, width, 1);
        for (size_t i = 0; i < rows * width; i++) {
            set_element(&gate, i, element(&gate, i) * 6);
            set_element(&up, i, element(&up, i) * 6);
        }
        gb_kernel_call call = {&node, {&gate, &up}, {&y}, NULL, GB_SPLIT_OWN, NULL, NULL, NULL};
        check_kernel(gb_kernel_clamped_swiglu, &call);
        for (size_t i = 0; i < rows * width; i++) {
            const double g = clamped(element(&gate, i), -1e9, 3), u = clamped(element(&up, i), -3, 3);
            assert_near(element(&y, i), g / (1 + exp(-1.702 * g)) * (u + 1), 4e-6, "clamped_swiglu");
        }
        free_tensor(&gate);
        free_tensor(&up);
        free_tensor(&y);
    }
}

static void add_expert_bias(void **unused) {
    (void)unused;
    uint64_t state = 10;
    enum { EXPERTS = 5, CHOICES = 3 };
    for (size_t round = 0; round < 30; round++) {
        const size_t rows = 1 + random_below(&state, 6), width = 1 + random_below(&state, 700);
        gb_cpu_tensor x = random_tensor(&state, GB_F32, 3, rows, CHOICES, width);
        gb_cpu_tensor bias = random_tensor(&state, dtypes[round % 3], 2, EXPERTS, width, 1);
        gb_cpu_tensor experts = new_tensor(GB_I32, 2, rows, CHOICES, 1);
        gb_cpu_tensor y = new_tensor(GB_F32, 3, rows, CHOICES, width);
        int32_t *chosen = experts.data;
        for (size_t i = 0; i < rows * CHOICES; i++)
            chosen[i] = (int32_t)random_below(&state, EXPERTS);
        gb_kernel_call call = {NULL, {&x, &bias, &experts}, {&y}, NULL, GB_SPLIT_OWN, NULL, NULL, NULL};
        check_kernel(gb_kernel_add_expert_bias, &call);
        for (size_t at = 0; at < rows * CHOICES * width; at++) {
            const size_t row = (size_t)chosen[at / width] * width;
            assert_float_equal(element(&y, at), element(&x, at) + element(&bias, row + at % width), 0);
        }
        free_tensor(&x);
        free_tensor(&bias);
        free_tensor(&experts);
        free_tensor(&y);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rms_norm),        cmocka_unit_test(rope),
        cmocka_unit_test(embedding),       cmocka_unit_test(gather_rows),
        cmocka_unit_test(hidden_rows),     cmocka_unit_test(elementwise),
        cmocka_unit_test(l2_normalize),    cmocka_unit_test(slice),
        cmocka_unit_test(add_bias),        cmocka_unit_test(clamped_swiglu),
        cmocka_unit_test(add_expert_bias), cmocka_unit_test(scale_columns),
        cmocka_unit_test(concatenate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
