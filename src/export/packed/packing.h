/* SPDX-License-Identifier: Apache-2.0
 *
 * What config.json says about how a checkpoint's weights were quantized: MLX's `quantization`, or
 * `quantization_config` with the name of a method. The one place that decides which methods are read.
 */
#ifndef GUMBEL_EXPORT_PACKED_PACKING_H
#define GUMBEL_EXPORT_PACKED_PACKING_H

#include "export/checkpoint/config.h"

typedef enum gb_packing_method {
    GB_PACKING_NONE = 0, /* nothing is said; torchao's tensors say themselves what they are */
    GB_PACKING_MLX,
    GB_PACKING_COMPRESSED_TENSORS,
    GB_PACKING_TORCHAO
} gb_packing_method;

/* Valid while the configuration's file is open. */
typedef struct gb_packing {
    gb_packing_method method;
    gb_config quantization; /* MLX: the object with the defaults and, by module, what differs */
} gb_packing;

/* Reads what config.json, given as its root, says. Errors: FORMAT; UNSUPPORTED naming the method, mode,
 * format or strategy that is not read, and those that are. */
gumbel_status gb_packing_read(const gb_config *root, gb_packing *packing, gumbel_error *error);

/* What MLX's configuration says of one module by name. */
typedef struct gb_mlx_module {
    bool is_said; /* bits and group are set; else the tensors' shapes tell them */
    int64_t bits, group;
} gb_mlx_module;

/* Looks a module up: "model.layers.0.mlp.gate". Errors: FORMAT and UNSUPPORTED naming it. Not thread-safe. */
gumbel_status gb_packing_mlx_module(const gb_packing *packing, const char *module, gb_mlx_module *said,
                                    gumbel_error *error);

#endif
