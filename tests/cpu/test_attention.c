/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu/kernel_check.h"
#include "tensor/cache_codes.h"
#include "tensor/hadamard.h"

#include <math.h>

/* One layer's attention in two slots; keys and values are those of a fixed long text per slot. */
typedef struct layer {
    size_t heads, kv_heads, key_size, value_size, window, capacity, context;
    gb_dtype cache_dtype;
    uint32_t rotation, value_rotation;
    bool has_sinks;
    gb_cpu_tensor sinks;                  /* [heads] */
    gb_cpu_tensor query, key, value;      /* [2 * context, ...]: slot 0's tokens, then slot 1's */
    gb_cpu_tensor key_cache, value_cache; /* [2, capacity, ...] */
    gb_node node;
} layer;

enum { SLOTS = 2 };
static const double SCALE = 0.37;

static gb_cpu_tensor new_cache(const layer *l, size_t size) {
    const gb_type type = {l->cache_dtype, {3, {(int64_t)l->capacity, (int64_t)l->kv_heads, (int64_t)size}}};
    gb_cpu_tensor cache = {.dtype = l->cache_dtype, .rank = 3, .dims = {l->capacity, l->kv_heads, size}};
    uint64_t bytes;
    assert_true(gb_type_bytes(&type, &bytes));
    cache.slot_bytes = (size_t)bytes;
    cache.data = new_guarded(SLOTS * cache.slot_bytes);
    return cache;
}

static void new_layer(uint64_t *state, layer *l) {
    size_t tokens = SLOTS * l->context;
    l->query = random_tensor(state, GB_F32, 3, tokens, l->heads, l->key_size);
    l->key = random_tensor(state, GB_F32, 3, tokens, l->kv_heads, l->key_size);
    l->value = random_tensor(state, GB_F32, 3, tokens, l->kv_heads, l->value_size);
    for (size_t i = 0; i < gb_elements(&l->query); i++)
        set_element(&l->query, i, 4 * element(&l->query, i));
    l->sinks = random_tensor(state, GB_BF16, 1, l->heads, 1, 1);
    for (size_t h = 0; h < l->heads; h++) /* below all scores, among them, and above */
        set_element(&l->sinks, h, 6 * element(&l->sinks, h));
    l->key_cache = new_cache(l, l->key_size);
    l->value_cache = new_cache(l, l->value_size);
    l->node = (gb_node){.op = GB_OP_ATTENTION,
                        .attribute_count = 4,
                        .attributes = {gb_float(GB_ATTRIBUTE_SCALE, SCALE),
                                       gb_int(GB_ATTRIBUTE_WINDOW, (int64_t)l->window),
                                       gb_int(GB_ATTRIBUTE_ROTATION, l->rotation),
                                       gb_int(GB_ATTRIBUTE_VALUE_ROTATION, l->value_rotation)}};
}

static void free_layer(layer *l) {
    free_tensor(&l->query);
    free_tensor(&l->key);
    free_tensor(&l->value);
    free_tensor(&l->sinks);
    free_tensor(&l->key_cache);
    free_tensor(&l->value_cache);
}

/* The value as a cache gives it back. */
static double stored(const layer *l, float value) {
    return l->cache_dtype == GB_BF16 ? (double)gb_float_from_bf16(gb_bf16_from_float(value)) : (double)value;
}

