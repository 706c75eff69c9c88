/* SPDX-License-Identifier: Apache-2.0 */
#include "export/nn/sampling.h"

#include "program/settings.h"

/* One standard Gumbel variable for each logit. */
static gb_ref gumbel_noise(const gb_scope *scope, gb_ref logits) {
    int64_t vocabulary = gb_build_type(scope->builder, logits).shape.dims[1];
    gb_ref seed = gb_build_input(scope->builder, GB_ROLE_SEED);
    gb_ref bits =
        gb_node_with(scope, GB_OP_RANDOM_BITS, seed, GB_NO_VALUE, gb_int(GB_ATTRIBUTE_COUNT, vocabulary));
    return gb_node1(scope, GB_OP_GUMBEL_NOISE, bits);
}

/* The tokens that each row's session has run, by occurrence. */
static gb_ref count_tokens(const gb_scope *scope, int64_t max_context) {
    gb_builder *builder = scope->builder;
    const gb_ref operands[] = {
        gb_build_input(builder, GB_ROLE_TOKENS),
        gb_build_input(builder, GB_ROLE_POSITIONS),
        gb_build_input(builder, GB_ROLE_SLOTS),
        gb_build_input(builder, GB_ROLE_ROWS),
        gb_build_input(builder, GB_ROLE_GENERATED_FROM),
        gb_build_state(builder, "sampler.tokens", GB_STATE_CACHE, GB_I32, 1, &max_context, 0),
    };
    return gb_build_op(builder, GB_OP_COUNT_TOKENS, operands, 6, NULL, 0);
}

/* What the next token is chosen from: logits with their biases, under their penalties, of allowed tokens. */
static gb_ref adjust(const gb_scope *scope, gb_ref logits, int64_t max_context) {
    gb_builder *builder = scope->builder;
    gb_ref biased = gb_node3(scope, GB_OP_APPLY_BIAS, logits, gb_build_input(builder, GB_ROLE_BIAS_IDS),
                             gb_build_input(builder, GB_ROLE_BIAS_VALUES));
    const gb_ref operands[] = {
        biased,
        count_tokens(scope, max_context),
        gb_build_input(builder, GB_ROLE_REPETITION_PENALTY),
        gb_build_input(builder, GB_ROLE_FREQUENCY_PENALTY),
        gb_build_input(builder, GB_ROLE_PRESENCE_PENALTY),
        gb_build_input(builder, GB_ROLE_PENALIZE_PROMPT),
    };
    return gb_node3(scope, GB_OP_APPLY_MASK, gb_build_op(builder, GB_OP_PENALIZE, operands, 6, NULL, 0),
                    gb_build_input(builder, GB_ROLE_MASKED), gb_build_input(builder, GB_ROLE_MASK));
}

/* Declares the log-probability of the next token, and of the likeliest ones. */
static void finish_with_logprobs(const gb_scope *scope, gb_ref logits, gb_ref next, uint32_t top) {
    gb_ref wanted = gb_build_input(scope->builder, GB_ROLE_WANT_LOGPROBS);
    gb_ref normalizer = gb_node2(scope, GB_OP_LOG_NORMALIZER, logits, wanted);
    gb_build_output(scope->builder, GB_ROLE_LOGPROB,
                    gb_node3(scope, GB_OP_LOG_PROBABILITY, logits, normalizer, next));
    if (top == 0)
        return;
    gb_ref ids = gb_node_with(scope, GB_OP_TOP_IDS, logits, wanted, gb_int(GB_ATTRIBUTE_COUNT, top));
    gb_build_output(scope->builder, GB_ROLE_TOP_IDS, ids);
    gb_build_output(scope->builder, GB_ROLE_TOP_LOGPROBS,
                    gb_node3(scope, GB_OP_LOG_PROBABILITY, logits, normalizer, ids));
}

