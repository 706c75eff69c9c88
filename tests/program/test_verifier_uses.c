/* SPDX-License-Identifier: Apache-2.0
 *
 * Rules 29 to 40 of the verifier, numbered as in docs/program-format.md: each test takes a valid program,
 * breaks just that rule and looks at what the verifier says.
 */
#include "program/verify/verifier.h"
#include "program/verify/verify.h"
#include "support/programs/broken_program.h"
#include "support/programs/tiny_program.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

/* ---- Rules 29-33, 38, 39: uses
 * --------------------------------------------------------------------------------- */

static void set_state_use(gb_program *program, int64_t which) {
    gb_node *first = node_of(program, GB_OP_ATTENTION, 0);
    if (which == 0)
        first->operands[6] = first->operands[5];
    else
        first->operands[5] = value_of_kind(program, GB_VALUE_STATE, 2),
        first->operands[6] = value_of_kind(program, GB_VALUE_STATE, 3);
}

static void rule_29_states_have_one_use(void **state) {
    (void)state;
    refuse(set_state_use, 0, "state layers.0.key_cache is used twice");
    gb_program *program = tiny_program_build(false);
    set_state_use(program, 1);
    refuse_as(program, GUMBEL_ERROR_FORMAT, "state layers.1.key_cache is used twice");
    gb_program_destroy(program);
}

/* A head reads hidden states and then stores its own; turned round, it would read what it has just stored. */
static void rule_29_hidden_states_are_read_first(void **state) {
    (void)state;
    gb_program *head = tiny_head_build();
    gumbel_error error;
    assert_int_equal(gb_program_verify(head, &error), GUMBEL_OK);
    gb_node *previous = node_of(head, GB_OP_LOAD_HIDDEN, 0);
    gb_node *keep = node_of(head, GB_OP_KEEP_HIDDEN, 0);
    const gb_node reader = *previous;
    *previous = *keep;
    previous->operands[0] = node_of(head, GB_OP_EMBEDDING, 0)->results[0];
    previous->results[0] = reader.results[0];
    const gb_ref kept = keep->results[0];
    *keep = reader;
    keep->results[0] = kept;
    refuse_as(head, GUMBEL_ERROR_FORMAT, "state hidden is used twice");
    gb_program_destroy(head);
}

static void rule_29_states_are_used(void **state) {
    (void)state;
    gb_builder *builder = gb_builder_create();
    gb_metadata *metadata = gb_builder_metadata(builder);
    *metadata =
        (gb_metadata){.architecture = "unused", .vocab_size = 4, .max_context = 2, .prefill_chunk = 1};
    gb_ref table = gb_build_constant(builder, "table", GB_F32, 2, (const int64_t[]){4, 4});
    gb_build_state(builder, "lonely", GB_STATE_RECURRENT, GB_F32, 1, (const int64_t[]){4}, 0);
    gb_build_input(builder, GB_ROLE_SLOTS);
    gb_build_input(builder, GB_ROLE_POSITIONS);
    gb_ref embedding[] = {table, gb_build_input(builder, GB_ROLE_TOKENS)};
    gb_ref x = gb_build_op(builder, GB_OP_EMBEDDING, embedding, 2, NULL, 0);
    gb_ref gather[] = {x, gb_build_input(builder, GB_ROLE_ROWS)};
    gb_build_output(builder, GB_ROLE_LOGITS, gb_build_op(builder, GB_OP_GATHER_ROWS, gather, 2, NULL, 0));
    gb_program *program;
    gumbel_error error;
    assert_int_equal(gb_builder_finish(builder, &program, &error), GUMBEL_ERROR_FORMAT);
    assert_string_equal(error.message, "state lonely is used by no node");
    gb_builder_destroy(builder);
}

