/* SPDX-License-Identifier: Apache-2.0
 *
 * JSON as models write it: keys without quotes, strings between marks of their own, line breaks within
 * strings.
 */
#ifndef GUMBEL_TEXT_REPLY_LENIENT_JSON_H
#define GUMBEL_TEXT_REPLY_LENIENT_JSON_H

#include "gumbel.h"

#include <jansson.h>

enum { GB_MAX_REPLY_JSON_DEPTH = 64, GB_MAX_STRING_MARKS = 4 };

typedef struct gb_json_dialect {
    bool unquoted_keys; /* a key may stand without quotes, up to its colon */
    struct {
        const char *open, *close;
    } marks[GB_MAX_STRING_MARKS]; /* a string may stand between these, without escapes */
    size_t mark_count;
} gb_json_dialect;

/* Reads one value and white space around it. NULL if the text is anything else, deeper than
 * GB_MAX_REPLY_JSON_DEPTH, or there is no memory. Integers beyond 64 bits become the nearest float. The
 * caller owns the value. */
json_t *gb_read_lenient_json(const gb_json_dialect *dialect, const char *text, size_t length);

#endif
