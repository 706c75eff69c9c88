/* SPDX-License-Identifier: Apache-2.0 */
#include "export/nn/attention.h"

#include <stdio.h>

static int64_t smaller(int64_t a, int64_t b) {
    return a < b ? a : b;
}

int64_t gb_prefill_chunk(int64_t most, int64_t max_context) {
    const int64_t limit = smaller(most, max_context);
    int64_t chunk = 1;
    while (chunk * 2 <= limit)
        chunk *= 2;
    return chunk;
}

/* The cache of rows [heads, size]. */
static gb_ref cache(const gb_scope *scope, const gb_context *context, const char *name, const char *suffix,
                    int64_t heads, int64_t size, int64_t window) {
    char full[GB_SCOPE_NAME];
    snprintf(full, sizeof full, "%s%s", name, suffix);
    const int64_t ring = window + smaller(window, GB_RING_SLACK);
    bool is_ring = window > 0 && ring < context->max_context;
    const int64_t dims[] = {is_ring ? ring : context->max_context, heads, size};
    return gb_build_state(scope->builder, full, is_ring ? GB_STATE_RING : GB_STATE_CACHE, GB_F32, 3, dims,
                          is_ring ? (uint32_t)window : 0);
}

gb_cached_keys gb_cache_keys(const gb_scope *scope, const gb_context *context, const char *name, gb_ref key,
                             gb_ref value, int64_t window) {
    gb_cached_keys keys = {key, value, GB_NO_VALUE, GB_NO_VALUE, window, GB_NO_VALUE};
    if (gb_builder_status(scope->builder, NULL) != GUMBEL_OK)
        return keys;
    const gb_shape of_key = gb_build_type(scope->builder, key).shape,
                   of_value = gb_build_type(scope->builder, value).shape;
    keys.key_cache = cache(scope, context, name, ".keys", of_key.dims[1], of_key.dims[2], window);
    keys.value_cache = cache(scope, context, name, ".values", of_value.dims[1], of_value.dims[2], window);
    return keys;
}

gb_cached_keys gb_keys_of_program(const gb_scope *scope, const gb_context *context, const char *name,
                                  int64_t heads, int64_t size, int64_t window) {
    return (gb_cached_keys){.key = GB_NO_VALUE,
                            .value = GB_NO_VALUE,
                            .key_cache = cache(scope, context, name, ".keys", heads, size, window),
                            .value_cache = cache(scope, context, name, ".values", heads, size, window),
                            .window = window,
                            .sinks = GB_NO_VALUE};
}

gb_ref gb_attention(const gb_scope *scope, gb_ref query, const gb_cached_keys *keys, double scale) {
    const gb_ref operands[] = {
        query,
        keys->key,
        keys->value,
        gb_build_input(scope->builder, GB_ROLE_POSITIONS),
        gb_build_input(scope->builder, GB_ROLE_SLOTS),
        keys->key_cache,
        keys->value_cache,
        keys->sinks,
    };
    const gb_attribute attributes[] = {gb_float(GB_ATTRIBUTE_SCALE, scale),
                                       gb_int(GB_ATTRIBUTE_WINDOW, keys->window)};
    return gb_build_op(scope->builder, GB_OP_ATTENTION, operands, 8, attributes, 2);
}

gb_ref gb_attend(const gb_scope *scope, gb_ref query, const gb_cached_keys *keys, double scale) {
    const gb_ref operands[] = {query, gb_build_input(scope->builder, GB_ROLE_LAST),
                               gb_build_input(scope->builder, GB_ROLE_SLOTS), keys->key_cache,
                               keys->value_cache};
    const gb_attribute attributes[] = {gb_float(GB_ATTRIBUTE_SCALE, scale),
                                       gb_int(GB_ATTRIBUTE_WINDOW, keys->window)};
    return gb_build_op(scope->builder, GB_OP_ATTEND, operands, 5, attributes, 2);
}

gb_ref gb_cached_attention(const gb_scope *scope, const gb_context *context, const char *name, gb_ref query,
                           gb_ref key, gb_ref value, double scale, int64_t window) {
    if (gb_builder_status(scope->builder, NULL) != GUMBEL_OK)
        return GB_NO_VALUE;
    const gb_cached_keys keys = gb_cache_keys(scope, context, name, key, value, window);
    return gb_attention(scope, query, &keys, scale);
}