/* Attention within an if, made by the builder, which leaves this to the verifier. */
static void rule_30_states_are_used_in_the_body(void **state) {
    (void)state;
    gb_builder *builder = gb_builder_create();
    gb_metadata *metadata = gb_builder_metadata(builder);
    *metadata =
        (gb_metadata){.architecture = "inside", .vocab_size = 4, .max_context = 2, .prefill_chunk = 1};
    gb_ref table = gb_build_constant(builder, "table", GB_F32, 2, (const int64_t[]){4, 4});
    gb_ref positions = gb_build_input(builder, GB_ROLE_POSITIONS),
           slots = gb_build_input(builder, GB_ROLE_SLOTS);
    gb_ref embedding[] = {table, gb_build_input(builder, GB_ROLE_TOKENS)};
    gb_ref x = gb_build_op(builder, GB_OP_EMBEDDING, embedding, 2, NULL, 0);
    gb_attribute heads = gb_int(GB_ATTRIBUTE_HEADS, 1), scale = gb_float(GB_ATTRIBUTE_SCALE, 1);
    gb_ref split = gb_build_op(builder, GB_OP_SPLIT_HEADS, &x, 1, &heads, 1);
    gb_ref temperature = gb_build_input(builder, GB_ROLE_TEMPERATURE);
    gb_ref zero = gb_build_op(builder, GB_OP_IS_ZERO, &temperature, 1, NULL, 0);
    gb_build_if_begin(builder, gb_build_op(builder, GB_OP_ANY_FALSE, &zero, 1, NULL, 0));
    const int64_t dims[] = {2, 1, 4};
    gb_ref operands[] = {split,
                         split,
                         split,
                         positions,
                         slots,
                         gb_build_state(builder, "keys", GB_STATE_CACHE, GB_F32, 3, dims, 0),
                         gb_build_state(builder, "values", GB_STATE_CACHE, GB_F32, 3, dims, 0)};
    gb_build_if_else(builder, gb_build_op(builder, GB_OP_ATTENTION, operands, 7, &scale, 1));
    gb_ref chosen = gb_build_if_end(builder, split);
    gb_ref gather[] = {gb_build_op(builder, GB_OP_MERGE_HEADS, &chosen, 1, NULL, 0),
                       gb_build_input(builder, GB_ROLE_ROWS)};
    gb_build_output(builder, GB_ROLE_LOGITS, gb_build_op(builder, GB_OP_GATHER_ROWS, gather, 2, NULL, 0));
    gb_program *program;
    gumbel_error error;
    assert_int_equal(gb_builder_finish(builder, &program, &error), GUMBEL_ERROR_FORMAT);
    assert_non_null(strstr(error.message, "state keys is used within an if"));
    gb_builder_destroy(builder);
}

static void set_engine_operand(gb_program *program, int64_t which) {
    gb_ref tokens = gb_program_input(program, GB_ROLE_TOKENS),
           slots = gb_program_input(program, GB_ROLE_SLOTS);
    if (which == 0)
        node_of(program, GB_OP_EMBEDDING, 0)->operands[1] = slots;
    else if (which == 1)
        node_of(program, GB_OP_ROPE, 0)->operands[1] = tokens;
    else if (which == 2)
        node_of(program, GB_OP_ATTENTION, 0)->operands[4] = tokens;
    else if (which == 3)
        node_of(program, GB_OP_ATTENTION, 0)->operands[3] = slots;
    else
        node_of(program, GB_OP_GATHER_ROWS, 0)->operands[1] = gb_program_input(program, GB_ROLE_TOP_K);
}

static void rule_31_indices_come_from_the_engine(void **state) {
    (void)state;
    refuse(set_engine_operand, 0, "embedding: operand tokens is value");
    refuse(set_engine_operand, 1, "rope: operand positions is value");
    refuse(set_engine_operand, 2, "attention: operand slots is value");
    refuse(set_engine_operand, 3, "attention: operand positions is value");
    refuse(set_engine_operand, 4, "gather_rows: operand rows is value");
}

