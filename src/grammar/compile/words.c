/* SPDX-License-Identifier: Apache-2.0
 *
 * The minimal automaton of sorted words, one word at a time (Daciuk, Mihov, Watson and Watson, 2000): a state
 * is final once a word leaves it behind, and then shared with an equal one.
 */
#include "grammar/compile/words.h"

#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

/* A state that words to come may still pass: of one more byte of the last word each. */
typedef struct open_state {
    size_t first_move, first_end; /* where those of deeper states stand behind */
} open_state;

typedef struct open_move {
    uint8_t byte;
    uint32_t target;
} open_move;

typedef struct builder {
    gb_automaton *automaton;
    open_state *path;
    size_t path_count, path_capacity;
    open_move *moves;
    size_t move_count, move_capacity;
    uint32_t *ends; /* where words go on that end at a state */
    size_t end_count, end_capacity;
    uint32_t *slots; /* a hash table of final states + 1; a power of two of slots */
    size_t slot_count, final_count;
} builder;

static int by_bytes(const void *left, const void *right) {
    const gb_word *a = left, *b = right;
    const size_t shorter = a->size < b->size ? a->size : b->size;
    const int order = shorter ? memcmp(a->bytes, b->bytes, shorter) : 0;
    if (order != 0)
        return order;
    return a->size != b->size ? (a->size > b->size) - (a->size < b->size)
                              : (a->next > b->next) - (a->next < b->next);
}

/* ---- Final states, each once --------------------------------------------------------------------------- */

static size_t hash_of(const gb_automaton *automaton, const gb_automaton_state *state) {
    uint64_t hash = state->action ^ (uint64_t)state->next << 8;
    for (uint32_t i = 0; i < state->move_count; i++) {
        const gb_move *move = &automaton->moves[state->first_move + i];
        hash = (hash ^ move->set ^ (uint64_t)move->target << 32) * UINT64_C(0x9E3779B97F4A7C15);
        hash ^= hash >> 29;
    }
    return (size_t)(hash >> 16);
}

static bool are_equal(const gb_automaton *automaton, const gb_automaton_state *a,
                      const gb_automaton_state *b) {
    return a->action == b->action && a->argument == b->argument && a->next == b->next &&
           a->move_count == b->move_count &&
           memcmp(automaton->moves + a->first_move, automaton->moves + b->first_move,
                  a->move_count * sizeof *automaton->moves) == 0;
}

/* The slot of an equal state, or the free one where this one belongs. */
static uint32_t *slot_of(const builder *all, uint32_t state) {
    const gb_automaton *automaton = all->automaton;
    const size_t mask = all->slot_count - 1;
    for (size_t at = hash_of(automaton, &automaton->states[state]) & mask;; at = (at + 1) & mask) {
        uint32_t *slot = &all->slots[at];
        if (!*slot || are_equal(automaton, &automaton->states[*slot - 1], &automaton->states[state]))
            return slot;
    }
}

static bool grow_slots(builder *all) {
    if (all->final_count * 2 < all->slot_count)
        return true;
    const size_t count = all->slot_count ? all->slot_count * 2 : 64, old_count = all->slot_count;
    uint32_t *old = all->slots;
    all->slots = gb_allocate(count, sizeof *all->slots);
    all->slot_count = count;
    for (size_t i = 0; i < old_count && all->slots; i++)
        if (old[i])
            *slot_of(all, old[i] - 1) = old[i];
    gb_free(old);
    all->automaton->failed |= !all->slots;
    return all->slots != NULL;
}

/* The state that was added last, or an equal one in its place. */
static uint32_t share_last(builder *all) {
    gb_automaton *automaton = all->automaton;
    const uint32_t last = (uint32_t)automaton->state_count - 1;
    if (!grow_slots(all))
        return GB_NO_STATE;
    uint32_t *slot = slot_of(all, last);
    if (*slot) {
        automaton->move_count = automaton->states[last].first_move;
        automaton->state_count--;
        return *slot - 1;
    }
    *slot = last + 1;
    all->final_count++;
    return last;
}

/* ---- The path of the last word ------------------------------------------------------------------------- */

