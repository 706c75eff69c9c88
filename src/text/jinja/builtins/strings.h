/* SPDX-License-Identifier: Apache-2.0
 *
 * Python's str methods that both filters and methods are made of. Results are slices of their input or live
 * in the arena. Case follows Unicode's simple mappings, and of the special ones that of the German sharp s.
 */
#ifndef GUMBEL_TEXT_JINJA_BUILTINS_STRINGS_H
#define GUMBEL_TEXT_JINJA_BUILTINS_STRINGS_H

#include "text/jinja/value/value.h"

gumbel_status gb_jinja_upper(gb_jinja_state *state, gb_jinja_text text, gb_jinja_text *result);
gumbel_status gb_jinja_lower(gb_jinja_state *state, gb_jinja_text text, gb_jinja_text *result);

/* The first character in title case, the others in lower case. */
gumbel_status gb_jinja_capitalize(gb_jinja_state *state, gb_jinja_text text, gb_jinja_text *result);

/* Each run of letters capitalized. */
gumbel_status gb_jinja_title(gb_jinja_state *state, gb_jinja_text text, gb_jinja_text *result);

/* The first count occurrences of old, all of them for a negative count, replaced by new. */
gumbel_status gb_jinja_replace(gb_jinja_state *state, gb_jinja_text text, gb_jinja_text old,
                               gb_jinja_text new, int64_t count, gb_jinja_text *result);

/* Items as text with separator between them. With strict, an item that is not a string fails. */
gumbel_status gb_jinja_join(gb_jinja_state *state, const gb_jinja_array *items, gb_jinja_text separator,
                            bool strict, gb_jinja_value *result);

/* str.format for {}, {0} and {name}; other replacement fields are UNSUPPORTED. */
gumbel_status gb_jinja_format(gb_jinja_state *state, gb_jinja_text pattern, const gb_jinja_array *positional,
                              const gb_jinja_dict *keywords, gb_jinja_text *result);

#endif
