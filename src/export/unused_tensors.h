/* SPDX-License-Identifier: Apache-2.0
 *
 * Which tensors of a checkpoint a program does not hold: towers for other modalities, layers left
 * out; and what belongs to a weight that was read without it: a bias, or a part of its quantization.
 */
#ifndef GUMBEL_EXPORT_UNUSED_TENSORS_H
#define GUMBEL_EXPORT_UNUSED_TENSORS_H

#include "export/weights.h"

/* Counts them, but for the scales below, and writes how many belong to which part into text: "vision_tower
 * 355, embed_vision 1". A part is the first component of a name after "model.". checkpoint and packing may be
 * NULL. */
size_t gb_describe_unused(const gb_checkpoint *checkpoint, const gb_quantization *packing,
                          const gb_weights *weights, char *text, size_t text_size);

/* How many scales of inputs and caches packing lets be left out. checkpoint may be NULL. */
size_t gb_count_left_scales(const gb_checkpoint *checkpoint, const gb_quantization *packing,
                            const gb_weights *weights);

/* Refuses a checkpoint with an unused bias, scale, zero point or order of columns beside a tensor that some
 * constant is made from: X.bias (but for zeros) or X.weight_scale beside X.weight, X.weight.absmax beside
 * X.weight, self_attn.k_scale beside self_attn.k_proj.weight. Those of parts that are left out whole are
 * fine, and those that packing, which may be NULL, lets be left out. checkpoint may be NULL. Errors:
 * UNSUPPORTED naming both tensors; MEMORY. */
gumbel_status gb_refuse_unused_companions(const gb_checkpoint *checkpoint, const gb_quantization *packing,
                                          const gb_weights *weights, gumbel_error *error);

#endif
