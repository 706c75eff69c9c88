/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cpu/kernels/attention.h"

#include <math.h>

_Static_assert((int)GB_ATTEND_SCRATCH <= (int)GB_LINEAR_SCRATCH, "the scratch holds what `attend` needs");

/* A kv head's part of the cache of a slot. room: of the row where the room begins. */
static gb_cache_rows rows_of(const gb_cpu_tensor *cache, size_t slot, const uint8_t *room, size_t head,
                             uint32_t rotation) {
    const size_t size = cache->dims[2], width = cache->dims[1] * size, first = head * size;
    const bool has_codes = gb_dtype_has_codes(cache->dtype);
    const size_t before =
        has_codes ? gb_code_bytes(cache->dtype, first) : first * gb_dtype_size(cache->dtype);
    gb_cache_rows rows = {.rows = gb_cache_of_slot(cache, slot) + before,
                          .room = room + before,
                          .dtype = cache->dtype,
                          .stride = width,
                          .size = size,
                          .rotation = rotation};
    if (has_codes) {
        rows.stride = gb_cache_row_bytes(cache);
        rows.scales = gb_code_bytes(cache->dtype, width - first) + gb_code_scale_bytes(first);
    }
    return rows;
}

/* Tokens first .. end - 1 of the run of one slot's that begins with token `run`, and the query heads head ..
 * head_end - 1 of one kv head. */
typedef struct tile {
    size_t run, run_end, first, end, head, head_end, kv_head;
} tile;

static void add_query(const gb_kernel_call *call, gb_attend *attend, size_t token, size_t head) {
    const gb_cpu_tensor *query = call->operands[GB_QUERY];
    size_t heads = query->dims[1], q = attend->query_count++;
    size_t position = (size_t)gb_integers(call->operands[GB_POSITIONS])[token];
    size_t window = (size_t)gb_node_int(call->node, GB_ATTRIBUTE_WINDOW);
    const gb_cpu_tensor *sinks = call->operands[GB_SINKS];
    attend->query[q] = gb_floats(query) + (token * heads + head) * attend->keys.size;
    attend->y[q] = (float *)call->results[0]->data + (token * heads + head) * attend->values.size;
    attend->first[q] = window > 0 && position >= window ? position - window + 1 : 0;
    attend->last[q] = position;
    attend->sink[q] = -INFINITY;
    if (sinks)
        call->vector->widen(gb_element(sinks, head), sinks->dtype, 1, &attend->sink[q]);
}

static void attend_tile(const gb_kernel_call *call, const gb_worker *worker, const tile *t) {
    const gb_cpu_tensor *keys = gb_cache_for(call, GB_KEY), *values = gb_cache_for(call, GB_VALUE);
    const size_t slot = (size_t)gb_integers(call->operands[GB_SLOTS])[t->run];
    const gb_node *node = call->node;
    gb_attend attend = {
        .keys = rows_of(keys, slot, gb_row_in_room(call, worker, t->run, GB_KEY), t->kv_head,
                        (uint32_t)gb_node_int(node, GB_ATTRIBUTE_ROTATION)),
        .values = rows_of(values, slot, gb_row_in_room(call, worker, t->run, GB_VALUE), t->kv_head,
                          (uint32_t)gb_node_int(node, GB_ATTRIBUTE_VALUE_ROTATION)),
        .capacity = keys->dims[0],
        .room_begin = SIZE_MAX,
        .scale = (float)gb_node_float(node, GB_ATTRIBUTE_SCALE),
    };
    if (gb_run_has_room(call, t->run, t->run_end))
        attend.room_begin = (size_t)gb_integers(call->operands[GB_POSITIONS])[t->run];
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

static void attend_heads(const gb_kernel_call *call, const gb_worker *worker, tile t, size_t tile_heads,
                         size_t *turn) {
    const size_t kv_heads = call->operands[GB_KEY_CACHE]->dims[1];
    const size_t group = call->operands[GB_QUERY]->dims[1] / kv_heads;
    for (t.kv_head = 0; t.kv_head < kv_heads; t.kv_head++) {
        const size_t group_end = (t.kv_head + 1) * group;
        for (t.head = group_end - group; t.head < group_end; t.head = t.head_end) {
            t.head_end = group_end - t.head < tile_heads ? group_end : t.head + tile_heads;
            if ((*turn)++ % worker->count == worker->index)
                attend_tile(call, worker, &t);
        }
    }
}

/* Tiles of queries that read the same keys go to the threads in turn, since later tokens read more. */
void gb_kernel_attention(const gb_kernel_call *call, const gb_worker *worker) {
    const gb_cpu_tensor *slots = call->operands[GB_SLOTS];
    const size_t kv_heads = call->operands[GB_KEY_CACHE]->dims[1], tokens = slots->dims[0];
    const size_t group = call->operands[GB_QUERY]->dims[1] / kv_heads;
    const size_t tile_heads = heads_of_tile(group, kv_heads, tokens, worker->count);
    const size_t tile_tokens = GB_ATTEND_QUERIES / tile_heads;
    size_t turn = 0;
    tile t = {0};
    for (; t.run < tokens; t.run = t.run_end) {
        t.run_end = gb_end_of_run(slots, t.run, SIZE_MAX);
        for (t.first = t.run; t.first < t.run_end; t.first = t.end) {
            t.end = t.run_end - t.first < tile_tokens ? t.run_end : t.first + tile_tokens;
            attend_heads(call, worker, t, tile_heads, &turn);
        }
    }
}

/* operands: query, last, slots, key_cache, value_cache. */
void gb_kernel_attend(const gb_kernel_call *call, const gb_worker *worker) {
    gb_kernel_call attention = *call;
    attention.operands[GB_KEY] = attention.operands[GB_VALUE] = attention.operands[GB_SINKS] = NULL;
    attention.operands[GB_POSITIONS] = call->operands[1];
    attention.operands[GB_SLOTS] = call->operands[2];
    attention.operands[GB_KEY_CACHE] = call->operands[3];
    attention.operands[GB_VALUE_CACHE] = call->operands[4];
    gb_kernel_attention(&attention, worker);
}
