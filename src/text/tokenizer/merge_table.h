/* SPDX-License-Identifier: Apache-2.0
 *
 * The merges of a byte-pair encoding by pair, and which symbols can be joined at all.
 */
#ifndef GUMBEL_TEXT_TOKENIZER_MERGE_TABLE_H
#define GUMBEL_TEXT_TOKENIZER_MERGE_TABLE_H

#include "text/tokenizer/vocabulary.h"

#define GB_NO_MERGE UINT32_MAX

/* The tag is more of the pair's hash: most pairs that have no merge are told by it alone. */
typedef struct gb_merge_slot {
    uint32_t tag, rank; /* rank GB_NO_MERGE: free */
} gb_merge_slot;

typedef struct gb_merge_table {
    const gb_tokenizer_data *data;
    gb_merge_slot *slots; /* hash table, at most half full */
    uint64_t mask;
    uint8_t *joints; /* one bit per hashed pair of first symbols, see gb_can_join */
    uint64_t joint_mask;
} gb_merge_table;

/* Merges whose result is a special token are left out: such a token only ever comes from its own spelling in
 * text that is parsed. Where a pair stands twice the later rank holds. The vocabulary is read while creating,
 * its data must outlive the table. Errors: MEMORY. On an error gb_merge_table_free is still to be called. */
gumbel_status gb_merge_table_create(gb_merge_table *table, const gb_vocabulary *vocabulary,
                                    gumbel_error *error);
void gb_merge_table_free(gb_merge_table *table);

/* The rank of the merge of these two tokens, or GB_NO_MERGE. */
uint32_t gb_find_merge(const gb_merge_table *table, int32_t left, int32_t right);

/* Whether any merge could reach across the border between two neighbouring symbols of the text before any
 * merging, by their ids. False is certain; true may be wrong. */
bool gb_can_join(const gb_merge_table *table, int32_t left, int32_t right);

#endif
