/* SPDX-License-Identifier: Apache-2.0
 *
 * Causal attention over a session's cached keys and values, full or within a sliding window.
 */
#ifndef GUMBEL_EXPORT_NN_ATTENTION_H
#define GUMBEL_EXPORT_NN_ATTENTION_H

#include "export/nn/graph.h"

/* How long a session gets, and so how long its caches are. */
typedef struct gb_context {
    int64_t max_context;   /* positions of a session */
    int64_t prefill_chunk; /* tokens of one session in one step, at most */
} gb_context;

/* Positions of a ring beside its window, or as many as the window has if that are fewer: for steps that are
 * begun ahead, drafts, and what a session takes back without a snapshot. */
enum { GB_RING_SLACK = 64 };

/* The chunk of a program: a power of two of at most `most` and the context. */
int64_t gb_prefill_chunk(int64_t most, int64_t max_context);

/* Keys f32[N, G, D] and values f32[N, G, E] of a step, already normalized and rotated, and their caches. */
typedef struct gb_cached_keys {
    gb_ref key, value;
    gb_ref key_cache, value_cache;
    int64_t window;
    gb_ref sinks; /* [H], a score beside those of each query head; or GB_NO_VALUE */
} gb_cached_keys;

/* The caches are states called NAME.keys and NAME.values of f32, which gb_program_set_caches changes. window
 * > 0: a token sees itself and the window - 1 before it, from a ring of window and slack, or from a plain
 * cache where that is no longer. window = 0: it sees all before it. There are no sinks. */
gb_cached_keys gb_cache_keys(const gb_scope *scope, const gb_context *context, const char *name, gb_ref key,
                             gb_ref value, int64_t window);

/* The same caches in a draft head, of keys and values [heads, size] that its program stores in a layer of
 * that name. */
gb_cached_keys gb_keys_of_program(const gb_scope *scope, const gb_context *context, const char *name,
                                  int64_t heads, int64_t size, int64_t window);

/* query f32[N, H, D] of a draft head -> f32[N, H, D]: attends to those of gb_keys_of_program up to the
 * position that the input last says, or to as many of them as the window has. */
gb_ref gb_attend(const gb_scope *scope, gb_ref query, const gb_cached_keys *keys, double scale);

/* query f32[N, H, D] -> f32[N, H, E]. Several queries may attend to the same keys. */
gb_ref gb_attention(const gb_scope *scope, gb_ref query, const gb_cached_keys *keys, double scale);

/* Both, for keys of one query. */
gb_ref gb_cached_attention(const gb_scope *scope, const gb_context *context, const char *name, gb_ref query,
                           gb_ref key, gb_ref value, double scale, int64_t window);

#endif
