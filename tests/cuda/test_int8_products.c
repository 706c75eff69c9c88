/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of rows that are rounded to 8 bits each with integer weights: the bits of their definition
 * (ops.def, tensor/format.h), whatever the kernel, the tile, the split of k, and the other rows, and with
 * their norms in one launch.
 */
#include "backends/cuda/lowering/activations.h"
#include "cuda/launching.h"
#include "cuda/random_matrix.h"
#include "support/test_arguments.h"
#include "tensor/hadamard.h"

#include <math.h>

enum { MOST_ROWS = 260, MOST_INPUTS = 33024, EXPERTS = 3, CHOICES = 2 };

static const matrix_case cases[] = {
    {{GB_FORMAT_PROGRESSIVE, 4, false, 8, GB_F16, 32, 0}, 128, 128, 128, false},
    {{GB_FORMAT_PROGRESSIVE, 4, false, 8, GB_F16, 64, 0}, 256, 384, 128, false},
    {{GB_FORMAT_PROGRESSIVE, 4, false, 8, GB_F16, 64, 0},
     128,
     640,
     128,
     false}, /* more than a thread copies */
    {{GB_FORMAT_PROGRESSIVE, 4, false, 8, GB_F16, 128, 0}, 128, 2176, 64, false}, /* k in splits */
    {{GB_FORMAT_PROGRESSIVE, 4, false, 8, GB_F16, 32, 0},
     128,
     MOST_INPUTS,
     128,
     false}, /* more than registers keep */
    {{GB_FORMAT_PROGRESSIVE, 4, false, 8, GB_F16, 32, 0},
     640,
     256,
     256,
     false}, /* more tiles than blocks of threads */
    {{GB_FORMAT_PROGRESSIVE, 4, false, 8, GB_F16, 32, 0}, 48, 96, 32, false},
    {{GB_FORMAT_PROGRESSIVE, 4, false, 8, GB_F16, 64, 0}, 21, 320, 4, false},
    {{GB_FORMAT_PROGRESSIVE, 4, false, 8, GB_F16, 32, 0}, 200, 192, 64, false},
    {{GB_FORMAT_PROGRESSIVE, 4, false, 8, GB_F16, 64, 0}, 320, 320, 64, false},
    {{GB_FORMAT_PROGRESSIVE, 4, false, 8, GB_F16, 32, 0}, 72, 2880, 64, false}, /* gpt-oss's width */
    {{GB_FORMAT_PROGRESSIVE, 5, false, 8, GB_F16, 32, 0}, 17, 160, 2, false},
    {{GB_FORMAT_PROGRESSIVE, 6, false, 8, GB_F16, 64, 0}, 128, 128, 0, false},
    {{GB_FORMAT_ONE_LEVEL, 8, false, 0, GB_F16, 0, 0}, 33, 77, 0, false},
    {{GB_FORMAT_ONE_LEVEL, 8, false, 0, GB_BF16, 0, 0}, 16, 256, 128, false},
    {{GB_FORMAT_ONE_LEVEL, 8, false, 0, GB_BF16, 0, 0}, 16, 256, 128, true},
    {{GB_FORMAT_ONE_LEVEL, 8, false, 0, GB_F16, 0, 0}, 144, 416, 32, true}, /* units beyond the row's end */
    {{GB_FORMAT_ONE_LEVEL, 8, false, 0, GB_F16, 0, 0}, 640, 1152, 0, true},
    {{GB_FORMAT_ONE_LEVEL, 8, false, 0, GB_F16, 0, 0}, 32, MOST_INPUTS, 128, true},
};
enum { CASES = sizeof cases / sizeof *cases };

/* ---- Inputs -------------------------------------------------------------------------------------------- */

/* Of very different sizes; some rows are zeros, tiny, or hold what is no number. */
static float *random_rows(size_t rows, size_t columns, uint64_t *random) {
    static const float sizes[] = {1, 1000, 0, 1e-37f, 1, INFINITY};
    float *x = malloc(rows * columns * sizeof *x);
    assert_non_null(x);
    for (size_t row = 0; row < rows; row++)
        for (size_t k = 0; k < columns; k++) {
            const float size = sizes[row % (sizeof sizes / sizeof *sizes)];
            x[row * columns + k] = next_float(random) * (isinf(size) && k != 5 ? 1 : size);
        }
    return x;
}

/* ---- The definition ------------------------------------------------------------------------------------ */

