/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensors of a GGUF file led back to what they are in the Hugging Face checkpoint that it was made from.
 */
#ifndef GUMBEL_EXPORT_GGUF_CHANGES_H
#define GUMBEL_EXPORT_GGUF_CHANGES_H

#include "base/status.h"
#include "export/checkpoint/safetensors.h"
#include "export/gguf/names.h"

/* Undoes a change: dims are added in place; where numbers change, tensor->data becomes new memory, which
 * *values also holds (gb_free). tensor has the file's own name. Errors: FORMAT and UNSUPPORTED naming the
 * tensor, MEMORY. A tensor of another rank than the change leaves is kept: the graph finds its shape wrong.
 */
gumbel_status gb_gguf_undo(gb_gguf_change change, gb_tensor *tensor, float **values, gumbel_error *error);

#endif
