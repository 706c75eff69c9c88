/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows that the step which computes them rounds to 8 bits for the product behind it: the bytes are those of
 * the product's own launch, the step's result is stored where it is live, and what a step cannot round it
 * leaves.
 */
#include "backends/cuda/runtime/facts.h"
#include "cuda/launching.h"
#include "cuda/random_matrix.h"
#include "support/test_arguments.h"

typedef struct rounded_case {
    size_t rows, width; /* of the step's result */
    size_t columns;     /* of the product's rows, which divide the step's */
    gb_cuda_layout layout;
    uint32_t rotation;
    bool is_prompt, is_rounded;
    gb_op gate; /* 0: silu and multiply */
} rounded_case;

/* A step, whose last part has the result, that is rounded into `rounded`. */
typedef struct rounding_step {
    gb_fused_kind kind;
    gb_cuda_tensor x, other, result, as_rows; /* as_rows: the result in the shape of the product's input */
    gb_cuda_tensor biases, experts;           /* of clamped gates */
    gb_cuda_call calls[2], biased;
    const gb_cuda_tensor *operands[GB_MAX_STEP_OPERANDS];
    const gb_cuda_call *parts[GB_MAX_FUSED_NODES];
    gb_cuda_problem problem;
    gb_cuda_prepared rounded;
} rounding_step;

static gb_cuda_tensor random_rows(size_t rows, size_t width, uint64_t *random) {
    float *values = malloc(rows * width * sizeof *values);
    assert_non_null(values);
    for (size_t i = 0; i < rows * width; i++)
        values[i] = next_float(random);
    const gb_cuda_tensor result = device_tensor(GB_F32, values, 2, rows, width, 1);
    free(values);
    return result;
}

static void *zeros_on_device(size_t size) {
    void *zeros = calloc(1, size);
    assert_non_null(zeros);
    void *result = device_copy(zeros, size);
    free(zeros);
    return result;
}

static const gb_node norm = {.op = GB_OP_RMS_NORM,
                             .attribute_count = 1,
                             .attributes = {{GB_ATTRIBUTE_EPSILON, GB_ATTRIBUTE_FLOAT, {.f = 1e-6}}}},
                     silu = {.op = GB_OP_SILU}, multiply = {.op = GB_OP_MULTIPLY},
                     squared = {.op = GB_OP_RELU_SQUARED},
                     clamped = {.op = GB_OP_CLAMPED_SWIGLU,
                                .attribute_count = 2,
                                .attributes = {{GB_ATTRIBUTE_ALPHA, GB_ATTRIBUTE_FLOAT, {.f = 1.702}},
                                               {GB_ATTRIBUTE_LIMIT, GB_ATTRIBUTE_FLOAT, {.f = 0.5}}}};

/* Rows of the product are of experts that have biases. */
static void add_biases(rounding_step *s, const rounded_case *c, uint64_t *random) {
    enum { EXPERTS = 5 };
    const size_t choices = c->width / c->columns;
    int32_t experts[64];
    assert_true(c->rows * choices <= 64);
    for (size_t i = 0; i < c->rows * choices; i++)
        experts[i] = (int32_t)(next_random(random) % EXPERTS);
    s->result.rank = 3;
    s->result.dims[1] = choices;
    s->result.dims[2] = c->columns;
    s->biases = random_rows(EXPERTS, c->columns, random);
    s->experts = device_tensor(GB_I32, experts, 2, c->rows, choices, 1);
    s->biased = (gb_cuda_call){.operands = {&s->x, &s->biases, &s->experts}};
    s->parts[GB_GATED_X_BIASED] = s->parts[GB_GATED_OTHER_BIASED] = &s->biased;
}

static void make_gate(rounding_step *s, const rounded_case *c, uint64_t *random) {
    s->calls[0].node = &silu;
    s->calls[1].node = c->gate == GB_OP_CLAMPED_SWIGLU ? &clamped
                       : c->gate == GB_OP_RELU_SQUARED ? &squared
                                                       : &multiply;
    s->operands[GB_GATED_X] = &s->x;
    s->operands[GB_GATED_OTHER] = c->gate == GB_OP_RELU_SQUARED ? NULL : &s->other;
    s->parts[GB_GATED_ACTIVATION] = c->gate ? NULL : &s->calls[0];
    s->parts[GB_GATED_RESULT] = &s->calls[1];
    if (c->gate == GB_OP_CLAMPED_SWIGLU)
        add_biases(s, c, random);
    s->problem.count = GB_GATED_PARTS;
    s->problem.live = 1u << GB_GATED_RESULT;
}

