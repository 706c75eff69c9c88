/* SPDX-License-Identifier: Apache-2.0 */
#include "export/nn/sampling.h"

/* One standard Gumbel variable for each logit. */
static gb_ref gumbel_noise(const gb_scope *scope, gb_ref logits) {
    int64_t vocabulary = gb_build_type(scope->builder, logits).shape.dims[1];
    gb_ref seed = gb_build_input(scope->builder, GB_ROLE_SEED);
    gb_ref bits =
        gb_node_with(scope, GB_OP_RANDOM_BITS, seed, GB_NO_VALUE, gb_int(GB_ATTRIBUTE_COUNT, vocabulary));
    return gb_node1(scope, GB_OP_GUMBEL_NOISE, bits);
}

/* Rows that sample, and among them rows of temperature 0, which divide by 1 and take their argmax. */
static gb_ref draw(const gb_scope *scope, gb_ref logits, gb_ref temperature, gb_ref is_greedy) {
    gb_ref one =
        gb_node_with(scope, GB_OP_FILL_LIKE, temperature, GB_NO_VALUE, gb_float(GB_ATTRIBUTE_VALUE, 1.0));
    gb_ref divisor = gb_node3(scope, GB_OP_SELECT, is_greedy, one, temperature);
    gb_ref scaled = gb_node2(scope, GB_OP_APPLY_TEMPERATURE, logits, divisor);

    gb_ref top_k = gb_build_input(scope->builder, GB_ROLE_TOP_K);
    gb_ref top_p = gb_build_input(scope->builder, GB_ROLE_TOP_P);
    gb_ref keep = gb_node1(scope, GB_OP_CANDIDATES, logits);
    keep = gb_node3(scope, GB_OP_TOP_K_MASK, scaled, keep, top_k);
    keep = gb_node3(scope, GB_OP_TOP_P_MASK, scaled, keep, top_p);

    gb_ref score = gb_node2(scope, GB_OP_ADD, scaled, gumbel_noise(scope, logits));
    gb_ref sampled = gb_node2(scope, GB_OP_ARGMAX, score, keep);
    gb_ref greedy = gb_node1(scope, GB_OP_ARGMAX, logits);
    return gb_node3(scope, GB_OP_CHOOSE_TOKEN, is_greedy, greedy, sampled);
}

gb_ref gb_sample(const gb_scope *scope, gb_ref logits) {
    if (gb_builder_status(scope->builder, NULL) != GUMBEL_OK)
        return GB_NO_VALUE;
    gb_ref temperature = gb_build_input(scope->builder, GB_ROLE_TEMPERATURE);
    gb_ref is_greedy = gb_node1(scope, GB_OP_IS_ZERO, temperature);
    gb_build_if_begin(scope->builder, gb_node1(scope, GB_OP_ANY_FALSE, is_greedy));
    gb_build_if_else(scope->builder, draw(scope, logits, temperature, is_greedy));
    return gb_build_if_end(scope->builder, gb_node1(scope, GB_OP_ARGMAX, logits));
}

void gb_finish_with_logits(const gb_scope *scope, gb_ref logits, bool use_sampling) {
    if (use_sampling)
        gb_build_output(scope->builder, GB_ROLE_NEXT, gb_sample(scope, logits));
    gb_build_output(scope->builder, GB_ROLE_LOGITS, logits);
    gb_builder_metadata(scope->builder)->use_sampling = use_sampling;
}
