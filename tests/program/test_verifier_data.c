/* SPDX-License-Identifier: Apache-2.0
 *
 * Rules 1 to 13 of the verifier, numbered as in docs/program-format.md: each test takes a valid program,
 * breaks just that rule and looks at what the verifier says.
 */
#include "program/settings.h"
#include "program/verify/verifier.h"
#include "program/verify/verify.h"
#include "support/programs/broken_program.h"
#include "support/programs/tiny_program.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* ---- Rules 1-7: counts and metadata -------------------------------------------------------------------- */

static void too_many(gb_program *program, int64_t which) {
    uint32_t *counts[] = {&program->value_count,    &program->node_count,  &program->region_count,
                          &program->constant_count, &program->state_count, &program->input_count,
                          &program->output_count};
    *counts[which] = UINT32_MAX;
}

static void rule_01_counts(void **state) {
    (void)state;
    static const char *const parts[] = {"values, expected at most", "nodes, expected",  "regions, expected",
                                        "constants, expected",      "states, expected", "inputs, expected",
                                        "outputs, expected"};
    for (int64_t i = 0; i < 7; i++)
        refuse(too_many, i, parts[i]);
}

static void drop_field(gb_program *program, int64_t which) {
    gb_metadata *metadata = &program->metadata;
    bool *fields[] = {&metadata->has_architecture, &metadata->has_vocab_size, &metadata->has_max_context,
                      &metadata->has_prefill_chunk, &metadata->has_use_sampling};
    if (which < 5)
        *fields[which] = false;
    else
        metadata->architecture = "";
}

static void rule_02_required_fields(void **state) {
    (void)state;
    static const char *const parts[] = {"metadata has no architecture", "metadata has no vocab_size",
                                        "metadata has no max_context",  "metadata has no prefill_chunk",
                                        "metadata has no use_sampling", "architecture is empty"};
    for (int64_t i = 0; i < 6; i++)
        refuse(drop_field, i, parts[i]);
}

static void set_vocab_size(gb_program *program, int64_t value) {
    program->metadata.vocab_size = (uint64_t)value;
}

static void rule_03_vocab_size(void **state) {
    (void)state;
    refuse(set_vocab_size, 0, "vocab_size = 0, expected 1 .. 8388607");
    refuse(set_vocab_size, 1 << 23, "vocab_size = 8388608");
    refuse(set_vocab_size, -1, "vocab_size = 18446744073709551615");
}

static void set_max_context(gb_program *program, int64_t value) {
    program->metadata.max_context = (uint64_t)value;
}

static void rule_04_max_context(void **state) {
    (void)state;
    refuse(set_max_context, 0, "max_context = 0");
    refuse(set_max_context, INT64_C(1) << 31, "max_context = 2147483648");
}

static void set_prefill_chunk(gb_program *program, int64_t value) {
    program->metadata.prefill_chunk = (uint64_t)value;
}

static void rule_05_prefill_chunk(void **state) {
    (void)state;
    refuse(set_prefill_chunk, 0, "prefill_chunk = 0, expected 1 .. 64");
    refuse(set_prefill_chunk, TINY_CONTEXT + 1, "prefill_chunk = 65");
}

static void set_stop_token(gb_program *program, int64_t value) {
    static int32_t id;
    id = (int32_t)value;
    program->metadata.stop_tokens = (gb_token_list){&id, 1};
}

static void set_stop_token_count(gb_program *program, int64_t value) {
    program->metadata.stop_tokens.count = (uint32_t)value;
}

static void set_bos_token(gb_program *program, int64_t value) {
    program->metadata.bos_token = (uint64_t)value;
}

static void rule_06_tokens(void **state) {
    (void)state;
    refuse(set_stop_token, TINY_VOCABULARY, "stop token 48 is not in the vocabulary of 48");
    refuse(set_stop_token, -1, "stop token -1");
    refuse(set_stop_token_count, 1025, "1025 stop tokens, expected at most 1024");
    refuse(set_bos_token, TINY_VOCABULARY, "bos_token 48");
}

