/* SPDX-License-Identifier: Apache-2.0
 *
 * Norms of long rows with what stands between them, in one launch: the bits are those of the ops' own
 * kernels, and the last result is prepared for a product as it is.
 */
#include "cuda/prepared_pairs.h"

enum { ROWS = 3, MOST_OPS = 4 };

typedef enum part { NORM, ADD, SCALE } part;

typedef struct chain_case {
    uint32_t width, count;
    part parts[MOST_OPS];
} chain_case;

static const chain_case cases[] = {
    {1100, 4, {NORM, ADD, SCALE, NORM}},
    {2048, 2, {ADD, NORM}},
    {5376, 3, {NORM, ADD, NORM}},
    {5376, 4, {NORM, ADD, SCALE, NORM}},
    {8192, 1, {NORM}},
    {1056, 2, {SCALE, NORM}},
    {6200, 3, {ADD, SCALE, NORM}},
    {9000, 3, {NORM, ADD, NORM}},
};

static gb_cuda_tensor random_tensor(uint32_t rows, uint32_t width, uint64_t *random) {
    float *values = malloc((size_t)rows * width * sizeof *values);
    assert_non_null(values);
    for (size_t i = 0; i < (size_t)rows * width; i++)
        values[i] = next_float(random);
    gb_cuda_tensor made = rows == 1 ? device_tensor(GB_F32, values, 1, width, 1, 1)
                                    : device_tensor(GB_F32, values, 2, rows, width, 1);
    free(values);
    return made;
}

static const gb_node nodes[] = {
    [NORM] = {.op = GB_OP_RMS_NORM,
              .attribute_count = 2,
              .attributes = {{GB_ATTRIBUTE_EPSILON, GB_ATTRIBUTE_FLOAT, {.f = 1e-6}},
                             {GB_ATTRIBUTE_WEIGHT_OFFSET, GB_ATTRIBUTE_FLOAT, {.f = 1}}}},
    [ADD] = {.op = GB_OP_ADD},
    [SCALE] = {.op = GB_OP_SCALE},
};

static const gb_cuda_kernel alone[] = {
    [NORM] = gb_cuda_rms_norm, [ADD] = gb_cuda_add, [SCALE] = gb_cuda_scale};

/* The results of all of a case's ops, [count, ROWS, width], in one launch or in one each. */
static void run_case(const chain_case *c, bool is_chain, gb_cuda_scratch *scratch, float *results) {
    uint64_t random = 11;
    gb_cuda_tensor x = random_tensor(ROWS, c->width, &random), others[MOST_OPS], made[MOST_OPS];
    gb_cuda_call calls[MOST_OPS] = {0};
    const gb_cuda_call *list[MOST_OPS];
    bool kept[MOST_OPS];
    for (uint32_t k = 0; k < c->count; k++) {
        const uint32_t rows = c->parts[k] == ADD ? ROWS : 1, width = c->parts[k] == SCALE ? 1 : c->width;
        others[k] = random_tensor(rows, width, &random);
        made[k] = device_tensor(GB_F32, NULL, 2, ROWS, c->width, 1);
        calls[k] = (gb_cuda_call){.node = &nodes[c->parts[k]],
                                  .operands = {k ? &made[k - 1] : &x, &others[k]},
                                  .results = {&made[k]},
                                  .scratch = scratch};
        list[k] = &calls[k];
        kept[k] = true;
    }
    calls[c->count - 1].prepares = is_chain;
    calls[c->count - 1].prepares_as = &made[c->count - 1];
    if (is_chain)
        gb_cuda_row_chain(list, kept, c->count);
    for (uint32_t k = 0; k < c->count; k++) {
        if (!is_chain)
            alone[c->parts[k]](&calls[k]);
        fetch_tensor(&made[k], results + (size_t)k * ROWS * c->width);
    }
    for (uint32_t k = 0; k < c->count; k++) {
        free_on_device(&others[k]);
        free_on_device(&made[k]);
    }
    free_on_device(&x);
}

static void same_bits_as_alone(void **unused) {
    (void)unused;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const chain_case *c = &cases[i];
        const size_t count = (size_t)c->count * ROWS * c->width;
        float *expected = calloc(count, sizeof *expected), *found = calloc(count, sizeof *found);
        assert_true(expected && found);
        gb_cuda_scratch scratch = {0};
        scratch.prepared = device_copy(NULL, 8 * ((size_t)c->width + 32) * 3);
        run_case(c, false, &scratch, expected);
        run_case(c, true, &scratch, found);
        assert_memory_equal(expected, found, count * sizeof *found);
        check_prepared(scratch.prepared, found + (size_t)(c->count - 1) * ROWS * c->width, ROWS, c->width);
        assert_cuda(cudaFree(scratch.prepared));
        free(expected);
        free(found);
    }
}

int main(void) {
    need_device();
    const struct CMUnitTest tests[] = {cmocka_unit_test(same_bits_as_alone)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
