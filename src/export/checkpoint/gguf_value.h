/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading one value of a GGUF file, for its parser.
 */
#ifndef GUMBEL_EXPORT_CHECKPOINT_GGUF_VALUE_H
#define GUMBEL_EXPORT_CHECKPOINT_GGUF_VALUE_H

#include "export/checkpoint/gguf.h"
#include "text/base/byte_reader.h"

uint64_t gb_read_u64(gb_byte_reader *reader);

/* Reads a value of the type with that number and walks through all that it holds. Errors: FORMAT: the file
 * ends within it, a type that does not exist, arrays within arrays past 4. */
gumbel_status gb_gguf_read_value(gb_byte_reader *reader, uint32_t type, gb_gguf_value *value,
                                 gumbel_error *error);

#endif
