/* SPDX-License-Identifier: Apache-2.0 */
#include "program/infer_rules.h"
#include "program/settings.h"
#include "program/verify/verify.h"

static gumbel_status check_count(const char *what, uint32_t count, uint32_t limit, gumbel_error *error) {
    if (count > limit)
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "%u %s, expected at most %u", count, what, limit);
    return GUMBEL_OK;
}

gumbel_status gb_verify_counts(const gb_program *program, gumbel_error *error) {
    GB_TRY(check_count("values", program->value_count, GB_MAX_VALUES, error));
    GB_TRY(check_count("nodes", program->node_count, GB_MAX_NODES, error));
    GB_TRY(check_count("regions", program->region_count, GB_MAX_REGIONS, error));
    GB_TRY(check_count("constants", program->constant_count, GB_MAX_CONSTANTS, error));
    GB_TRY(check_count("states", program->state_count, GB_MAX_STATES, error));
    GB_TRY(check_count("inputs", program->input_count, GB_ROLE_LIMIT, error));
    return check_count("outputs", program->output_count, GB_ROLE_LIMIT, error);
}

/* Rule 2. */
static gumbel_status check_required(const gb_metadata *metadata, gumbel_error *error) {
#define GB_METADATA(number, type, name, required, what)                                                      \
    if ((required) && !metadata->has_##name)                                                                 \
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "metadata has no %s", #name);
#include "program/metadata.def"
#undef GB_METADATA
    if (!*metadata->architecture)
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "metadata: architecture is empty");
    return GUMBEL_OK;
}

static gumbel_status check_range(const char *name, uint64_t value, uint64_t least, uint64_t most,
                                 gumbel_error *error) {
    if (value < least || value > most)
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "metadata: %s = %llu, expected %llu .. %llu", name,
                       (unsigned long long)value, (unsigned long long)least, (unsigned long long)most);
    return GUMBEL_OK;
}

/* Rule 6. */
static gumbel_status check_tokens(const gb_metadata *metadata, gumbel_error *error) {
    GB_TRY(check_count("stop tokens", metadata->stop_tokens.count, GB_MAX_STOP_TOKENS, error));
    for (uint32_t i = 0; i < metadata->stop_tokens.count; i++) {
        int32_t id = metadata->stop_tokens.ids[i];
        if (id < 0 || (uint64_t)id >= metadata->vocab_size)
            return gb_fail(error, GUMBEL_ERROR_FORMAT,
                           "metadata: stop token %d is not in the vocabulary of %llu", (int)id,
                           (unsigned long long)metadata->vocab_size);
    }
    if (metadata->has_bos_token && metadata->bos_token >= metadata->vocab_size)
        return gb_fail(error, GUMBEL_ERROR_FORMAT,
                       "metadata: bos_token %llu is not in the vocabulary of %llu",
                       (unsigned long long)metadata->bos_token, (unsigned long long)metadata->vocab_size);
    return GUMBEL_OK;
}

/* Rule 7. */
static gumbel_status check_recommended(const gb_metadata *metadata, gumbel_error *error) {
    for (size_t i = 0; i < GB_SETTING_COUNT; i++) {
        double value;
        char range[GB_RANGE_TEXT];
        if (gb_recommended(&gb_settings[i], metadata, &value) && !gb_setting_accepts(&gb_settings[i], value))
            return gb_fail(error, GUMBEL_ERROR_FORMAT, "metadata: %s = %.10g, expected %s",
                           gb_settings[i].shown.name, value, gb_setting_range(&gb_settings[i], range));
    }
    return GUMBEL_OK;
}

gumbel_status gb_verify_metadata(const gb_program *program, gumbel_error *error) {
    const gb_metadata *metadata = &program->metadata;
    GB_TRY(gb_verify_counts(program, error));
    GB_TRY(check_required(metadata, error));
    GB_TRY(check_range("vocab_size", metadata->vocab_size, 1, GB_MAX_VOCABULARY, error)); /* rule 3 */
    GB_TRY(check_range("max_context", metadata->max_context, 1, GB_MAX_DIM, error));      /* rule 4 */
    GB_TRY(check_range("prefill_chunk", metadata->prefill_chunk, 1, metadata->max_context, error)); /* 5 */
    GB_TRY(check_tokens(metadata, error));
    GB_TRY(check_recommended(metadata, error));
    GB_TRY(check_range("max_bias", metadata->max_bias, 0, GB_MAX_BIAS, error)); /* rule 41 */
    return check_range("max_top_logprobs", metadata->max_top_logprobs, 0, metadata->vocab_size, error);
}