/* The masks of roles.def that the sampler has, one after the other. */
static gb_ref mask(const gb_scope *scope, gb_ref scaled, gb_ref keep, gb_sampler_kind kind) {
    for (size_t i = 0; i < GB_SETTING_COUNT; i++) {
        const gb_setting *setting = &gb_settings[i];
        if (setting->kind == GB_SETTING_MASK && (kind == GB_SAMPLER_FULL || setting->is_minimal))
            keep =
                gb_node3(scope, setting->mask, scaled, keep, gb_build_input(scope->builder, setting->role));
    }
    return keep;
}

/* Rows that sample, and among them rows of temperature 0, which divide by 1 and take their argmax. */
static gb_ref draw(const gb_scope *scope, gb_ref logits, gb_ref temperature, gb_ref is_greedy,
                   gb_sampler_kind kind) {
    gb_ref one =
        gb_node_with(scope, GB_OP_FILL_LIKE, temperature, GB_NO_VALUE, gb_float(GB_ATTRIBUTE_VALUE, 1.0));
    gb_ref divisor = gb_node3(scope, GB_OP_SELECT, is_greedy, one, temperature);
    gb_ref scaled = gb_node2(scope, GB_OP_APPLY_TEMPERATURE, logits, divisor);

    gb_ref kept = mask(scope, scaled, gb_node1(scope, GB_OP_CANDIDATES, logits), kind);
    gb_ref score = gb_node2(scope, GB_OP_ADD, scaled, gumbel_noise(scope, logits));
    gb_ref sampled = gb_node2(scope, GB_OP_ARGMAX, score, kept);
    gb_ref greedy = gb_node1(scope, GB_OP_ARGMAX, logits);
    return gb_node3(scope, GB_OP_CHOOSE_TOKEN, is_greedy, greedy, sampled);
}

static gb_ref choose(const gb_scope *scope, gb_ref logits, gb_sampler_kind kind) {
    gb_ref temperature = gb_build_input(scope->builder, GB_ROLE_TEMPERATURE);
    gb_ref is_greedy = gb_node1(scope, GB_OP_IS_ZERO, temperature);
    gb_build_if_begin(scope->builder, gb_node1(scope, GB_OP_ANY_FALSE, is_greedy));
    gb_build_if_else(scope->builder, draw(scope, logits, temperature, is_greedy, kind));
    return gb_build_if_end(scope->builder, gb_node1(scope, GB_OP_ARGMAX, logits));
}

/* Limits of the inputs and outputs, before they are declared. */
static void set_metadata(const gb_scope *scope, const gb_sampler_options *options) {
    gb_metadata *metadata = gb_builder_metadata(scope->builder);
    metadata->use_sampling = options->kind != GB_SAMPLER_NONE;
    metadata->has_max_bias = metadata->has_max_top_logprobs = options->kind == GB_SAMPLER_FULL;
    metadata->max_bias = metadata->has_max_bias ? GB_BIAS_ENTRIES : 0;
    metadata->max_top_logprobs = metadata->has_max_top_logprobs ? options->max_top_logprobs : 0;
    if (metadata->max_top_logprobs > metadata->vocab_size)
        metadata->max_top_logprobs = metadata->vocab_size;
}

void gb_finish_with_logits(const gb_scope *scope, gb_ref logits, const gb_sampler_options *options,
                           int64_t max_context) {
    set_metadata(scope, options);
    gb_build_output(scope->builder, GB_ROLE_LOGITS, logits);
    if (options->kind == GB_SAMPLER_NONE || gb_builder_status(scope->builder, NULL) != GUMBEL_OK)
        return;
    bool is_full = options->kind == GB_SAMPLER_FULL;
    gb_ref next = choose(scope, is_full ? adjust(scope, logits, max_context) : logits, options->kind);
    gb_build_output(scope->builder, GB_ROLE_NEXT, next);
    if (is_full)
        finish_with_logprobs(scope, logits, next,
                             (uint32_t)gb_builder_metadata(scope->builder)->max_top_logprobs);
}