/* One move for all bytes that lead to the same state. */
static void add_moves(gb_automaton *automaton, open_move *moves, size_t count) {
    for (size_t i = 0; i < count; i++) {
        gb_byte_set set = {{0}};
        if (moves[i].target == GB_NO_STATE)
            continue;
        const uint32_t target = moves[i].target;
        for (size_t k = i; k < count; k++)
            if (moves[k].target == target) {
                gb_set_add(&set, moves[k].byte);
                moves[k].target = GB_NO_STATE;
            }
        gb_add_move(automaton, &set, target);
    }
}

/* A state without moves: where words end and none goes on. */
static uint32_t end_of(gb_automaton *automaton, const uint32_t *ends, size_t count) {
    return count == 1 ? ends[0] : gb_add_fork(automaton, ends, count);
}

static uint32_t add_state(gb_automaton *automaton, const uint32_t *ends, size_t count) {
    if (count <= 1)
        return gb_add_state(automaton, count ? GB_ACTION_GO : GB_ACTION_NONE, 0, count ? ends[0] : 0);
    return gb_add_fork(automaton, ends, count);
}

/* Makes the deepest state of the path final. */
static uint32_t close_deepest(builder *all) {
    gb_automaton *automaton = all->automaton;
    const open_state deepest = all->path[--all->path_count];
    const uint32_t *ends = all->ends + deepest.first_end;
    const size_t end_count = all->end_count - deepest.first_end;
    const size_t move_count = all->move_count - deepest.first_move;
    all->end_count = deepest.first_end;
    all->move_count = deepest.first_move;
    if (move_count == 0)
        return end_of(automaton, ends, end_count);
    if (add_state(automaton, ends, end_count) == GB_NO_STATE)
        return GB_NO_STATE;
    add_moves(automaton, all->moves + deepest.first_move, move_count);
    return automaton->failed ? GB_NO_STATE : share_last(all);
}

/* Makes the states behind the first length bytes of the last word final. */
static bool close_behind(builder *all, const uint8_t *bytes, size_t length) {
    while (all->path_count > length + 1) {
        const uint8_t byte = bytes[all->path_count - 2];
        const uint32_t target = close_deepest(all);
        if (target == GB_NO_STATE)
            return false;
        if (!gb_grow((void **)&all->moves, &all->move_capacity, all->move_count + 1, sizeof *all->moves)) {
            all->automaton->failed = true;
            return false;
        }
        all->moves[all->move_count++] = (open_move){byte, target};
    }
    return true;
}

/* Goes along a word, of which the path has the beginning. */
static bool open_word(builder *all, const gb_word *word) {
    if (!gb_grow((void **)&all->path, &all->path_capacity, word->size + 1, sizeof *all->path) ||
        !gb_grow((void **)&all->ends, &all->end_capacity, all->end_count + 1, sizeof *all->ends)) {
        all->automaton->failed = true;
        return false;
    }
    while (all->path_count < word->size + 1)
        all->path[all->path_count++] = (open_state){all->move_count, all->end_count};
    const size_t first = all->path[word->size].first_end;
    if (all->end_count == first || all->ends[all->end_count - 1] != word->next)
        all->ends[all->end_count++] = word->next;
    return true;
}

static size_t common_length(const gb_word *a, const gb_word *b) {
    size_t length = 0;
    while (length < a->size && length < b->size && a->bytes[length] == b->bytes[length])
        length++;
    return length;
}

static uint32_t build(builder *all, gb_compiler *compiler, const gb_word *words, size_t count) {
    gb_word last = {0};
    for (size_t i = 0; i < count; i++) {
        if (!gb_compiler_works(compiler, words[i].size + 1) ||
            !close_behind(all, last.bytes, common_length(&last, &words[i])) || !open_word(all, &words[i]))
            return GB_NO_STATE;
        last = words[i];
    }
    return close_behind(all, last.bytes, 0) ? close_deepest(all) : GB_NO_STATE;
}

uint32_t gb_add_words(gb_compiler *compiler, gb_automaton *automaton, gb_word *words, size_t count) {
    builder all = {.automaton = automaton};
    if (count == 0)
        return GB_NO_STATE;
    qsort(words, count, sizeof *words, by_bytes);
    const uint32_t start = build(&all, compiler, words, count);
    gb_free(all.path);
    gb_free(all.moves);
    gb_free(all.ends);
    gb_free(all.slots);
    return start;
}