/* Rounds a row; returns its scale. */
static float round_row(const matrix_case *c, const float *x, int32_t *codes) {
    float rotated[MOST_INPUTS], largest = 0;
    assert_true(c->inputs <= MOST_INPUTS);
    memcpy(rotated, x, c->inputs * sizeof *x);
    for (size_t at = 0; c->rotation > 0 && at < c->inputs; at += c->rotation)
        gb_hadamard(rotated + at, c->rotation);
    bool is_finite = true;
    for (size_t k = 0; k < c->inputs; k++) {
        is_finite = is_finite && isfinite(rotated[k]);
        largest = fmaxf(largest, fabsf(rotated[k]));
    }
    const float scale = !is_finite ? NAN : largest / 127.0f < 0x1p-126f ? 0 : largest / 127.0f;
    for (size_t k = 0; k < c->inputs; k++)
        codes[k] = scale > 0 ? (int32_t)rintf(rotated[k] / scale) : 0;
    return c->rotation > 0 ? scale * gb_hadamard_scale(c->rotation) : scale;
}

static int32_t integer_of(const matrix *m, size_t row, size_t k) {
    const gb_format *format = &m->of->format;
    const int32_t code = (int32_t)gb_get_code(
        m->data + m->planes.codes.offset + row * m->planes.codes.row_bytes, format->bits, k);
    if (format->kind != GB_FORMAT_PROGRESSIVE)
        return code - 128;
    const gb_group_integers group = gb_get_group_integers(
        format->bits,
        m->data[m->planes.scales.offset + row * m->planes.scales.row_bytes + k / format->group]);
    return (code - (int32_t)group.zero) * (int32_t)group.scale;
}

static float scale_of(const matrix *m, size_t row) {
    const gb_plane *plane =
        m->of->format.kind == GB_FORMAT_PROGRESSIVE ? &m->planes.super_scales : &m->planes.scales;
    uint16_t half;
    memcpy(&half, m->data + plane->offset + row * plane->row_bytes, sizeof half);
    return m->of->format.scale == GB_BF16 ? gb_float_from_bf16(half) : gb_float_from_f16(half);
}

/* Of one row of x with the weight's rows from `first` on. */
static void define_product(const matrix *m, const float *x, size_t first, float *y) {
    int32_t codes[MOST_INPUTS];
    const float scale = round_row(m->of, x, codes);
    for (size_t o = 0; o < m->of->outputs; o++) {
        int32_t sum = 0;
        for (size_t k = 0; k < m->of->inputs; k++)
            sum += codes[k] * integer_of(m, first + o, k);
        const float scaled = (float)sum * scale;
        y[o] = scaled * scale_of(m, first + o);
    }
}

static void assert_same_bits(const float *found, const float *expected, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (!(isnan(found[i]) && isnan(expected[i])) && memcmp(found + i, expected + i, sizeof *found) != 0)
            fail_msg("number %zu is %a, expected %a", i, (double)found[i], (double)expected[i]);
}

/* ---- Products ------------------------------------------------------------------------------------------ */

static gb_node node_of(const matrix *m, gb_op op) {
    return (gb_node){.op = op,
                     .attribute_count = 2,
                     .attributes = {gb_int(GB_ATTRIBUTE_ACTIVATION, GB_ACTIVATION_INT8_PER_TOKEN),
                                    gb_int(GB_ATTRIBUTE_ROTATION, (int64_t)m->of->rotation)}};
}

/* Launches calls of one input together; the counters are left as they were. */
static void launch_together(const gb_cuda_registry *registry, gb_cuda_call *calls, uint32_t count) {
    gb_cuda_scratch scratch = {.wgmma_blocks = gb_cuda_wgmma_blocks()};
    const gb_cuda_call *parts[GB_CUDA_MOST_JOINED];
    for (uint32_t i = 0; i < count; i++) {
        calls[i].scratch = &scratch;
        parts[i] = &calls[i];
    }
    static const uint32_t zeros[GB_CUDA_ARRIVALS];
    scratch.bytes = device_copy(NULL, scratch_from(registry, calls));
    scratch.arrivals = device_copy(zeros, sizeof zeros);
    const gb_cuda_problem problem = {.parts = parts, .count = count};
    launch_problem(registry, &problem);
    assert_cuda(cudaGetLastError());
    uint32_t left[GB_CUDA_ARRIVALS];
    assert_cuda(cudaMemcpy(left, scratch.arrivals, sizeof left, cudaMemcpyDeviceToHost));
    assert_memory_equal(left, zeros, sizeof left);
    assert_cuda(cudaFree(scratch.bytes));
    assert_cuda(cudaFree(scratch.arrivals));
}