/* A head may turn its queries by the last position, and attend up to that one alone. */
static void rule_31_the_last_position_is_the_engines(void **state) {
    (void)state;
    gb_program *reader = tiny_reader_build();
    const gb_ref positions = gb_program_input(reader, GB_ROLE_POSITIONS),
                 last = gb_program_input(reader, GB_ROLE_LAST);
    assert_int_equal(gb_program_verify(reader, NULL), GUMBEL_OK);
    assert_int_equal(node_of(reader, GB_OP_ROPE, 0)->operands[1], last);
    node_of(reader, GB_OP_ROPE, 0)->operands[1] = positions;
    assert_int_equal(gb_program_verify(reader, NULL), GUMBEL_OK);
    node_of(reader, GB_OP_ATTEND, 0)->operands[1] = positions;
    refuse_as(reader, GUMBEL_ERROR_FORMAT, "attend: operand last is value");
    node_of(reader, GB_OP_ATTEND, 0)->operands[1] = last;
    node_of(reader, GB_OP_LOAD_HIDDEN, 0)->operands[0] = last;
    refuse_as(reader, GUMBEL_ERROR_FORMAT, "load_hidden: operand positions is value");
    gb_program_destroy(reader);
}

static void set_attention(gb_program *program, int64_t which) {
    gb_node *ring = node_of(program, GB_OP_ATTENTION, 0);
    if (which == 0)
        set_attribute(ring, gb_int(GB_ATTRIBUTE_WINDOW, TINY_WINDOW - 1));
    else if (which == 1)
        set_attribute(ring, gb_int(GB_ATTRIBUTE_WINDOW, 0));
    else if (which == 2)
        program->states[1].window = TINY_WINDOW - 1;
    else {
        program->states[0].kind = program->states[1].kind = GB_STATE_RECURRENT;
        program->states[0].window = program->states[1].window = 0;
    }
}

static void rule_32_attention_and_its_caches(void **state) {
    (void)state;
    refuse(set_attention, 0, "attention: window = 7, its ring layers.0.key_cache is for 8");
    refuse(set_attention, 1, "attention: window = 0, its ring layers.0.key_cache is for 8");
    refuse(set_attention, 2, "are not two caches of one kind and window");
    refuse(set_attention, 3, "are not two caches of one kind and window");
    gb_program *program = tiny_program_build(true);
    set_attribute(node_of(program, GB_OP_ATTENTION, 1), gb_int(GB_ATTRIBUTE_WINDOW, 5));
    assert_int_equal(gb_program_verify(program, NULL), GUMBEL_OK); /* a full cache may have any window */
    gb_program_destroy(program);
    gb_program *reader = tiny_reader_build();
    set_attribute(node_of(reader, GB_OP_ATTEND, 1), gb_int(GB_ATTRIBUTE_WINDOW, TINY_WINDOW - 1));
    refuse_as(reader, GUMBEL_ERROR_FORMAT, "attend: window = 7, its ring layers.0.key_cache is for 8");
    gb_program_destroy(reader);
}

static void set_vocab_size(gb_program *program, int64_t value) {
    program->metadata.vocab_size = (uint64_t)value;
}

static void rule_33_embedding_table(void **state) {
    (void)state;
    refuse(set_vocab_size, TINY_VOCABULARY + 1, "embedding: a table of 48 rows, vocab_size is 49");
}

static void look_up(gb_program *program, int64_t role) {
    node_of(program, GB_OP_EMBEDDING, 0)->operands[1] = gb_program_input(program, (gb_role)role);
}

/* Such a table has a row for each position, whatever the vocabulary is. */
static void rule_33_tables_of_positions(void **state) {
    (void)state;
    refuse(look_up, GB_ROLE_POSITIONS, "embedding: a table of 48 rows, max_context is 64");
}

static void set_state_kind(gb_program *program, int64_t state) {
    gb_type *type = &program->states[state].type;
    program->states[state].kind = GB_STATE_CACHE;
    program->metadata.max_context = (uint64_t)type->shape.dims[0];
    program->metadata.prefill_chunk = 1;
}

static void rule_38_recurrent_states(void **state) {
    (void)state;
    refuse_recurrent(set_state_kind, 0, "causal_conv: state tail is a cache, expected recurrent");
    refuse_recurrent(set_state_kind, 1, "gated_delta: state memory is a cache, expected recurrent");
}