static void reference(const layer *l, size_t slot, size_t position, size_t head, double *y) {
    size_t kv = head / (l->heads / l->kv_heads), token = slot * l->context + position;
    size_t first = l->window && position + 1 > l->window ? position + 1 - l->window : 0;
    double *weights = calloc(l->context, sizeof *weights), largest = -INFINITY, sum = 0;
    for (size_t j = first; j <= position; j++) {
        size_t row = (slot * l->context + j) * l->kv_heads + kv;
        for (size_t d = 0; d < l->key_size; d++)
            weights[j] += (double)element(&l->query, (token * l->heads + head) * l->key_size + d) *
                          stored(l, element(&l->key, row * l->key_size + d));
        weights[j] *= SCALE;
        largest = fmax(largest, weights[j]);
    }
    if (l->has_sinks)
        sum = exp((double)element(&l->sinks, head) - largest);
    for (size_t d = 0; d < l->value_size; d++)
        y[d] = 0;
    for (size_t j = first; j <= position; j++) {
        size_t row = (slot * l->context + j) * l->kv_heads + kv;
        double weight = exp(weights[j] - largest);
        sum += weight;
        for (size_t d = 0; d < l->value_size; d++)
            y[d] += weight * stored(l, element(&l->value, row * l->value_size + d));
    }
    for (size_t d = 0; d < l->value_size; d++)
        y[d] /= sum;
    free(weights);
}

/* Where no row that a query reads was overwritten, attending without storing gives the same. */
static void check_attend(const layer *l, const gb_kernel_call *stored, size_t count, size_t team) {
    gb_node node = l->node;
    node.op = GB_OP_ATTEND;
    const gb_cpu_tensor *with = stored->results[0];
    gb_cpu_tensor result = new_tensor(GB_F32, 3, with->dims[0], with->dims[1], with->dims[2]);
    gb_kernel_call call = {.node = &node,
                           .operands = {stored->operands[0], stored->operands[3], stored->operands[4],
                                        stored->operands[5], stored->operands[6]},
                           .results = {&result},
                           .vector = stored->vector,
                           .split = GB_SPLIT_OWN};
    if (!l->has_sinks && (l->window == 0 || count <= l->capacity - l->window + 1)) {
        run_as_team(gb_kernel_attend, &call, team);
        assert_guarded(result.data, tensor_bytes(&result));
        assert_memory_equal(result.data, with->data, tensor_bytes(with));
    }
    free_tensor(&result);
}

/* One step: `count` tokens of each slot from position on; results go to y [2 * context, heads, value_size].
 */
static void run_step(const layer *l, size_t position, size_t count, const gb_vector_kernels *vector,
                     size_t team, float *y) {
    size_t tokens = SLOTS * count, key_row = l->kv_heads * l->key_size,
           value_row = l->kv_heads * l->value_size;
    size_t query_row = l->heads * l->key_size, result_row = l->heads * l->value_size;
    gb_cpu_tensor query = new_tensor(GB_F32, 3, tokens, l->heads, l->key_size);
    gb_cpu_tensor key = new_tensor(GB_F32, 3, tokens, l->kv_heads, l->key_size);
    gb_cpu_tensor value = new_tensor(GB_F32, 3, tokens, l->kv_heads, l->value_size);
    gb_cpu_tensor positions = new_tensor(GB_I32, 1, tokens, 1, 1),
                  slots = new_tensor(GB_I32, 1, tokens, 1, 1);
    gb_cpu_tensor result = new_tensor(GB_F32, 3, tokens, l->heads, l->value_size);
    for (size_t n = 0; n < tokens; n++) {
        size_t slot = n / count, token = slot * l->context + position + n % count;
        ((int32_t *)slots.data)[n] = (int32_t)slot;
        ((int32_t *)positions.data)[n] = (int32_t)(position + n % count);
        memcpy((float *)query.data + n * query_row, (float *)l->query.data + token * query_row,
               query_row * 4);
        memcpy((float *)key.data + n * key_row, (float *)l->key.data + token * key_row, key_row * 4);
        memcpy((float *)value.data + n * value_row, (float *)l->value.data + token * value_row,
               value_row * 4);
    }
    gb_kernel_call call = {.node = &l->node,
                           .operands = {&query, &key, &value, &positions, &slots, &l->key_cache,
                                        &l->value_cache, l->has_sinks ? &l->sinks : NULL},
                           .results = {&result},
                           .vector = vector,
                           .split = GB_SPLIT_OWN};
    run_as_team(gb_kernel_attention, &call, team);
    assert_guarded(result.data, tensor_bytes(&result));
    check_attend(l, &call, count, team);
    for (size_t n = 0; n < tokens; n++) {
        size_t token = n / count * l->context + position + n % count;
        memcpy(y + token * result_row, (float *)result.data + n * result_row, result_row * sizeof *y);
    }
    const gb_cpu_tensor *made[] = {&query, &key, &value, &positions, &slots, &result};
    for (size_t i = 0; i < 6; i++)
        free_tensor(made[i]);
}

