/* SPDX-License-Identifier: Apache-2.0 */
#include "text/tokenizer/merge_table.h"

#include "base/memory.h"

#include <string.h>

/* Multiplication by an odd constant spreads the pair over the upper half, which is the place; the lower half
 * is the tag. */
static uint64_t hash_pair(int32_t left, int32_t right) {
    uint64_t pair = (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
    return (pair ^ pair >> 29) * 0x9E3779B97F4A7C15u;
}

/* The slot of the pair, or the free one where it would stand. */
static gb_merge_slot *find_slot(const gb_merge_table *table, uint64_t hash, int32_t left, int32_t right) {
    for (uint64_t at = hash >> 32 & table->mask;; at = (at + 1) & table->mask) {
        gb_merge_slot *slot = &table->slots[at];
        if (slot->rank == GB_NO_MERGE)
            return slot;
        if (slot->tag != (uint32_t)hash)
            continue;
        gb_merge merge = gb_merge_at(table->data, slot->rank);
        if (merge.left == left && merge.right == right)
            return slot;
    }
}

static void insert(gb_merge_table *table, uint32_t rank) {
    gb_merge merge = gb_merge_at(table->data, rank);
    uint64_t hash = hash_pair(merge.left, merge.right);
    *find_slot(table, hash, merge.left, merge.right) = (gb_merge_slot){(uint32_t)hash, rank};
}

uint32_t gb_find_merge(const gb_merge_table *table, int32_t left, int32_t right) {
    return find_slot(table, hash_pair(left, right), left, right)->rank;
}

/* A token that stands in the text without its spelling being there: then the spelling says nothing about what
 * it can be joined to. */
static bool hides_its_text(const gb_vocabulary *vocabulary, int32_t id) {
    size_t length;
    const char *text = gb_token_text(vocabulary->data, id, &length);
    int byte = gb_byte_of_spelling(text, length);
    return id == vocabulary->data->unknown || (byte >= 0 && vocabulary->byte_tokens[byte] == id);
}

/* A merge joins the last unit of its left token to the first of its right one. */
static void insert_joint(gb_merge_table *table, const gb_vocabulary *vocabulary, gb_merge merge) {
    size_t left_length, right_length;
    const char *left = gb_token_text(table->data, merge.left, &left_length);
    const char *right = gb_token_text(table->data, merge.right, &right_length);
    size_t last = left_length - 1;
    while (!gb_is_byte_level(table->data) && ((uint8_t)left[last] & 0xC0) == 0x80)
        last--;
    int32_t before = gb_vocabulary_find_unit(vocabulary, left + last, left_length - last);
    int32_t after = gb_vocabulary_find_unit(vocabulary, right, gb_unit_size(vocabulary, right[0]));
    uint64_t bit = hash_pair(before, after) >> 32 & table->joint_mask;
    table->joints[bit / 8] |= (uint8_t)(1u << bit % 8);
}

bool gb_can_join(const gb_merge_table *table, int32_t left, int32_t right) {
    uint64_t bit = hash_pair(left, right) >> 32 & table->joint_mask;
    return table->joints[bit / 8] >> bit % 8 & 1;
}

gumbel_status gb_merge_table_create(gb_merge_table *table, const gb_vocabulary *vocabulary,
                                    gumbel_error *error) {
    const gb_tokenizer_data *data = vocabulary->data;
    uint64_t slots = 4096;
    while (slots < 2 * (uint64_t)data->merge_count)
        slots *= 2;
    *table = (gb_merge_table){.data = data, .mask = slots - 1, .joint_mask = 8 * slots - 1};
    table->slots = gb_allocate(slots, sizeof *table->slots);
    table->joints = gb_allocate(slots, 1);
    if (!table->slots || !table->joints)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for a table of %u merges", data->merge_count);
    memset(table->slots, 0xFF, slots * sizeof *table->slots);
    for (uint32_t rank = 0; rank < data->merge_count; rank++) {
        gb_merge merge = gb_merge_at(data, rank);
        if (!gb_is_ordinary(vocabulary, merge.result))
            continue;
        insert(table, rank);
        if (hides_its_text(vocabulary, merge.left) || hides_its_text(vocabulary, merge.right))
            memset(table->joints, 0xFF, slots);
        else
            insert_joint(table, vocabulary, merge);
    }
    return GUMBEL_OK;
}

void gb_merge_table_free(gb_merge_table *table) {
    gb_free(table->slots);
    gb_free(table->joints);
    *table = (gb_merge_table){0};
}