static void set_settings(gb_program *program, int64_t which) {
    gb_metadata *metadata = &program->metadata;
    if (which < 4)
        metadata->temperature = (const double[]){-1, 1e-5, 2e4, NAN}[which];
    else if (which < 8)
        metadata->top_p = (const double[]){0, 1.5, NAN, 1e-60}[which - 4];
    else
        metadata->top_k = UINT64_C(1) << 31;
}

/* The first above its range, the next below it, the next no number, and so on. */
static void set_out_of_range(gb_program *program, int64_t index) {
    const gb_setting *setting = &gb_settings[index / 3];
    const gumbel_setting *shown = &setting->shown;
    const double wrong[] = {shown->high * 1.01 + 1, -fabs(shown->low) - 3, NAN};
    const bool is_integer = shown->type == GUMBEL_SETTING_INT32; /* metadata has natural numbers alone */
    gb_recommend(setting, is_integer ? shown->high + 1 : wrong[index % 3], &program->metadata);
}

static void rule_07_recommended_settings(void **state) {
    (void)state;
    for (int64_t i = 0; i < 9; i++)
        refuse(set_settings, i, i < 4 ? "temperature = " : i < 8 ? "top_p = " : "top_k = 2147483648");
    for (int64_t i = 0; i < 3 * GB_SETTING_COUNT; i++) {
        char part[64];
        snprintf(part, sizeof part, "metadata: %s = ", gb_settings[i / 3].shown.name);
        refuse(set_out_of_range, i, part);
    }
}

/* ---- Rules 8-13: constants and states ------------------------------------------------------------------ */

static char long_name[GB_MAX_NAME + 2];

static void set_names(gb_program *program, int64_t which) {
    memset(long_name, 'x', sizeof long_name - 1);
    const char *names[] = {"", "a\nb", long_name, program->constants[0].name};
    if (which < 4)
        program->constants[1].name = names[which];
    else
        program->states[1].name = program->states[0].name;
}

static void set_limit(gb_program *program, int64_t which) {
    gb_metadata *metadata = &program->metadata;
    if (which == 0)
        metadata->max_bias = 65537;
    else
        metadata->max_top_logprobs = TINY_VOCABULARY + 1;
}

static void rule_41_limits(void **state) {
    (void)state;
    refuse(set_limit, 0, "metadata: max_bias = 65537, expected 0 .. 65536");
    refuse(set_limit, 1, "metadata: max_top_logprobs = 49, expected 0 .. 48");
}

static void rule_08_names(void **state) {
    (void)state;
    static const char *const parts[] = {"constant 1: a name of 0 bytes", "constant 1: a control character",
                                        "a name of 513 bytes", "two constants are called embedding",
                                        "two states are called layers.0.key_cache"};
    for (int64_t i = 0; i < 5; i++)
        refuse(set_names, i, parts[i]);
}

static void set_constant(gb_program *program, int64_t which) {
    gb_constant *constant = &program->constants[0];
    if (which == 0)
        constant->size--;
    else if (which == 1)
        constant->type.shape.dims[0] = GB_DIM_N;
    else if (which == 2)
        constant->type.shape.rank = 0;
    else if (which == 3)
        constant->type.shape.rank = 5;
    else if (which == 4)
        constant->type.dtype = (gb_dtype)99;
    else if (which == 6)
        constant->type.dtype = GB_Q8;
    else
        constant->type.shape = (gb_shape){4, {INT32_MAX, INT32_MAX, INT32_MAX, 1}};
}

static void rule_09_constants(void **state) {
    (void)state;
    refuse(set_constant, 0, "constant embedding: 3071 bytes, its type has 3072");
    refuse(set_constant, 1, "constant embedding: f32[N,16] is not a type with sizes");
    for (int64_t i = 2; i < 6; i++)
        refuse(set_constant, i, "is not a type with sizes");
    refuse(set_constant, 6, "constant embedding: dtype q8, which only states have");
}

static void set_state(gb_program *program, int64_t which) {
    if (which == 0)
        program->states[0].type.dtype = GB_F16;
    else if (which == 1)
        program->states[0].kind = (gb_state_kind)4;
    else if (which == 2)
        program->states[2].window = 3;
    else
        program->states[2].type.shape.dims[0] = 0;
}

