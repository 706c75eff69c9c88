/* SPDX-License-Identifier: Apache-2.0
 *
 * Which reply format a checkpoint's program gets: the checkpoint's own response_template, or the one that is
 * known for its architecture.
 */
#ifndef GUMBEL_EXPORT_TEXT_REPLY_FAMILIES_H
#define GUMBEL_EXPORT_TEXT_REPLY_FAMILIES_H

#include "text/tokenizer/tokenizer.h"

/* The JSON for an architecture, as config.json or a GGUF name it; NULL: none is known. */
const char *gb_known_reply_format(const char *architecture);

/* Appends the JSON to bytes, with a zero behind it; nothing where there is no format. directory has a
 * tokenizer_config.json, or is NULL. vocabulary has the spellings of all tokens somewhere, or is NULL: the
 * known format of an architecture is for tokenizers that have its marks. A response_template there that is
 * not usable is reported to log (may be NULL) and left out. Errors: IO, FORMAT (a file), MEMORY. */
gumbel_status gb_choose_reply_format(const char *directory, const char *architecture,
                                     const gb_blob *vocabulary, gumbel_log_callback log, void *log_user,
                                     gb_byte_buffer *bytes, gumbel_error *error);

/* Gives a tokenizer made of a checkpoint (a directory or a GGUF) its reply format, if there is one. Errors as
 * gb_choose_reply_format. */
gumbel_status gb_give_reply_format(const char *checkpoint, gumbel_tokenizer *tokenizer, gumbel_error *error);

#endif