static void make_step(rounding_step *s, const rounded_case *c, gb_fused_kind kind) {
    uint64_t random = 41;
    *s = (rounding_step){.kind = kind, .x = random_rows(c->rows, c->width, &random)};
    s->other = random_rows(kind == GB_FUSED_NORMS ? 1 : c->rows, c->width, &random);
    s->result = device_tensor(GB_F32, NULL, 2, c->rows, c->width, 1);
    s->as_rows = s->result;
    s->as_rows.dims[0] = c->rows * c->width / c->columns;
    s->as_rows.dims[1] = c->columns;
    s->rounded = (gb_cuda_prepared){.layout = c->layout, .rotation = c->rotation, .as = &s->as_rows};
    s->rounded.data = zeros_on_device((size_t)gb_cuda_prepared_size(&s->rounded));
    s->calls[1] = (gb_cuda_call){.operands = {&s->x, &s->other},
                                 .results = {&s->result},
                                 .epilogue = &s->rounded,
                                 .row_class = gb_cuda_row_class_of(c->is_prompt, c->rows)};
    s->calls[0] = s->calls[1];
    s->calls[0].epilogue = NULL;
    s->problem = (gb_cuda_problem){.operands = s->operands, .parts = s->parts};
    if (kind == GB_FUSED_NORMS) {
        s->calls[1].node = &norm;
        s->operands[GB_NORMS_X] = &s->x;
        s->operands[GB_NORMS_LAST_WEIGHT] = &s->other;
        s->parts[GB_NORMS_LAST] = &s->calls[1];
        s->problem.count = GB_NORMS_PARTS;
        s->problem.live = 1u << GB_NORMS_LAST;
    } else {
        make_gate(s, c, &random);
    }
}

static void free_step(const rounding_step *s) {
    assert_cuda(cudaFree(s->rounded.data));
    free_on_device(&s->x);
    free_on_device(&s->other);
    free_on_device(&s->biases);
    free_on_device(&s->experts);
    free_on_device(&s->result);
}

/* Launches the step, without its epilogue where it cannot have it, as a plan does; returns whether it has. */
static bool launch_step(rounding_step *s, bool wants_epilogue) {
    const gb_fused fused = {.kind = s->kind};
    const gb_step step = {.kind = GB_STEP_FUSED, .fused = &fused};
    s->calls[1].epilogue = wants_epilogue ? &s->rounded : NULL;
    test_problem *t = new_problem(&s->problem);
    const gb_cuda_kernel *kernel = gb_cuda_choose(&step, &t->problem);
    assert_non_null(kernel);
    /* it is asked before there is memory */
    gb_cuda_prepared promised = s->rounded;
    promised.data = NULL;
    for (uint32_t i = 0; i < t->problem.count; i++)
        if (t->calls[i].epilogue)
            t->calls[i].epilogue = &promised;
    const bool has_epilogue = wants_epilogue && kernel->has_epilogue(&t->problem);
    for (uint32_t i = 0; i < t->problem.count; i++)
        if (t->calls[i].epilogue)
            t->calls[i].epilogue = has_epilogue ? &s->rounded : NULL;
    run_problem(t, kernel);
    return has_epilogue;
}

/* What the product's own launch stores of the step's result. */
static void round_by_product(const rounding_step *s, const gb_cuda_prepared *to) {
    const matrix_case c = {
        {GB_FORMAT_PROGRESSIVE, 4, false, 8, GB_F16, 32, 0}, 1, s->as_rows.dims[1], 0, false};
    const gb_node node = {.op = GB_OP_LINEAR,
                          .attribute_count = 2,
                          .attributes = {gb_int(GB_ATTRIBUTE_ACTIVATION, GB_ACTIVATION_INT8_PER_TOKEN),
                                         gb_int(GB_ATTRIBUTE_ROTATION, to->rotation)}};
    uint64_t random = 43;
    matrix weight = new_matrix(&c, 1, &random);
    const gb_cuda_tensor y = device_tensor(GB_F32, NULL, 2, s->as_rows.dims[0], 1, 1);
    run_op(gb_cuda_gemm_int8, &(gb_cuda_call){.node = &node,
                                              .operands = {&s->as_rows, &weight.tensor},
                                              .results = {&y},
                                              .input = to,
                                              .prepares_input = true});
    assert_cuda(cudaGetLastError());
    free_on_device(&y);
    free_matrix(&weight);
}

