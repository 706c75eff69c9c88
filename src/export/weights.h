/* SPDX-License-Identifier: Apache-2.0
 *
 * Where the bytes of a graph's constants come from: a checkpoint's tensor as it is, numbers that the exporter
 * computed, or the random generator. While a graph is built its weights are found and checked; when it is
 * written their bytes are copied out, in pieces.
 */
#ifndef GUMBEL_EXPORT_WEIGHTS_H
#define GUMBEL_EXPORT_WEIGHTS_H

#include "export/calibrate/calibration.h"
#include "export/checkpoint/checkpoint.h"
#include "export/matrix_source.h"
#include "export/quantize/import_blocks.h"
#include "export/quantize/recipe.h"
#include "export/quantize/write_quantized.h"
#include "export/random_weights.h"
#include "program/program.h"

typedef struct gb_weights gb_weights;

/* Weights of a checkpoint, which must stay open, or, when checkpoint is NULL, random ones of that dtype and
 * seed. NULL when there is no memory. */
gb_weights *gb_weights_create(const gb_checkpoint *checkpoint, gb_dtype random_dtype, uint64_t seed);

/* Says how the checkpoint's packed matrices are quantized; packing must stay valid. Without it only tensors
 * of their own name are found. */
void gb_weights_use_quantization(gb_weights *weights, const gb_quantization *packing);

/* Matrices that are added from now on are stored as the recipe says, which must stay open; layer_count is the
 * model's. */
void gb_weights_use_recipe(gb_weights *weights, gb_recipe *recipe, uint64_t layer_count);

/* Matrices that are added from now on and quantized are quantized with its feedback; it must stay valid. */
void gb_weights_use_calibration(gb_weights *weights, gumbel_calibration *calibration);

/* Matrices that are added from now on and whose constants it marks, by their numbers, get 8 bits where the
 * recipe has a narrower format that can become wider (widths.h); it must stay valid. */
void gb_weights_widen(gb_weights *weights, const bool *is_wide);

/* How many matrices to be quantized have products that the calibration knows, and how many have others; with
 * those of an attached head (gb_weights_attach_head). */
typedef struct gb_calibrated_count {
    size_t known, others;
} gb_calibrated_count;
gb_calibrated_count gb_weights_count_calibrated(const gb_weights *weights);

/* How a product with the constant of that number takes its input: as it is unless that is quantized and the
 * recipe says so. Its rotation is the one that the constant's rows are stored with. */
gb_product_input gb_weights_input(const gb_weights *weights, uint32_t index);

/* head has the weights of these weights' draft head, and must outlive them. */
void gb_weights_attach_head(gb_weights *weights, const gb_weights *head);

/* Those of the draft head, or NULL. */
const gb_weights *gb_weights_head(const gb_weights *weights);

/* NULL is allowed. */
void gb_weights_destroy(gb_weights *weights);

/* Whether a tensor or matrix of that name can be had: random weights have every name. */
bool gb_weights_has(const gb_weights *weights, const char *name);

/* Whether the checkpoint has a tensor of that name and of just this shape. */
bool gb_weights_has_shape(const gb_weights *weights, const char *name, int32_t rank, const int64_t *dims);

/* Whether the checkpoint has a matrix of that name quantized, in several tensors. */
bool gb_weights_is_packed(const gb_weights *weights, const char *name);

/* Finds a tensor for the graph's next constant, number gb_weights_count(), and tells its dtype. uniform is
 * used when weights are random. Errors as gb_checkpoint_get's; MEMORY. */
gumbel_status gb_weights_add_tensor(gb_weights *weights, const char *name, int32_t rank, const int64_t *dims,
                                    gb_uniform uniform, gb_dtype *dtype, gumbel_error *error);

/* How a matrix is stored: dtype, and if that is GB_QUANTIZED the format. */
typedef struct gb_stored {
    gb_dtype dtype;
    gb_format format;
} gb_stored;

/* Finds what the graph's next constant, a matrix, is made from, and says how it is to be stored. *is_added is
 * false, and there is no such constant, where two tensors cannot be stacked: they have different formats.
 * Errors as gb_weights_add_tensor's and gb_packed_find's; ARGUMENT where the recipe's format does not fit, or
 * the checkpoint has the matrix quantized already; MEMORY. */
gumbel_status gb_weights_add_matrix(gb_weights *weights, const gb_matrix_request *request, gb_uniform uniform,
                                    gb_stored *stored, bool *is_added, gumbel_error *error);

/* How many requests of two tensors could not be stacked; with an attached head's. */
size_t gb_weights_unstacked_count(const gb_weights *weights);

/* The next constant holds these count float32 values, which are copied. Errors: MEMORY. */
gumbel_status gb_weights_add_values(gb_weights *weights, const float *values, size_t count,
                                    gumbel_error *error);

/* The next constant holds dims [rows, columns] float32 values, every other number of the checkpoint's tensor
 * [rows, 2 columns], from the first one on or from the second. Errors as gb_checkpoint_get's; MEMORY. */
gumbel_status gb_weights_add_in_turns(gb_weights *weights, const char *name, bool is_second,
                                      const int64_t dims[2], gumbel_error *error);

size_t gb_weights_count(const gb_weights *weights);

/* Whether some constant, or one of an attached head, is made from the checkpoint's tensor of that index
 * (gb_checkpoint_at). */
bool gb_weights_uses(const gb_weights *weights, size_t index);

/* What messages call a constant: the checkpoint's tensor as its file names it, in text, or else name. */
const char *gb_weights_name(const gb_weights *weights, uint32_t index, const char *name,
                            char text[GB_FILE_NAME]);

/* Bytes of the tensors that gb_weights_uses names; 0 when weights are random. */
uint64_t gb_weights_source_bytes(const gb_weights *weights);

/* Gives size bytes of a constant beginning at offset (both multiples of its element size): either *data
 * points at them where they are, or they are made in scratch, which holds size bytes. constant is the graph's
 * description of it. */
void gb_weights_read(const gb_weights *weights, uint32_t index, const gb_constant *constant, uint64_t offset,
                     uint64_t size, void *scratch, const void **data);

/* Says that these bytes of a constant have been read for the last time in a while. */
void gb_weights_release(const gb_weights *weights, uint32_t index, uint64_t offset, uint64_t size);

/* Whether a quantized constant is made from blocks of a GGUF file, and if so from which. */
bool gb_weights_has_blocks(const gb_weights *weights, uint32_t index, gb_block_type *type,
                           gb_stacked_bytes *blocks);

/* What a quantized constant is made from that the checkpoint has packed, or NULL. */
const gb_packed *gb_weights_packed(const gb_weights *weights, uint32_t index);

/* What any other quantized constant is made from, without feedback; and what its products take in, or NULL.
 */
gb_quantized_source gb_weights_plain_source(const gb_weights *weights, uint32_t index);
const gb_correlations *gb_weights_correlations(const gb_weights *weights, uint32_t index);

/* The same with the feedback. Its feedback is valid until the next call. Errors: MEMORY.
 */
gumbel_status gb_weights_quantized_source(const gb_weights *weights, uint32_t index,
                                          gb_quantized_source *made, gumbel_error *error);

#endif
