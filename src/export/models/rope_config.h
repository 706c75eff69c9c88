/* SPDX-License-Identifier: Apache-2.0
 *
 * The rotary embedding of a config.json, one for all layers or for each kind of them: rope_theta, and what
 * rope_scaling or rope_parameters does to the frequencies so that a model sees further than it was first
 * trained to. One key is ours, for what GGUF files store: frequency_divisors, a number for each pair. Of
 * LongRoPE (Ding et al., 2024) both sets of frequencies are read; the exported context decides between them.
 */
#ifndef GUMBEL_EXPORT_MODELS_ROPE_CONFIG_H
#define GUMBEL_EXPORT_MODELS_ROPE_CONFIG_H

#include "export/checkpoint/config.h"

typedef struct gb_rope_config {
    double theta;             /* that they are made from */
    double *frequencies;      /* radians a position, of each pair that turns */
    double *long_frequencies; /* in their place where a context is longer than original_positions; or NULL */
    int64_t pairs;            /* the first 2 pairs dims of a head turn, i with i + pairs */
    int64_t original_positions;
    double attention_factor; /* of queries and of keys; of their dims that turn */
    double query_beta;       /* queries grow by this times log(1 + floor(position / query_positions)) */
    double query_positions;
} gb_rope_config;

/* Reads the parameters of heads of head_dim, an even number; theta is where the file has none, max_positions
 * the model's. Known types:
 * default, linear, llama3, yarn (Peng et al., "YaRN", 2023). Errors are the configuration's: FORMAT;
 * UNSUPPORTED naming another type, or a key that would change the numbers; MEMORY. Free with
 * gb_rope_config_free, also after an error. */
void gb_rope_config_read(const gb_config *text, double theta, int64_t head_dim, int64_t max_positions,
                         gb_rope_config *rope);

/* As gb_rope_config_read, for Phi: a part of each head may turn, and types are default and longrope, which
 * older files call su. */
void gb_rope_config_read_phi(const gb_config *text, double theta, int64_t head_dim, int64_t max_positions,
                             gb_rope_config *rope);

/* As gb_rope_config_read, for Ministral 3: queries may grow with their position. */
void gb_rope_config_read_ministral(const gb_config *text, double theta, int64_t head_dim,
                                   int64_t max_positions, gb_rope_config *rope);

/* Where the parameters of one kind of layers stand: in rope_parameters under its name, or as keys of the
 * model.
 */
typedef struct gb_rope_kind {
    const char *name;      /* "full_attention" */
    const char *theta_key; /* the model's own, where rope_parameters has no theta for the kind */
    double theta;          /* where neither has */
    bool has_rope_scaling; /* the model's rope_scaling is of these layers */
} gb_rope_kind;

/* As gb_rope_config_read, for layers of one kind. */
void gb_rope_config_read_kind(const gb_config *text, const gb_rope_kind *kind, int64_t head_dim,
                              int64_t max_positions, gb_rope_config *rope);

void gb_rope_config_free(gb_rope_config *rope);

#endif
