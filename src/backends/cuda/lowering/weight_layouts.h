/* SPDX-License-Identifier: Apache-2.0
 *
 * How constants lie on the device: as the kernels that are chosen for their products want it.
 */
#ifndef GUMBEL_BACKENDS_CUDA_LOWERING_WEIGHT_LAYOUTS_H
#define GUMBEL_BACKENDS_CUDA_LOWERING_WEIGHT_LAYOUTS_H

#include "program/program.h"
#include "tensor/padded_tiles.h"

typedef struct gb_cuda_weight_layout {
    gb_packing packing;   /* canonical where no kernel wants another */
    gb_format format;     /* of a quantized constant: its own, or the wider one that holds it */
    gb_planes planes;     /* of that format, and of zeros that fill its last block or tiles */
    uint64_t padded_rows; /* all of them; 0: there are none of zeros */
    bool fills_tiles;     /* of each matrix, in rows and columns (tensor/padded_tiles.h) */
    bool is_expanded;     /* to a wider format */
    bool int8_input;      /* packed, and multiplied with inputs rounded to 8 bits by groups */
} gb_cuda_weight_layout;

/* Rows of the matrix that a constant is, or is a part of; 0 where it is none. */
size_t gb_cuda_count_all_outputs(const gb_constant *constant);

/* The tiles of a constant that `fills_tiles`; false where it can have none. */
bool gb_cuda_padded_tiles(const gb_constant *constant, gb_padded_tiles *tiles);

/* Fills layouts, one for each constant; may_expand: codes of a book may become 8 bits, of twice the size
 * (runtime/expand_codes.h). Errors: MEMORY, FORMAT (a quantized constant is no matrix). */
gumbel_status gb_cuda_choose_weight_layouts(const gb_program *program, bool may_expand,
                                            gb_cuda_weight_layout *layouts, gumbel_error *error);

#endif
