/* SPDX-License-Identifier: Apache-2.0 */
#include "grammar/match/intern.h"

#include "base/memory.h"

#include <string.h>

uint64_t gb_hash_words(const uint32_t *words, size_t count) {
    uint64_t hash = count;
    for (size_t i = 0; i < count; i++) {
        hash = (hash ^ words[i]) * UINT64_C(0x9E3779B97F4A7C15);
        hash ^= hash >> 29;
    }
    return hash;
}

/* The slot of these words, or the free one where they belong. */
static uint32_t *slot_of(const gb_intern_table *table, const uint32_t *words, size_t count) {
    size_t mask = table->slot_count - 1;
    for (size_t at = gb_hash_words(words, count) & mask;; at = (at + 1) & mask) {
        uint32_t *slot = &table->slots[at];
        if (!*slot ||
            (gb_interned_size(table, *slot - 1) == count &&
             (count == 0 || memcmp(gb_interned(table, *slot - 1), words, count * sizeof *words) == 0)))
            return slot;
    }
}

/* Keeps the slots at most half full. */
static bool grow_slots(gb_intern_table *table) {
    if (table->count * 2 < table->slot_count)
        return true;
    size_t count = table->slot_count ? table->slot_count * 2 : 64;
    uint32_t *slots = gb_allocate(count, sizeof *slots);
    if (!slots)
        return false;
    gb_free(table->slots);
    table->slots = slots;
    table->slot_count = count;
    for (uint32_t i = 0; i < table->count; i++)
        *slot_of(table, gb_interned(table, i), gb_interned_size(table, i)) = i + 1;
    return true;
}

static bool append(gb_intern_table *table, const uint32_t *words, size_t count) {
    if (table->word_count + count > UINT32_MAX || table->count >= UINT32_MAX - 2)
        return false;
    bool grown = gb_grow((void **)&table->words, &table->word_capacity, table->word_count + count + 1,
                         sizeof *words) &&
                 gb_grow((void **)&table->starts, &table->start_capacity, table->count + 2, sizeof *words);
    if (grown) {
        if (count)
            memcpy(table->words + table->word_count, words, count * sizeof *words);
        table->starts[table->count] = (uint32_t)table->word_count;
        table->word_count += count;
        table->starts[++table->count] = (uint32_t)table->word_count;
    }
    return grown;
}

bool gb_intern(gb_intern_table *table, const uint32_t *words, size_t count, uint32_t *number) {
    if (!grow_slots(table))
        return false;
    uint32_t *slot = slot_of(table, words, count);
    if (!*slot) {
        if (!append(table, words, count))
            return false;
        *slot = (uint32_t)table->count;
    }
    *number = *slot - 1;
    return true;
}

size_t gb_intern_bytes(const gb_intern_table *table) {
    return (table->word_capacity + table->start_capacity + table->slot_count) * sizeof(uint32_t);
}

void gb_intern_free(gb_intern_table *table) {
    gb_free(table->words);
    gb_free(table->starts);
    gb_free(table->slots);
    *table = (gb_intern_table){0};
}
