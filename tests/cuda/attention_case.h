/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention of random queries, keys and values: calls of the op on the device, and its sums in double.
 */
#ifndef GUMBEL_TESTS_CUDA_ATTENTION_CASE_H
#define GUMBEL_TESTS_CUDA_ATTENTION_CASE_H

#include "cuda/launching.h"
#include "cuda/prepared_pairs.h"
#include "tensor/cache_codes.h"
#include "tensor/hadamard.h"

#include <math.h>

enum { MOST_TOKENS = 1200, MOST_HEADS = 16, ATTENTION_SLOTS = 3 };

typedef struct attention_case {
    size_t tokens, heads, kv_heads, key_size, value_size, window, capacity;
    gb_dtype cache;
    double scale;
    bool allows_bf16; /* the call's */
    bool has_sinks;
} attention_case;

/* A head's sink, in bfloat16: below the scores, among them, or above. */
static inline uint16_t sink_of(size_t head) {
    return gb_bf16_from_float((float)(head % 3) * 3 - 3);
}

typedef struct tokens {
    float *query, *key, *value;       /* [tokens, ..] */
    float *stored_key, *stored_value; /* as caches give them back */
    float *y;                         /* [tokens, heads, value size] */
} tokens;

static inline float *random_floats(size_t count, uint64_t *random) {
    float *x = malloc(count * sizeof *x);
    assert_non_null(x);
    for (size_t i = 0; i < count; i++)
        x[i] = next_float(random);
    return x;
}

/* The blocks in which codes of such heads are rotated. */
static inline size_t rotation_of(const attention_case *c, size_t size) {
    size_t rotation = gb_dtype_has_codes(c->cache) ? GB_MAX_ROTATION : 0;
    while (rotation > 0 && size % rotation != 0)
        rotation /= 2;
    return rotation;
}

static inline void rotate(float *x, size_t count, size_t rotation) {
    for (size_t at = 0; rotation > 0 && at < count; at += rotation) {
        gb_hadamard(x + at, rotation);
        for (size_t i = 0; i < rotation; i++)
            x[at + i] *= gb_hadamard_scale(rotation);
    }
}

/* Codes and scales of a row of x, which is rotated, as caches have them. */
static inline void round_row(gb_dtype dtype, const float *x, size_t width, uint8_t *row) {
    for (size_t at = 0; at < width; at += GB_CODE_GROUP)
        gb_round_group(x + at, dtype, row + gb_code_bytes(dtype, at),
                       row + gb_code_bytes(dtype, width) + gb_code_scale_bytes(at));
}

/* A matrix turned back is what it was, so that queries need not be rotated. */
static inline float *stored_rows(const attention_case *c, const float *x, size_t size) {
    const size_t width = c->kv_heads * size, rotation = rotation_of(c, size);
    float *stored = malloc(c->tokens * width * sizeof *stored);
    uint8_t *row = malloc(2 * width);
    assert_true(stored && row);
    memcpy(stored, x, c->tokens * width * sizeof *stored);
    rotate(stored, c->tokens * width, rotation);
    for (float *of = stored; of < stored + c->tokens * width; of += width) {
        if (gb_dtype_has_codes(c->cache))
            round_row(c->cache, of, width, row);
        for (size_t i = 0; i < width; i++) {
            const size_t group = i - i % GB_CODE_GROUP;
            if (gb_dtype_has_codes(c->cache))
                of[i] = gb_group_element(c->cache, row + gb_code_bytes(c->cache, group),
                                         row + gb_code_bytes(c->cache, width) + gb_code_scale_bytes(group),
                                         i % GB_CODE_GROUP);
            else if (c->cache == GB_BF16)
                of[i] = gb_float_from_bf16(gb_bf16_from_float(of[i]));
        }
    }
    rotate(stored, c->tokens * width, rotation);
    free(row);
    return stored;
}

static inline tokens random_tokens(const attention_case *c, uint64_t *random) {
    tokens t = {.query = random_floats(c->tokens * c->heads * c->key_size, random),
                .key = random_floats(c->tokens * c->kv_heads * c->key_size, random),
                .value = random_floats(c->tokens * c->kv_heads * c->value_size, random),
                .y = malloc(c->tokens * c->heads * c->value_size * sizeof(float))};
    assert_non_null(t.y);
    t.stored_key = stored_rows(c, t.key, c->key_size);
    t.stored_value = stored_rows(c, t.value, c->value_size);
    return t;
}

static inline void free_tokens(tokens *t) {
    free(t->query);
    free(t->key);
    free(t->value);
    free(t->stored_key);
    free(t->stored_value);
    free(t->y);
}

static inline gb_cuda_tensor new_cache(const attention_case *c, size_t size) {
    gb_cuda_tensor cache = {.dtype = c->cache, .rank = 3, .dims = {c->capacity, c->kv_heads, size}};
    const size_t elements = gb_cuda_elements(&cache);
    cache.slot_bytes = gb_dtype_has_codes(c->cache)
                           ? gb_code_bytes(c->cache, elements) + gb_code_scale_bytes(elements)
                           : elements * gb_dtype_size(c->cache);
    cache.slot_bytes += (256 - cache.slot_bytes % 256) % 256;
    cache.is_ring = c->window > 0 && c->capacity < c->tokens;
    cache.data = device_copy(NULL, ATTENTION_SLOTS * cache.slot_bytes);
    return cache;
}

