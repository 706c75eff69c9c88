/* SPDX-License-Identifier: Apache-2.0
 *
 * All that a reply says as one text, so that two can be compared, and whether what it says fits together.
 */
#ifndef GUMBEL_TESTS_REPLY_TEXT_H
#define GUMBEL_TESTS_REPLY_TEXT_H

#include "base/byte_buffer.h"

#include "gumbel.h"

/* Takes the reply's deltas and joins them. Aborts where they are not in order, not UTF-8, or take something
 * back. Begin with a zeroed structure; free each buffer. */
enum { MOST_REPLY_PARTS = 512 };
typedef struct joined_deltas {
    gb_byte_buffer parts[MOST_REPLY_PARTS];
    size_t count;
} joined_deltas;
void join_deltas(gumbel_reply *reply, joined_deltas *joined);
void free_deltas(joined_deltas *joined);

/* Writes types, ids, names, texts, raw texts and warnings of all parts. Aborts where a delta lacks what its
 * part has, or the raw texts joined are not the text. */
void describe_reply(const gumbel_reply *reply, const joined_deltas *joined, const char *text, size_t length,
                    gb_byte_buffer *description);

#endif
