/* SPDX-License-Identifier: Apache-2.0
 *
 * Matrices that a safetensors checkpoint holds quantized, as several tensors each: codes, scales, and biases
 * or zero points. They become a format of ours without changing a weight; where none holds a matrix exactly
 * that is an error.
 *
 *     MLX                  NAME.weight (packed), NAME.scales, NAME.biases: w = scale q + bias
 *     compressed-tensors   NAME.weight_packed, weight_scale, weight_zero_point, weight_shape
 *     torchao              the Int4Tensor and IntxUnpackedToInt8Tensor of NAME.weight as
 *                          NAME._weight_qdata, _weight_scale, _weight_zero_point: w = scale (q - zero)
 *     GPTQ, AWQ            NAME.qweight, qzeros, scales, g_idx, all transposed: w = scale (q - zero)
 *     MXFP4                NAME_blocks and NAME_scales of gpt-oss; MLX has modes of that name and NVFP4's
 *
 * A whole zero point z has an exact place: it is the center 2^(bits - 1); or scale z fits the 16 bits of a
 * bias; or, 15 - q counting down from the other end, scale (15 - z) does; or q - z gets a fifth bit.
 */
#ifndef GUMBEL_EXPORT_PACKED_PACKED_H
#define GUMBEL_EXPORT_PACKED_PACKED_H

#include "export/checkpoint/checkpoint.h"
#include "export/packed/quantization.h"
#include "export/quantize/import_blocks.h"
#include "export/stacking.h"
#include "tensor/format.h"

enum { GB_PACKED_PARTS = 2 }; /* that can be stacked: gate and up */

typedef enum gb_packed_offsets {
    GB_OFFSETS_NONE = 0,  /* weights are scale (q - 2^(bits - 1)) */
    GB_OFFSETS_BIASES,    /* floats like the scales: scale q + bias */
    GB_OFFSETS_FLOATS,    /* zero points: floats like the scales */
    GB_OFFSETS_BYTES,     /* signed bytes [rows, groups], -2^(bits - 1) taken from the zero point */
    GB_OFFSETS_WORDS,     /* as the codes, but packed along the rows: [rows / codes in a word, groups] */
    GB_OFFSETS_TRANSPOSED /* the same transposed: [groups, rows / codes in a word] */
} gb_packed_offsets;

typedef enum gb_packed_layout {
    GB_LAYOUT_ROWS = 0,
    GB_LAYOUT_WORDS_OF_COLUMNS, /* GPTQ: [columns / codes in a word, rows] */
    GB_LAYOUT_WORDS_OF_ROWS /* AWQ: [columns, rows / 8], the rows of a word in the order 0 2 4 6 1 3 5 7 */
} gb_packed_layout;

/* A matrix [rows, columns], or several stacked. Codes are unsigned and packed as in format.h, or signed bytes
 * of which -2^7 was taken. Scales are f32, f16 or bf16; beside a book exponents. */
typedef struct gb_packed {
    const gb_tensor *codes, *scales;
    const gb_tensor *offsets, *shape, *group_index; /* or NULL */
    gb_packed_offsets offset_kind;
    uint32_t offset_step; /* what is added to a stored zero point of words */
    gb_packed_layout layout;
    bool has_signed_codes;
    gb_code_book book;                 /* E2M1: codes are its numbers, scale s of a byte is 2^(s - 127) */
    bool has_float_scales;             /* beside the book: such a byte is E4M3 */
    uint32_t bits;                     /* of a code: 4, 5, 6 or 8 */
    uint64_t rows, columns, group;     /* of the tensors; group divides columns */
    uint64_t row_pairs;                /* of so many rows and so many others, which stand in turns; or 0 */
    uint64_t first_row;                /* where the matrix is a part of them: its first row */
    uint64_t row_stride, group_stride; /* of scales and of float offsets, in elements */
    gb_format format;                  /* that holds every weight exactly */
    struct gb_packed *members; /* NULL; or the matrices of a stack, owned: then the tensors are theirs */
    gb_stacking stacking;      /* of the members' rows */
} gb_packed;

/* Looks for the matrix of that name and shape. A stack may stand as one matrix for each expert
 * (expert_names.h). *is_found is false where no packed tensor has the name. Errors: FORMAT naming the tensor
 * that is missing or does not fit the others; UNSUPPORTED naming what no format holds; MEMORY. Reads all
 * scales and zero points once where that takes a look at them. Free with gb_packed_free, also after an error.
 * Not thread-safe. */
gumbel_status gb_packed_find(const gb_quantization *packing, const gb_checkpoint *checkpoint,
                             const char *name, int32_t rank, const int64_t *dims, gb_packed *packed,
                             bool *is_found, gumbel_error *error);

/* Stacks two matrices of one shape, `run` rows of each in turns. *is_stacked is false, and nothing changes,
 * where no format holds both; otherwise whole has what they owned. Errors: MEMORY. */
gumbel_status gb_packed_stack(const gb_quantization *packing, const gb_checkpoint *checkpoint,
                              gb_packed parts[GB_PACKED_PARTS], uint64_t run, gb_packed *whole,
                              bool *is_stacked, gumbel_error *error);

/* Makes a found matrix, of which there is no stack, one of some of its rows: count runs of `run` rows, which
 * begin at `firsts`. Errors: MEMORY. */
gumbel_status gb_packed_take_runs(gb_packed *packed, const uint64_t *firsts, uint64_t count, uint64_t run,
                                  gumbel_error *error);

void gb_packed_free(gb_packed *packed);

/* Whether a packed tensor has that name, of whatever shape. */
bool gb_packed_has(const gb_quantization *packing, const gb_checkpoint *checkpoint, const char *name);

/* Whether any matrix of the checkpoint is packed. */
bool gb_packed_has_any(const gb_quantization *packing, const gb_checkpoint *checkpoint);

/* Calls visit with each tensor that is a part of it. */
void gb_packed_visit(const gb_packed *packed, gb_tensor_visit visit, void *user);

/* Rearranges rows first .. first + count - 1 into planes of the format, to[0] .. to[count - 1]. Many at once
 * are faster where the tensors are transposed. Thread-safe. */
void gb_packed_rows(const gb_packed *packed, uint64_t first, uint64_t count, const gb_imported_row *to);

/* Says that rows first .. first + count - 1 have been read for the last time in a while. */
void gb_packed_release(const gb_packed *packed, uint64_t first, uint64_t count);

#endif
