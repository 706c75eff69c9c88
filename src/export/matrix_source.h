/* SPDX-License-Identifier: Apache-2.0
 *
 * What a matrix of the graph is made from in a checkpoint: one tensor, a stack of several, or tensors that
 * hold it quantized.
 */
#ifndef GUMBEL_EXPORT_MATRIX_SOURCE_H
#define GUMBEL_EXPORT_MATRIX_SOURCE_H

#include "export/packed/fp8.h"
#include "export/packed/packed.h"
#include "export/stacking.h"

/* A matrix of the graph, and what it is made from in the checkpoint. */
typedef struct gb_matrix_request {
    const char *name;                     /* of the constant */
    const char *rule_name;                /* the recipe goes by it; NULL: by the constant's */
    const char *tensors[GB_PACKED_PARTS]; /* one of the matrix's shape; or two that each have half of its
                                            rows, stacked along the last dim but one */
    int32_t rank;
    const int64_t *dims; /* of the matrix */
    bool is_table;       /* its rows are looked up and not multiplied: they are not rotated */
    bool is_gate;        /* its few results decide over others: its inputs are not rounded to bfloat16 */
    int64_t
        whole_rows; /* of the first tensor, where the matrix [rows, columns] is a part of it; 0: it is all */
    int64_t first_row; /* of the part */
    const gb_row_runs
        *runs; /* the part's rows in their order, where they do not stand together; NULL: they do */
    size_t run_count;
} gb_matrix_request;

/* Either tensors of one dtype, or packed, or, of random weights, neither. */
typedef struct gb_matrix_source {
    const gb_tensor **tensors; /* owned */
    size_t tensor_count;
    gb_fp8 *fp8;              /* owned: of each tensor; NULL: they are no 8-bit floats */
    const gb_tensor **scales; /* owned: the same tensors', then the scales' own, or NULL, of each */
    const uint8_t **parts;    /* owned: where each part's first row is */
    gb_stacking stacking;
    bool is_packed;
    gb_packed packed; /* owned */
} gb_matrix_source;

/* Finds what a request names. A stack of experts may stand as one tensor for each expert (expert_names.h).
 * packing may be NULL. *is_found is false where two tensors cannot be stacked: they are stored in different
 * ways. Errors as gb_checkpoint_get_matrix's and gb_packed_find's. Free with gb_matrix_source_free, also
 * after an error. */
gumbel_status gb_matrix_source_find(const gb_checkpoint *checkpoint, const gb_quantization *packing,
                                    const gb_matrix_request *request, gb_matrix_source *source,
                                    bool *is_found, gumbel_error *error);

/* The same of a tensor that has been found. Errors: MEMORY. */
gumbel_status gb_matrix_source_of(const gb_tensor *tensor, gb_matrix_source *source, gumbel_error *error);

/* Safe on a zeroed structure and twice. */
void gb_matrix_source_free(gb_matrix_source *source);

/* Whether the checkpoint has what a request may name so. packing may be NULL. */
bool gb_matrix_source_exists(const gb_checkpoint *checkpoint, const gb_quantization *packing,
                             const char *name);

/* Calls visit with each tensor that is a part of it. */
void gb_matrix_source_visit(const gb_matrix_source *source, gb_tensor_visit visit, void *user);

/* What a dense constant made from the tensors has: of 8-bit floats bfloat16. */
gb_dtype gb_matrix_source_dtype(const gb_matrix_source *source);

/* What holds the tensors' blocks, or NULL where they have none. */
const gb_block_info *gb_matrix_source_blocks(const gb_matrix_source *source);

#endif
