/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensors of a GGUF file whose numbers stand as -exp(x).
 */
#ifndef GUMBEL_EXPORT_GGUF_LOGARITHM_H
#define GUMBEL_EXPORT_GGUF_LOGARITHM_H

#include "base/status.h"
#include "export/checkpoint/safetensors.h"

/* Makes x of a float32 tensor of -exp(x): its data becomes new memory, which *values also holds (gb_free;
 * NULL after an error). Errors: FORMAT and UNSUPPORTED naming the tensor, MEMORY. */
gumbel_status gb_gguf_take_logarithm(gb_tensor *tensor, float **values, gumbel_error *error);

#endif
