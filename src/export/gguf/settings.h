/* SPDX-License-Identifier: Apache-2.0
 *
 * Settings that the architectures of GGUF files share, on their way into a config.json. Errors are the
 * metadata's.
 */
#ifndef GUMBEL_EXPORT_GGUF_SETTINGS_H
#define GUMBEL_EXPORT_GGUF_SETTINGS_H

#include "export/gguf/metadata.h"

enum { GB_GGUF_LAYERS = 1024 }; /* of a file, at most */

/* block_count, 1 to GB_GGUF_LAYERS; 0 after an error. */
size_t gb_gguf_need_layers(gb_gguf_metadata *metadata);

/* The head's size stands several times: a key that is there must say what is expected. */
void gb_gguf_need_equal(gb_gguf_metadata *metadata, const char *key, int64_t expected);

/* Copies an integer that must be there into config, under a name of its own. */
void gb_gguf_copy_integer(gb_gguf_metadata *metadata, const char *key, json_t *config, const char *name);

/* The same for one that all layers agree on, which it returns. */
int64_t gb_gguf_copy_uniform(gb_gguf_metadata *metadata, const char *key, size_t layers, json_t *config,
                             const char *name);

/* The one number of those layers whose value is above 0; 0: none is. Different ones are an error. */
int64_t gb_gguf_common(gb_gguf_metadata *metadata, const char *key, const int64_t *values, size_t count);

/* vocab_size, which only the embedding's shape tells, and tie_word_embeddings: there is no output tensor. */
void gb_gguf_write_vocabulary(gb_gguf_metadata *metadata, json_t *config);

/* layer_types, and sliding_window where there is one: a list of the layers that slide, or the length of a
 * pattern whose last layer does not, of `pattern` layers where the key is missing. */
void gb_gguf_write_windows(gb_gguf_metadata *metadata, size_t layers, int64_t pattern, json_t *config);

/* Refuse what none of these models has: attention that looks ahead, experts whose sum is scaled, and, in the
 * last, scaled rotary embedding besides attention that looks ahead. */
void gb_gguf_refuse_lookahead(gb_gguf_metadata *metadata);
void gb_gguf_refuse_scaled_experts(gb_gguf_metadata *metadata);

/* Of models whose router scores experts by sigmoids: another function is an error. */
void gb_gguf_need_sigmoids(gb_gguf_metadata *metadata);

void gb_gguf_refuse_variants(gb_gguf_metadata *metadata);

#endif
