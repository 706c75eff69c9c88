/* SPDX-License-Identifier: Apache-2.0
 *
 * A schema without what its draft does not ask for: unknown keywords and formats, and what stands beside a
 * $ref up to draft 7.
 */
#ifndef GUMBEL_GRAMMAR_SCHEMA_REWRITE_HONOURED_H
#define GUMBEL_GRAMMAR_SCHEMA_REWRITE_HONOURED_H

#include "grammar/schema/reader/reader.h"

/* The schema itself where all of it counts, otherwise one that the reader owns. What is left out is listed in
 * the options. NULL on an error: UNSUPPORTED (something is unknown, and options are strict), MEMORY. */
const json_t *gb_honoured(gb_schema_reader *reader, const json_t *schema);

#endif
