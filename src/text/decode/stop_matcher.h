/* SPDX-License-Identifier: Apache-2.0
 *
 * Strings that end a text, found while it streams by. Text goes in in pieces; what can no longer be part of a
 * stop string comes out. The first string that is complete ends the text, of several complete at the same
 * byte the longest: how the text was cut into pieces changes nothing.
 */
#ifndef GUMBEL_TEXT_DECODE_STOP_MATCHER_H
#define GUMBEL_TEXT_DECODE_STOP_MATCHER_H

#include "gumbel.h"

typedef struct gb_stop_matcher gb_stop_matcher;

/* Makes a matcher of count strings, which are copied. included: the text ends with the string that ended it,
 * otherwise before it. No piece of text is longer than longest_piece bytes: nothing is allocated after this.
 * Errors: ARGUMENT (names the string that is NULL, empty or not UTF-8), LIMIT, MEMORY. */
gumbel_status gb_stop_matcher_create(const char *const *strings, size_t count, bool included,
                                     size_t longest_piece, gb_stop_matcher **matcher, gumbel_error *error);

/* NULL is allowed. */
void gb_stop_matcher_destroy(gb_stop_matcher *matcher);

/* Adds a piece, whole characters of UTF-8. Of those behind a stop string nothing is kept. */
void gb_stop_matcher_add(gb_stop_matcher *matcher, const char *piece, size_t size);

/* Adds a piece that stop strings do not hold for: it comes out as it is, and none reaches across it. */
void gb_stop_matcher_pass(gb_stop_matcher *matcher, const char *piece, size_t size);

/* Ends the text as string number `string` would, spelled so, behind all that was added. The spelling is at
 * most a piece long. */
void gb_stop_matcher_stop(gb_stop_matcher *matcher, int32_t string, const char *spelling, size_t size);

/* Says that the text ends here: what is held back can be taken. */
void gb_stop_matcher_flush(gb_stop_matcher *matcher);

/* Takes the characters that no stop string can include any more: *length bytes, valid until the next call of
 * another function. */
void gb_stop_matcher_take(gb_stop_matcher *matcher, const char **text, size_t *length);

/* Begins a new text. What was taken last stays valid. */
void gb_stop_matcher_restart(gb_stop_matcher *matcher);

/* The number of the string that ended the text, of equal ones the first; -1: it goes on. */
int32_t gb_stop_matcher_found(const gb_stop_matcher *matcher);

#endif
