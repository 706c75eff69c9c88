/* SPDX-License-Identifier: Apache-2.0
 *
 * Sampling settings: their defaults, their ranges, and drawing a token or a seed on the host.
 */
#include "base/memory.h"
#include "run/handles.h"
#include "run/sampler/sampler.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

void gumbel_sampling_defaults(const gumbel_program *program, gumbel_sampling *sampling,
                              gumbel_sampling_origin *origin) {
    gumbel_sampling_origin origins = {GUMBEL_ORIGIN_DEFAULT, GUMBEL_ORIGIN_DEFAULT, GUMBEL_ORIGIN_DEFAULT};
    sampling->temperature = 0.8f;
    sampling->top_k = 0;
    sampling->top_p = 1;
    const gb_metadata *metadata = program ? &program->program->metadata : NULL;
    if (metadata && metadata->has_temperature) {
        sampling->temperature = (float)metadata->temperature;
        origins.temperature = GUMBEL_ORIGIN_PROGRAM;
    }
    if (metadata && metadata->has_top_k) {
        sampling->top_k = (int32_t)metadata->top_k;
        origins.top_k = GUMBEL_ORIGIN_PROGRAM;
    }
    if (metadata && metadata->has_top_p) {
        sampling->top_p = (float)metadata->top_p;
        origins.top_p = GUMBEL_ORIGIN_PROGRAM;
    }
    if (origin)
        *origin = origins;
}

void gb_settle_sampling(const gb_program *program, const gumbel_sampling *given, gumbel_sampling *settled) {
    *settled = (gumbel_sampling){.size = sizeof *settled};
    gumbel_sampling_defaults(program ? &(gumbel_program){program} : NULL, settled, NULL);
    if (!given)
        return;
    memcpy(settled, given, given->size < sizeof *settled ? given->size : sizeof *settled);
    settled->size = sizeof *settled;
}

gumbel_status gb_check_sampling(const gumbel_sampling *sampling, const char *where, gumbel_error *error) {
    float t = sampling->temperature, p = sampling->top_p;
    if (!(t == 0 || (t >= 1e-4f && t <= 1e4f)))
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT,
                       "%stemperature %g: expected 0 (greedy) or a number in [1e-4, 1e4]", where, (double)t);
    if (!(p > 0 && p <= 1))
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "%stop_p %g: expected a number in (0, 1]", where,
                       (double)p);
    return GUMBEL_OK;
}

gumbel_status gb_draw_seed(uint64_t *seed, gumbel_error *error) {
    if (getentropy(seed, sizeof *seed) != 0)
        return gb_fail_errno(error, errno, "drawing a seed from the system");
    return GUMBEL_OK;
}

gumbel_status gumbel_sample(const float *logits, size_t vocab_size, const gumbel_sampling *sampling,
                            uint64_t seed, int32_t *token, gumbel_error *error) {
    if (!logits || vocab_size == 0 || vocab_size >= 1 << 23)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "sample: vocab_size %zu: expected 1 to 2^23 - 1",
                       vocab_size);
    gumbel_sampling settled;
    gb_settle_sampling(NULL, sampling, &settled);
    GB_TRY(gb_check_sampling(&settled, "sample: ", error));
    void *scratch = gb_allocate_aligned(gb_sample_scratch_bytes((uint32_t)vocab_size), 1);
    if (!scratch)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "sample: no memory for a row of %zu logits", vocab_size);
    gb_row_settings settings = {settled.temperature, settled.top_k, settled.top_p, seed};
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
