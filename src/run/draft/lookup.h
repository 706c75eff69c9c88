/* SPDX-License-Identifier: Apache-2.0
 *
 * Where the last tokens of a sequence stood before: what followed them then may follow now (prompt lookup
 * decoding, Saxena 2023). Longest matches are found by chains of equal pairs, as compressors find them.
 */
#ifndef GUMBEL_RUN_DRAFT_LOOKUP_H
#define GUMBEL_RUN_DRAFT_LOOKUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Matches longer than this count as that long. */
enum { GB_LOOKUP_LONGEST = 32 };

/* Zeroed at the start. Without memory it finds nothing. */
typedef struct gb_lookup {
    int32_t *tokens;   /* [count] of capacity */
    uint32_t *earlier; /* [count] where a pair of the same hash ends before the one that ends here */
    uint32_t *latest;  /* [capacity] where one ends last, by hash */
    uint32_t count, capacity;
    bool has_failed;
} gb_lookup;

/* Appends tokens. */
void gb_lookup_add(gb_lookup *lookup, const int32_t *tokens, size_t count);

/* Writes what followed the longest earlier match of the last tokens, the latest of those as long: most
 * tokens, which go on with themselves where they reach the end. Returns the match's length; 0: there is none,
 * and nothing is written. */
uint32_t gb_lookup_find(const gb_lookup *lookup, int32_t *following, uint32_t most);

void gb_lookup_free(gb_lookup *lookup);

#endif
