/* SPDX-License-Identifier: Apache-2.0
 *
 * Histories taken into other configurations, when those that matchers found are too many.
 */
#include "base/memory.h"
#include "grammar/match/matcher.h"

#include <string.h>

typedef struct mover {
    const gb_configurations *from;
    gb_configurations *to;
    gb_frame_walk walk; /* done: by frame of from, that of to */
    uint32_t *texts;    /* by text and set of texts, in the same way */
    bool failed;
} mover;

static uint32_t move_seen(mover *all, uint32_t seen) {
    const gb_intern_table *from = &all->from->closure.seen;
    uint32_t number = 0;
    if (!gb_intern(&all->to->closure.seen, gb_interned(from, seen), gb_interned_size(from, seen), &number))
        all->failed = true;
    return number;
}

static uint32_t move_frame(mover *all, gb_frame frame) {
    frame.parent = all->walk.done[frame.parent];
    if (frame.kind == GB_FRAME_ITEM || frame.kind == GB_FRAME_SEPARATOR)
        frame.value = move_seen(all, frame.value);
    if (gb_is_distinct(&frame))
        frame = gb_move_distinct(&all->from->closure, &all->to->closure, frame, all->texts);
    return gb_frame_number(&all->to->closure, frame);
}

/* Moves a frame, what is below it being moved. */
static bool move_one(void *context, uint32_t number) {
    mover *all = context;
    const gb_frame frame = gb_frame_at(&all->from->closure, number);
    const uint32_t moved = frame.kind == GB_FRAME_JOINED
                               ? gb_join_done(&all->walk, &all->from->closure, number, &all->to->closure)
                               : move_frame(all, frame);
    all->walk.done[number] = moved;
    all->failed |= moved == 0 || all->to->closure.failed;
    return !all->failed;
}

static uint32_t move_configuration(mover *all, uint32_t configuration) {
    size_t count;
    const gb_stack *stacks = gb_stacks_of(all->from, configuration, &count);
    gb_closure_clear(&all->to->closure);
    for (size_t i = 0; i < count && !all->failed; i++) {
        all->failed |= !gb_walk_frames(&all->walk, &all->from->closure, stacks[i].frame, move_one, all);
        gb_closure_add(&all->to->closure, stacks[i].state, all->walk.done[stacks[i].frame]);
    }
    return gb_configuration_of_closure(all->to);
}

/* Moves count configurations in place. false without memory. */
static bool move_history(const gb_configurations *from, gb_configurations *to, uint32_t *history,
                         size_t count) {
    mover all = {.from = from, .to = to};
    all.walk.done = gb_allocate(from->closure.frames.count, sizeof *all.walk.done);
    all.texts = gb_allocate(from->closure.texts.table.count, sizeof *all.texts);
    all.failed = !all.walk.done || !all.texts;
    for (size_t i = 0; i < count && !all.failed; i++) {
        if (history[i] != GB_ENDED)
            history[i] = move_configuration(&all, history[i]);
        all.failed |= to->status != GUMBEL_OK;
    }
    gb_free(all.walk.done);
    gb_free(all.walk.path);
    gb_free(all.texts);
    return !all.failed;
}

/* All histories one after the other. */
static size_t history_count(const gb_match_cache *cache) {
    size_t count = 0;
    for (const gb_matcher *matcher = cache->matchers; matcher; matcher = matcher->next)
        count += matcher->history_count;
    return count;
}

static void gather_histories(const gb_match_cache *cache, uint32_t *history) {
    for (const gb_matcher *matcher = cache->matchers; matcher; matcher = matcher->next) {
        if (matcher->history_count)
            memcpy(history, matcher->history, matcher->history_count * sizeof *history);
        history += matcher->history_count;
    }
}

static void replace_histories(const gb_match_cache *cache, const uint32_t *history) {
    for (gb_matcher *matcher = cache->matchers; matcher; matcher = matcher->next) {
        if (matcher->history_count)
            memcpy(matcher->history, history, matcher->history_count * sizeof *history);
        history += matcher->history_count;
    }
}

/* What was found once is found again, however much work it is. */
static bool move_histories(const gb_match_cache *cache, gb_configurations *to) {
    const size_t count = history_count(cache);
    uint32_t *history = gb_allocate(count, sizeof *history);
    if (!history)
        return false;
    gather_histories(cache, history);
    to->work_limit = UINT64_MAX;
    const bool is_moved = move_history(&cache->configurations, to, history, count);
    to->work_limit = cache->work;
    to->work = 0;
    if (is_moved)
        replace_histories(cache, history);
    gb_free(history);
    return is_moved;
}

static size_t bytes_of(const gb_match_cache *cache) {
    return gb_configurations_bytes(&cache->configurations) + gb_plain_runs_bytes(&cache->plain_runs) +
           gb_alike_bytes(&cache->alike) + cache->masks.bytes;
}

bool gb_match_cache_trim(gb_match_cache *cache) {
    if (bytes_of(cache) <= cache->bound)
        return true;
    gb_configurations fresh;
    if (!gb_configurations_begin(&fresh, cache->automaton, GB_STACK_LIMIT, cache->work) ||
        !move_histories(cache, &fresh)) {
        gb_configurations_free(&fresh);
        return false;
    }
    gb_configurations_free(&cache->configurations);
    gb_plain_runs_free(&cache->plain_runs);
    gb_alike_forget(&cache->alike);
    gb_clear_masks(&cache->masks);
    cache->configurations = fresh;
    const size_t left = 2 * bytes_of(cache);
    cache->bound = left > cache->cache_bytes ? left : cache->cache_bytes;
    return true;
}
