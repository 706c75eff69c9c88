/* SPDX-License-Identifier: Apache-2.0 */
#include "grammar/match/closure.h"

#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

bool gb_closure_begin(gb_closure *closure, const gb_automaton *automaton, size_t limit) {
    *closure = (gb_closure){.automaton = automaton, .limit = limit, .visited_slots = 256};
    closure->visited = gb_allocate(closure->visited_slots, sizeof *closure->visited);
    closure->stamps = gb_allocate(closure->visited_slots, sizeof *closure->stamps);
    const uint32_t none[5] = {UINT32_MAX};
    uint32_t number;
    return closure->visited && closure->stamps && gb_intern(&closure->frames, none, 5, &number) &&
           gb_text_sets_begin(&closure->texts);
}

void gb_closure_free(gb_closure *closure) {
    gb_intern_free(&closure->frames);
    gb_intern_free(&closure->seen);
    gb_intern_free(&closure->joined);
    gb_text_sets_free(&closure->texts);
    gb_free(closure->found.items);
    gb_free(closure->pending.items);
    gb_free(closure->calls.items);
    gb_free(closure->visited);
    gb_free(closure->stamps);
    gb_free(closure->scratch);
    gb_free(closure->missing);
    *closure = (gb_closure){0};
}

size_t gb_closure_bytes(const gb_closure *closure) {
    return gb_intern_bytes(&closure->frames) + gb_intern_bytes(&closure->seen) +
           gb_intern_bytes(&closure->joined) + gb_text_sets_bytes(&closure->texts);
}

/* ---- Stacks, each visited once ------------------------------------------------------------------------- */

static size_t slot_of(const gb_closure *closure, gb_stack stack) {
    size_t mask = closure->visited_slots - 1;
    uint64_t hash = ((uint64_t)stack.state << 32 | stack.frame) * UINT64_C(0x9E3779B97F4A7C15);
    for (size_t at = hash >> 32 & mask;; at = (at + 1) & mask)
        if (closure->stamps[at] != closure->stamp ||
            (closure->visited[at].state == stack.state && closure->visited[at].frame == stack.frame))
            return at;
}

static bool grow_visited(gb_closure *closure) {
    gb_closure larger = *closure;
    larger.visited_slots *= 2;
    larger.visited = gb_allocate(larger.visited_slots, sizeof *larger.visited);
    larger.stamps = gb_allocate(larger.visited_slots, sizeof *larger.stamps);
    if (!larger.visited || !larger.stamps) {
        gb_free(larger.visited);
        gb_free(larger.stamps);
        return false;
    }
    for (size_t i = 0; i < closure->visited_slots; i++)
        if (closure->stamps[i] == closure->stamp) {
            size_t at = slot_of(&larger, closure->visited[i]);
            larger.visited[at] = closure->visited[i];
            larger.stamps[at] = closure->stamp;
        }
    gb_free(closure->visited);
    gb_free(closure->stamps);
    *closure = larger;
    return true;
}

static void append(gb_closure *closure, gb_stack_list *list, gb_stack stack) {
    if (!gb_grow((void **)&list->items, &list->capacity, list->count + 1, sizeof stack))
        closure->failed = true;
    else
        list->items[list->count++] = stack;
}

void gb_closure_clear(gb_closure *closure) {
    closure->found.count = closure->pending.count = closure->calls.count = closure->visited_count = 0;
    if (++closure->stamp == 0) {
        memset(closure->stamps, 0, closure->visited_slots * sizeof *closure->stamps);
        closure->stamp = 1;
    }
}

void gb_closure_add(gb_closure *closure, uint32_t state, uint32_t frame) {
    gb_stack stack = {state, frame};
    if (closure->visited_count * 2 >= closure->visited_slots && !grow_visited(closure))
        closure->failed = true;
    closure->full |= closure->visited_count >= closure->limit;
    if (closure->failed || closure->full)
        return;
    size_t at = slot_of(closure, stack);
    if (closure->stamps[at] == closure->stamp)
        return;
    closure->visited[at] = stack;
    closure->stamps[at] = closure->stamp;
    closure->visited_count++;
    append(closure, &closure->pending, stack);
}