/* The whole text in chunks of at most that many tokens. A ring's chunks of up to longest_chunk tokens
 * overwrite nothing that they read. */
static void run_text(const layer *l, size_t chunk, const gb_vector_kernels *vector, size_t team, float *y) {
    memset(l->key_cache.data, 0xff, SLOTS * l->key_cache.slot_bytes); /* NaN where nothing was stored */
    memset(l->value_cache.data, 0xff, SLOTS * l->value_cache.slot_bytes);
    for (size_t position = 0; position < l->context; position += chunk) {
        size_t left = l->context - position;
        run_step(l, position, left < chunk ? left : chunk, vector, team, y);
    }
    assert_guarded(l->key_cache.data, SLOTS * l->key_cache.slot_bytes);
    assert_guarded(l->value_cache.data, SLOTS * l->value_cache.slot_bytes);
}

/* Every instruction set, chunk and team gives these bits: also chunks that a ring has no rows for beside its
 * window, and those that wrap it more than once. */
static void check_sets(const layer *l, size_t longest_chunk, const float *expected) {
    const size_t size = SLOTS * l->context * l->heads * l->value_size;
    const size_t chunks[] = {1, 3, longest_chunk, longest_chunk + 1, 2 * l->capacity + 1, l->context};
    float *found = malloc(size * sizeof *found);
    const gb_vector_kernels *vector;
    assert_non_null(found);
    for (size_t set = 0; (vector = gb_available_vector_kernels(set)); set++) {
        for (size_t c = 0; c < sizeof chunks / sizeof *chunks; c++) {
            run_text(l, chunks[c], vector, 1 + c % 3, found);
            if (memcmp(found, expected, size * sizeof *found) != 0)
                fail_msg("%s in chunks of %zu on %zu threads differs", vector->name, chunks[c], 1 + c % 3);
        }
    }
    free(found);
}

static void check_layer(layer l, size_t longest_chunk) {
    uint64_t state = l.heads * 1000 + l.context;
    new_layer(&state, &l);
    size_t size = SLOTS * l.context * l.heads * l.value_size;
    float *expected = malloc(size * sizeof *expected);
    double *exact = malloc(l.value_size * sizeof *exact);
    assert_true(expected && exact);
    run_text(&l, 1, gb_available_vector_kernels(0), 1, expected);
    for (size_t row = 0; row < SLOTS * l.context * l.heads; row++) {
        size_t token = row / l.heads;
        reference(&l, token / l.context, token % l.context, row % l.heads, exact);
        for (size_t d = 0; d < l.value_size; d++)
            assert_near(expected[row * l.value_size + d], exact[d], 2e-5, "attention");
    }
    check_sets(&l, longest_chunk, expected);
    free(expected);
    free(exact);
    free_layer(&l);
}

static void full_caches(void **unused) {
    (void)unused;
    check_layer((layer){1, 1, 8, 8, 0, 70, 70, .cache_dtype = GB_F32}, 70);
    check_layer((layer){6, 2, 19, 33, 0, 150, 141, .cache_dtype = GB_F32}, 141);
    check_layer((layer){10, 1, 32, 64, 0, 80, 80, .cache_dtype = GB_BF16}, 80); /* more heads than a tile */
    check_layer((layer){4, 4, 16, 16, 0, 200, 200, .cache_dtype = GB_BF16}, 64);
}

