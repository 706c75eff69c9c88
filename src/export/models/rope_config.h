/* SPDX-License-Identifier: Apache-2.0
 *
 * The rotary embedding of a config.json that has one for all layers: rope_theta, and what rope_scaling or
 * rope_parameters does to the frequencies so that a model sees further than it was first trained to. One key
 * is ours, for what GGUF files store: frequency_divisors, a number for each pair.
 */
#ifndef GUMBEL_EXPORT_MODELS_ROPE_CONFIG_H
#define GUMBEL_EXPORT_MODELS_ROPE_CONFIG_H

#include "export/checkpoint/config.h"

typedef struct gb_rope_config {
    double *frequencies;     /* radians a position, of each of a head's head_dim / 2 pairs */
    double attention_factor; /* of queries and of keys */
} gb_rope_config;

/* Reads the parameters of heads of head_dim, an even number; max_positions is the model's. Known types:
 * default, linear, llama3, yarn (Peng et al., "YaRN", 2023). Errors are the configuration's: FORMAT;
 * UNSUPPORTED naming another type, or a key that would change the numbers; MEMORY. Free with
 * gb_rope_config_free, also after an error. */
void gb_rope_config_read(const gb_config *text, int64_t head_dim, int64_t max_positions,
                         gb_rope_config *rope);

void gb_rope_config_free(gb_rope_config *rope);

#endif
