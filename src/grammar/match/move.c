/* SPDX-License-Identifier: Apache-2.0
 *
 * A history taken into other configurations: when those that a matcher found are too many, and for a clone.
 */
#include "base/memory.h"
#include "grammar/match/matcher.h"

#include <string.h>

typedef struct mover {
    const gb_configurations *from;
    gb_configurations *to;
    uint32_t *frames; /* by frame of from: that of to; 0: not moved yet */
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
    all.failed = !all.frames || !path;
    for (size_t i = 0; i < count && !all.failed; i++) {
        if (history[i] != GB_ENDED)
            history[i] = move_configuration(&all, history[i], path);
        all.failed |= to->status != GUMBEL_OK;
    }
    gb_free(all.frames);
    gb_free(path);
    return !all.failed;
}

static bool copy_history(const gb_matcher *matcher, gb_configurations *to, uint32_t **history) {
    size_t count = matcher->history_count;
    *history = gb_allocate(matcher->history_capacity, sizeof **history);
    if (!*history)
        return false;
    memcpy(*history, matcher->history, count * sizeof **history);
    to->work_limit = UINT64_MAX; /* what was found once is found again, however much it is */
    bool moved = move_history(&matcher->configurations, to, *history, count);
    to->work_limit = matcher->work;
    to->work = 0;
    return moved;
}

static size_t bytes_of(const gb_matcher *matcher) {
    return gb_configurations_bytes(&matcher->configurations) + gb_plain_runs_bytes(&matcher->plain_runs) +
           matcher->masks.bytes;
}

bool gb_matcher_bound(gb_matcher *matcher) {
    if (bytes_of(matcher) <= matcher->bound)
        return true;
    gb_configurations fresh;
    uint32_t *history = NULL;
    const gb_closure *closure = &matcher->configurations.closure;
    if (!gb_configurations_begin(&fresh, closure->automaton, closure->limit,
                                 matcher->configurations.work_limit) ||
        !copy_history(matcher, &fresh, &history)) {
        gb_configurations_free(&fresh);
        gb_free(history);
        return false;
    }
    gb_configurations_free(&matcher->configurations);
    gb_plain_runs_free(&matcher->plain_runs);
    gb_clear_masks(&matcher->masks);
    gb_free(matcher->history);
    matcher->configurations = fresh;
    matcher->history = history;
    size_t left = 2 * bytes_of(matcher);
    matcher->bound = left > matcher->cache_bytes ? left : matcher->cache_bytes;
    return true;
}

gumbel_status gb_matcher_clone(const gb_matcher *matcher, gb_matcher **clone, gumbel_error *error) {
    gb_matcher_options options = {.end_tokens = matcher->end_tokens,
                                  .end_token_count = matcher->end_token_count,
                                  .cache_bytes = matcher->cache_bytes,
                                  .work = matcher->work};
    GB_TRY(gb_matcher_create(matcher->grammar, matcher->trie, &options, clone, error));
    uint32_t *history = NULL;
    if (!copy_history(matcher, &(*clone)->configurations, &history)) {
        gb_free(history);
        gb_matcher_destroy(*clone);
        *clone = NULL;
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "grammar: no memory to follow an answer");
    }
    gb_free((*clone)->history);
    (*clone)->history = history;
    (*clone)->history_count = matcher->history_count;
    (*clone)->history_capacity = matcher->history_capacity;
    return GUMBEL_OK;
}
