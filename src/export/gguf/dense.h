/* SPDX-License-Identifier: Apache-2.0
 *
 * What the plain decoders' architectures share.
 */
#ifndef GUMBEL_EXPORT_GGUF_DENSE_H
#define GUMBEL_EXPORT_GGUF_DENSE_H

#include "export/gguf/metadata.h"

/* Fills config with a plain decoder's sizes, and with rope_parameters for all its layers; a
 * num_key_value_heads that it has stays. Returns how many layers there are; 0 after an error, which is the
 * metadata's. */
size_t gb_gguf_configure_decoder(gb_gguf_metadata *metadata, const char *model_type, json_t *config);

/* Granite's multipliers, of a config with those sizes; each is 1, and that of scores as usual, where the file
 * lacks it. Errors: the metadata's. */
void gb_gguf_write_multipliers(gb_gguf_metadata *metadata, json_t *config);

#endif
