/* SPDX-License-Identifier: Apache-2.0
 *
 * Numbers as Python reads and writes them, in any locale.
 */
#ifndef GUMBEL_TEXT_JINJA_VALUE_NUMBER_H
#define GUMBEL_TEXT_JINJA_VALUE_NUMBER_H

#include "text/jinja/value/state.h"

/* repr() of a float: the shortest digits that read back as the same value; "inf" and "nan" as they are. */
gumbel_status gb_jinja_append_float(gb_jinja_state *state, gb_jinja_buffer *buffer, double value);

/* Decimal digits with a fraction, an exponent, a sign, white space around and single underscores between
 * digits, or inf or nan. False when text is anything else. */
bool gb_jinja_parse_float(gb_jinja_text text, double *value);

/* Digits of base 2 to 36 with what int() allows around them, and for base 0, 2, 8 and 16 a prefix such as 0x.
 * False when text is anything else or does not fit 64 bits. */
bool gb_jinja_parse_integer(gb_jinja_text text, int64_t base, int64_t *value);

/* round(): to digits decimals (0 to 300), halves to even. */
double gb_jinja_round(double value, int digits);

#endif
