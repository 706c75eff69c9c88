/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensors that belong to a weight that a program holds, and that it was read without: a bias, or what belongs
 * to the weight's quantization.
 */
#ifndef GUMBEL_EXPORT_UNUSED_COMPANIONS_H
#define GUMBEL_EXPORT_UNUSED_COMPANIONS_H

#include "export/weights.h"

/* Refuses a checkpoint with an unused bias, scale, zero point or order of columns beside a tensor that some
 * constant is made from: X.bias or X.weight_scale beside X.weight, X.weight.absmax beside X.weight,
 * self_attn.k_scale beside self_attn.k_proj.weight. Those of parts that are left out whole are fine.
 * checkpoint may be NULL. Errors: UNSUPPORTED naming both tensors; MEMORY. */
gumbel_status gb_refuse_unused_companions(const gb_checkpoint *checkpoint, const gb_weights *weights,
                                          gumbel_error *error);

#endif