static void windows(void **unused) {
    (void)unused;
    check_layer((layer){4, 2, 16, 16, 8, 12, 60, .cache_dtype = GB_F32}, 4);
    check_layer((layer){2, 1, 24, 40, 70, 90, 260, .cache_dtype = GB_F32}, 20);
    check_layer((layer){3, 1, 7, 5, 100, 137, 300, .cache_dtype = GB_BF16}, 37);
    check_layer((layer){8, 2, 16, 16, 1, 6, 20, .cache_dtype = GB_F32}, 5);
    check_layer((layer){2, 2, 16, 16, 50, 200, 180, .cache_dtype = GB_F32}, 180); /* window in a full cache */
}

/* Few queries and many, windows, a bfloat16 cache. */
static void sinks(void **unused) {
    (void)unused;
    check_layer((layer){6, 2, 19, 33, 0, 150, 141, .cache_dtype = GB_F32, .has_sinks = true}, 141);
    check_layer((layer){10, 1, 32, 64, 0, 80, 80, .cache_dtype = GB_BF16, .has_sinks = true}, 80);
    check_layer((layer){3, 1, 7, 5, 100, 137, 300, .cache_dtype = GB_BF16, .has_sinks = true}, 37);
    check_layer((layer){8, 2, 16, 16, 1, 6, 20, .cache_dtype = GB_F32, .has_sinks = true}, 5);
}

/* ---- Codes --------------------------------------------------------------------------------------------- */

static void rotate(float *x, size_t count, size_t rotation) {
    for (size_t at = 0; rotation > 0 && at < count; at += rotation) {
        gb_hadamard(x + at, rotation);
        for (size_t i = 0; i < rotation; i++)
            x[at + i] *= gb_hadamard_scale(rotation);
    }
}

/* What is read back of what was stored. */
static void round_to_codes(float *x, size_t count, gb_dtype dtype) {
    uint8_t codes[GB_CODE_GROUP], scale[2];
    for (size_t at = 0; at < count; at += GB_CODE_GROUP) {
        gb_round_group(x + at, dtype, codes, scale);
        for (size_t i = 0; i < GB_CODE_GROUP; i++)
            x[at + i] = gb_group_element(dtype, codes, scale, i);
    }
}

/* The layer with the numbers that its codes stand for, in float32. */
static void new_decoded(const layer *l, layer *decoded) {
    uint64_t state = l->heads * 1000 + l->context;
    *decoded = *l;
    decoded->cache_dtype = GB_F32;
    decoded->rotation = decoded->value_rotation = 0;
    new_layer(&state, decoded);
    rotate(decoded->query.data, gb_elements(&l->query), l->rotation);
    rotate(decoded->key.data, gb_elements(&l->key), l->rotation);
    rotate(decoded->value.data, gb_elements(&l->value), l->value_rotation);
    round_to_codes(decoded->key.data, gb_elements(&l->key), l->cache_dtype);
    round_to_codes(decoded->value.data, gb_elements(&l->value), l->cache_dtype);
}

/* Largest difference from attention over caches that hold everything. */
static double error_of(const layer *l, const float *found) {
    double worst = 0, *exact = malloc(l->value_size * sizeof *exact);
    layer plain = *l;
    assert_non_null(exact);
    plain.cache_dtype = GB_F32;
    for (size_t row = 0; row < SLOTS * l->context * l->heads; row++) {
        const size_t token = row / l->heads;
        reference(&plain, token / l->context, token % l->context, row % l->heads, exact);
        for (size_t d = 0; d < l->value_size; d++) {
            const double difference = fabs(exact[d] - (double)found[row * l->value_size + d]);
            worst = difference > worst ? difference : worst;
        }
    }
    free(exact);
    return worst;
}

static void check_codes(layer l, size_t longest_chunk, double tolerance) {
    uint64_t state = l.heads * 1000 + l.context;
    layer decoded;
    new_layer(&state, &l);
    new_decoded(&l, &decoded);
    const size_t size = SLOTS * l.context * l.heads * l.value_size;
    float *expected = malloc(size * sizeof *expected);
    assert_non_null(expected);
    run_text(&decoded, 1, gb_available_vector_kernels(0), 1, expected);
    rotate(expected, size, l.value_rotation);
    check_sets(&l, longest_chunk, expected);
    const double error = error_of(&l, expected);
    if (error > tolerance)
        fail_msg("%s: an error of %g, expected at most %g", gb_dtype_name(l.cache_dtype), error, tolerance);
    free(expected);
    free_layer(&l);
    free_layer(&decoded);
}

