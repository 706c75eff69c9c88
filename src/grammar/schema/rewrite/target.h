/* SPDX-License-Identifier: Apache-2.0
 *
 * Schemas that ask no more than another one does, to which they refer.
 */
#ifndef GUMBEL_GRAMMAR_SCHEMA_REWRITE_TARGET_H
#define GUMBEL_GRAMMAR_SCHEMA_REWRITE_TARGET_H

#include "grammar/schema/reader/reader.h"

/* What the schema stands for, as it is honoured (honoured.h): itself where it refers to no other one, or asks
 * more. NULL on an error. */
const json_t *gb_target(gb_schema_reader *reader, const json_t *schema);

#endif