static void check_bytes(const rounding_step *s) {
    const size_t size = (size_t)gb_cuda_prepared_size(&s->rounded);
    uint8_t *found = malloc(size), *expected = malloc(size);
    assert_true(found && expected);
    gb_cuda_prepared own = s->rounded;
    own.data = zeros_on_device(size);
    round_by_product(s, &own);
    assert_cuda(cudaMemcpy(found, s->rounded.data, size, cudaMemcpyDeviceToHost));
    assert_cuda(cudaMemcpy(expected, own.data, size, cudaMemcpyDeviceToHost));
    assert_memory_equal(found, expected, size);
    assert_cuda(cudaFree(own.data));
    free(found);
    free(expected);
}

static void check_case(const rounded_case *c, gb_fused_kind kind) {
    rounding_step s;
    float *plain = malloc(c->rows * c->width * sizeof *plain),
          *found = malloc(c->rows * c->width * sizeof *found);
    assert_true(plain && found);
    make_step(&s, c, kind);
    launch_step(&s, false);
    fetch_tensor(&s.result, plain);
    free_on_device(&s.result);
    s.result.data = zeros_on_device(c->rows * c->width * sizeof *found);
    s.as_rows.data = s.result.data;
    assert_int_equal(launch_step(&s, true), c->is_rounded);
    fetch_tensor(&s.result, found);
    assert_memory_equal(found, plain, c->rows * c->width * sizeof *found);
    if (c->is_rounded)
        check_bytes(&s);
    free_step(&s);
    free(plain);
    free(found);
}

#define CHECK_ALL(cases, kind)                                                                               \
    for (size_t i = 0; i < sizeof(cases) / sizeof *(cases); i++)                                             \
    check_case(&(cases)[i], kind)

/* Several blocks of threads share each of a few rows, and zeros follow columns that are no whole blocks. What
 * is left: a block of the rotation that is wider than a warp, and rows that are not the product's. */
static void norms_round_rows(void **state) {
    (void)state;
    static const rounded_case cases[] = {
        {3, 2048, 2048, GB_CUDA_BYTES_SWIZZLED, 128, false, true, 0},
        {1, 5376, 5376, GB_CUDA_BYTES_BY_LANES, 256, false, true, 0},
        {20, 1152, 1152, GB_CUDA_BYTES_BY_LANES, 64, false, true, 0},
        {5, 8192, 8192, GB_CUDA_BYTES_SWIZZLED, 0, true, true, 0},
        {3, 1104, 1104, GB_CUDA_BYTES_SWIZZLED, 16, false, true, 0},
        {2, 2880, 2880, GB_CUDA_BYTES_BY_LANES, 64, false, true, 0},
        {17, 2880, 2880, GB_CUDA_BYTES_SWIZZLED, 64, true, true, 0},
        {3, 2048, 2048, GB_CUDA_BYTES_SWIZZLED, 256, false, false, 0},
        {2, 2048, 1024, GB_CUDA_BYTES_SWIZZLED, 128, false, false, 0},
    };
    CHECK_ALL(cases, GB_FUSED_NORMS);
}

static bool has_clusters(void) {
#if defined(GUMBEL_EMULATED_DEVICE) || defined(GUMBEL_CUDA_RACECHECK)
    return false;
#else
    return gb_cuda_find_facts()->major >= 9;
#endif
}

/* A thread has one to three parts of a row, and experts' rows are parts of a token's. */
static void gates_round_rows(void **state) {
    (void)state;
    static const rounded_case cases[] = {
        {3, 512, 512, GB_CUDA_BYTES_SWIZZLED, 256, false, true, 0},
        {2, 1024, 128, GB_CUDA_BYTES_BY_LANES, 128, false, true, 0},
        {17, 1024, 256, GB_CUDA_BYTES_SWIZZLED, 128, true, true, 0},
        {1, 4096, 4096, GB_CUDA_BYTES_SWIZZLED, 0, false, true, 0},
        {17, 21504, 21504, GB_CUDA_BYTES_SWIZZLED, 256, true, true, 0},
        {2, 544, 544, GB_CUDA_BYTES_SWIZZLED, 32, false, true, 0},
        {17, 2880, 2880, GB_CUDA_BYTES_BY_LANES, 64, true, true, 0},
        {17, 24704, 24704, GB_CUDA_BYTES_SWIZZLED, 128, true, false, 0},
    };
    CHECK_ALL(cases, GB_FUSED_GATED);
}

