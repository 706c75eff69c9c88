/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of this directory share: finding the tensors of each method, the numbers in them, and the
 * choice of a format.
 */
#ifndef GUMBEL_EXPORT_PACKED_PARTS_H
#define GUMBEL_EXPORT_PACKED_PARTS_H

#include "export/packed/fp8.h"
#include "export/packed/packed.h"

enum { GB_PACKED_NAME = 400 };

/* A matrix that is looked for. */
typedef struct gb_packed_query {
    const gb_quantization *packing;
    const gb_checkpoint *checkpoint;
    const char *name;
    int32_t rank;
    const int64_t *dims;
} gb_packed_query;

/* Each sets packed but for its format. *is_found is false, and the rest undefined, where the method has no
 * tensor of the name. Errors: as gb_packed_find's. */
gumbel_status gb_packed_find_mlx(const gb_packed_query *query, gb_packed *packed, bool *is_found,
                                 gumbel_error *error);
gumbel_status gb_packed_find_compressed(const gb_packed_query *query, gb_packed *packed, bool *is_found,
                                        gumbel_error *error);
gumbel_status gb_packed_find_torchao(const gb_packed_query *query, gb_packed *packed, bool *is_found,
                                     gumbel_error *error);
gumbel_status gb_packed_find_mxfp4(const gb_packed_query *query, gb_packed *packed, bool *is_found,
                                   gumbel_error *error);
gumbel_status gb_packed_find_gptq(const gb_packed_query *query, gb_packed *packed, bool *is_found,
                                  gumbel_error *error);
gumbel_status gb_packed_find_awq(const gb_packed_query *query, gb_packed *packed, bool *is_found,
                                 gumbel_error *error);

/* Codes of 8-bit floats, whose shape is checked, and their scales, of whatever dtype and shape. Errors:
 * FORMAT. */
gumbel_status gb_fp8_find_codes(const gb_packed_query *query, gb_fp8_found *found, bool *is_found,
                                gumbel_error *error);

/* The same of MLX's mode mxfp8: what gb_fp8_find and gb_fp8_find_stack find of it. */
gumbel_status gb_mxfp8_find(const gb_packed_query *query, gb_fp8_found *found, bool *is_found,
                            gumbel_error *error);

/* Whether a tensor has the scales of that mode. */
bool gb_mxfp8_has_scales(const gb_checkpoint *checkpoint, const gb_tensor *scales);

/* The same of NVFP4 in GGUF's blocks, where a scale stands beside it. */
gumbel_status gb_nvfp4_blocks_find(const gb_packed_query *query, gb_fp8_found *found, bool *is_found,
                                   gumbel_error *error);

/* Whether codes, or NULL, are MLX's words under a name that such have. */
bool gb_packed_has_mlx_words(const gb_packed_query *query, const gb_tensor *codes);

/* Bits and group of such codes, in columns that the group divides, and in text the name of their scales,
 * which may be missing. Errors: as gb_packed_find's. */
gumbel_status gb_packed_mlx_module(const gb_packed_query *query, const gb_tensor *codes,
                                   char text[GB_PACKED_NAME], gb_mlx_module *module, gumbel_error *error);

/* Writes the name of the tensor that holds the codes of a matrix; false where there can be none. */
bool gb_packed_mlx_name(const gb_packed_query *query, char text[GB_PACKED_NAME]);
bool gb_packed_compressed_name(const gb_packed_query *query, char text[GB_PACKED_NAME]);
bool gb_packed_torchao_name(const gb_packed_query *query, char text[GB_PACKED_NAME]);
bool gb_packed_mxfp4_name(const gb_packed_query *query, char text[GB_PACKED_NAME]);
bool gb_packed_qweight_name(const gb_packed_query *query, char text[GB_PACKED_NAME]); /* GPTQ, AWQ */

/* Writes the name with `with` in place of its ending; false where it does not end so or is too long. */
bool gb_packed_rename(const char *name, const char *ending, const char *with, char text[GB_PACKED_NAME]);

/* The tensor of that name, which must be there, with this shape and one of the dtypes: names as in the file,
 * separated by a space ("F16 BF16"). `of` is the tensor that it belongs to. Errors: FORMAT. */
gumbel_status gb_packed_part(const gb_packed_query *query, const gb_tensor *of, const char *name,
                             const char *dtypes, int32_t rank, const int64_t *dims, const gb_tensor **part,
                             gumbel_error *error);

/* An error about a tensor, with the checkpoint's path before it. */
gumbel_status gb_packed_fail(const gb_packed_query *query, const gb_tensor *tensor, gumbel_status status,
                             gumbel_error *error, const char *format, ...) GB_PRINTF(5, 6);

/* The scale of a group, in the unit of the book where there is one, and its bias or zero point: counted like
 * unsigned codes; for GB_OFFSETS_NONE the center. */
float gb_packed_scale(const gb_packed *packed, uint64_t row, uint64_t group);
float gb_packed_offset(const gb_packed *packed, uint64_t row, uint64_t group);

/* How one group is written in a format of one level: w = scale (code - center) or scale code + bias, where
 * code is q + shift, or 2^bits - 1 - q if it counts down. False where that would not be exact. Both are
 * representable in the format's dtype. */
typedef struct gb_packed_group {
    float scale, bias;
    int32_t shift;
    bool counts_down;
} gb_packed_group;

bool gb_packed_fit(const gb_packed *packed, const gb_format *format, float scale, float offset,
                   gb_packed_group *group);

/* Sets the format of count matrices of the same bits, group, kind of offsets and dtype of scales to the
 * smallest that holds every group of all. Errors: UNSUPPORTED. */
gumbel_status gb_packed_choose_format(const gb_packed_query *query, gb_packed *packed, uint64_t count,
                                      gumbel_error *error);

#endif
