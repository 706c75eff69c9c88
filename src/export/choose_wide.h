/* SPDX-License-Identifier: Apache-2.0
 *
 * Which matrices of a program get 8 bits, so that its file comes close to a size: what widening each would
 * spare its products and cost in bytes. Their losses are taken to add up, each as heavy as the others.
 */
#ifndef GUMBEL_EXPORT_CHOOSE_WIDE_H
#define GUMBEL_EXPORT_CHOOSE_WIDE_H

#include "export/weights.h"
#include "gumbel.h"
#include "program/constant_packing.h"

/* The program as the recipe has it, complete but for its weights; it is left as it was. */
typedef struct gb_wide_request {
    gb_program *program;
    gb_packing_order order;
    gb_weights *weights;
    const char *recipe; /* for messages */
    uint64_t size;      /* bytes that the file may have */
    gumbel_progress_callback progress;
    void *progress_user;
} gb_wide_request;

typedef struct gb_wide_choice {
    bool *is_wide; /* owned: of each constant, in the program's order */
    size_t wide, candidates;
} gb_wide_choice;

/* Matrices whose products take in the same value are widened together, since kernels compute such products
 * at once where their formats are one. Errors: ARGUMENT where the recipe has nothing that can become wider,
 * or makes a larger file by itself, with both sizes; CANCELLED; MEMORY. Free is_wide with gb_free. */
gumbel_status gb_choose_wide(const gb_wide_request *request, gb_wide_choice *choice, gumbel_error *error);

#endif