/* One row of a packed matrix has a kernel of its own, unless it is too long for a block's registers. */
static void check_kernel(const matrix *m, gb_cuda_call *call) {
    enum { MOST_COLUMNS = 24576 };
    gb_cuda_scratch scratch = {.wgmma_blocks = gb_cuda_wgmma_blocks()};
    call->scratch = &scratch;
    const gb_cuda_problem problem = problem_of_call((const gb_cuda_call *const *)&call);
    test_problem *t = new_problem(&problem);
    const bool is_one_row = call->operands[0]->dims[0] == 1 && m->tensor.is_packed &&
                            !m->of->is_in_fragments && m->of->inputs <= MOST_COLUMNS;
    assert_int_equal(strcmp(kernel_from(&gb_cuda_linear_kernels, t)->name, "gemv_int8_row") == 0, is_one_row);
    free_problem(t);
}

static void multiply(const matrix *m, const float *x, size_t rows, float *y) {
    gb_cuda_tensor from = device_tensor(GB_F32, x, 2, rows, m->of->inputs, 1);
    gb_cuda_tensor to = device_tensor(GB_F32, NULL, 2, rows, m->of->outputs, 1);
    const gb_node node = node_of(m, GB_OP_LINEAR);
    gb_cuda_call call = {.node = &node, .operands = {&from, &m->tensor}, .results = {&to}};
    check_kernel(m, &call);
    launch_together(&gb_cuda_linear_kernels, &call, 1);
    fetch_tensor(&to, y);
    free_on_device(&from);
    free_on_device(&to);
}

/* Of numbers of rows a case of a short run has one in so many, and the next case other ones. */
static bool is_left_out(size_t number, size_t of_case, size_t one_in) {
    return is_short_run() && (number + of_case) % one_in != 0;
}

/* Up to 16, 64, 128, 192 and 256 rows take different tiles. */
static void products_have_the_definitions_bits(void **state) {
    (void)state;
    static const size_t counts[] = {1, 7, 16, 17, 65, 129, 193, MOST_ROWS};
    uint64_t random = 3;
    for (size_t i = 0; i < CASES; i++) {
        const matrix_case *c = &cases[i];
        matrix m = new_matrix(c, 1, &random);
        float *x = random_rows(MOST_ROWS, c->inputs, &random),
              *y = malloc(MOST_ROWS * c->outputs * sizeof *y),
              *expected = malloc(MOST_ROWS * c->outputs * sizeof *y);
        assert_true(y && expected);
        const size_t rows = c->inputs * c->outputs > 128 * 1024 ? 17 : MOST_ROWS;
        for (size_t row = 0; row < rows; row++)
            define_product(&m, x + row * c->inputs, 0, expected + row * c->outputs);
        for (size_t n = 0; n < sizeof counts / sizeof *counts && counts[n] <= rows; n++) {
            if (rows < MOST_ROWS ? is_left_out(n, 1, 2) : is_left_out(n, i, 3))
                continue;
            multiply(&m, x, counts[n], y);
            assert_same_bits(y, expected, counts[n] * c->outputs);
        }
        free(x);
        free(y);
        free(expected);
        free_matrix(&m);
    }
}

/* Tiles of rows that are multiplied some at a time, a group that lacks some, and a last tile of few rows; of
 * two tiles of outputs. */
static void rows_have_many_tiles(void **state) {
    (void)state;
    enum { ROWS = 10 * 256 + 30, EVERY = 37 };
    const matrix_case of = {{GB_FORMAT_PROGRESSIVE, 4, false, 8, GB_F16, 32, 0}, 144, 128, 32, false};
    uint64_t random = 6;
    matrix m = new_matrix(&of, 1, &random);
    float *x = random_rows(ROWS, of.inputs, &random), *y = malloc(ROWS * of.outputs * sizeof *y),
          *expected = malloc(of.outputs * sizeof *expected);
    assert_true(y && expected);
    multiply(&m, x, ROWS, y);
    for (size_t row = 0; row < ROWS; row += row + EVERY < ROWS ? EVERY : 1) {
        define_product(&m, x + row * of.inputs, 0, expected);
        assert_same_bits(y + row * of.outputs, expected, of.outputs);
    }
    free(x);
    free(y);
    free(expected);
    free_matrix(&m);
}

