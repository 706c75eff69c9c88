/* SPDX-License-Identifier: Apache-2.0
 *
 * The tokenizer and the chat template in a GGUF file's metadata: vocabulary and merges from the file, the
 * rest from the kind of tokenizer that it names (gguf_tokenizer_kinds.h).
 */
#ifndef GUMBEL_EXPORT_TEXT_TOKENIZER_GGUF_H
#define GUMBEL_EXPORT_TEXT_TOKENIZER_GGUF_H

#include "base/byte_buffer.h"
#include "export/checkpoint/gguf.h"
#include "export/text/chat_template.h"

/* Whether the file has a tokenizer at all. */
bool gb_gguf_has_tokenizer(const gb_gguf *file);

/* Appends the section to bytes. path only stands in messages. Errors: FORMAT and UNSUPPORTED naming path and
 * key; MEMORY. */
gumbel_status gb_read_gguf_tokenizer(const gb_gguf *file, const char *path, gb_byte_buffer *bytes,
                                     gumbel_error *error);

/* The ids of the tokens that end a turn by what they spell, in a tokenizer of a known kind. Returns how many.
 */
enum { GB_GGUF_MAX_STOPS = 16 };
size_t gb_gguf_find_stops(const gb_gguf *file, int32_t ids[GB_GGUF_MAX_STOPS]);

#endif
