/* SPDX-License-Identifier: Apache-2.0
 *
 * What a GGUF file says about generating: the ids that end and begin a text, and recommended sampling.
 */
#ifndef GUMBEL_EXPORT_GGUF_GENERATION_H
#define GUMBEL_EXPORT_GGUF_GENERATION_H

#include "export/gguf/metadata.h"

#include <jansson.h>

/* Adds to config what generation_config.json would say. The tokens that end a turn are, besides those that
 * keys name, the ones that llama.cpp knows by their spelling for this kind of tokenizer. Errors: the
 * metadata's. */
void gb_gguf_read_generation(gb_gguf_metadata *metadata, json_t *config);

#endif
