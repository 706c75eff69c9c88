/* SPDX-License-Identifier: Apache-2.0
 *
 * Sampling settings: their defaults, their ranges, and drawing a token or a seed on the host.
 */
#include "base/memory.h"
#include "run/handles.h"
#include "run/sampler/rule.h"
#include "run/sampler/sampler.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

/* gumbel_sampling as it was in the first release: its fields, and the bytes of padding behind them, where
 * `penalized` is now. */
enum {
    FIRST_SAMPLING_FIELDS = offsetof(gumbel_sampling, penalized),
    FIRST_SAMPLING_SIZE = offsetof(gumbel_sampling, min_p)
};

/* Bytes of a caller's structure that mean something. */
static size_t known_bytes(const gumbel_sampling *sampling) {
    if (sampling->size <= FIRST_SAMPLING_SIZE)
        return sampling->size < FIRST_SAMPLING_FIELDS ? sampling->size : FIRST_SAMPLING_FIELDS;
    return sampling->size < sizeof *sampling ? sampling->size : sizeof *sampling;
}

/* A recommended number takes the place of the built-in one. */
static void recommend(bool given, double value, float *setting, gumbel_origin *origin) {
    if (!given)
        return;
    *setting = (float)value;
    *origin = GUMBEL_ORIGIN_PROGRAM;
}

static void recommend_all(const gb_metadata *metadata, gumbel_sampling *sampling,
                          gumbel_sampling_origin *origin) {
    const gb_metadata *m = metadata;
    recommend(m->has_temperature, m->temperature, &sampling->temperature, &origin->temperature);
    recommend(m->has_top_p, m->top_p, &sampling->top_p, &origin->top_p);
    recommend(m->has_min_p, m->min_p, &sampling->min_p, &origin->min_p);
    recommend(m->has_presence_penalty, m->presence_penalty, &sampling->presence_penalty,
              &origin->presence_penalty);
    recommend(m->has_frequency_penalty, m->frequency_penalty, &sampling->frequency_penalty,
              &origin->frequency_penalty);
    recommend(m->has_repetition_penalty, m->repetition_penalty, &sampling->repetition_penalty,
              &origin->repetition_penalty);
    if (m->has_top_k) {
        sampling->top_k = (int32_t)m->top_k;
        origin->top_k = GUMBEL_ORIGIN_PROGRAM;
    }
}

void gumbel_sampling_defaults(const gumbel_program *program, gumbel_sampling *sampling,
                              gumbel_sampling_origin *origin) {
    gumbel_sampling_origin origins = {.temperature = GUMBEL_ORIGIN_DEFAULT};
    gumbel_sampling settings = {
        .size = sampling->size, .temperature = 0.8f, .top_p = 1, .repetition_penalty = 1};
    if (program)
        recommend_all(&program->program->metadata, &settings, &origins);
    memcpy(sampling, &settings, known_bytes(sampling));
    if (origin)
        memcpy(origin, &origins,
               sampling->size > FIRST_SAMPLING_SIZE ? sizeof origins
                                                    : offsetof(gumbel_sampling_origin, min_p));
}

void gb_settle_sampling(const gb_program *program, const gumbel_sampling *given, gumbel_sampling *settled) {
    *settled = (gumbel_sampling){.size = sizeof *settled};
    gumbel_sampling_defaults(program ? &(gumbel_program){program} : NULL, settled, NULL);
    if (!given)
        return;
    /* Whoever gives settings means those alone: what an older structure lacks is not the program's to say. */
    memset((char *)settled + FIRST_SAMPLING_FIELDS, 0, sizeof *settled - FIRST_SAMPLING_FIELDS);
    memcpy(settled, given, known_bytes(given));
    settled->size = sizeof *settled;
    if (settled->repetition_penalty == 0)
        settled->repetition_penalty = 1;
}

bool gb_has_penalties(const gumbel_sampling *sampling) {
    return sampling->presence_penalty != 0 || sampling->frequency_penalty != 0 ||
           sampling->repetition_penalty != 1;
}

