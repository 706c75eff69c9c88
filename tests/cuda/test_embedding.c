/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of quantized tables, stored rotated and not: the bits of their definition (ops.def), whether the table
 * is in an order that products read or not.
 */
#include "cuda/launching.h"
#include "cuda/random_matrix.h"
#include "tensor/hadamard.h"

enum { TOKENS = 7 };

static const matrix_case cases[] = {
    {{GB_FORMAT_PROGRESSIVE, 4, false, 8, GB_F16, 32, 0}, 128, 128, 128, false},
    {{GB_FORMAT_PROGRESSIVE, 4, false, 8, GB_F16, 64, 0}, 256, 384, 128, false},
    {{GB_FORMAT_PROGRESSIVE, 4, false, 8, GB_F16, 128, 0}, 128, 640, 0, false},
    {{GB_FORMAT_PROGRESSIVE, 4, false, 8, GB_F16, 32, 0}, 256, 512, 256, false},
    {{GB_FORMAT_PROGRESSIVE, 4, false, 8, GB_F16, 32, 0},
     128,
     576,
     64,
     false}, /* rows are too odd for tiles */
    {{GB_FORMAT_PROGRESSIVE, 4, false, 8, GB_F16, 64, 0}, 21, 320, 4, false},
    {{GB_FORMAT_PROGRESSIVE, 5, false, 8, GB_F16, 32, 0}, 17, 160, 2, false},
    {{GB_FORMAT_PROGRESSIVE, 6, false, 8, GB_F16, 64, 0}, 128, 128, 16, false},
    {{GB_FORMAT_ONE_LEVEL, 8, false, 0, GB_F16, 0, 0}, 33, 77, 0, false},
    {{GB_FORMAT_ONE_LEVEL, 8, false, 0, GB_F16, 0, 0}, 33, 72, 8, false},
    {{GB_FORMAT_ONE_LEVEL, 8, false, 0, GB_BF16, 0, 0}, 16, 576, 64, false},
    {{GB_FORMAT_ONE_LEVEL, 4, true, 0, GB_F16, 64, 0}, 21, 320, 0, false},
    {{GB_FORMAT_ONE_LEVEL, 4, true, 0, GB_F16, 64, 0}, 48, 320, 0, true},
    {{GB_FORMAT_ONE_LEVEL, 4, false, 0, GB_BF16, 128, 0}, 32, 384, 128, true},
    {{GB_FORMAT_ONE_LEVEL, 8, false, 0, GB_F16, 64, 0}, 32, 192, 0, true},
    {{GB_FORMAT_ONE_LEVEL, 8, true, 0, GB_F16, 32, 0}, 16, 96, 32, true},
    {{GB_FORMAT_ONE_LEVEL, 8, false, 0, GB_F16, 0, 0}, 16, 160, 0, true},
};

static void define_row(const matrix *m, size_t row, float scale, float *y) {
    const size_t columns = m->of->inputs, rotation = m->of->rotation;
    gb_format_dequantize(&m->of->format, &m->planes, m->data, row, 0, columns, y);
    for (size_t at = 0; rotation > 0 && at < columns; at += rotation)
        gb_hadamard(y + at, rotation);
    for (size_t k = 0; k < columns; k++) {
        const float turned = rotation > 0 ? gb_hadamard_scale(rotation) * y[k] : y[k];
        y[k] = scale * turned;
    }
}

static void look_up(const matrix *m, const int32_t *ids, float scale, float *y) {
    const gb_node node = {.op = GB_OP_EMBEDDING,
                          .attribute_count = 2,
                          .attributes = {gb_float(GB_ATTRIBUTE_SCALE, (double)scale),
                                         gb_int(GB_ATTRIBUTE_ROTATION, (int64_t)m->of->rotation)}};
    gb_cuda_tensor tokens = device_tensor(GB_I32, ids, 1, TOKENS, 1, 1);
    gb_cuda_tensor to = device_tensor(GB_F32, NULL, 2, TOKENS, m->of->inputs, 1);
    run_op(gb_cuda_embedding,
           &(gb_cuda_call){.node = &node, .operands = {&m->tensor, &tokens}, .results = {&to}});
    fetch_tensor(&to, y);
    free_on_device(&tokens);
    free_on_device(&to);
}

/* The last two ids are in no table. */
static void check_case(const matrix_case *c, uint64_t *random) {
    const float scale = 3;
    matrix m = new_matrix(c, 1, random);
    int32_t ids[TOKENS] = {0, (int32_t)c->outputs - 1};
    for (size_t t = 2; t < TOKENS - 2; t++)
        ids[t] = (int32_t)(next_random(random) % c->outputs);
    ids[TOKENS - 2] = -1;
    ids[TOKENS - 1] = (int32_t)c->outputs;
    float *y = malloc(TOKENS * c->inputs * sizeof *y), *expected = calloc(c->inputs, sizeof *expected);
    assert_true(y && expected);
    look_up(&m, ids, scale, y);
    for (size_t t = TOKENS; t-- > 0;) {
        if (t < TOKENS - 2)
            define_row(&m, (size_t)ids[t], scale, expected);
        assert_memory_equal(y + t * c->inputs, expected, c->inputs * sizeof *y);
    }
    free(y);
    free(expected);
    free_matrix(&m);
}

static void rows_have_the_definitions_bits(void **unused) {
    (void)unused;
    uint64_t random = 9;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_case(&cases[i], &random);
}

int main(void) {
    need_device();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_have_the_definitions_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
