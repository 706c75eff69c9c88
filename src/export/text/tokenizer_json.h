/* SPDX-License-Identifier: Apache-2.0
 *
 * A checkpoint's tokenizer.json (the file of the `tokenizers` package) turned into a program's tokenizer
 * section. What the runtime cannot do exactly is refused here, by the name it has in the file.
 */
#ifndef GUMBEL_EXPORT_TEXT_TOKENIZER_JSON_H
#define GUMBEL_EXPORT_TEXT_TOKENIZER_JSON_H

#include "base/byte_buffer.h"
#include "base/status.h"
#include "base/byte_buffer.h"

#include <jansson.h>

/* Reads the file at path and appends the section to bytes. Errors: IO; FORMAT and UNSUPPORTED, naming path
 * and key; MEMORY. On an error bytes holds nothing useful; it is the caller's to free in any case. */
gumbel_status gb_read_tokenizer_json(const char *path, gb_byte_buffer *bytes, gumbel_error *error);

/* The same for text in memory; path only stands in messages. */
gumbel_status gb_convert_tokenizer_json(const char *text, size_t length, const char *path,
                                        gb_byte_buffer *bytes, gumbel_error *error);

/* The same for the file's root value; messages begin with the key. */
gumbel_status gb_convert_tokenizer(const json_t *root, gb_byte_buffer *bytes, gumbel_error *error);

/* ---- Parts, for the files of this folder ---- */

/* Starts a part of the section; gb_end_part takes what this returns. */
size_t gb_begin_part(gb_byte_buffer *bytes, uint32_t part);
void gb_end_part(gb_byte_buffer *bytes, size_t begun);

/* Appends the parts normalizer, pre-tokenizer and decoder of the file's root object. Errors: FORMAT,
 * UNSUPPORTED; messages begin with the key. */
gumbel_status gb_write_text_steps(const json_t *root, gb_byte_buffer *bytes, gumbel_error *error);

/* Appends the part of what post_processor puts around a single text. */
gumbel_status gb_write_around(const json_t *root, gb_byte_buffer *bytes, gumbel_error *error);

#endif
