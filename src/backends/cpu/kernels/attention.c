/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cpu/kernels/kernels.h"
#include "tensor/cache_codes.h"

_Static_assert((int)GB_ATTEND_SCRATCH <= (int)GB_LINEAR_SCRATCH, "the scratch holds what `attend` needs");

/* Operands by their place in ops.def. */
enum { QUERY, KEY, VALUE, POSITIONS, SLOTS, KEY_CACHE, VALUE_CACHE };

static uint8_t *slot_of(const gb_cpu_tensor *cache, size_t slot) {
    return (uint8_t *)cache->data + slot * cache->slot_bytes;
}

static const int32_t *integers(const gb_cpu_tensor *tensor) {
    return tensor->data;
}

/* Bytes of so many elements of a row: of codes and their scales, where it has them. */
static size_t bytes_of(gb_dtype dtype, size_t elements) {
    return gb_dtype_has_codes(dtype) ? gb_code_bytes(dtype, elements) + gb_code_scale_bytes(elements)
                                     : elements * gb_dtype_size(dtype);
}

/* Stores token n's row in its slot. */
static void append(const gb_kernel_call *call, size_t n, const gb_cpu_tensor *rows,
                   const gb_cpu_tensor *cache, gb_attribute_key rotation) {
    const size_t width = rows->dims[1] * rows->dims[2];
    const size_t slot = (size_t)integers(call->operands[SLOTS])[n];
    const size_t row = (size_t)integers(call->operands[POSITIONS])[n] % cache->dims[0];
    const float *x = gb_floats(rows) + n * width;
    void *to = slot_of(cache, slot) + row * bytes_of(cache->dtype, width);
    if (gb_dtype_has_codes(cache->dtype))
        call->vector->store_codes(x, width, cache->dtype, (uint32_t)gb_node_int(call->node, rotation), to);
    else
        call->vector->narrow(x, cache->dtype, width, to);
}

void gb_kernel_attention_append(const gb_kernel_call *call, const gb_worker *worker) {
    gb_share share = gb_tokens_of(worker, call->operands[KEY]->dims[0]);
    for (size_t n = share.first; n < share.end; n++) {
        append(call, n, call->operands[KEY], call->operands[KEY_CACHE], GB_ATTRIBUTE_ROTATION);
        append(call, n, call->operands[VALUE], call->operands[VALUE_CACHE], GB_ATTRIBUTE_VALUE_ROTATION);
    }
}

/* A kv head's part of the cache of a slot. */
static gb_cache_rows rows_of(const gb_cpu_tensor *cache, size_t slot, size_t head, uint32_t rotation) {
    const size_t size = cache->dims[2], width = cache->dims[1] * size, first = head * size;
    gb_cache_rows rows = {.dtype = cache->dtype, .stride = width, .size = size, .rotation = rotation};
    if (!gb_dtype_has_codes(cache->dtype)) {
        rows.rows = slot_of(cache, slot) + first * gb_dtype_size(cache->dtype);
        return rows;
    }
    rows.rows = slot_of(cache, slot) + gb_code_bytes(cache->dtype, first);
    rows.stride = bytes_of(cache->dtype, width);
    rows.scales = gb_code_bytes(cache->dtype, width - first) + gb_code_scale_bytes(first);
    return rows;
}

/* Tokens first .. end - 1, of one slot, and the query heads head .. head_end - 1 of one kv head. */
typedef struct tile {
    size_t first, end, head, head_end, kv_head;
} tile;

static void add_query(const gb_kernel_call *call, gb_attend *attend, size_t token, size_t head) {
    const gb_cpu_tensor *query = call->operands[QUERY];
    size_t heads = query->dims[1], q = attend->query_count++;
    size_t position = (size_t)integers(call->operands[POSITIONS])[token];
    size_t window = (size_t)gb_node_int(call->node, GB_ATTRIBUTE_WINDOW);
    attend->query[q] = gb_floats(query) + (token * heads + head) * attend->keys.size;
    attend->y[q] = (float *)call->results[0]->data + (token * heads + head) * attend->values.size;
    attend->first[q] = window > 0 && position >= window ? position - window + 1 : 0;
    attend->last[q] = position;
}

static void attend_tile(const gb_kernel_call *call, const gb_worker *worker, const tile *t) {
    const gb_cpu_tensor *keys = call->operands[KEY_CACHE], *values = call->operands[VALUE_CACHE];
    const size_t slot = (size_t)integers(call->operands[SLOTS])[t->first];
    const gb_node *node = call->node;
    gb_attend attend = {
        .keys = rows_of(keys, slot, t->kv_head, (uint32_t)gb_node_int(node, GB_ATTRIBUTE_ROTATION)),
        .values = rows_of(values, slot, t->kv_head, (uint32_t)gb_node_int(node, GB_ATTRIBUTE_VALUE_ROTATION)),
        .capacity = keys->dims[0],
        .scale = (float)gb_node_float(node, GB_ATTRIBUTE_SCALE),
    };
    for (size_t n = t->first; n < t->end; n++)
        for (size_t h = t->head; h < t->head_end; h++)
            add_query(call, &attend, n, h);
    call->vector->attend(&attend, worker->scratch);
}

static size_t quotient_up(size_t a, size_t b) {
    return (a + b - 1) / b;
}

/* Heads of a kv head that go through its keys together: all of them, if so few tiles share the work out
 * evenly; fewer, so that more threads have some, where that saves a fifth of the time or more. */
static size_t heads_of_tile(size_t group, size_t kv_heads, size_t tokens, size_t threads) {
    size_t best = group < GB_ATTEND_QUERIES ? group : GB_ATTEND_QUERIES, least = SIZE_MAX;
    for (size_t heads = best; heads > 0; heads--) {
        size_t tiles = kv_heads * quotient_up(group, heads) * quotient_up(tokens, GB_ATTEND_QUERIES / heads);
        size_t turns = quotient_up(tiles, threads) * heads;
        turns *= tokens < GB_ATTEND_QUERIES / heads ? tokens : GB_ATTEND_QUERIES / heads;
        if (least == SIZE_MAX || turns <= least / 5 * 4) {
            least = turns;
            best = heads;
        }
    }
    return best;
}

/* Tiles of queries that read the same keys go to the threads in turn, since later tokens read more. */
void gb_kernel_attention(const gb_kernel_call *call, const gb_worker *worker) {
    const gb_cpu_tensor *slots = call->operands[SLOTS];
    size_t heads = call->operands[QUERY]->dims[1], kv_heads = call->operands[KEY]->dims[1];
    size_t group = heads / kv_heads, turn = 0;
    size_t tile_heads = heads_of_tile(group, kv_heads, slots->dims[0], worker->count);
    tile t = {0};
    for (; t.first < slots->dims[0]; t.first = t.end) {
        t.end = gb_end_of_run(slots, t.first, GB_ATTEND_QUERIES / tile_heads);
        for (t.kv_head = 0; t.kv_head < kv_heads; t.kv_head++) {
            size_t group_end = (t.kv_head + 1) * group;
            for (t.head = group_end - group; t.head < group_end; t.head = t.head_end) {
                t.head_end = group_end - t.head < tile_heads ? group_end : t.head + tile_heads;
                if (turn++ % worker->count == worker->index)
                    attend_tile(call, worker, &t);
            }
        }
    }
}
