/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds matrices that a checkpoint holds as 8-bit floats, or NVFP4, with scales. They are numbers and not
 * codes of a format of ours: a recipe may quantize them, as it does bfloat16.
 */
#ifndef GUMBEL_EXPORT_PACKED_FP8_H
#define GUMBEL_EXPORT_PACKED_FP8_H

#include "export/checkpoint/checkpoint.h"
#include "export/packed/quantization.h"
#include "export/quantize/fp8_rows.h"

/* A tensor [rows, columns] of F8_E4M3, or of NVFP4 in bytes, with what its scales are in. */
typedef struct gb_fp8_found {
    const gb_tensor *codes, *scales;
    const gb_tensor *global; /* of NVFP4: the scale of the scales; else NULL */
    gb_fp8 matrix;
} gb_fp8_found;

/* Looks for the matrix of that name and shape. *is_found is false where packing, which may be NULL, knows no
 * such matrices, or the tensor is of another dtype. Errors: FORMAT naming the tensor that is missing or does
 * not fit the other. */
gumbel_status gb_fp8_find(const gb_quantization *packing, const gb_checkpoint *checkpoint, const char *name,
                          const int64_t dims[2], gb_fp8_found *found, bool *is_found, gumbel_error *error);

/* The same of one tensor [experts, rows, columns]; the matrix found is the first expert's (fp8_stack.c). */
gumbel_status gb_fp8_find_stack(const gb_quantization *packing, const gb_checkpoint *checkpoint,
                                const char *name, const int64_t dims[3], gb_fp8_found *found, bool *is_found,
                                gumbel_error *error);

/* What stands in a GGUF beside blocks of NVFP4: their ".scale" or ".input_scale", or NULL. codes may be any
 * tensor, or NULL. */
const gb_tensor *gb_nvfp4_companion(const gb_checkpoint *checkpoint, const gb_tensor *codes,
                                    const char *ending);

/* The matrix of one of `count` experts. */
gb_fp8 gb_fp8_member(const gb_fp8_found *stack, uint64_t count, uint64_t index);

/* The same of NVFP4 alone (nvfp4.c). */
gumbel_status gb_nvfp4_find(const gb_quantization *packing, const gb_checkpoint *checkpoint, const char *name,
                            const int64_t dims[2], gb_fp8_found *found, bool *is_found, gumbel_error *error);

/* Whether there is such a matrix of NVFP4, of whatever shape. packing may be NULL. */
bool gb_fp8_has(const gb_quantization *packing, const gb_checkpoint *checkpoint, const char *name);

#endif
