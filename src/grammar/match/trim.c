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
    uint32_t *frames; /* by frame of from: that of to; 0: not moved yet */
    uint32_t *texts;  /* by text and set of texts, in the same way */
    bool failed;
} mover;

static uint32_t move_seen(mover *all, uint32_t seen) {
    const gb_intern_table *from = &all->from->closure.seen;
    uint32_t number = 0;
    if (!gb_intern(&all->to->closure.seen, gb_interned(from, seen), gb_interned_size(from, seen), &number))
        all->failed = true;
    return number;
}

static gb_frame frame_at(const mover *all, uint32_t number) {
    gb_frame frame;
    memcpy(&frame, gb_interned(&all->from->closure.frames, number), sizeof frame);
    return frame;
}

/* Moves a frame whose parent is moved. */
static void move_one(mover *all, uint32_t number) {
    gb_frame frame = frame_at(all, number);
    frame.parent = all->frames[frame.parent];
    if (frame.kind == GB_FRAME_ITEM || frame.kind == GB_FRAME_SEPARATOR)
        frame.value = move_seen(all, frame.value);
    if (gb_is_distinct(&frame))
        frame = gb_move_distinct(&all->from->closure, &all->to->closure, frame, all->texts);
    all->frames[number] = gb_frame_number(&all->to->closure, frame);
    all->failed |= all->to->closure.failed;
}

/* Moves a frame and those below it, the lowest first. Going down from the top again each time would take long
 * for deep ones, so their numbers are gathered. */
static uint32_t move_frame(mover *all, uint32_t top, uint32_t *path) {
    size_t count = 0;
    for (uint32_t frame = top; frame && !all->frames[frame]; frame = frame_at(all, frame).parent)
        path[count++] = frame;
    while (count && !all->failed)
        move_one(all, path[--count]);
    return all->frames[top];
}

static uint32_t move_configuration(mover *all, uint32_t configuration, uint32_t *path) {
    size_t count;
    const gb_stack *stacks = gb_stacks_of(all->from, configuration, &count);
    gb_closure_clear(&all->to->closure);
    for (size_t i = 0; i < count && !all->failed; i++)
        gb_closure_add(&all->to->closure, stacks[i].state, move_frame(all, stacks[i].frame, path));
    return gb_configuration_of_closure(all->to);
}

/* Moves count configurations in place. false without memory. */
static bool move_history(const gb_configurations *from, gb_configurations *to, uint32_t *history,
                         size_t count) {
    size_t frames = from->closure.frames.count;
    mover all = {.from = from, .to = to, .frames = gb_allocate(frames, sizeof *all.frames)};
    uint32_t *path = gb_allocate(frames, sizeof *path);
    all.texts = gb_allocate(from->closure.texts.table.count, sizeof *all.texts);
    all.failed = !all.frames || !all.texts || !path;
    for (size_t i = 0; i < count && !all.failed; i++) {
        if (history[i] != GB_ENDED)
            history[i] = move_configuration(&all, history[i], path);
        all.failed |= to->status != GUMBEL_OK;
    }
    gb_free(all.frames);
    gb_free(all.texts);
    gb_free(path);
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
