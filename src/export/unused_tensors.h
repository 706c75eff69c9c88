/* SPDX-License-Identifier: Apache-2.0
 *
 * Which tensors of a checkpoint a program does not hold: towers for other modalities, layers left out.
 */
#ifndef GUMBEL_EXPORT_UNUSED_TENSORS_H
#define GUMBEL_EXPORT_UNUSED_TENSORS_H

#include "export/weights.h"

/* Counts them and writes how many belong to which part into text: "vision_tower 355, embed_vision 1". A part
 * is the first component of a name after "model.". checkpoint may be NULL. */
size_t gb_describe_unused(const gb_checkpoint *checkpoint, const gb_weights *weights, char *text,
                          size_t text_size);

#endif