/* Gates of two operands that have biases, and of one. */
static void other_gates_round_rows(void **state) {
    (void)state;
    static const rounded_case cases[] = {
        {2, 4 * 2880, 2880, GB_CUDA_BYTES_SWIZZLED, 64, false, true, GB_OP_CLAMPED_SWIGLU},
        {17, 3 * 264, 264, GB_CUDA_BYTES_BY_LANES, 8, true, true, GB_OP_CLAMPED_SWIGLU},
        {3, 2 * 90, 90, GB_CUDA_BYTES_BY_LANES, 0, false, false, GB_OP_CLAMPED_SWIGLU},
        {1, 6 * 1856, 1856, GB_CUDA_BYTES_BY_LANES, 64, false, true, GB_OP_RELU_SQUARED},
        {17, 3712, 3712, GB_CUDA_BYTES_SWIZZLED, 128, true, true, GB_OP_RELU_SQUARED},
    };
    CHECK_ALL(cases, GB_FUSED_GATED);
}

/* A cluster of blocks has each of a few wide rows. */
static void gates_round_wide_rows(void **state) {
    (void)state;
    const bool is_rounded = has_clusters();
    const rounded_case cases[] = {
        {2, 4224, 4224, GB_CUDA_BYTES_SWIZZLED, 128, false, is_rounded, 0},
        {2, 21504, 21504, GB_CUDA_BYTES_BY_LANES, 256, false, is_rounded, 0},
        {16, 4096, 4096, GB_CUDA_BYTES_BY_LANES, 0, false, true, 0},
        {8, 10240, 5120, GB_CUDA_BYTES_SWIZZLED, 64, false, is_rounded, 0},
        {9, 10240, 5120, GB_CUDA_BYTES_SWIZZLED, 64, false, false, 0},
    };
    CHECK_ALL(cases, GB_FUSED_GATED);
}

/* ---- Many rows ----------------------------------------------------------------------------------------- */

enum { PERIOD = 24 /* rows that are few to a kernel; eight, by which bytes are swizzled, divide them */ };

static void repeat_rows(const gb_cuda_tensor *from, const gb_cuda_tensor *to, size_t width) {
    const size_t rows = to->dims[0], bytes = width * sizeof(float);
    for (size_t row = 0; row < rows; row++)
        assert_cuda(cudaMemcpy((uint8_t *)to->data + row * bytes,
                               (const uint8_t *)from->data + row % PERIOD * bytes, bytes,
                               cudaMemcpyDeviceToDevice));
}

/* Each of `many` rows' bytes, its scale and its sum are those of the same row among few. */
static void check_repeated_bytes(const rounding_step *few, const gb_cuda_prepared *of_few,
                                 const rounding_step *many, const gb_cuda_prepared *of_many) {
    enum { BLOCK = 128 };
    const size_t rows = many->as_rows.dims[0], padded = (rows + 7) / 8 * 8,
                 blocks = (many->as_rows.dims[1] + BLOCK - 1) / BLOCK,
                 few_size = (size_t)gb_cuda_prepared_size(of_few),
                 size = (size_t)gb_cuda_prepared_size(of_many);
    uint8_t *expected = malloc(few_size), *found = malloc(size);
    assert_true(expected && found);
    assert_int_equal(few->as_rows.dims[0], PERIOD);
    assert_cuda(cudaMemcpy(expected, of_few->data, few_size, cudaMemcpyDeviceToHost));
    assert_cuda(cudaMemcpy(found, of_many->data, size, cudaMemcpyDeviceToHost));
    for (size_t row = 0; row < rows; row++) {
        const size_t like = row % PERIOD;
        for (size_t block = 0; block < blocks; block++)
            assert_memory_equal(found + (block * padded + row) * BLOCK,
                                expected + (block * PERIOD + like) * BLOCK, BLOCK);
        for (size_t part = 0; part < 2; part++) /* scales, sums */
            assert_memory_equal(found + padded * blocks * BLOCK + (part * padded + row) * sizeof(float),
                                expected + PERIOD * blocks * BLOCK + (part * PERIOD + like) * sizeof(float),
                                sizeof(float));
    }
    free(expected);
    free(found);
}

static void check_repeated_results(const rounding_step *few, const rounding_step *many, size_t width) {
    const size_t rows = many->as_rows.dims[0];
    float *expected = malloc(PERIOD * width * sizeof *expected),
          *found = malloc(rows * width * sizeof *found);
    assert_true(expected && found);
    fetch_tensor(&few->result, expected);
    fetch_tensor(&many->result, found);
    for (size_t row = 0; row < rows; row++)
        assert_memory_equal(found + row * width, expected + row % PERIOD * width, width * sizeof *found);
    free(expected);
    free(found);
}

