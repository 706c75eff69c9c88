/* SPDX-License-Identifier: Apache-2.0
 *
 * Where a tokenizer, which is immutable otherwise, keeps its trie.
 */
#ifndef GUMBEL_TEXT_TRIE_LAZY_TRIE_H
#define GUMBEL_TEXT_TRIE_LAZY_TRIE_H

#include "program/program.h"
#include "text/trie/trie.h"

#include <stdatomic.h>

typedef struct gb_lazy_trie {
    _Atomic(gb_token_trie *) trie; /* NULL: nobody has needed it */
    gb_blob stored;                /* what to open it from; data NULL: it has to be made */
} gb_lazy_trie;

#endif
