/* SPDX-License-Identifier: Apache-2.0
 *
 * What is said of keywords and formats that ask nothing because they are not known.
 */
#ifndef GUMBEL_GRAMMAR_SCHEMA_NOTICE_H
#define GUMBEL_GRAMMAR_SCHEMA_NOTICE_H

#include "gumbel.h"

#include <jansson.h>

/* One notice of the names in `unknown` (gb_schema_options), the first of them where there are many. Neither
 * NULL nor an empty object makes one. */
void gb_note_unknown(const json_t *unknown, gumbel_log_callback log, void *user);

#endif