/* Puts tokens first .. end - 1 into a slot as the op appends them. */
static inline void fill_rows(const attention_case *c, const float *x, size_t size, size_t first, size_t end,
                             const gb_cuda_tensor *cache, size_t slot) {
    const size_t width = c->kv_heads * size;
    const size_t bytes = gb_dtype_has_codes(c->cache)
                             ? gb_code_bytes(c->cache, width) + gb_code_scale_bytes(width)
                             : width * gb_dtype_size(c->cache);
    float *row = malloc(width * sizeof *row);
    uint8_t *stored = malloc(bytes);
    assert_true(row && stored);
    for (size_t n = first; n < end; n++) {
        memcpy(row, x + n * width, width * sizeof *row);
        rotate(row, width, rotation_of(c, size));
        if (gb_dtype_has_codes(c->cache))
            round_row(c->cache, row, width, stored);
        else if (c->cache == GB_F32)
            memcpy(stored, row, bytes);
        for (size_t i = 0; i < width && c->cache == GB_BF16; i++) {
            const uint16_t rounded = gb_bf16_from_float(row[i]);
            memcpy(stored + i * sizeof rounded, &rounded, sizeof rounded);
        }
        assert_cuda(cudaMemcpy((uint8_t *)cache->data + slot * cache->slot_bytes + n % c->capacity * bytes,
                               stored, bytes, cudaMemcpyHostToDevice));
    }
    free(row);
    free(stored);
}

/* As before Hopper. */
static bool attention_without_wgmma;

/* Which tokens of the case a call has: count of them from `first` on, in each of that many slots from
 * first_slot on; or from another one on in each slot. */
typedef struct attention_batch {
    size_t first, count, first_slot, slots;
    bool is_prefill;
    const size_t *first_of_slot; /* [slots], or NULL */
} attention_batch;

static inline size_t first_in(const attention_batch *batch, size_t slot) {
    return batch->first_of_slot ? batch->first_of_slot[slot] : batch->first;
}

/* Attending to what a call of decoding has stored gives the same and stores nothing: its node has no keys. */
static inline void check_attend_of(const gb_cuda_call *stored, const float *y) {
    const gb_cuda_tensor *with = stored->results[0];
    gb_node node = *stored->node;
    gb_cuda_tensor result = device_tensor(GB_F32, NULL, 3, with->dims[0], with->dims[1], with->dims[2]);
    gb_cuda_call call = *stored;
    node.op = GB_OP_ATTEND;
    call.node = &node;
    for (size_t i = 0; i < 8; i++)
        call.operands[i] = NULL;
    call.operands[0] = stored->operands[0];
    for (size_t i = 1; i < 3; i++)
        call.operands[i] = stored->operands[i + 2];
    for (size_t i = 3; i < 5; i++)
        call.operands[i] = stored->operands[i + 2];
    call.results[0] = &result;
    call.epilogue = NULL;
    launch_from(&gb_cuda_attend_kernels, &call);
    float *again = malloc(gb_cuda_elements(with) * sizeof *again);
    assert_non_null(again);
    fetch_tensor(&result, again);
    assert_memory_equal(again, y, gb_cuda_elements(with) * sizeof *again);
    free(again);
    free_on_device(&result);
}

