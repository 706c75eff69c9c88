/* SPDX-License-Identifier: Apache-2.0
 *
 * A tokenizer's reply format, and which of its tokens the format's delimiters are spelled with.
 */
#ifndef GUMBEL_TEXT_REPLY_USE_FORMAT_H
#define GUMBEL_TEXT_REPLY_USE_FORMAT_H

#include "text/tokenizer/tokenizer.h"

/* Gives the tokenizer the format of the JSON, in place of the one it has; name says where it is from in
 * messages. Errors as gb_reply_format_create, which leave the tokenizer as it was. */
gumbel_status gb_tokenizer_use_reply_format(gumbel_tokenizer *tokenizer, const char *json, size_t length,
                                            const char *name, gumbel_error *error);

/* Frees the format and leaves the tokenizer without one. */
void gb_tokenizer_drop_reply_format(gumbel_tokenizer *tokenizer);

#endif