static void codes_are_the_numbers_they_stand_for(void **unused) {
    (void)unused;
    check_codes((layer){1, 1, 32, 32, 0, 70, 70, .cache_dtype = GB_Q8}, 70, 0.02);
    check_codes((layer){6, 2, 96, 32, 0, 150, 141, .cache_dtype = GB_Q8, .rotation = 32}, 141, 0.05);
    check_codes((layer){10, 1, 64, 96, 0, 80, 80, .cache_dtype = GB_Q8, .rotation = 64, .value_rotation = 16},
                80, 0.05);
    check_codes(
        (layer){2, 1, 512, 256, 0, 66, 66, .cache_dtype = GB_Q8, .rotation = 256, .value_rotation = 128}, 66,
        0.2);
    check_codes((layer){1, 1, 32, 32, 0, 70, 70, .cache_dtype = GB_Q4}, 70, 0.3);
    check_codes((layer){3, 3, 32, 64, 0, 90, 75, .cache_dtype = GB_Q4, .value_rotation = 2}, 33, 0.5);
    check_codes(
        (layer){12, 2, 128, 64, 0, 70, 70, .cache_dtype = GB_Q4, .rotation = 128, .value_rotation = 64}, 70,
        0.9);
}

static void codes_in_rings(void **unused) {
    (void)unused;
    check_codes((layer){4, 2, 32, 32, 8, 12, 60, .cache_dtype = GB_Q8, .rotation = 32}, 4, 0.05);
    check_codes((layer){3, 1, 64, 32, 100, 137, 300, .cache_dtype = GB_Q8, .value_rotation = 32}, 37, 0.05);
    check_codes((layer){2, 1, 32, 96, 70, 90, 260, .cache_dtype = GB_Q4, .rotation = 32}, 20, 0.5);
}

/* Numbers of all sizes, whole groups of zeros, and what is no number, in every position. */
static void sets_store_the_same_codes(void **unused) {
    (void)unused;
    enum { COUNT = 768, ROUNDS = 60 };
    static const uint32_t rotations[] = {0, 2, 16, 32, 64, 128, 256};
    uint64_t state = 5;
    for (size_t round = 0; round < ROUNDS; round++) {
        const gb_dtype dtype = round % 2 ? GB_Q8 : GB_Q4;
        const uint32_t rotation = rotations[round % 7];
        float x[COUNT], rotated[COUNT];
        uint8_t expected[2 * COUNT] = {0}, found[2 * COUNT] = {0};
        for (size_t i = 0; i < COUNT; i++)
            x[i] = ldexpf(random_float(&state), (int)(i / 32 * 5 % 60) - 40) * (i / 96 % 5 ? 1 : 0);
        x[random_below(&state, COUNT)] = round % 3 == 0 ? NAN : round % 3 == 1 ? INFINITY : 3e38f;
        memcpy(rotated, x, sizeof x);
        rotate(rotated, COUNT, rotation);
        for (size_t g = 0; g < COUNT / GB_CODE_GROUP; g++)
            gb_round_group(rotated + g * GB_CODE_GROUP, dtype, expected + gb_code_bytes(dtype, g * 32),
                           expected + gb_code_bytes(dtype, COUNT) + 2 * g);
        const gb_vector_kernels *vector;
        for (size_t set = 0; (vector = gb_available_vector_kernels(set)); set++) {
            vector->store_codes(x, COUNT, dtype, rotation, found);
            assert_memory_equal(found, expected, sizeof found);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(full_caches),    cmocka_unit_test(windows),
        cmocka_unit_test(sinks),          cmocka_unit_test(codes_are_the_numbers_they_stand_for),
        cmocka_unit_test(codes_in_rings), cmocka_unit_test(sets_store_the_same_codes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
