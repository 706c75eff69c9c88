/* SPDX-License-Identifier: Apache-2.0
 *
 * What the plain decoders' architectures share.
 */
#ifndef GUMBEL_EXPORT_GGUF_DENSE_H
#define GUMBEL_EXPORT_GGUF_DENSE_H

#include "export/gguf/metadata.h"

/* Fills config with a plain decoder's sizes, and with rope_parameters for all its layers. Returns how many
 * layers there are; 0 after an error, which is the metadata's. */
size_t gb_gguf_configure_decoder(gb_gguf_metadata *metadata, const char *model_type, json_t *config);

#endif
