/* SPDX-License-Identifier: Apache-2.0
 *
 * Which reply format a checkpoint's program gets: the checkpoint's own response_template, or the known one
 * whose marks its chat template has.
 */
#ifndef GUMBEL_EXPORT_TEXT_REPLY_FAMILIES_H
#define GUMBEL_EXPORT_TEXT_REPLY_FAMILIES_H

#include "text/tokenizer/tokenizer.h"

/* Appends the JSON to bytes, with a zero behind it; nothing where there is no format. directory has a
 * tokenizer_config.json, or is NULL. templates and vocabulary have the texts of all chat templates and the
 * spellings of all tokens somewhere. A response_template that is not usable is reported to log (may be NULL)
 * and left out. Errors: IO, FORMAT (a file), MEMORY. */
gumbel_status gb_choose_reply_format(const char *directory, const gb_blob *templates,
                                     const gb_blob *vocabulary, gumbel_log_callback log, void *log_user,
                                     gb_byte_buffer *bytes, gumbel_error *error);

/* Gives a tokenizer made of a checkpoint (a directory or a GGUF) its reply format, if there is one. Errors as
 * gb_choose_reply_format. */
gumbel_status gb_give_reply_format(const char *checkpoint, const gb_blob *templates,
                                   gumbel_tokenizer *tokenizer, gumbel_error *error);

#endif
