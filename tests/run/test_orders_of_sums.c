/* SPDX-License-Identifier: Apache-2.0
 *
 * Programs whose products are exact sums give the same logits whatever order a kernel takes: two kernels of
 * this file sum backwards and in two halves of k. They are chosen as instruction sets, in place of the real
 * ones' list.
 */
#include "backends/cpu/kernels/vector/vector_kernels.h"
#include "support/programs/random_program.h"
#include "tensor/convert.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { VOCAB = 160, PROMPT = 40 };

extern const gb_vector_kernels gb_vector_kernels_portable;

/* ---- Kernels that sum in another order ----------------------------------------------------------------- */

static unsigned calls; /* of the kernels below */

/* Of an interleaved matrix, or of a canonical one. */
static float row_scale(const gb_quantized_matrix *m, size_t row) {
    const bool is_progressive = m->format.kind == GB_FORMAT_PROGRESSIVE;
    const gb_plane *plane = is_progressive ? &m->planes.super_scales : &m->planes.scales;
    uint16_t half;
    memcpy(&half, (const uint8_t *)m->data + plane->offset + row * sizeof half, sizeof half);
    assert_int_equal(plane->row_bytes, sizeof half);
    return m->format.scale == GB_F16 ? gb_float_from_f16(half) : gb_float_from_bf16(half);
}

/* The products of a row and the codes of an input, which are integers below 2^24. */
static int32_t *products_of(const gb_linear *l, size_t row, const int8_t *codes, float *weights) {
    const gb_quantized_matrix *m = l->quantized;
    int32_t *products = malloc(l->inputs * sizeof *products);
    assert_non_null(products);
    gb_vector_kernels_portable.dequantize(m, l->first_row + row, 0, l->inputs, weights);
    for (size_t k = 0; k < l->inputs; k++)
        products[k] = codes[k] * (int32_t)(weights[k] / row_scale(m, l->first_row + row));
    return products;
}

typedef int32_t (*sum_order)(const int32_t *products, size_t count);

static int32_t sum_backwards(const int32_t *products, size_t count) {
    int32_t sum = 0;
    while (count > 0)
        sum += products[--count];
    return sum;
}

static int32_t sum_halves(const int32_t *products, size_t count) {
    int32_t low = 0, high = 0;
    for (size_t k = 0; k < count / 2; k++)
        low += products[k];
    for (size_t k = count / 2; k < count; k++)
        high += products[k];
    return high + low;
}

static void multiply(const gb_linear *l, size_t first, size_t end, sum_order sum) {
    const gb_activations *x = l->activations;
    float *weights = malloc(l->inputs * sizeof *weights);
    assert_non_null(weights);
    calls++;
    for (size_t row = first; row < end; row++)
        for (size_t t = 0; t < l->tokens; t++) {
            const size_t to = l->rows ? l->rows[t] : t, from = l->rows ? to / l->x_reuse : t;
            int32_t *products = products_of(l, row, x->codes + from * x->stride, weights);
            const float scaled = (float)sum(products, l->inputs) * x->scales[from];
            l->y[to * l->y_stride + row] = scaled * row_scale(l->quantized, l->first_row + row);
            free(products);
        }
    free(weights);
}

static void multiply_backwards(const gb_linear *l, size_t first, size_t end, void *scratch) {
    (void)scratch;
    multiply(l, first, end, sum_backwards);
}
static void multiply_halves(const gb_linear *l, size_t first, size_t end, void *scratch) {
    (void)scratch;
    multiply(l, first, end, sum_halves);
}

/* ---- The list of sets ---------------------------------------------------------------------------------- */

static gb_vector_kernels sets[3];

static void make_sets(void) {
    for (size_t i = 0; i < 3; i++)
        sets[i] = gb_vector_kernels_portable;
    sets[1].name = "backwards";
    sets[1].linear_exact = multiply_backwards;
    sets[2].name = "halves";
    sets[2].linear_exact = multiply_halves;
}

const gb_vector_kernels *gb_available_vector_kernels(size_t index) {
    return index < 3 ? &sets[index] : NULL;
}

gumbel_status gb_choose_vector_kernels(const char *name, const gb_vector_kernels **kernels,
                                       gumbel_error *error) {
    for (size_t i = 0; i < 3; i++)
        if (strcmp(name, sets[i].name) == 0) {
            *kernels = &sets[i];
            return GUMBEL_OK;
        }
    return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "set \"%s\"", name);
}

/* ---- Logits -------------------------------------------------------------------------------------------- */

/* A prompt as one chunk but for its end, then token by token: the logits of the last positions. */
static void run_prompt(const gumbel_program *program, const char *set, int threads,
                       float logits[PROMPT / 2][VOCAB]) {
    gumbel_engine *engine;
    gumbel_session *session;
    gumbel_error error;
    int32_t prompt[PROMPT];
    gumbel_engine_options options = {.size = sizeof options, .threads = threads, .cpu_isa = set};
    random_tokens(1, VOCAB, prompt, PROMPT);
    assert_ok(gumbel_engine_create(program, &options, &engine, &error), &error);
    assert_ok(gumbel_session_create(engine, &session, &error), &error);
    assert_ok(gumbel_session_append(session, prompt, PROMPT / 2, &error), &error);
    for (size_t i = 0; i < PROMPT / 2; i++) {
        gumbel_result result = {.size = sizeof result};
        gumbel_request request = {.size = sizeof request,
                                  .session = session,
                                  .tokens = prompt + PROMPT / 2 + i,
                                  .token_count = 1,
                                  .result = &result};
        assert_ok(gumbel_step(engine, &request, 1, &error), &error);
        memcpy(logits[i], result.logits, sizeof logits[i]);
    }
    gumbel_engine_destroy(engine);
}

static void check_program(const char *config, const char *recipe) {
    static float expected[PROMPT / 2][VOCAB], found[PROMPT / 2][VOCAB];
    gumbel_program *program = export_random_program(config, (gumbel_export_options){.quantize = recipe});
    run_prompt(program, "portable", 1, expected);
    for (size_t i = 1; i < 3; i++)
        for (int threads = 1; threads <= 2; threads++) {
            calls = 0;
            run_prompt(program, sets[i].name, threads, found);
            assert_true(calls > 0);
            assert_memory_equal(found, expected, sizeof found);
        }
    gumbel_program_close(program);
}

static void dense_layers(void **unused) {
    (void)unused;
    check_program("small_groups.json", "int4");
    check_program("small_groups.json", "int8");
}

static void experts(void **unused) {
    (void)unused;
    check_program("qwen_groups.json", "int4");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(dense_layers), cmocka_unit_test(experts)};
    make_sets();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