/* ---- Order -----------------------------------------------------------------------------------------------
 */

static int by_state(const void *left, const void *right) {
    const gb_stack *a = left, *b = right;
    if (a->state != b->state)
        return a->state < b->state ? -1 : 1;
    return a->frame < b->frame ? -1 : a->frame > b->frame;
}

/* Most are few, for which qsort takes longer. */
static void sort(gb_stack_list *stacks) {
    if (stacks->count > 24) {
        qsort(stacks->items, stacks->count, sizeof *stacks->items, by_state);
        return;
    }
    for (size_t i = 1; i < stacks->count; i++) {
        const gb_stack stack = stacks->items[i];
        size_t at = i;
        for (; at > 0 && by_state(&stacks->items[at - 1], &stack) > 0; at--)
            stacks->items[at] = stacks->items[at - 1];
        stacks->items[at] = stack;
    }
}

/* ---- Actions ---------------------------------------------------------------------------------------------
 */

static void call(gb_closure *closure, const gb_automaton_state *state, uint32_t frame) {
    gb_frame pushed = {.parent = frame, .next = state->next, .kind = GB_FRAME_CALL};
    append(closure, &closure->calls, (gb_stack){state->argument, gb_frame_number(closure, pushed)});
}

static void end(gb_closure *closure, gb_stack stack) {
    if (stack.frame)
        gb_pop_frame(closure, stack.frame);
    else
        append(closure, &closure->found, stack);
}

static void visit(gb_closure *closure, gb_stack stack) {
    const gb_automaton *automaton = closure->automaton;
    const gb_automaton_state *state = &automaton->states[stack.state];
    if (state->move_count || gb_takes_token(state))
        append(closure, &closure->found, stack);
    switch ((gb_action)state->action) {
    case GB_ACTION_GO:
        gb_closure_add(closure, state->next, stack.frame);
        break;
    case GB_ACTION_FORK:
        for (uint32_t i = 0; i < state->next; i++)
            gb_closure_add(closure, automaton->forks[state->argument + i], stack.frame);
        break;
    case GB_ACTION_CALL:
        call(closure, state, stack.frame);
        break;
    case GB_ACTION_COUNT:
        gb_begin_count(closure, state->argument, state->next, stack.frame);
        break;
    case GB_ACTION_GATE:
        gb_pass_gate(closure, state, stack.frame);
        break;
    case GB_ACTION_ORDER:
        gb_begin_order(closure, state->argument, state->next, stack.frame);
        break;
    case GB_ACTION_DISTINCT:
        gb_begin_distinct(closure, state->argument, state->next, stack.frame);
        break;
    case GB_ACTION_END:
        end(closure, stack);
        break;
    case GB_ACTION_NONE:
    case GB_ACTION_TOKEN:
    case GB_ACTION_OTHER_TOKEN:
        break;
    }
}

/* Begins the parts that were called, each once for these calls: ways around a part do not multiply its own.
 */
static void join_calls(gb_closure *closure) {
    gb_stack_list *calls = &closure->calls;
    sort(calls);
    for (size_t i = 0, next; i < calls->count && !closure->failed; i = next) {
        for (next = i + 1; next < calls->count && calls->items[next].state == calls->items[i].state;)
            next++;
        if (!gb_grow((void **)&closure->scratch, &closure->scratch_capacity, next - i,
                     sizeof *closure->scratch)) {
            closure->failed = true;
            return;
        }
        for (size_t k = i; k < next; k++)
            closure->scratch[k - i] = calls->items[k].frame;
        gb_closure_add(closure, calls->items[i].state, gb_join_frames(closure, closure->scratch, next - i));
    }
    calls->count = 0;
}

void gb_closure_run(gb_closure *closure) {
    while ((closure->pending.count || closure->calls.count) && !closure->failed && !closure->full) {
        while (closure->pending.count && !closure->failed && !closure->full)
            visit(closure, closure->pending.items[--closure->pending.count]);
        join_calls(closure);
    }
    sort(&closure->found);
}
