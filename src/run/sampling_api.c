/* SPDX-License-Identifier: Apache-2.0
 *
 * Sampling settings: their defaults, their ranges, and drawing a token or a seed on the host.
 */
#include "backends/sampler/rule.h"
#include "backends/sampler/sampler.h"
#include "base/memory.h"
#include "base/portable.h"
#include "base/versioned.h"
#include "program/settings.h"
#include "run/handles.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- The list of settings ------------------------------------------------------------------------------ */

const gumbel_setting *gumbel_setting_at(size_t index) {
    return index < GB_SETTING_COUNT ? &gb_settings[index].shown : NULL;
}

static const gb_setting *whole(const gumbel_setting *shown) {
    return (const gb_setting *)(const void *)shown; /* its first field */
}

/* A caller's version of the structure may end before the field. */
static bool has_field(const gumbel_sampling *sampling, const gumbel_setting *setting) {
    return sampling->size >= setting->offset + sizeof(float);
}

double gumbel_setting_get(const gumbel_setting *setting, const gumbel_sampling *sampling) {
    return has_field(sampling, setting) ? gb_setting_get(whole(setting), sampling) : setting->neutral;
}

static gumbel_status check_range(const gb_setting *setting, double value, const char *where,
                                 gumbel_error *error) {
    char range[GB_RANGE_TEXT];
    if (gb_setting_accepts(setting, value))
        return GUMBEL_OK;
    return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "%s%s %g: expected %s", where, setting->shown.name, value,
                   gb_setting_range(setting, range));
}

gumbel_status gumbel_setting_set(const gumbel_setting *setting, double value, gumbel_sampling *sampling,
                                 gumbel_error *error) {
    GB_TRY(check_range(whole(setting), value, "", error));
    if (!has_field(sampling, setting))
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "sampling: its %zu bytes have no field %s",
                       sampling->size, setting->name);
    gb_setting_put(whole(setting), value, sampling);
    return GUMBEL_OK;
}

bool gumbel_setting_is_recommended(const gumbel_setting *setting, const gumbel_program *program) {
    double value;
    return gb_recommended(whole(setting), &program->program->metadata, &value);
}

/* ---- Whole settings ------------------------------------------------------------------------------------ */

static gumbel_sampling defaults_of(const gb_program *program) {
    gumbel_sampling sampling = {.size = sizeof sampling};
    for (size_t i = 0; i < GB_SETTING_COUNT; i++) {
        double value;
        if (!program || !gb_recommended(&gb_settings[i], &program->metadata, &value))
            value = gb_settings[i].shown.built_in;
        gb_setting_put(&gb_settings[i], value, &sampling);
    }
    return sampling;
}

gumbel_status gumbel_sampling_defaults(const gumbel_program *program, gumbel_sampling *sampling,
                                       gumbel_error *error) {
    GB_TRY(gb_check_versioned(sampling, "sampling", error));
    const gumbel_sampling full = defaults_of(program ? program->program : NULL);
    gb_write_versioned(&full, sizeof full, sampling);
    return GUMBEL_OK;
}

gumbel_status gb_settle_sampling(const gb_program *program, const gumbel_sampling *given, const char *where,
                                 gumbel_sampling *settled, gumbel_error *error) {
    if (!given) {
        *settled = defaults_of(program);
        return GUMBEL_OK;
    }
    char what[64];
    snprintf(what, sizeof what, "%ssampling", where);
    GB_TRY(gb_read_versioned(given, what, settled, sizeof *settled, error));
    for (size_t i = 0; i < GB_SETTING_COUNT; i++)
        if (gb_settings[i].shown.zero_is_neutral && gb_setting_get(&gb_settings[i], settled) == 0)
            gb_setting_put(&gb_settings[i], gb_settings[i].shown.neutral, settled);
    return GUMBEL_OK;
}

bool gb_has_penalties(const gumbel_sampling *sampling) {
    for (size_t i = 0; i < GB_SETTING_COUNT; i++)
        if (gb_settings[i].kind == GB_SETTING_PENALTY &&
            gb_setting_get(&gb_settings[i], sampling) != gb_settings[i].shown.neutral)
            return true;
    return false;
}

gumbel_status gb_check_sampling(const gumbel_sampling *sampling, const char *where, gumbel_error *error) {
    for (size_t i = 0; i < GB_SETTING_COUNT; i++)
        GB_TRY(check_range(&gb_settings[i], gb_setting_get(&gb_settings[i], sampling), where, error));
    if ((unsigned)sampling->penalized > GUMBEL_PENALIZED_ALL)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "%spenalized %d: expected 0, 1 or 2", where,
                       (int)sampling->penalized);
    return GUMBEL_OK;
}

gumbel_status gb_draw_seed(uint64_t *seed, gumbel_error *error) {
    *seed = 0; /* MemorySanitizer does not know that getentropy writes */
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

static gb_row_settings row_settings(const gumbel_sampling *sampling, uint64_t seed) {
    gb_row_settings row = {.seed = seed};
#define GB_SETTING(number, NAME, name, dtype, neutral, metadata, kind, ...)                                  \
    GB_OF_DRAW(kind)(row.name = sampling->name;)
#include "program/roles.def"
    return row;
}

gumbel_status gumbel_sample(const float *logits, size_t vocab_size, const gumbel_sampling *sampling,
                            uint64_t seed, int32_t *token, gumbel_error *error) {
    if (!logits || vocab_size == 0 || vocab_size >= 1 << 23)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "sample: vocab_size %zu: expected 1 to 2^23 - 1",
                       vocab_size);
    gumbel_sampling settled;
    GB_TRY(gb_settle_sampling(NULL, sampling, "sample: ", &settled, error));
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
    const gb_row_settings settings = row_settings(&settled, seed);
    int32_t drawn = gb_sample_row(logits, (uint32_t)vocab_size, &settings, scratch);
    gb_free(scratch);
    if (drawn < 0)
        return gb_fail(error, GUMBEL_ERROR_NUMERIC, "sample: %s", gb_token_problem(drawn));
    *token = drawn;
    return GUMBEL_OK;
}

bool gb_lacks_candidates(const gumbel_result *result) {
    return result->status == GUMBEL_ERROR_NUMERIC &&
           strcmp(result->problem, gb_token_problem(GB_TOKEN_NO_CANDIDATE)) == 0;
}

const char *gb_token_problem(int32_t token) {
    if (token >= 0)
        return "the program ended in a token that is not in its vocabulary";
    return token == GB_TOKEN_NAN ? "the logits have a NaN" : "the logits have no candidate: all are -inf";
}
