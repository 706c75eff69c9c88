/* SPDX-License-Identifier: Apache-2.0
 *
 * Where an answer's reasoning begins and ends, seen by tokens alone: the tokens that a reply format's marks
 * are spelled with.
 */
#ifndef GUMBEL_TEXT_REPLY_REASONING_H
#define GUMBEL_TEXT_REPLY_REASONING_H

#include "gumbel.h"

enum { GB_MOST_REASONING_MARKS = 8, GB_MOST_OPENING = 96 /* bytes */ };

/* Tokens that open something, or close it. */
typedef struct gb_mark_list {
    int32_t tokens[GB_MOST_REASONING_MARKS];
    size_t count;
} gb_mark_list;

typedef struct gb_reasoning_marks {
    gb_mark_list open, close; /* of reasoning */
    gb_mark_list calls;       /* open calls of tools, also within reasoning */
    bool reasons;             /* the format has reasoning */
    int32_t closing;          /* what a model writes to close it; -1: no token */
} gb_reasoning_marks;

bool gb_is_mark_of(const gb_mark_list *list, int32_t token);

/* The marks of the tokenizer's reply format; none where it has no format. Thread-safe. */
gb_reasoning_marks gb_read_reasoning_marks(const gumbel_tokenizer *tokenizer);

/* *opens: whether the prompt ends within reasoning. Errors: ARGUMENT (a token), MEMORY. Thread-safe. */
gumbel_status gb_prompt_opens_reasoning(const gumbel_tokenizer *tokenizer, const int32_t *prompt,
                                        size_t count, bool *opens, gumbel_error *error);

/* ---- Where the answer proper begins -------------------------------------------------------------------- */

/* Follows the tokens of an answer; zeroed: it has begun. */
typedef struct gb_answer_start {
    gb_reasoning_marks marks;
    bool is_awaited, reasons;
    const gumbel_tokenizer *tokenizer; /* borrowed */
    char opening[GB_MOST_OPENING];     /* what may become an opening of several marks */
    size_t opening_length;
    bool is_in_heading; /* of a message that is no reasoning, up to its next mark */
} gb_answer_start;

/* Errors as gb_prompt_opens_reasoning. */
gumbel_status gb_await_answer(const gumbel_tokenizer *tokenizer, const int32_t *prompt, size_t count,
                              gb_answer_start *start, gumbel_error *error);

/* How many of the bytes that a token gives come before the answer: reasoning, its marks, white space. */
size_t gb_before_answer(gb_answer_start *start, int32_t token, const char *text, size_t length);

#endif