/* Of the fewest tiles of 64 rows of which two blocks of threads share a multiprocessor. */
static void blocks_share_multiprocessors(void **state) {
    (void)state;
    enum { ROWS = 17, TILES_OF_ONE = 4, INPUTS = 160 };
    const size_t blocks = gb_cuda_wgmma_blocks();
    if (blocks == 0)
        skip();
    const matrix_case of = {{GB_FORMAT_PROGRESSIVE, 4, false, 8, GB_F16, 32, 0},
                            TILES_OF_ONE * blocks * GB_TILE_ROWS,
                            INPUTS,
                            32,
                            false};
    uint64_t random = 5;
    matrix m = new_matrix(&of, 1, &random);
    float *x = random_rows(ROWS, INPUTS, &random), *y = malloc(ROWS * of.outputs * sizeof *y),
          *expected = malloc(of.outputs * sizeof *expected);
    assert_true(y && expected);
    multiply(&m, x, ROWS, y);
    for (size_t row = 0; row < ROWS; row += ROWS - 1) {
        define_product(&m, x + row * INPUTS, 0, expected);
        assert_same_bits(y + row * of.outputs, expected, of.outputs);
    }
    free(x);
    free(y);
    free(expected);
    free_matrix(&m);
}

/* Each token with its own rows of x, or one row for all its choices. */
static void check_experts(const matrix_case *c, size_t tokens, bool is_prefill, uint64_t *random) {
    static const int32_t OF_TEN[10] = {0, 0, 0, 0, 0, 0, 1, 1, 1, 2};
    const size_t pairs = tokens * CHOICES;
    matrix m = new_matrix(c, EXPERTS, random);
    float *y = malloc(pairs * c->outputs * sizeof *y), *expected = malloc(c->outputs * sizeof *expected);
    int32_t *chosen = malloc(pairs * sizeof *chosen);
    assert_true(y && expected && chosen);
    for (size_t p = 0; p < pairs; p++)
        chosen[p] = OF_TEN[next_random(random) % 10];
    for (size_t each = 1; each <= CHOICES; each += CHOICES - 1) {
        float *x = random_rows(tokens * each, c->inputs, random);
        gb_cuda_tensor from =
            device_tensor(GB_F32, x, each == 1 ? 2 : 3, tokens, each == 1 ? c->inputs : each, c->inputs);
        from.dims[2] = each == 1 ? 0 : c->inputs;
        gb_cuda_tensor experts = device_tensor(GB_I32, chosen, 2, tokens, CHOICES, 1);
        gb_cuda_tensor to = device_tensor(GB_F32, NULL, 3, tokens, CHOICES, c->outputs);
        const gb_node node = node_of(&m, GB_OP_EXPERT_LINEAR);
        gb_cuda_call call = {.node = &node,
                             .operands = {&from, &m.tensor, &experts},
                             .results = {&to},
                             .row_class = is_prefill ? GB_CUDA_SHORT_PROMPT : GB_CUDA_ONE_ROW};
        launch_together(&gb_cuda_expert_linear_kernels, &call, 1);
        fetch_tensor(&to, y);
        for (size_t p = 0; p < pairs; p++) {
            define_product(&m, x + (each == 1 ? p / CHOICES : p) * c->inputs, (size_t)chosen[p] * c->outputs,
                           expected);
            assert_same_bits(y + p * c->outputs, expected, c->outputs);
        }
        free_on_device(&from);
        free_on_device(&experts);
        free_on_device(&to);
        free(x);
    }
    free(y);
    free(expected);
    free(chosen);
    free_matrix(&m);
}

/* One token, a few, and prompts of so many that tiles of 64 and of 256 rows are worth it: the tiles of the
 * last have up to 64, 128, 192 and 256 rows. */
static void experts_have_the_definitions_bits(void **state) {
    (void)state;
    static const struct {
        size_t tokens;
        bool is_prefill;
    } batches[] = {{1, false}, {5, false}, {5, true}, {40, true}, {300, true}};
    enum { BATCHES = sizeof batches / sizeof *batches, OF_LARGE = 2 };
    uint64_t random = 4;
    for (size_t i = 0; i < CASES; i++) {
        const matrix_case *c = &cases[i];
        const bool is_large = c->inputs * c->outputs > 80 * 1024;
        for (size_t b = 0; b < (is_large ? OF_LARGE : BATCHES); b++)
            if (!is_left_out(b, i, is_large ? 2 : 3))
                check_experts(c, batches[b].tokens, batches[b].is_prefill, &random);
    }
}

