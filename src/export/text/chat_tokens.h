/* SPDX-License-Identifier: Apache-2.0
 *
 * The tokens around turns, as the checkpoint's own chat template writes them.
 */
#ifndef GUMBEL_EXPORT_TEXT_CHAT_TOKENS_H
#define GUMBEL_EXPORT_TEXT_CHAT_TOKENS_H

#include "gumbel.h"

/* Renders a question and its answer. *first is the special token that the conversation begins with where it
 * is the template's bos_token, *stop the special token right behind the answer; -1 where there is none, or
 * the template fails. Errors: MEMORY. */
gumbel_status gb_find_chat_tokens(const gumbel_tokenizer *tokenizer, int32_t *first, int32_t *stop,
                                  gumbel_error *error);

#endif
