/* SPDX-License-Identifier: Apache-2.0
 *
 * How many draft tokens a step of one session may have, by what program, backend and memory allow.
 */
#ifndef GUMBEL_RUN_DRAFT_DRAFT_TOKENS_H
#define GUMBEL_RUN_DRAFT_DRAFT_TOKENS_H

#include "backends/backends.h"

/* Lowers options->draft_tokens to what is possible, with a notice that says why. slots and prefill_chunk are
 * settled. */
void gb_settle_draft_tokens(const gb_program *program, const gb_backend_entry *entry,
                            gumbel_engine_options *options);

#endif
