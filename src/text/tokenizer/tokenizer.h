/* SPDX-License-Identifier: Apache-2.0
 *
 * The tokenizer: a program's two text sections made ready for use. Immutable once created.
 */
#ifndef GUMBEL_TEXT_TOKENIZER_TOKENIZER_H
#define GUMBEL_TEXT_TOKENIZER_TOKENIZER_H

#include "text/chat/chat_section.h"
#include "text/tokenizer/added_tokens.h"
#include "text/tokenizer/merge_table.h"
#include "text/tokenizer/splitter.h"
#include "text/tokenizer/vocabulary.h"

struct gumbel_tokenizer {
    gb_tokenizer_data data;
    gb_vocabulary vocabulary;
    gb_merge_table merges;
    gb_splitter *splitters[GB_MAX_TEXT_STEPS]; /* of the pre-tokenizer steps that are expressions */
    gb_added_tokens raw_added;                 /* found before normalizing */
    gb_added_tokens normalized_added;          /* found after it */
    gb_chat_section chat;                      /* zeroed where there is none */
    struct gb_reply_format *reply_format;      /* owned; NULL: none */
    struct gb_mark *reply_marks;               /* owned: tokens that it is spelled with */
    size_t reply_mark_count;
    struct gb_lazy_trie *trie; /* owned; gb_tokenizer_trie */
    uint32_t id_limit; /* at least the tokenizer's own count; ids without a spelling below it give no text */
    void *storage;     /* what gb_tokenizer_keep was given */
};

/* Makes a tokenizer of a program's sections; chat may be NULL or absent (data NULL). The tokenizer
 * section must outlive it. Errors: UNSUPPORTED (no tokenizer section, or one of a newer version), FORMAT
 * (which also covers an expression that does not compile), MEMORY. Destroy with gumbel_tokenizer_destroy. */
gumbel_status gb_tokenizer_create(const gb_blob *tokenizer, const gb_blob *chat, gumbel_tokenizer **result,
                                  gumbel_error *error);

/* Ids below limit are the model's, whether they have a spelling or not: a vocabulary is often padded. */
void gb_tokenizer_allow_ids(gumbel_tokenizer *tokenizer, uint32_t limit);

/* Gives the tokenizer a block to free with gb_free when it is destroyed: its section, where that belongs to
 * no program. */
void gb_tokenizer_keep(gumbel_tokenizer *tokenizer, void *storage);

#endif