/* y: [slots, count, heads, value size] */
static inline void attend(const attention_case *c, const tokens *t, gb_cuda_tensor caches[2],
                          attention_batch batch, float *y) {
    int32_t positions[MOST_TOKENS], slots[MOST_TOKENS], runs[ATTENTION_SLOTS + 1] = {0};
    const size_t all = batch.count * batch.slots;
    const size_t widths[3] = {c->heads * c->key_size, c->kv_heads * c->key_size, c->kv_heads * c->value_size};
    const float *from[3] = {t->query, t->key, t->value};
    float *rows[3];
    for (size_t i = 0; i < 3; i++) {
        rows[i] = malloc(all * widths[i] * sizeof(float));
        assert_non_null(rows[i]);
        for (size_t s = 0; s < batch.slots; s++)
            memcpy(rows[i] + s * batch.count * widths[i], from[i] + first_in(&batch, s) * widths[i],
                   batch.count * widths[i] * sizeof(float));
    }
    for (size_t n = 0; n < all; n++) {
        positions[n] = (int32_t)(first_in(&batch, n / batch.count) + n % batch.count);
        slots[n] = (int32_t)(batch.first_slot + n / batch.count);
        runs[n / batch.count + 1] = (int32_t)n + 1;
    }
    uint16_t sinks[MOST_HEADS];
    for (size_t h = 0; h < c->heads; h++)
        sinks[h] = sink_of(h);
    gb_cuda_tensor tensors[] = {device_tensor(GB_F32, rows[0], 3, all, c->heads, c->key_size),
                                device_tensor(GB_F32, rows[1], 3, all, c->kv_heads, c->key_size),
                                device_tensor(GB_F32, rows[2], 3, all, c->kv_heads, c->value_size),
                                device_tensor(GB_I32, positions, 1, all, 1, 1),
                                device_tensor(GB_I32, slots, 1, all, 1, 1),
                                device_tensor(GB_I32, runs, 1, ATTENTION_SLOTS + 1, 1, 1),
                                device_tensor(GB_F32, NULL, 3, all, c->heads, c->value_size),
                                device_tensor(GB_BF16, sinks, 1, c->heads, 1, 1)};
    gb_node node = {
        .op = GB_OP_ATTENTION,
        .attribute_count = 4,
        .attributes = {gb_float(GB_ATTRIBUTE_SCALE, c->scale),
                       gb_int(GB_ATTRIBUTE_WINDOW, (int64_t)c->window),
                       gb_int(GB_ATTRIBUTE_ROTATION, (int64_t)rotation_of(c, c->key_size)),
                       gb_int(GB_ATTRIBUTE_VALUE_ROTATION, (int64_t)rotation_of(c, c->value_size))}};
    gb_cuda_tensor merged = tensors[6];
    merged.rank = 2;
    merged.dims[1] *= merged.dims[2];
    gb_cuda_scratch scratch = {.wgmma_blocks = attention_without_wgmma ? 0 : gb_cuda_wgmma_blocks()};
    const gb_cuda_prepared epilogue = {.as = &merged,
                                       .data = device_copy(NULL, gb_cuda_elements(&merged) * 3)};
    gb_cuda_call call = {.node = &node,
                         .operands = {&tensors[0], &tensors[1], &tensors[2], &tensors[3], &tensors[4],
                                      &caches[0], &caches[1], c->has_sinks ? &tensors[7] : NULL},
                         .results = {&tensors[6]},
                         .runs = {.first = tensors[5].data, .count = (uint32_t)batch.slots},
                         .row_class = batch.is_prefill ? GB_CUDA_SHORT_PROMPT : GB_CUDA_ONE_ROW,
                         .is_last_with_state = true,
                         .allows_bf16 = c->allows_bf16,
                         .scratch = &scratch,
                         .epilogue = &epilogue};
    static const uint32_t zeros[GB_CUDA_ARRIVALS];
    scratch.bytes = device_copy(NULL, scratch_from(&gb_cuda_attention_kernels, &call));
    scratch.arrivals = device_copy(zeros, sizeof zeros);
    const bool is_prepared = has_epilogue(&gb_cuda_attention_kernels, &call);
    if (!is_prepared)
        call.epilogue = NULL;
    launch_from(&gb_cuda_attention_kernels, &call);
    fetch_tensor(&tensors[6], y);
    enum { SOME = 5 }; /* emulated, all of them would take minutes */
    if (!batch.is_prefill && !c->has_sinks && batch.first % SOME == 0)
        check_attend_of(&call, y);
    if (is_prepared)
        check_prepared(epilogue.data, y, all, merged.dims[1]);
    for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++)
        free_on_device(&tensors[i]);
    for (size_t i = 0; i < 3; i++)
        free(rows[i]);
    assert_cuda(cudaFree(scratch.bytes));
    assert_cuda(cudaFree(scratch.arrivals));
    assert_cuda(cudaFree(epilogue.data));
}

static inline double rounded(bool to_bf16, float x) {
    return (double)(to_bf16 ? gb_float_from_bf16(gb_bf16_from_float(x)) : x);
}

/* Compares token n's head h, of y [value size], with the sums in double, of queries that are rounded to
 * bfloat16 or not. */
static inline void assert_row(const attention_case *c, const tokens *t, size_t n, size_t h,
                              bool rounds_queries, const float *y, double tolerance) {
    const size_t g = h / (c->heads / c->kv_heads),
                 first = c->window && n >= c->window ? n - c->window + 1 : 0;
    double weights[MOST_TOKENS], sum = c->has_sinks ? exp((double)gb_float_from_bf16(sink_of(h))) : 0;
    for (size_t j = first; j <= n; j++) {
        double score = 0;
        for (size_t d = 0; d < c->key_size; d++)
            score += rounded(rounds_queries, t->query[(n * c->heads + h) * c->key_size + d]) *
                     (double)t->stored_key[(j * c->kv_heads + g) * c->key_size + d];
        sum += weights[j] = exp(c->scale * score);
    }
    for (size_t e = 0; e < c->value_size; e++) {
        double expected = 0;
        for (size_t j = first; j <= n; j++)
            expected += weights[j] / sum * (double)t->stored_value[(j * c->kv_heads + g) * c->value_size + e];
        if (!(fabs((double)y[e] - expected) <= tolerance))
            fail_msg("size %zu, token %zu, head %zu, element %zu: %.9g, expected %.9g", c->key_size, n, h, e,
                     (double)y[e], expected);
    }
}

#endif