/* Codes of heads that are no whole groups, that are too long, that have no heads, and where nothing has rows.
 */
static void set_codes(gb_program *program, int64_t which) {
    gb_state *state = &program->states[0];
    state->type.dtype = which % 2 ? GB_Q4 : GB_Q8;
    if (which == 1)
        state->type.shape.dims[2] = 544;
    else if (which == 2)
        state->type.shape.rank = 2;
    else if (which == 3)
        state->kind = GB_STATE_RECURRENT;
}

static void rule_10_codes(void **state) {
    (void)state;
    refuse(set_codes, 0,
           "state layers.0.key_cache: q8[12,1,8], expected rank 3 and heads of a multiple of 32");
    refuse(set_codes, 1,
           "state layers.0.key_cache: q4[12,1,544], expected rank 3 and heads of a multiple of");
    refuse(set_codes, 2, "state layers.0.key_cache: q8[12,1], expected rank 3 and heads of a multiple of 32");
    refuse(set_codes, 3, "state layers.0.key_cache: dtype q4, which only caches and rings have");
}

static void rule_10_states(void **state) {
    (void)state;
    refuse(set_state, 0, "state layers.0.key_cache: dtype f16");
    refuse_of(true, set_state, 1, GUMBEL_ERROR_UNSUPPORTED, "state layers.0.key_cache: kind 4 is not known");
    refuse(set_state, 2, "state layers.1.key_cache: has a window but is no ring");
    refuse(set_state, 3, "state layers.1.key_cache: f32[0,1,8] is not a type with sizes");
}

/* Gives a state another type everywhere it stands. */
static void set_state_dim(gb_program *program, uint32_t state, int64_t dim) {
    program->states[state].type.shape.dims[0] = dim;
    program->values[value_of_kind(program, GB_VALUE_STATE, state)].type.shape.dims[0] = dim;
}

static void set_cache_length(gb_program *program, int64_t length) {
    set_state_dim(program, 2, length);
}

static void rule_11_cache_length(void **state) {
    (void)state;
    refuse(set_cache_length, TINY_CONTEXT - 1, "63 positions, expected max_context = 64");
    refuse(set_cache_length, TINY_CONTEXT + 1, "65 positions");
}

static void set_ring_length(gb_program *program, int64_t length) {
    set_state_dim(program, 0, length);
}

static void set_window(gb_program *program, int64_t window) {
    program->states[0].window = program->states[1].window = (uint32_t)window;
}

static void rule_12_rings(void **state) {
    (void)state;
    refuse(set_ring_length, TINY_WINDOW, "a ring of 8 positions, expected more than its window of 8");
    refuse(set_window, 0, "a ring without a window");
    refuse(set_window, UINT32_MAX, "a ring of 12 positions, expected more than its window of 4294967295");
}

static void set_huge_states(gb_program *program, int64_t unused) {
    (void)unused;
    program->states[0].type.shape.dims[0] = INT32_MAX;
    program->states[0].type.shape.dims[1] = 1 << 16;
}

static void rule_13_session_size(void **state) {
    (void)state;
    refuse(set_huge_states, 0, "the states of a session need over 2^48 bytes");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rule_01_counts),
        cmocka_unit_test(rule_02_required_fields),
        cmocka_unit_test(rule_03_vocab_size),
        cmocka_unit_test(rule_04_max_context),
        cmocka_unit_test(rule_05_prefill_chunk),
        cmocka_unit_test(rule_06_tokens),
        cmocka_unit_test(rule_07_recommended_settings),
        cmocka_unit_test(rule_08_names),
        cmocka_unit_test(rule_09_constants),
        cmocka_unit_test(rule_10_states),
        cmocka_unit_test(rule_10_codes),
        cmocka_unit_test(rule_11_cache_length),
        cmocka_unit_test(rule_12_rings),
        cmocka_unit_test(rule_13_session_size),
        cmocka_unit_test(rule_41_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