/* Matrices of one input, packed and not, with splits of k and without. */
static void products_share_a_launch(void **state) {
    (void)state;
    enum { MATRICES = 3, ROWS = 3 };
    static const struct {
        gb_format format;
        size_t outputs[MATRICES], inputs;
    } joined[] = {{{GB_FORMAT_PROGRESSIVE, 4, false, 8, GB_F16, 64, 0}, {256, 128, 128}, 384},
                  {{GB_FORMAT_PROGRESSIVE, 4, false, 8, GB_F16, 32, 0}, {128, 128, 128}, 2176},
                  {{GB_FORMAT_PROGRESSIVE, 4, false, 8, GB_F16, 32, 0}, {16, 40, 3}, 96},
                  {{GB_FORMAT_ONE_LEVEL, 8, false, 0, GB_F16, 0, 0}, {16, 256, 144}, 160}};
    uint64_t random = 5;
    for (size_t j = 0; j < sizeof joined / sizeof *joined; j++) {
        matrix_case of[MATRICES];
        matrix m[MATRICES];
        gb_node nodes[MATRICES];
        gb_cuda_tensor y[MATRICES];
        gb_cuda_call calls[MATRICES] = {0};
        float *x = random_rows(ROWS, joined[j].inputs, &random), found[ROWS * 256], expected[ROWS * 256];
        const gb_cuda_tensor from = device_tensor(GB_F32, x, 2, ROWS, joined[j].inputs, 1);
        for (size_t i = 0; i < MATRICES; i++) {
            of[i] = (matrix_case){joined[j].format, joined[j].outputs[i], joined[j].inputs, 32,
                                  joined[j].format.kind == GB_FORMAT_ONE_LEVEL};
            m[i] = new_matrix(&of[i], 1, &random);
            nodes[i] = node_of(&m[i], GB_OP_LINEAR);
            y[i] = device_tensor(GB_F32, NULL, 2, ROWS, of[i].outputs, 1);
            calls[i] =
                (gb_cuda_call){.node = &nodes[i], .operands = {&from, &m[i].tensor}, .results = {&y[i]}};
        }
        launch_together(&gb_cuda_linear_kernels, calls, MATRICES);
        for (size_t i = 0; i < MATRICES; i++) {
            fetch_tensor(&y[i], found);
            for (size_t row = 0; row < ROWS; row++)
                define_product(&m[i], x + row * of[i].inputs, 0, expected + row * of[i].outputs);
            assert_same_bits(found, expected, ROWS * of[i].outputs);
            free_on_device(&y[i]);
            free_matrix(&m[i]);
        }
        free_on_device(&from);
        free(x);
    }
}

/* Matrices that do not lie alike are multiplied one by one: no kernel has both. */
static void unlike_matrices_share_no_launch(void **state) {
    (void)state;
    enum { MATRICES = 2, INPUTS = 256 };
    static const matrix_case of[][MATRICES] = {
        {{{GB_FORMAT_PROGRESSIVE, 4, false, 8, GB_F16, 32, 0}, 128, INPUTS, 128, false},
         {{GB_FORMAT_ONE_LEVEL, 8, false, 0, GB_F16, 0, 0}, 64, INPUTS, 128, true}},
        {{{GB_FORMAT_ONE_LEVEL, 8, false, 0, GB_F16, 0, 0}, 64, INPUTS, 128, true},
         {{GB_FORMAT_ONE_LEVEL, 8, false, 0, GB_F16, 0, 0}, 21, INPUTS, 128, false}},
        {{{GB_FORMAT_PROGRESSIVE, 5, false, 8, GB_F16, 32, 0}, 64, INPUTS, 128, false},
         {{GB_FORMAT_PROGRESSIVE, 4, false, 8, GB_F16, 32, 0}, 128, INPUTS, 128, false}}};
    uint64_t random = 9;
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        float *x = random_rows(1, INPUTS, &random);
        gb_cuda_scratch scratch = {.wgmma_blocks = gb_cuda_wgmma_blocks()};
        const gb_cuda_tensor from = device_tensor(GB_F32, x, 2, 1, INPUTS, 1);
        matrix m[MATRICES];
        gb_node nodes[MATRICES];
        gb_cuda_tensor y[MATRICES];
        gb_cuda_call calls[MATRICES];
        const gb_cuda_call *parts[MATRICES];
        for (size_t k = 0; k < MATRICES; k++) {
            m[k] = new_matrix(&of[i][k], 1, &random);
            nodes[k] = node_of(&m[k], GB_OP_LINEAR);
            y[k] = device_tensor(GB_F32, NULL, 2, 1, of[i][k].outputs, 1);
            calls[k] = (gb_cuda_call){.node = &nodes[k],
                                      .operands = {&from, &m[k].tensor},
                                      .results = {&y[k]},
                                      .scratch = &scratch};
            parts[k] = &calls[k];
        }
        const gb_cuda_problem problem = {.parts = parts, .count = MATRICES};
        assert_null(gb_cuda_choose_from(&gb_cuda_linear_kernels, &problem));
        for (size_t k = 0; k < MATRICES; k++) {
            free_on_device(&y[k]);
            free_matrix(&m[k]);
        }
        free_on_device(&from);
        free(x);
    }
}

