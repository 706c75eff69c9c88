/* SPDX-License-Identifier: Apache-2.0
 *
 * What config.json says about how a checkpoint's weights were quantized: MLX's `quantization`, or
 * `quantization_config` with the name of a method. The one place that decides which methods are read.
 */
#ifndef GUMBEL_EXPORT_PACKED_QUANTIZATION_H
#define GUMBEL_EXPORT_PACKED_QUANTIZATION_H

#include "export/checkpoint/config.h"

typedef enum gb_quantization_method {
    GB_QUANTIZATION_NONE = 0, /* nothing is said; torchao's tensors say themselves what they are */
    GB_QUANTIZATION_MLX,
    GB_QUANTIZATION_COMPRESSED_TENSORS,
    GB_QUANTIZATION_TORCHAO,
    GB_QUANTIZATION_MXFP4,
    GB_QUANTIZATION_GPTQ,
    GB_QUANTIZATION_AWQ,
    GB_QUANTIZATION_FP8,  /* nothing is packed, but weights may be 8-bit floats */
    GB_QUANTIZATION_NVFP4 /* the same of 4-bit floats */
} gb_quantization_method;

/* Valid while the configuration's file is open. */
typedef struct gb_quantization {
    gb_quantization_method method;
    gb_config quantization; /* MLX: the object with the defaults and, by module, what differs */
    const char *fp8_scales; /* how the names of 8-bit floats' scales go on from the weights'; NULL: there are
                               none */
    const char *fp8_other_scales;       /* what other writers of the method call them, or NULL */
    int64_t fp8_block[2];               /* rows and columns of such a scale; 0: all, or all of a row */
    const char *fp4_codes, *fp4_global; /* NVFP4: how names go on from a module's */
    bool fp4_divides;                   /* scales are divided by the global one */
    bool leaves_input_scales; /* stored scales of inputs and caches, which stay as they are, are left */
    bool zeros_are_less_one;  /* GPTQ: zero points are stored minus 1 */
    bool may_sort_columns;    /* GPTQ: columns may have been sorted before they were grouped */
} gb_quantization;

/* Reads what config.json, given as its root, says. Errors: FORMAT; UNSUPPORTED naming the method, mode,
 * format or strategy that is not read, and those that are. */
gumbel_status gb_quantization_read(const gb_config *root, gb_quantization *packing, gumbel_error *error);

/* The same of the file that modelopt's older checkpoints have beside a config.json that says nothing:
 * hf_quant_config.json, which may be missing. Errors also: IO, MEMORY. */
gumbel_status gb_quantization_read_beside(const char *directory, gb_quantization *packing,
                                          gumbel_error *error);

/* Whether a tensor with that last component of its name is a scale that the configuration lets be left out.
 */
bool gb_quantization_leaves(const gb_quantization *packing, const char *component);

/* What MLX's configuration says of one module by name. */
typedef struct gb_mlx_module {
    bool is_said; /* bits and group are set; else the tensors' shapes tell them */
    int64_t bits, group;
} gb_mlx_module;

/* Looks a module up: "model.layers.0.mlp.gate". Errors: FORMAT and UNSUPPORTED naming it. Not thread-safe. */
gumbel_status gb_quantization_mlx_module(const gb_quantization *packing, const char *module,
                                         gb_mlx_module *said, gumbel_error *error);

#endif
