/* SPDX-License-Identifier: Apache-2.0
 *
 * The tensor types of ggml, by the numbers that GGUF files store: how many elements share a block, and how
 * many bytes a block takes (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md).
 */
#ifndef GUMBEL_EXPORT_CHECKPOINT_GGML_TYPES_H
#define GUMBEL_EXPORT_CHECKPOINT_GGML_TYPES_H

#include "tensor/dtype.h"

/* Numbers of the types that a program can hold or come to hold. */
enum {
    GB_GGML_F32 = 0,
    GB_GGML_F16 = 1,
    GB_GGML_Q4_0 = 2,
    GB_GGML_Q4_1 = 3,
    GB_GGML_Q5_0 = 6,
    GB_GGML_Q5_1 = 7,
    GB_GGML_Q8_0 = 8,
    GB_GGML_Q4_K = 12,
    GB_GGML_Q5_K = 13,
    GB_GGML_Q6_K = 14,
    GB_GGML_BF16 = 30
};

typedef struct gb_ggml_type {
    uint32_t number;
    const char *name;        /* "Q4_K" */
    uint32_t block_elements; /* consecutive elements of a row */
    uint32_t block_bytes;
    gb_dtype dtype; /* GB_DTYPE_NONE: no plain type of ours */
} gb_ggml_type;

/* The type of that number, or NULL. */
const gb_ggml_type *gb_ggml_type_find(uint32_t number);

#endif
