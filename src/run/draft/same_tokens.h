/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether the ids of two programs stand for the same tokens, so that one can guess for the other.
 */
#ifndef GUMBEL_RUN_DRAFT_SAME_TOKENS_H
#define GUMBEL_RUN_DRAFT_SAME_TOKENS_H

#include "program/program.h"

/* Compares the sizes of the vocabularies and, where both programs have a tokenizer, the spelling of every id
 * that both know, those of added tokens among them. Errors: ARGUMENT, which names the first id that differs,
 * and those of reading a tokenizer. */
gumbel_status gb_check_same_tokens(const gb_program *target, const gb_program *draft, gumbel_error *error);

#endif
