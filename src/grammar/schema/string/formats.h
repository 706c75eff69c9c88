/* SPDX-License-Identifier: Apache-2.0
 *
 * The formats of strings that are known (formats.def).
 */
#ifndef GUMBEL_GRAMMAR_SCHEMA_STRING_FORMATS_H
#define GUMBEL_GRAMMAR_SCHEMA_STRING_FORMATS_H

typedef struct gb_string_format {
    const char *name;
    const char *regex; /* of the whole string; NULL: the format asks nothing of it */
    const char *outer; /* of all strings that may be of the format; NULL: that is not known, "": all are */
} gb_string_format;

/* NULL: it is not known. */
const gb_string_format *gb_find_format(const char *name);

#endif