/* ---- With norms ---------------------------------------------------------------------------------------- */

enum { NORM_MATRICES = 2, NORM_OUTPUTS = 256, MOST_NORM_INPUTS = 6272 };
static const uint32_t live_norms = 1u << GB_NORMS_ADD | 1u << GB_NORMS_LAST;

typedef struct norm_case {
    size_t width, outputs[NORM_MATRICES], rotation;
    uint32_t group;
    bool is_supported;
} norm_case;

static const norm_case norm_cases[] = {
    {2048, {256, 128}, 128, 32, true},  {1152, {128, 128}, 0, 128, true},
    {5376, {128, 256}, 128, 64, true},  {2880, {192, 72}, 64, 32, true},
    {5376, {128, 128}, 256, 32, true},  {2048, {128, 128}, 256, 32, false}, /* a rotation of two warps */
    {6272, {128, 128}, 128, 32, false},
};

/* An addition and a norm, and products of its result. */
typedef struct norm_step {
    gb_cuda_tensor x, added, weight, sum, row, y[NORM_MATRICES];
    matrix m[NORM_MATRICES];
    gb_node products[NORM_MATRICES];
    gb_cuda_scratch scratch;
    gb_cuda_call calls[GB_NORMS_PARTS + NORM_MATRICES];
    const gb_cuda_call *parts[GB_NORMS_PARTS + NORM_MATRICES];
    const gb_cuda_tensor *operands[GB_MAX_STEP_OPERANDS];
    gb_cuda_problem problem;
} norm_step;

static const gb_node norm_nodes[] = {
    {.op = GB_OP_ADD},
    {.op = GB_OP_RMS_NORM,
     .attribute_count = 1,
     .attributes = {{GB_ATTRIBUTE_EPSILON, GB_ATTRIBUTE_FLOAT, {.f = 1e-6}}}},
};

static gb_cuda_tensor random_floats(int32_t rank, size_t width, uint64_t *random) {
    float values[MOST_NORM_INPUTS];
    for (size_t i = 0; i < width; i++)
        values[i] = next_float(random);
    return rank == 1 ? device_tensor(GB_F32, values, 1, width, 1, 1)
                     : device_tensor(GB_F32, values, 2, 1, width, 1);
}

