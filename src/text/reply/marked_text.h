/* SPDX-License-Identifier: Apache-2.0
 *
 * The text of a reply, and a copy of it for searching in which only tokens spell marks: where ordinary tokens
 * spell what the tokenizer has a token for, the copy has another first byte. Offsets are the same in both.
 */
#ifndef GUMBEL_TEXT_REPLY_MARKED_TEXT_H
#define GUMBEL_TEXT_REPLY_MARKED_TEXT_H

#include "base/byte_buffer.h"
#include "text/tokenizer/added_tokens.h"

/* A token that a delimiter of a reply format is spelled with. */
typedef struct gb_mark {
    const char *text; /* in the tokenizer's section */
    size_t length;
    int32_t token;
} gb_mark;

typedef struct gb_marked_text {
    const gb_mark *marks;
    size_t mark_count, longest_mark;
    gb_byte_buffer raw;    /* UTF-8 */
    gb_byte_buffer search; /* the copy */
    gb_span *hidden;       /* owned: tokens that a reader is not shown, ascending */
    size_t hidden_count, hidden_capacity;
    size_t ordinary; /* ordinary tokens alone have spelled what begins here */
    char partial[4]; /* bytes of a character whose rest is missing */
    size_t partial_size;
    bool failed; /* memory ran out */
} gb_marked_text;

void gb_marked_text_free(gb_marked_text *text);

/* Adds what an ordinary token gave. */
void gb_add_ordinary(gb_marked_text *text, const char *piece, size_t length);

/* Adds what an added token gave: its spelling is the last `size` bytes of the piece. */
void gb_add_special(gb_marked_text *text, const char *piece, size_t length, size_t size, bool is_hidden);

/* Adds text of unknown tokens, whose characters may be cut. */
void gb_add_text(gb_marked_text *text, const char *bytes, size_t length);

/* Ends what gb_add_text has added. */
void gb_end_text(gb_marked_text *text);

#endif
