/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention over more positions than a span has: near the exact sums in double, and with the same bits
 * through the kernel for few tokens and the one for many, in caches and in rings that have wrapped.
 */
#include "cuda/device_memory.h"
#include "tensor/convert.h"

#include <math.h>

enum { SLOT = 1, SLOTS = 2, CHUNK = 200, TOKENS = 3 * CHUNK, LAST = 9 };

typedef struct attention_case {
    size_t heads, kv_heads, key_size, value_size, window, capacity;
    gb_dtype cache;
} attention_case;

static const attention_case cases[] = {
    {4, 2, 24, 32, 0, TOKENS, GB_BF16},
    {8, 1, 16, 40, 0, TOKENS + 7, GB_F32},
    {3, 3, 20, 12, 270, 270 + CHUNK, GB_F32},
    {16, 1, 64, 264, 90, 90 + CHUNK, GB_BF16},
};

typedef struct tokens {
    float *query, *key, *value; /* [TOKENS, ..] */
    float *y;                   /* [TOKENS, heads, value size] */
} tokens;

static float *random_floats(size_t count, uint64_t *random) {
    float *x = malloc(count * sizeof *x);
    assert_non_null(x);
    for (size_t i = 0; i < count; i++)
        x[i] = next_float(random);
    return x;
}

static float cached(const attention_case *c, float x) {
    return c->cache == GB_BF16 ? gb_float_from_bf16(gb_bf16_from_float(x)) : x;
}

/* Runs tokens first .. first + count - 1 of the slot. */
static void attend(const attention_case *c, const tokens *t, gb_cuda_tensor caches[2], size_t first,
                   size_t count, float *y) {
    int32_t positions[TOKENS], slots[TOKENS], runs[2] = {0, (int32_t)count};
    for (size_t n = 0; n < count; n++) {
        positions[n] = (int32_t)(first + n);
        slots[n] = SLOT;
    }
    size_t query = c->heads * c->key_size, key = c->kv_heads * c->key_size,
           value = c->kv_heads * c->value_size;
    gb_cuda_tensor tensors[] = {
        device_tensor(GB_F32, t->query + first * query, 3, count, c->heads, c->key_size),
        device_tensor(GB_F32, t->key + first * key, 3, count, c->kv_heads, c->key_size),
        device_tensor(GB_F32, t->value + first * value, 3, count, c->kv_heads, c->value_size),
        device_tensor(GB_I32, positions, 1, count, 1, 1),
        device_tensor(GB_I32, slots, 1, count, 1, 1),
        device_tensor(GB_I32, runs, 1, 2, 1, 1),
        device_tensor(GB_F32, NULL, 3, count, c->heads, c->value_size),
    };
    gb_node node = {
        .op = GB_OP_ATTENTION,
        .attribute_count = 2,
        .attributes = {gb_float(GB_ATTRIBUTE_SCALE, 0.7), gb_int(GB_ATTRIBUTE_WINDOW, (int64_t)c->window)}};
    gb_cuda_scratch scratch = {0};
    gb_cuda_call call = {
        .node = &node,
        .operands = {&tensors[0], &tensors[1], &tensors[2], &tensors[3], &tensors[4], &caches[0], &caches[1]},
        .results = {&tensors[6]},
        .runs = {tensors[5].data, 1},
        .scratch = &scratch};
    scratch.bytes = device_copy(NULL, gb_cuda_attention_scratch(&call));
    gb_cuda_attention(&call);
    fetch_tensor(&tensors[6], y);
    for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++)
        free_on_device(&tensors[i]);
    assert_cuda(cudaFree(scratch.bytes));
}

static gb_cuda_tensor new_cache(const attention_case *c, size_t size) {
    gb_cuda_tensor cache = {.dtype = c->cache, .rank = 3, .dims = {c->capacity, c->kv_heads, size}};
    cache.slot_bytes = gb_cuda_elements(&cache) * gb_dtype_size(c->cache);
    cache.slot_bytes += (256 - cache.slot_bytes % 256) % 256;
    cache.data = device_copy(NULL, SLOTS * cache.slot_bytes);
    return cache;
}

static void assert_row(const attention_case *c, const tokens *t, size_t n, size_t h) {
    size_t g = h / (c->heads / c->kv_heads), first = c->window && n >= c->window ? n - c->window + 1 : 0;
    double weights[TOKENS], sum = 0;
    for (size_t j = first; j <= n; j++) {
        double score = 0;
        for (size_t d = 0; d < c->key_size; d++)
            score += (double)t->query[(n * c->heads + h) * c->key_size + d] *
                     (double)cached(c, t->key[(j * c->kv_heads + g) * c->key_size + d]);
        sum += weights[j] = exp(0.7 * score);
    }
    for (size_t e = 0; e < c->value_size; e++) {
        double expected = 0;
        for (size_t j = first; j <= n; j++)
            expected +=
                weights[j] / sum * (double)cached(c, t->value[(j * c->kv_heads + g) * c->value_size + e]);
        double found = (double)t->y[(n * c->heads + h) * c->value_size + e];
        if (!(fabs(found - expected) <= 3e-6))
            fail_msg("token %zu, head %zu, element %zu: %.9g, expected %.9g", n, h, e, found, expected);
    }
}

static void sums_are_right_and_bits_the_same(void **unused) {
    (void)unused;
    uint64_t random = 9;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const attention_case *c = &cases[i];
        size_t width = c->heads * c->value_size;
        tokens t = {random_floats(TOKENS * c->heads * c->key_size, &random),
                    random_floats(TOKENS * c->kv_heads * c->key_size, &random),
                    random_floats(TOKENS * c->kv_heads * c->value_size, &random),
                    malloc(TOKENS * width * sizeof(float))};
        float *few = malloc(LAST * width * sizeof *few);
        gb_cuda_tensor caches[2] = {new_cache(c, c->key_size), new_cache(c, c->value_size)};
        for (size_t first = 0; first < TOKENS; first += CHUNK)
            attend(c, &t, caches, first, CHUNK, t.y + first * width);
        attend(c, &t, caches, TOKENS - LAST, LAST, few);
        assert_memory_equal(few, t.y + (TOKENS - LAST) * width, LAST * width * sizeof *few);
        for (size_t n = 3; n < TOKENS; n += 149)
            for (size_t h = 0; h < c->heads; h++)
                assert_row(c, &t, n, h);
        free_on_device(&caches[0]);
        free_on_device(&caches[1]);
        free(t.query);
        free(t.key);
        free(t.value);
        free(t.y);
        free(few);
    }
}

int main(void) {
    need_device();
    const struct CMUnitTest tests[] = {cmocka_unit_test(sums_are_right_and_bits_the_same)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