/* Many rows, of which a multiprocessor has one after the other, as a few of them alone; rounded by their own
 * launch, too. */
static void check_many(size_t rows, size_t width, uint32_t rotation, gb_fused_kind kind) {
    const gb_cuda_layout layout = GB_CUDA_BYTES_SWIZZLED;
    const rounded_case of_few = {PERIOD, width, width, layout, rotation, true, true, 0},
                       of_many = {rows, width, width, layout, rotation, true, true, 0};
    rounding_step few, many;
    make_step(&few, &of_few, kind);
    make_step(&many, &of_many, kind);
    repeat_rows(&few.x, &many.x, width);
    if (kind == GB_FUSED_NORMS)
        assert_cuda(
            cudaMemcpy(many.other.data, few.other.data, width * sizeof(float), cudaMemcpyDeviceToDevice));
    else
        repeat_rows(&few.other, &many.other, width);
    assert_true(launch_step(&few, true));
    assert_true(launch_step(&many, true));
    check_repeated_results(&few, &many, width);
    check_repeated_bytes(&few, &few.rounded, &many, &many.rounded);
    gb_cuda_prepared own = many.rounded;
    own.data = zeros_on_device((size_t)gb_cuda_prepared_size(&own));
    round_by_product(&many, &own);
    check_repeated_bytes(&few, &few.rounded, &many, &own);
    assert_cuda(cudaFree(own.data));
    free_step(&few);
    free_step(&many);
}

static void rounds_many_rows(void **state) {
    (void)state;
    const size_t many = 2 * gb_cuda_find_facts()->multiprocessors + 3;
    check_many(many, 2048, 128, GB_FUSED_NORMS);
    check_many(many, 5376, 256, GB_FUSED_NORMS);
    check_many(many, 6216, 8, GB_FUSED_NORMS);
    check_many(many, (size_t)shortened(21504, 4608), 256, GB_FUSED_GATED);
    check_many(many, 4136, 0, GB_FUSED_GATED);
}

/* A step prepares its last result alone: what a product reads of another part it prepares itself. */
static void leaves_other_parts(void **state) {
    (void)state;
    static const rounded_case c = {3, 2048, 2048, GB_CUDA_BYTES_SWIZZLED, 128, false, true, 0};
    static const gb_fused_kind kinds[] = {GB_FUSED_NORMS, GB_FUSED_GATED};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        rounding_step s;
        make_step(&s, &c, kinds[i]);
        s.calls[0].epilogue = &s.rounded;
        s.calls[1].epilogue = NULL;
        if (kinds[i] == GB_FUSED_NORMS)
            s.parts[GB_NORMS_ADD] = &s.calls[0];
        const gb_fused fused = {.kind = kinds[i]};
        const gb_step step = {.kind = GB_STEP_FUSED, .fused = &fused};
        test_problem *t = new_problem(&s.problem);
        const gb_cuda_kernel *kernel = gb_cuda_choose(&step, &t->problem);
        assert_non_null(kernel);
        assert_false(kernel->has_epilogue(&t->problem));
        free_problem(t);
        free_step(&s);
    }
}

/* A result that nothing reads but its rounded rows is not stored. */
static void leaves_out_unread(void **state) {
    (void)state;
    static const rounded_case c = {17, 2048, 2048, GB_CUDA_BYTES_SWIZZLED, 128, true, true, 0};
    static const gb_fused_kind kinds[] = {GB_FUSED_NORMS, GB_FUSED_GATED};
    static const float zeros[17 * 2048];
    static float found[17 * 2048];
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        rounding_step s;
        make_step(&s, &c, kinds[i]);
        const uint32_t live = s.problem.live;
        assert_cuda(cudaMemcpy(s.result.data, zeros, sizeof zeros, cudaMemcpyHostToDevice));
        s.problem.live = 0;
        assert_true(launch_step(&s, true));
        fetch_tensor(&s.result, found);
        assert_memory_equal(found, zeros, sizeof zeros);
        s.problem.live = live;
        launch_step(&s, false);
        check_bytes(&s);
        free_step(&s);
    }
}

int main(void) {
    need_device();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(norms_round_rows),       cmocka_unit_test(gates_round_rows),
        cmocka_unit_test(other_gates_round_rows), cmocka_unit_test(gates_round_wide_rows),
        cmocka_unit_test(rounds_many_rows),       cmocka_unit_test(leaves_other_parts),
        cmocka_unit_test(leaves_out_unread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
