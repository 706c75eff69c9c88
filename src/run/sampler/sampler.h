/* SPDX-License-Identifier: Apache-2.0
 *
 * The sampler's contract in C: docs/sampling.md says what each function must compute, bit for bit. One
 * function per node of the chain, on one row, and the fused function that gives the same token as the chain
 * without writing most of it. No function allocates; all are thread-safe on different data.
 */
#ifndef GUMBEL_RUN_SAMPLER_SAMPLER_H
#define GUMBEL_RUN_SAMPLER_SAMPLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What argmax gives instead of an index. */
enum { GB_TOKEN_NO_CANDIDATE = -1, GB_TOKEN_NAN = -2 };

typedef struct gb_row_settings {
    float temperature; /* 0 or within [1e-4, 1e4] */
    int32_t top_k;
    float top_p; /* within (0, 1] */
    uint64_t seed;
} gb_row_settings;

/* The fused sampler: the token that the chain would give for logits[0..count), count < 2^23, or one of the
 * two negative values. settings are within their ranges: the API refuses others. scratch:
 * gb_sample_scratch_bytes() bytes, 64-byte aligned, content arbitrary. */
int32_t gb_sample_row(const float *logits, uint32_t count, const gb_row_settings *settings, void *scratch);
size_t gb_sample_scratch_bytes(uint32_t count);

/* The nodes of the chain; ops.def has the equations. Outputs may not overlap inputs, except kept = keep. */
void gb_candidates(const float *logits, uint32_t count, bool *keep);
void gb_apply_temperature(const float *logits, uint32_t count, float temperature, float *scaled);
void gb_top_k_mask(const float *x, const bool *keep, uint32_t count, int32_t top_k, bool *kept);
void gb_top_p_mask(const float *x, const bool *keep, uint32_t count, float top_p, bool *kept);
void gb_random_bits(uint64_t seed, uint32_t count, uint32_t *bits);
void gb_gumbel_noise(const uint32_t *bits, uint32_t count, float *noise);

/* keep may be NULL: then the candidates are the values above -inf. */
int32_t gb_argmax(const float *x, const bool *keep, uint32_t count);

#endif
