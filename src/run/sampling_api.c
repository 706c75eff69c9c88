/* SPDX-License-Identifier: Apache-2.0
 *
 * Sampling settings: their defaults, their ranges, and drawing a token or a seed on the host.
 */
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
    gumbel_sampling_defaults(&(gumbel_program){program}, settled, NULL);
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
