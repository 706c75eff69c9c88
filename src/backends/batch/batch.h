/* SPDX-License-Identifier: Apache-2.0
 *
 * What a backend executes: the inputs and outputs of one step. The inputs are those of roles.def, by name.
 */
#ifndef GUMBEL_BACKENDS_BATCH_BATCH_H
#define GUMBEL_BACKENDS_BATCH_BATCH_H

#include "backends/batch/late_masks.h"
#include "program/program.h"

/* How many inputs a program has at most. */
enum {
#define GB_BATCH_INPUT_NUMBER(NAME) GB_BATCH_NUMBER_##NAME,
#define GB_BATCH_OUTPUT_NUMBER(NAME)
#define GB_ROLE(number, NAME, name, direction, dtype, dims, required, neutral)                               \
    GB_BATCH_##direction##_NUMBER(NAME)
#include "program/roles.def"
    GB_MOST_INPUTS
};

/* Of the roles only the inputs; an output's memory is the backend's. */
#define GB_BATCH_INPUT_FIELD(constant, dtype, name) constant GB_C_TYPE(dtype) * name;
#define GB_BATCH_OUTPUT_FIELD(constant, dtype, name)

/* Elements of a row of the inputs that have several. */
typedef struct gb_batch_widths {
    uint32_t max_bias, mask_words;
} gb_batch_widths;

gb_batch_widths gb_batch_widths_of(const gb_metadata *metadata);

/* Arrays are the engine's. [N], [B], [B, max_bias] or [B, mask_words], as roles.def says. positions are below
 * max_context. The tokens of one slot stand together, positions ascending. rows are below N and ascending: a
 * slot's last token, or the one before its drafts and each of them. generated_from is a position, or -1: the
 * row has no penalties. penalize_prompt has bit 0 for repetition, bit 1 for frequency and presence. bias_ids
 * are below vocab_size up to a row's first -1. A row's mask is read where it is masked. */
typedef struct gb_batch {
    uint32_t token_count; /* N, 1 .. step_tokens */
    uint32_t row_count;   /* B, 0 .. rows */
#define GB_ROLE(number, NAME, name, direction, dtype, dims, required, neutral)                               \
    GB_BATCH_##direction##_FIELD(const, dtype, name)
#include "program/roles.def"
    /* [N] whether the token continues an answer, being the one after a draw; the others are a prompt's. The
     * slots without a prompt stand first; in another one the prompt stands last. */
    const bool *generated;
    /* [N] whether the token is a draft, which the slot may be told to forget. A slot's drafts stand last, all
     * are marked generated, and nothing follows a batch that has one. */
    const bool *draft;
    /* NULL, or masks that are still being made: whoever reads `mask` waits for them before that. */
    gb_late_masks *late_masks;
    /* NULL, or the step that probably comes next: its tokens, which are NULL here, will be the ones that this
     * step's rows draw. A backend may begin it before it waits for them. What it began is undone by any other
     * step or function of one of the slots, so that nobody sees it. The pointer is valid during the step. */
    const struct gb_batch *following;
    /* Where there is one: how many steps may follow, that one included. Each has the token that the one
     * before it drew, at the next position, with the next seed where its temperature is not 0. */
    uint32_t following_count;
    /* Where there is one: nothing follows after all where the row draws one of these tokens. A backend that
     * does not look at them has begun steps for nothing then. */
    const int32_t *stop_ids; /* [stop_count] */
    uint32_t stop_count;     /* 0: no token stops the answer */
    /* out */
    int32_t *next;     /* [B]: a token id; -1: no candidate in the row; -2: a NaN in it */
    bool has_prepared; /* whether it also made, or tried to, what makes later steps quicker */
    /* The backend's own memory until the next step; NULL where the program lacks the output. */
    const float *logits;       /* [B, V]; also NULL where a backend has begun what follows */
    const float *logprob;      /* [B] */
    const int32_t *top_ids;    /* [B, max_top_logprobs] */
    const float *top_logprobs; /* [B, max_top_logprobs] */
} gb_batch;

/* A batch's arrays, to be filled in. */
typedef struct gb_batch_arrays {
#define GB_ROLE(number, NAME, name, direction, dtype, dims, required, neutral)                               \
    GB_BATCH_##direction##_FIELD(, dtype, name)
#include "program/roles.def"
    bool *generated;
    bool *draft;
    int32_t *next;
    gb_batch_widths widths;
    void *storage; /* what the arrays are cut from */
} gb_batch_arrays;

/* Reserves arrays for batches of so many tokens and rows; false where there is no memory. Safe to free after
 * a failure. */
bool gb_batch_arrays_reserve(const gb_metadata *metadata, uint32_t tokens, uint32_t rows,
                             gb_batch_arrays *arrays);
void gb_batch_arrays_free(gb_batch_arrays *arrays);

/* Gives the arrays to a batch. */
void gb_batch_use(const gb_batch_arrays *arrays, gb_batch *batch);

/* Gives a row the neutral value of each input. */
void gb_batch_clear_row(const gb_batch_arrays *arrays, uint32_t row);

/* The batch's array for a role, of the role's dtype and dims; NULL for a role that is no input. */
const void *gb_batch_input(const gb_batch *batch, gb_role role);

/* Lets the arrays of rows begin with a later row. */
void gb_batch_skip_rows(gb_batch *batch, uint32_t count, const gb_batch_widths *widths);

/* Whether a row is masked. Otherwise nobody reads the mask. */
bool gb_batch_has_mask(const gb_batch *batch);

/* Entries of a row's list of biases. */
uint32_t gb_batch_bias_count(const gb_batch *batch, uint32_t row, uint32_t max_bias);

#endif