/* Other integers of that shape, other experts, and other numbers of them. */
static void set_experts(gb_program *program, int64_t which) {
    gb_node *linear = node_of(program, GB_OP_EXPERT_LINEAR, 0);
    gb_ref weight = linear->operands[1];
    if (which == 0)
        linear->operands[2] = gb_program_input(program, GB_ROLE_TOKENS);
    else {
        int64_t experts = which == 1 ? TINY_EXPERTS - 1 : TINY_EXPERTS + 1;
        gb_constant *constant = &program->constants[program->values[weight].index];
        constant->size = constant->size / TINY_EXPERTS * (uint64_t)experts;
        program->values[weight].type.shape.dims[0] = constant->type.shape.dims[0] = experts;
    }
}

/* A program whose expert indices are another thing of the right type: both branches of an if. */
static void rule_39_experts_through_an_if(void) {
    gb_builder *builder = gb_builder_create();
    *gb_builder_metadata(builder) =
        (gb_metadata){.architecture = "experts", .vocab_size = 4, .max_context = 2, .prefill_chunk = 1};
    gb_build_input(builder, GB_ROLE_POSITIONS);
    gb_build_input(builder, GB_ROLE_SLOTS);
    gb_ref table = gb_build_constant(builder, "table", GB_F32, 2, (const int64_t[]){4, 4});
    gb_ref embedding[] = {table, gb_build_input(builder, GB_ROLE_TOKENS)};
    gb_ref x = gb_build_op(builder, GB_OP_EMBEDDING, embedding, 2, NULL, 0), routes[2];
    gb_attribute count = gb_int(GB_ATTRIBUTE_COUNT, 1);
    gb_build_op_results(builder, GB_OP_ROUTE_TOP_K, &x, 1, &count, 1, routes, 2);
    gb_ref temperature = gb_build_input(builder, GB_ROLE_TEMPERATURE);
    gb_ref zero = gb_build_op(builder, GB_OP_IS_ZERO, &temperature, 1, NULL, 0);
    gb_build_if_begin(builder, gb_build_op(builder, GB_OP_ANY_FALSE, &zero, 1, NULL, 0));
    gb_build_if_else(builder, routes[0]);
    gb_ref operands[] = {x, gb_build_constant(builder, "weight", GB_F32, 3, (const int64_t[]){4, 4, 4}),
                         gb_build_if_end(builder, routes[0])};
    gb_ref y = gb_build_op(builder, GB_OP_EXPERT_LINEAR, operands, 3, NULL, 0);
    gb_ref combine[] = {y, routes[1]};
    gb_ref gather[] = {gb_build_op(builder, GB_OP_COMBINE_EXPERTS, combine, 2, NULL, 0),
                       gb_build_input(builder, GB_ROLE_ROWS)};
    gb_build_output(builder, GB_ROLE_LOGITS, gb_build_op(builder, GB_OP_GATHER_ROWS, gather, 2, NULL, 0));
    gb_program *program;
    gumbel_error error;
    assert_int_equal(gb_builder_finish(builder, &program, &error), GUMBEL_ERROR_FORMAT);
    assert_non_null(strstr(error.message,
                           "operand experts is not chosen by route_top_k or route_sigmoid from 4 experts"));
    gb_builder_destroy(builder);
}

static void rule_39_experts_come_from_a_router(void **state) {
    (void)state;
    refuse_recurrent(set_experts, 0, "expert_linear: operand experts is input i32[N], expected i32[M,T]");
    refuse_recurrent(set_experts, 1,
                     "operand experts is not chosen by route_top_k or route_sigmoid from 4 experts");
    refuse_recurrent(set_experts, 2,
                     "operand experts is not chosen by route_top_k or route_sigmoid from 6 experts");
    rule_39_experts_through_an_if();
}

static void set_history(gb_program *program, int64_t kind) {
    program->states[program->state_count - 1].kind = (gb_state_kind)kind;
}

static void rule_40_history_is_a_cache(void **state) {
    (void)state;
    refuse(set_history, GB_STATE_RECURRENT,
           "count_tokens: state sampler.tokens is of kind recurrent, expected cache");
}

static void rule_45_hidden_states_are_a_cache(void **state) {
    (void)state;
    gb_program *head = tiny_head_build();
    head->states[0].kind = GB_STATE_RECURRENT;
    refuse_as(head, GUMBEL_ERROR_FORMAT, "load_hidden: state hidden is of kind recurrent, expected cache");
    gb_program_destroy(head);
}

