/* SPDX-License-Identifier: Apache-2.0
 *
 * What holds one answer to given tokens, to a grammar and its reasoning to a budget: a matcher that begins
 * where the answer proper does, behind the reasoning or at a call within it, and the mask of the next token.
 */
#ifndef GUMBEL_RUN_CONSTRAINT_H
#define GUMBEL_RUN_CONSTRAINT_H

#include "backends/batch/late_masks.h"
#include "gumbel.h"

typedef struct gb_constraint gb_constraint;

typedef struct gb_constraint_options {
    const gumbel_grammar *grammar;     /* NULL: only the reasoning is limited */
    const gumbel_tokenizer *tokenizer; /* needed for a budget without a grammar */
    uint64_t vocab_size;
    const int32_t *prompt; /* [prompt_count] what the answer follows: it may have opened reasoning */
    size_t prompt_count;
    bool reasons; /* the answer may open reasoning itself */
    bool has_reasoning_budget;
    uint32_t reasoning_budget; /* tokens of reasoning, behind which only its end may be drawn */
    const int32_t *forced;     /* [forced_count] the answer's first tokens */
    size_t forced_count;
    const int32_t *end_tokens;
    size_t end_token_count;
} gb_constraint_options;

/* Nothing of options is kept but a reference to the grammar. One thread at a time. Errors: ARGUMENT (the
 * grammar is of another vocabulary; a budget without a tokenizer; forced tokens beside a grammar or outside
 * of the vocabulary), UNSUPPORTED (a budget where no token closes reasoning), LIMIT, MEMORY. */
gumbel_status gb_constraint_create(const gb_constraint_options *options, gb_constraint **constraint,
                                   gumbel_error *error);

/* Whether its next token is given. */
bool gb_constraint_forces(const gb_constraint *constraint);

/* NULL is allowed. */
void gb_constraint_destroy(gb_constraint *constraint);

/* Writes the answer's next tokens as far as they are known to be the only ones, at most so many; returns how
 * many. */
uint32_t gb_constraint_forced(gb_constraint *constraint, int32_t *tokens, uint32_t most);

/* Says which tokens may follow next: masks are made behind each of them, until the next token is accepted.
 * Returns how many of them the constraint allows, from the first on; the others do not count. The tokens stay
 * the caller's, and must stay. */
uint32_t gb_constraint_set_draft(gb_constraint *constraint, const int32_t *tokens, uint32_t count);

/* Makes the masks of the next token and of those behind each token of the draft, of (vocab_size + 31) / 32
 * words each, while nobody calls another function of the constraint; none: any token is allowed. Nothing is
 * allowed where one cannot be made. */
gb_mask_source gb_constraint_mask(gb_constraint *constraint);

/* The same for the token behind the whole draft alone, as one row; it is made even where any token is
 * allowed. */
gb_mask_source gb_constraint_mask_behind(gb_constraint *constraint);

/* Why the row under the mask of the next token has none: that mask's error, or what the grammar expects. */
gumbel_status gb_constraint_explain(const gb_constraint *constraint, gumbel_error *error);

/* Goes on behind a token that the mask allows. Errors: ARGUMENT (it does not), LIMIT, MEMORY. */
gumbel_status gb_constraint_accept(gb_constraint *constraint, int32_t token, gumbel_error *error);

/* Whether one of the end tokens was accepted. */
bool gb_constraint_has_ended(const gb_constraint *constraint);

#endif
