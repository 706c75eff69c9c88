/* SPDX-License-Identifier: Apache-2.0 */
#include "grammar/match/alike.h"

#include "base/memory.h"

#include <string.h>

static uint32_t longest_token(const gb_token_trie *trie) {
    const uint32_t *offsets = trie->offsets, count = trie->token_count;
    uint32_t longest = 0;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t size = offsets[i + 1] - offsets[i];
        longest = size > longest ? size : longest;
    }
    return longest;
}

void gb_alike_begin(gb_alike *alike, const gb_token_trie *trie) {
    *alike = (gb_alike){0};
    alike->longest = trie ? longest_token(trie) : 0;
}

void gb_alike_forget(gb_alike *alike) {
    if (alike->frame_count)
        memset(alike->walk.done, 0, alike->frame_count * sizeof *alike->walk.done);
    if (alike->configuration_count)
        memset(alike->of_configuration, 0, alike->configuration_count * sizeof *alike->of_configuration);
}

void gb_alike_free(gb_alike *alike) {
    gb_free(alike->walk.done);
    gb_free(alike->of_configuration);
    gb_free(alike->walk.path);
    *alike = (gb_alike){0};
}

size_t gb_alike_bytes(const gb_alike *alike) {
    return (alike->frame_count + alike->configuration_count + alike->walk.path_capacity) * sizeof(uint32_t);
}

/* Makes room up to an index; what is new is 0. */
static bool make_room(uint32_t **items, size_t *count, size_t index) {
    const size_t before = *count;
    if (!gb_grow((void **)items, count, index + 1, sizeof **items))
        return false;
    if (*count > before)
        memset(*items + before, 0, (*count - before) * sizeof **items);
    return true;
}

/* The value that stands for this count within the bytes of a token. */
static uint32_t alike_count(const gb_count *part, uint32_t count, uint32_t longest) {
    const uint64_t reach = (uint64_t)count + longest;
    if (count < part->least)
        return reach + part->below <= part->least ? GB_FAR_BELOW : count;
    return part->most != GB_NO_END && reach + part->above <= part->most ? GB_FAR_WITHIN : count;
}

/* What an item was is forgotten but for what the item may not become: so all that differ already are one. */
static gb_frame forget_text(gb_configurations *configurations, gb_frame frame, uint32_t longest) {
    gb_closure *closure = &configurations->closure;
    const gb_distinct_part *part = &closure->automaton->distincts[frame.part];
    const gb_count items = {.least = part->least, .most = part->most, .below = 1, .above = 1};
    return gb_forget_text(closure, frame, alike_count(&items, gb_distinct_count(closure, frame), longest));
}

typedef struct finder {
    gb_alike *alike;
    gb_configurations *configurations;
} finder;

static uint32_t find_frame(const finder *all, gb_frame frame) {
    gb_configurations *configurations = all->configurations;
    const gb_automaton *automaton = configurations->closure.automaton;
    const uint32_t longest = all->alike->longest;
    frame.parent = all->alike->walk.done[frame.parent];
    if (gb_is_counted(&frame))
        frame.value = alike_count(&automaton->counts[frame.part], frame.value, longest);
    if (gb_is_distinct(&frame))
        frame = forget_text(configurations, frame, longest);
    return gb_frame_number(&configurations->closure, frame);
}

/* Finds the frame that stands for one, those for what is below it being found. */
static bool find_one(void *context, uint32_t number) {
    const finder *all = context;
    gb_closure *closure = &all->configurations->closure;
    const gb_frame frame = gb_frame_at(closure, number);
    const uint32_t found = frame.kind == GB_FRAME_JOINED
                               ? gb_join_done(&all->alike->walk, closure, number, closure)
                               : find_frame(all, frame);
    all->alike->walk.done[number] = found;
    return found != 0;
}

/* Adds the stacks that stand for those of a configuration to the closure. Whether one of them differs. */
static bool add_stacks(gb_alike *alike, gb_configurations *configurations, uint32_t configuration) {
    finder all = {alike, configurations};
    size_t count;
    bool differs = false;
    const gb_stack *stacks = gb_stacks_of(configurations, configuration, &count);
    gb_closure_clear(&configurations->closure);
    for (size_t i = 0; i < count; i++) {
        if (!gb_walk_frames(&alike->walk, &configurations->closure, stacks[i].frame, find_one, &all))
            configurations->closure.failed = true;
        const uint32_t frame = alike->walk.done[stacks[i].frame];
        differs |= frame != stacks[i].frame;
        gb_closure_add(&configurations->closure, stacks[i].state, frame);
    }
    return differs;
}

uint32_t gb_find_alike(gb_alike *alike, gb_configurations *configurations, uint32_t configuration) {
    const gb_automaton *automaton = configurations->closure.automaton;
    if (automaton->count_count == 0 && automaton->distinct_count == 0)
        return configuration;
    if (!make_room(&alike->of_configuration, &alike->configuration_count, configuration) ||
        !make_room(&alike->walk.done, &alike->frame_count, configurations->closure.frames.count)) {
        configurations->status = GUMBEL_ERROR_MEMORY;
        return GB_DEAD;
    }
    uint32_t found = alike->of_configuration[configuration];
    if (found)
        return found;
    found = configuration;
    if (add_stacks(alike, configurations, configuration))
        found = gb_configuration_of_closure(configurations);
    if (configurations->status == GUMBEL_OK)
        alike->of_configuration[configuration] = found;
    return found;
}
