/* SPDX-License-Identifier: Apache-2.0
 *
 * The sampler's contract in C: docs/sampling.md says what each function must compute, bit for bit. One
 * function per node of the chain, on one row, and the fused function that gives the same token as the chain
 * without writing most of it. No function allocates; all are thread-safe on different data.
 */
#ifndef GUMBEL_BACKENDS_SAMPLER_SAMPLER_H
#define GUMBEL_BACKENDS_SAMPLER_SAMPLER_H

#include "program/setting_kinds.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What argmax gives instead of an index. */
enum { GB_TOKEN_NO_CANDIDATE = -1, GB_TOKEN_NAN = -2 };

/* The settings of roles.def that have a part in the draw, within their ranges. */
typedef struct gb_row_settings {
    uint64_t seed;
#define GB_SETTING(number, NAME, name, dtype, neutral, metadata, kind, ...)                                  \
    GB_OF_DRAW(kind)(GB_C_TYPE(dtype) name;)
#include "program/roles.def"
} gb_row_settings;

/* Biases of a row: entries up to limit or to the first negative id; ids past the row are passed over. */
typedef struct gb_bias_list {
    const int32_t *ids;
    const float *values; /* none is a NaN or +inf */
    uint32_t limit;
} gb_bias_list;

/* A token that occurred; a list of them has every token once. */
typedef struct gb_token_count {
    int32_t id, prompt, generated; /* how often in the prompt, and since */
} gb_token_count;

/* What the counts of a row do to its logits. */
enum { GB_PROMPT_REPEATS = 1, GB_PROMPT_OCCURS = 2 };
typedef struct gb_penalties {
    const gb_token_count *counts; /* up to limit or to the first negative id */
    uint32_t limit;
    float repetition;          /* above 0; 1: none */
    float frequency, presence; /* 0: none */
    int32_t prompt;            /* GB_PROMPT_ flags: which penalties the prompt's tokens count for */
} gb_penalties;

/* The fused sampler: the token that the chain would give for logits[0..count), count < 2^23, or one of the
 * two negative values. settings are within their ranges: the API refuses others. scratch:
 * gb_sample_scratch_bytes() bytes, 64-byte aligned, content arbitrary. */
int32_t gb_sample_row(const float *logits, uint32_t count, const gb_row_settings *settings, void *scratch);
size_t gb_sample_scratch_bytes(uint32_t count);

/* What a row's logits go through before a token is drawn, in this order. */
typedef struct gb_adjustments {
    gb_bias_list bias;
    gb_penalties penalties;
    const uint32_t *mask; /* bit i % 32 of word i / 32: token i is allowed; NULL: every token */
} gb_adjustments;

/* The same after adjustments. Without a mask it writes them into logits and puts the logits back, bit for
 * bit, so that the row is not copied. scratch: gb_sample_adjusted_scratch_bytes(). */
int32_t gb_sample_adjusted_row(float *logits, uint32_t count, const gb_adjustments *adjustments,
                               const gb_row_settings *settings, void *scratch);
size_t gb_sample_adjusted_scratch_bytes(uint32_t count, uint32_t bias_limit, uint32_t count_limit);

/* The nodes of the chain; ops.def has the equations. Outputs may not overlap inputs, except kept = keep. */
void gb_candidates(const float *logits, uint32_t count, bool *keep);
void gb_apply_temperature(const float *logits, uint32_t count, float temperature, float *scaled);
void gb_random_bits(uint64_t seed, uint32_t count, uint32_t *bits);
void gb_gumbel_noise(const uint32_t *bits, uint32_t count, float *noise);

/* Of each mask of roles.def, like gb_top_p_mask(const float *x, const bool *keep, uint32_t count, float
 * top_p, bool *kept). */
#define GB_SETTING(number, NAME, name, dtype, neutral, metadata, kind, ...)                                  \
    GB_OF_MASKS(kind)                                                                                        \
    (void gb_##name##_mask(const float *x, const bool *keep, uint32_t count, GB_C_TYPE(dtype) name,          \
                           bool *kept);)
#include "program/roles.def"

/* keep may be NULL: then the candidates are the values above -inf. */
int32_t gb_argmax(const float *x, const bool *keep, uint32_t count);

/* Nodes before the chain: y = the logits with their biases, under their penalties, or those of allowed tokens
 * alone. */
void gb_apply_bias(const float *logits, uint32_t count, const gb_bias_list *bias, float *y);
void gb_penalize(const float *logits, uint32_t count, const gb_penalties *penalties, float *y);
void gb_apply_mask(const float *logits, uint32_t count, const uint32_t *mask, float *y);

/* Counts the tokens of history[0..count), those from generated_from on as generated, into list, which has
 * room for limit >= count entries; a shorter list ends in an id of -1. table: gb_count_scratch_bytes(count)
 * bytes, content arbitrary. */
void gb_count_tokens(const int32_t *history, uint32_t count, uint32_t generated_from, gb_token_count *list,
                     uint32_t limit, void *table);
size_t gb_count_scratch_bytes(uint32_t count);

/* Log-probabilities, of the softmax of logits as they are. The normalizer is the largest logit and the
 * logarithm of the sum of e^(x - largest); the sum is of masses (docs/sampling.md), so its order does not
 * matter. The result is within 1e-5 of the exact one where that is above -100. An id outside of the row has
 * -inf. */
void gb_log_normalizer(const float *logits, uint32_t count, float normalizer[2]);
float gb_log_probability(const float *logits, uint32_t count, const float normalizer[2], int32_t id);

/* The ids of the limit largest logits, limit <= count; the lowest id first among equals. */
void gb_top_ids(const float *logits, uint32_t count, uint32_t limit, int32_t *ids);

#endif
