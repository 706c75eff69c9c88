/* SPDX-License-Identifier: Apache-2.0
 *
 * Numbers of a schema as decimal digits, so that bounds are compared as they are written.
 */
#ifndef GUMBEL_GRAMMAR_SCHEMA_NUMBER_DECIMAL_H
#define GUMBEL_GRAMMAR_SCHEMA_NUMBER_DECIMAL_H

#include "gumbel.h"

#include <jansson.h>
#include <stdbool.h>

enum { GB_MAX_DIGITS = 80 }; /* before the point, and behind it */

typedef struct gb_decimal {
    bool negative;
    char whole[GB_MAX_DIGITS + 1];    /* without zeros in front; "0" */
    char fraction[GB_MAX_DIGITS + 1]; /* without zeros behind; "" */
} gb_decimal;

/* A JSON number. LIMIT: it has too many digits; MEMORY. */
gumbel_status gb_decimal_read(const json_t *number, gb_decimal *decimal);

/* An integer's digits, with a sign in front of them if it is negative. LIMIT: there are too many. */
gumbel_status gb_decimal_read_digits(const char *digits, gb_decimal *decimal);

bool gb_decimal_is_zero(const gb_decimal *decimal);

/* Below 0, 0 or above it, as a is below, the same as, or above b. */
int gb_decimal_compare(const gb_decimal *a, const gb_decimal *b);

#endif
