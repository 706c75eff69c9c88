/* SPDX-License-Identifier: Apache-2.0
 *
 * Schemas with an $id (up to draft 4: id), from which references within them go on (JSON Schema core, 8.2.1).
 */
#ifndef GUMBEL_GRAMMAR_SCHEMA_READER_RESOURCES_H
#define GUMBEL_GRAMMAR_SCHEMA_READER_RESOURCES_H

#include "grammar/schema/reader/reader.h"

/* The keyword that names a schema. */
const char *gb_id_keyword(const gb_schema_reader *reader);

/* The nearest schema with an $id that the schema, one of the document, is or stands in; else the document. */
const json_t *gb_resource_of(gb_schema_reader *reader, const json_t *schema);

/* The one that length bytes of a reference name, seen from a schema of this resource. NULL: none of this
 * document, or an error. Dots in paths stay as they are. */
const json_t *gb_find_resource(gb_schema_reader *reader, const json_t *from, const char *reference,
                               size_t length);

#endif
