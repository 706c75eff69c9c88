/* SPDX-License-Identifier: Apache-2.0
 *
 * How a trie is stored: a header of little-endian numbers, then arrays one after the other.
 */
#ifndef GUMBEL_TEXT_TRIE_SECTION_H
#define GUMBEL_TEXT_TRIE_SECTION_H

#include "text/trie/trie.h"

#define GB_TRIE_MAGIC "GBTT"
enum { GB_TRIE_VERSION = 1 };

/* Every field is four bytes. The arrays follow in this order: nodes, twins, long tokens, offsets, bytes. */
typedef struct gb_trie_header {
    char magic[4]; /* GB_TRIE_MAGIC without its zero */
    uint32_t version, token_count, node_count, twin_count, long_count, byte_count;
    uint32_t slice_ends[GB_SLICE_COUNT];
} gb_trie_header;

#endif
