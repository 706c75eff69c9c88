/* SPDX-License-Identifier: Apache-2.0
 *
 * A rendered conversation as tokens, in which what was generated stands in the tokens that it was generated
 * in. A model may spell a text otherwise than the tokenizer does; run again as the tokenizer spells it, all
 * that follows would have to be run again, too.
 */
#ifndef GUMBEL_TEXT_CONVERSATION_REPLAY_H
#define GUMBEL_TEXT_CONVERSATION_REPLAY_H

#include "text/jinja/jinja.h"
#include "text/tokenizer/tokenizer.h"

/* Growing; starts zeroed. */
typedef struct gb_id_list {
    int32_t *ids; /* owned */
    size_t count, capacity;
} gb_id_list;

/* Puts the tokens of the rendered text in place of those that the list has. Up to the first added token
 * behind which they differ, they are those of record (tokens that were run or generated), wherever its text
 * is that of the rendering; special tokens are never replayed for text. Errors: those of gb_encode. */
gumbel_status gb_encode_replaying(const gumbel_tokenizer *tokenizer, const gb_jinja_output *rendered,
                                  const int32_t *record, size_t record_count, gb_id_list *tokens,
                                  gumbel_error *error);

/* How many tokens both begin with. */
size_t gb_common_tokens(const int32_t *a, size_t a_count, const int32_t *b, size_t b_count);

#endif
