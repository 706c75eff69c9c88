/* SPDX-License-Identifier: Apache-2.0
 *
 * How often each token occurred: one walk over the session's tokens, with a hash table as large as their
 * number asks for. Nothing here is as long as the vocabulary.
 */
#include "backends/sampler/sampler.h"

#include <string.h>

/* Slots of a table for count tokens, at most half full: a power of two. */
static int table_bits(uint32_t count) {
    int bits = 4;
    while (bits < 31 && (UINT32_C(1) << bits) / 2 < count)
        bits++;
    return bits;
}

size_t gb_count_scratch_bytes(uint32_t count) {
    return sizeof(uint32_t) << table_bits(count);
}

/* The entry of a token, which is added where it has none yet. A slot of the table is one more than an entry's
 * index, 0 where it is free. (Multiplicative hashing: Knuth, 1973) */
static gb_token_count *find_entry(int32_t token, uint32_t *table, int bits, gb_token_count *list,
                                  uint32_t *entries) {
    const uint32_t mask = (UINT32_C(1) << bits) - 1;
    uint32_t slot = (uint32_t)token * 0x9e3779b1u >> (32 - bits);
    while (table[slot] != 0 && list[table[slot] - 1].id != token)
        slot = (slot + 1) & mask;
    if (table[slot] == 0) {
        list[(*entries)++] = (gb_token_count){.id = token};
        table[slot] = *entries;
    }
    return &list[table[slot] - 1];
}

void gb_count_tokens(const int32_t *history, uint32_t count, uint32_t generated_from, gb_token_count *list,
                     uint32_t limit, void *table) {
    const int bits = table_bits(count);
    uint32_t entries = 0;
    memset(table, 0, gb_count_scratch_bytes(count));
    for (uint32_t i = 0; i < count; i++) {
        gb_token_count *entry = find_entry(history[i], table, bits, list, &entries);
        entry->generated += i >= generated_from;
        entry->prompt += i < generated_from;
    }
    if (entries < limit)
        list[entries].id = -1;
}