/* ---- Rules 34-37: outputs ------------------------------------------------------------------------------ */

static void set_output_role(gb_program *program, int64_t role) {
    program->outputs[0].role = (gb_role)role;
}

static void rule_34_output_roles(void **state) {
    (void)state;
    refuse_of(true, set_output_role, 127, GUMBEL_ERROR_UNSUPPORTED, "output role 127 is not known");
    refuse(set_output_role, GB_ROLE_SEED, "role seed is an input");
    gb_program *program = tiny_program_build(true);
    gb_binding twice[] = {program->outputs[0], program->outputs[0]};
    program->outputs = twice;
    program->output_count = 2;
    refuse_as(program, GUMBEL_ERROR_FORMAT, "two outputs have the role next");
    gb_program_destroy(program);
}

static void set_output(gb_program *program, int64_t which) {
    if (which == 0)
        program->outputs[0].value = program->value_count;
    else if (which == 1)
        program->outputs[0].value = gb_program_input(program, GB_ROLE_TOP_K);
    else if (which == 2)
        program->outputs[0].value = program->regions[1].yields[0];
    else
        program->outputs[0].value = node_of(program, GB_OP_SOFT_CAP, 0)->results[0];
}

static void set_smaller_vocabulary(gb_program *program, int64_t unused) {
    (void)unused;
    program->metadata.vocab_size = TINY_VOCABULARY - 1;
}

static void rule_35_output_values(void **state) {
    (void)state;
    for (int64_t i = 0; i < 3; i++)
        refuse(set_output, i, "is not a result of the body");
    refuse(set_output, 3, "output next is f32[B,48], expected i32[B]");
    refuse_of(false, set_smaller_vocabulary, 0, GUMBEL_ERROR_FORMAT,
              "output logits is f32[B,48], expected f32[B,47]");
}

static void flip_sampling(gb_program *program, int64_t unused) {
    (void)unused;
    program->metadata.use_sampling = !program->metadata.use_sampling;
}

static void drop_outputs(gb_program *program, int64_t unused) {
    (void)unused;
    program->output_count = 0;
}

static void rule_36_endings(void **state) {
    (void)state;
    refuse(flip_sampling, 0, "use_sampling is false, but there is an output next");
    refuse_of(false, flip_sampling, 0, GUMBEL_ERROR_FORMAT,
              "use_sampling is true, but there is no output next");
    refuse_of(false, drop_outputs, 0, GUMBEL_ERROR_FORMAT, "output logits is missing");
}

/* Another i32[B] in place of a drawn token. */
static void choose_top_k(gb_program *program, int64_t unused) {
    (void)unused;
    node_of(program, GB_OP_CHOOSE_TOKEN, 0)->operands[2] = gb_program_input(program, GB_ROLE_TOP_K);
}

static void rule_37_next_is_a_token(void **state) {
    (void)state;
    refuse(choose_top_k, 0, "output next is not chosen by argmax from 48 logits");
    refuse(set_smaller_vocabulary, 0, "output next is not chosen by argmax from 47 logits");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rule_29_states_have_one_use),
        cmocka_unit_test(rule_29_states_are_used),
        cmocka_unit_test(rule_29_hidden_states_are_read_first),
        cmocka_unit_test(rule_30_states_are_used_in_the_body),
        cmocka_unit_test(rule_31_indices_come_from_the_engine),
        cmocka_unit_test(rule_31_the_last_position_is_the_engines),
        cmocka_unit_test(rule_32_attention_and_its_caches),
        cmocka_unit_test(rule_33_embedding_table),
        cmocka_unit_test(rule_33_tables_of_positions),
        cmocka_unit_test(rule_38_recurrent_states),
        cmocka_unit_test(rule_39_experts_come_from_a_router),
        cmocka_unit_test(rule_34_output_roles),
        cmocka_unit_test(rule_35_output_values),
        cmocka_unit_test(rule_36_endings),
        cmocka_unit_test(rule_37_next_is_a_token),
        cmocka_unit_test(rule_40_history_is_a_cache),
        cmocka_unit_test(rule_45_hidden_states_are_a_cache),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