/* The comparison is false for a NaN. */
static gumbel_status check_range(const char *where, const char *name, float value, float least, float most,
                                 gumbel_error *error) {
    if (!(value >= least && value <= most))
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "%s%s %g: expected a number in [%g, %g]", where, name,
                       (double)value, (double)least, (double)most);
    return GUMBEL_OK;
}

gumbel_status gb_check_sampling(const gumbel_sampling *sampling, const char *where, gumbel_error *error) {
    float t = sampling->temperature, p = sampling->top_p;
    if (!(t == 0 || (t >= 1e-4f && t <= 1e4f)))
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT,
                       "%stemperature %g: expected 0 (greedy) or a number in [1e-4, 1e4]", where, (double)t);
    if (!(p > 0 && p <= 1))
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "%stop_p %g: expected a number in (0, 1]", where,
                       (double)p);
    GB_TRY(check_range(where, "min_p", sampling->min_p, 0, 1, error));
    GB_TRY(check_range(where, "presence_penalty", sampling->presence_penalty, -2, 2, error));
    GB_TRY(check_range(where, "frequency_penalty", sampling->frequency_penalty, -2, 2, error));
    GB_TRY(check_range(where, "repetition_penalty", sampling->repetition_penalty, 0.01f, 100, error));
    if ((unsigned)sampling->penalized > GUMBEL_PENALIZED_ALL)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "%spenalized %d: expected 0, 1 or 2", where,
                       (int)sampling->penalized);
    return GUMBEL_OK;
}

gumbel_status gb_draw_seed(uint64_t *seed, gumbel_error *error) {
    if (getentropy(seed, sizeof *seed) != 0)
        return gb_fail_errno(error, errno, "drawing a seed from the system");
    return GUMBEL_OK;
}

static void add_biases(const float *logits, size_t vocab_size, const gumbel_sampling *sampling,
                       float *biased) {
    memcpy(biased, logits, vocab_size * sizeof *biased);
    for (size_t i = 0; i < sampling->bias_count; i++) {
        const gumbel_bias *bias = &sampling->bias[i];
        biased[bias->token] = gb_biased(biased[bias->token], bias->value);
    }
}

gumbel_status gumbel_sample(const float *logits, size_t vocab_size, const gumbel_sampling *sampling,
                            uint64_t seed, int32_t *token, gumbel_error *error) {
    if (!logits || vocab_size == 0 || vocab_size >= 1 << 23)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "sample: vocab_size %zu: expected 1 to 2^23 - 1",
                       vocab_size);
    gumbel_sampling settled;
    gb_settle_sampling(NULL, sampling, &settled);
    GB_TRY(gb_check_sampling(&settled, "sample: ", error));
    GB_TRY(gb_check_bias(&settled, vocab_size, "sample: ", error));
    if (gb_has_penalties(&settled))
        return gb_fail(error, GUMBEL_ERROR_UNSUPPORTED,
                       "sample: penalties need a session, whose tokens they count: use gumbel_step");
    size_t scratch_bytes = gb_sample_scratch_bytes((uint32_t)vocab_size);
    size_t copy_bytes = settled.bias_count > 0 ? vocab_size * sizeof(float) : 0;
    void *scratch = gb_allocate_aligned(scratch_bytes + copy_bytes, 1);
    if (!scratch)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "sample: no memory for a row of %zu logits", vocab_size);
    if (copy_bytes > 0) {
        float *biased = (float *)scratch + scratch_bytes / sizeof(float);
        add_biases(logits, vocab_size, &settled, biased);
        logits = biased;
    }
    gb_row_settings settings = {.temperature = settled.temperature,
                                .top_k = settled.top_k,
                                .top_p = settled.top_p,
                                .min_p = settled.min_p,
                                .seed = seed};
    int32_t drawn = gb_sample_row(logits, (uint32_t)vocab_size, &settings, scratch);
    gb_free(scratch);
    if (drawn < 0)
        return gb_fail(error, GUMBEL_ERROR_NUMERIC, "sample: %s", gb_token_problem(drawn));
    *token = drawn;
    return GUMBEL_OK;
}

const char *gb_token_problem(int32_t token) {
    return token == GB_TOKEN_NAN ? "the logits have a NaN" : "the logits have no candidate: all are -inf";
}
