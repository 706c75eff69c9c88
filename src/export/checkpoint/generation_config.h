/* SPDX-License-Identifier: Apache-2.0
 *
 * What a checkpoint's authors recommend for generating: generation_config.json, and where it is silent the
 * token ids of config.json.
 */
#ifndef GUMBEL_EXPORT_CHECKPOINT_GENERATION_CONFIG_H
#define GUMBEL_EXPORT_CHECKPOINT_GENERATION_CONFIG_H

#include "export/checkpoint/config.h"
#include "program/metadata.h"

enum { GB_MAX_STOP_TOKENS = 64 };

typedef struct gb_generation_config {
    int32_t stop_tokens[GB_MAX_STOP_TOKENS]; /* each once */
    uint32_t stop_token_count;
    int32_t bos_token;       /* -1: none */
    gb_metadata recommended; /* its settings alone, those that the file has; temperature 0: do_sample false */
} gb_generation_config;

/* Reads directory/generation_config.json when it exists; token ids that it lacks come from model, the root of
 * config.json, or its text_config. Ids must be below vocab_size. Errors: IO, MEMORY, FORMAT naming file and
 * key (an error in config.json becomes that file's own as well). */
gumbel_status gb_generation_config_read(const char *directory, const gb_config *model, int64_t vocab_size,
                                        gb_generation_config *generation, gumbel_error *error);

/* The same from one object that holds all of it. */
gumbel_status gb_generation_config_from(const gb_config *config, int64_t vocab_size,
                                        gb_generation_config *generation, gumbel_error *error);

/* Adds a stop token unless it is there or the list is full. */
void gb_generation_config_add_stop(gb_generation_config *generation, int32_t token);

#endif
