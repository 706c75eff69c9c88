/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of quantization.c: methods whose `quantization_config` is read in a file of its own. What is
 * refused goes into the configuration's error.
 */
#ifndef GUMBEL_EXPORT_PACKED_QUANTIZATION_METHODS_H
#define GUMBEL_EXPORT_PACKED_QUANTIZATION_METHODS_H

#include "export/packed/quantization.h"

void gb_quantization_read_gptq(const gb_config *quantization, gb_quantization *packing);
void gb_quantization_read_awq(const gb_config *quantization, gb_quantization *packing);
void gb_quantization_read_auto_round(const gb_config *quantization, gb_quantization *packing);

void gb_quantization_read_modelopt(const gb_config *quantization, gb_quantization *packing);

/* The format nvfp4-pack-quantized of compressed-tensors. */
void gb_quantization_read_compressed_nvfp4(const gb_config *quantization, gb_quantization *packing);

/* Refuses a text that is not among the known ones, of which the first is meant where the key is missing. */
void gb_config_expect_text(const gb_config *config, const char *key, const char *const *known, size_t count,
                           const char *expected);

/* Refuses an object that has any key. what: "rotated weights are" */
void gb_config_refuse_object(const gb_config *config, const char *key, const char *what);

#endif
