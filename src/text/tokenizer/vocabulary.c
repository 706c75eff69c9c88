/* SPDX-License-Identifier: Apache-2.0 */
#include "text/tokenizer/vocabulary.h"

#include "base/memory.h"

#include <stdio.h>
#include <string.h>
#include <xxhash.h>

/* Of equal spellings the lower id, which came before, is the one that is found. */
static void insert(gb_vocabulary *vocabulary, int32_t id) {
    size_t length;
    const char *text = gb_token_text(vocabulary->data, id, &length);
    if (length == 0)
        return;
    uint64_t slot = XXH3_64bits(text, length) & vocabulary->mask;
    for (; vocabulary->slots[slot] >= 0; slot = (slot + 1) & vocabulary->mask) {
        size_t other_length;
        const char *other = gb_token_text(vocabulary->data, vocabulary->slots[slot], &other_length);
        if (other_length == length && memcmp(other, text, length) == 0)
            return;
    }
    vocabulary->slots[slot] = id;
}

/* Some files mark them as special; they stand for bytes all the same. */
static void find_byte_tokens(gb_vocabulary *vocabulary) {
    for (int byte = 0; byte < 256; byte++) {
        char spelling[8];
        int length = snprintf(spelling, sizeof spelling, "<0x%02X>", (unsigned)byte);
        int32_t id = gb_vocabulary_find(vocabulary, spelling, (size_t)length);
        bool in_model = id >= 0 && !(vocabulary->flags[id] & GB_ADDED_OUTSIDE);
        vocabulary->byte_tokens[byte] = in_model && !gb_is_byte_level(vocabulary->data) ? id : -1;
    }
}

gumbel_status gb_vocabulary_create(gb_vocabulary *vocabulary, const gb_tokenizer_data *data,
                                   gumbel_error *error) {
    uint64_t slots = 16;
    while (slots < 2 * (uint64_t)data->token_count)
        slots *= 2;
    *vocabulary = (gb_vocabulary){.data = data, .mask = slots - 1};
    vocabulary->slots = gb_allocate(slots, sizeof *vocabulary->slots);
    vocabulary->flags = gb_allocate(data->token_count, 1);
    if (!vocabulary->slots || !vocabulary->flags)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for a vocabulary of %u tokens",
                       data->token_count);
    memset(vocabulary->slots, 0xFF, slots * sizeof *vocabulary->slots);
    for (uint32_t i = 0; i < data->added_count; i++) {
        gb_added_token added = gb_added_at(data, i);
        vocabulary->flags[added.id] = (uint8_t)added.flags;
    }
    for (uint32_t id = 0; id < data->token_count; id++)
        insert(vocabulary, (int32_t)id);
    for (int byte = 0; byte < 256; byte++)
        vocabulary->one_byte[byte] = gb_vocabulary_find_ordinary(vocabulary, (char[]){(char)byte}, 1);
    find_byte_tokens(vocabulary);
    return GUMBEL_OK;
}

void gb_vocabulary_free(gb_vocabulary *vocabulary) {
    gb_free(vocabulary->slots);
    gb_free(vocabulary->flags);
    *vocabulary = (gb_vocabulary){0};
}

int32_t gb_vocabulary_find(const gb_vocabulary *vocabulary, const char *text, size_t length) {
    if (length == 0)
        return -1;
    uint64_t slot = XXH3_64bits(text, length) & vocabulary->mask;
    for (; vocabulary->slots[slot] >= 0; slot = (slot + 1) & vocabulary->mask) {
        size_t other_length;
        const char *other = gb_token_text(vocabulary->data, vocabulary->slots[slot], &other_length);
        if (other_length == length && memcmp(other, text, length) == 0)
            return vocabulary->slots[slot];
    }
    return -1;
}
