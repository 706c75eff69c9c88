/* SPDX-License-Identifier: Apache-2.0
 *
 * What a program's sampler takes and gives: settings are inputs that it may lack, log-probabilities outputs.
 */
#include "program/settings.h"
#include "run/handles.h"

#include <math.h>
#include <stdio.h>

static gumbel_status refuse_input(gb_role role, const char *what, const char *where, gumbel_error *error) {
    return gb_fail(error, GUMBEL_ERROR_UNSUPPORTED,
                   "%s%s: the program has no input %s; it was exported with --sampler minimal", where, what,
                   gb_role_find(role)->name);
}

gumbel_status gb_check_bias(const gumbel_sampling *sampling, uint64_t vocab_size, const char *where,
                            gumbel_error *error) {
    if (sampling->bias_count > 0 && !sampling->bias)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "%sbias is NULL", where);
    for (size_t i = 0; i < sampling->bias_count; i++) {
        const gumbel_bias *bias = &sampling->bias[i];
        if (bias->token < 0 || (uint64_t)bias->token >= vocab_size)
            return gb_fail(error, GUMBEL_ERROR_ARGUMENT,
                           "%sbias of token %d: the vocabulary has ids 0 to %llu", where, bias->token,
                           (unsigned long long)vocab_size - 1);
        if (!isfinite(bias->value) && !(bias->value < 0))
            return gb_fail(error, GUMBEL_ERROR_ARGUMENT,
                           "%sbias of token %d is %g: expected a finite number, or -inf to ban it", where,
                           bias->token, (double)bias->value);
    }
    return GUMBEL_OK;
}

/* The program's list of biases is as long as it was made. */
static gumbel_status check_bias_room(const gb_program *program, const gumbel_sampling *sampling,
                                     const char *where, gumbel_error *error) {
    const uint64_t most = program->metadata.max_bias;
    if (sampling->bias_count > 0 && gb_program_input(program, GB_ROLE_BIAS_IDS) == GB_NO_VALUE)
        return refuse_input(GB_ROLE_BIAS_IDS, "bias", where, error);
    if (sampling->bias_count > most)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "%s%zu biases: the program takes at most %llu", where,
                       sampling->bias_count, (unsigned long long)most);
    return gb_check_bias(sampling, program->metadata.vocab_size, where, error);
}

gumbel_status gb_check_inputs(const gb_program *program, const gumbel_sampling *sampling, const char *where,
                              gumbel_error *error) {
    for (size_t i = 0; i < GB_SETTING_COUNT; i++) {
        const gb_setting *setting = &gb_settings[i];
        const double value = gb_setting_get(setting, sampling);
        if (value == setting->shown.neutral || gb_program_input(program, setting->role) != GB_NO_VALUE)
            continue;
        char what[48];
        snprintf(what, sizeof what, "%s %g", setting->shown.name, value);
        return refuse_input(setting->role, what, where, error);
    }
    return check_bias_room(program, sampling, where, error);
}

gumbel_status gb_check_mask(const gb_program *program, const char *where, gumbel_error *error) {
    if (gb_program_input(program, GB_ROLE_MASK) != GB_NO_VALUE)
        return GUMBEL_OK;
    return gb_fail(error, GUMBEL_ERROR_UNSUPPORTED,
                   "%sa mask: the program has no input mask; export it again, without --sampler minimal",
                   where);
}

gumbel_status gb_check_logprobs(const gb_program *program, bool wanted, uint32_t top, const char *where,
                                gumbel_error *error) {
    if (!wanted && top == 0)
        return GUMBEL_OK;
    if (gb_program_output(program, GB_ROLE_LOGPROB) == GB_NO_VALUE)
        return gb_fail(
            error, GUMBEL_ERROR_UNSUPPORTED,
            "%slog-probabilities: the program has no output logprob; it was exported with --sampler "
            "minimal or with --logits",
            where);
    if (top > program->metadata.max_top_logprobs)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT,
                       "%stop_logprobs %u: the program was exported for at most %llu (--top-logprobs-max)",
                       where, top, (unsigned long long)program->metadata.max_top_logprobs);
    return GUMBEL_OK;
}