static void make_norm_step(norm_step *s, const norm_case *c, matrix_case *of, uint64_t *random) {
    static const uint32_t zeros[GB_CUDA_ARRIVALS];
    *s = (norm_step){.x = random_floats(2, c->width, random),
                     .added = random_floats(2, c->width, random),
                     .weight = random_floats(1, c->width, random),
                     .sum = device_tensor(GB_F32, NULL, 2, 1, c->width, 1),
                     .row = device_tensor(GB_F32, NULL, 2, 1, c->width, 1)};
    s->scratch = (gb_cuda_scratch){.bytes = device_copy(NULL, 1 << 20),
                                   .arrivals = device_copy(zeros, sizeof zeros),
                                   .wgmma_blocks = gb_cuda_wgmma_blocks()};
    s->calls[GB_NORMS_ADD] = (gb_cuda_call){
        .node = &norm_nodes[0], .operands = {&s->x, &s->added}, .results = {&s->sum}, .scratch = &s->scratch};
    s->calls[GB_NORMS_LAST] = (gb_cuda_call){.node = &norm_nodes[1],
                                             .operands = {&s->sum, &s->weight},
                                             .results = {&s->row},
                                             .scratch = &s->scratch};
    for (size_t i = 0; i < NORM_MATRICES; i++) {
        of[i] = (matrix_case){{GB_FORMAT_PROGRESSIVE, 4, false, 8, GB_F16, c->group, 0},
                              c->outputs[i],
                              c->width,
                              c->rotation,
                              false};
        s->m[i] = new_matrix(&of[i], 1, random);
        s->y[i] = device_tensor(GB_F32, NULL, 2, 1, c->outputs[i], 1);
        s->products[i] = node_of(&s->m[i], GB_OP_LINEAR);
        s->calls[GB_NORMS_PARTS + i] = (gb_cuda_call){.node = &s->products[i],
                                                      .operands = {&s->row, &s->m[i].tensor},
                                                      .results = {&s->y[i]},
                                                      .scratch = &s->scratch};
        s->parts[GB_NORMS_PARTS + i] = &s->calls[GB_NORMS_PARTS + i];
    }
    s->operands[GB_NORMS_X] = &s->x;
    s->operands[GB_NORMS_ADDED] = &s->added;
    s->operands[GB_NORMS_LAST_WEIGHT] = &s->weight;
    s->parts[GB_NORMS_ADD] = &s->calls[GB_NORMS_ADD];
    s->parts[GB_NORMS_LAST] = &s->calls[GB_NORMS_LAST];
    s->problem = (gb_cuda_problem){s->operands, s->parts, GB_NORMS_PARTS + NORM_MATRICES, live_norms};
}

static void free_norm_step(norm_step *s) {
    gb_cuda_tensor *const tensors[] = {&s->x, &s->added, &s->weight, &s->sum, &s->row, &s->y[0], &s->y[1]};
    for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++)
        free_on_device(tensors[i]);
    for (size_t i = 0; i < NORM_MATRICES; i++)
        free_matrix(&s->m[i]);
    assert_cuda(cudaFree(s->scratch.bytes));
    assert_cuda(cudaFree(s->scratch.arrivals));
}

/* One launch has the bits of the norm's own kernel, and of the definition of what that gives. */
static void norms_share_the_launch_of_their_products(void **state) {
    (void)state;
    uint64_t random = 6;
    for (size_t i = 0; i < sizeof norm_cases / sizeof *norm_cases; i++) {
        const norm_case *c = &norm_cases[i];
        float expected[2 * MOST_NORM_INPUTS], found[2 * MOST_NORM_INPUTS], y[NORM_OUTPUTS],
            of_y[NORM_OUTPUTS];
        matrix_case of[NORM_MATRICES];
        norm_step s;
        make_norm_step(&s, c, of, &random);
        const gb_cuda_problem norms = {s.operands, s.parts, GB_NORMS_PARTS, live_norms};
        assert_true(launch_fused(GB_FUSED_NORMS, &norms));
        fetch_tensor(&s.sum, expected);
        fetch_tensor(&s.row, expected + c->width);
        memset(found, 0, sizeof found);
        assert_cuda(cudaMemcpy(s.row.data, found, c->width * sizeof(float), cudaMemcpyHostToDevice));
        assert_int_equal(launch_fused(GB_FUSED_NORM_LINEARS, &s.problem), c->is_supported);
        for (size_t m = 0; c->is_supported && m < NORM_MATRICES; m++) {
            fetch_tensor(&s.sum, found);
            fetch_tensor(&s.row, found + c->width);
            assert_same_bits(found, expected, 2 * c->width);
            define_product(&s.m[m], expected + c->width, 0, of_y);
            fetch_tensor(&s.y[m], y);
            assert_same_bits(y, of_y, c->outputs[m]);
        }
        free_norm_step(&s);
    }
}

int main(void) {
    need_device();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_have_the_definitions_bits),
        cmocka_unit_test(rows_have_many_tiles),
        cmocka_unit_test(blocks_share_multiprocessors),
        cmocka_unit_test(products_share_a_launch),
        cmocka_unit_test(unlike_matrices_share_no_launch),
        cmocka_unit_test(experts_have_the_definitions_bits),
        cmocka_unit_test(norms_share_the_launch_of_their_products),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
