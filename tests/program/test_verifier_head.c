/* SPDX-License-Identifier: Apache-2.0
 *
 * Rule 46 of docs/program-format.md: what a program and its draft head have to have in common.
 */
#include "program/draft_head.h"
#include "program/verify/verifier.h"
#include "support/programs/broken_program.h"
#include "support/programs/tiny_program.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void refuse_pair(breakage change, int64_t argument, const char *part) {
    gb_program *program = tiny_pair_build();
    refuse_as(program, GUMBEL_OK, "");
    change(program, argument);
    refuse_as(program, GUMBEL_ERROR_FORMAT, part);
    gb_program_destroy(program);
}

static void replace_head(gb_program *program, gb_program *head) {
    gb_program_destroy(program->head);
    program->head = head;
}

static void take_plain_head(gb_program *program, int64_t keeps_hidden) {
    replace_head(program, keeps_hidden ? tiny_target_build() : tiny_program_build(true));
}

static void give_head_a_head(gb_program *program, int64_t argument) {
    (void)argument;
    program->head->head = tiny_head_build();
}

static gb_state *hidden_of(gb_program *program) {
    return &program->states[gb_hidden_state(program)];
}

static void widen_hidden(gb_program *program, int64_t argument) {
    (void)argument;
    gb_program *head = program->head;
    gb_value *value = &head->values[value_of_kind(head, GB_VALUE_STATE, gb_hidden_state(head))];
    value->type.dtype = hidden_of(head)->type.dtype = GB_F32;
}

static void rule_46_head_and_program_fit(void **state) {
    (void)state;
    refuse_pair(take_plain_head, 0, "the draft head has no load_hidden");
    refuse_pair(take_plain_head, 1, "the draft head has no load_hidden");
    refuse_pair(give_head_a_head, 0, "the draft head has a draft head");
    refuse_pair(widen_hidden, 0, "does not keep the hidden states that its draft head takes");
}

/* A program that is a head itself, and one that keeps nothing. */
static void rule_46_the_program_keeps_hidden_states(void **state) {
    (void)state;
    gb_program *head = tiny_head_build(), *plain = tiny_program_build(true);
    head->head = tiny_head_build();
    refuse_as(head, GUMBEL_ERROR_FORMAT, "a program with load_hidden has a draft head");
    plain->head = tiny_head_build();
    refuse_as(plain, GUMBEL_ERROR_FORMAT, "does not keep the hidden states");
    gb_program_destroy(head);
    gb_program_destroy(plain);
}

static gb_ref of_two(gb_builder *b, gb_op op, gb_ref first, gb_ref second) {
    return gb_build_op(b, op, (const gb_ref[]){first, second}, 2, NULL, 0);
}

static gb_ref hidden_state(gb_builder *b, const char *name) {
    return gb_build_state(b, name, GB_STATE_CACHE, GB_BF16, 3, (const int64_t[]){TINY_CONTEXT, 1, TINY_WIDTH},
                          0);
}

/* The smallest head: embeddings and hidden states, added and multiplied with the table. */
static gb_program *small_head(int64_t vocabulary, bool keeps_elsewhere) {
    gb_builder *b = gb_builder_create();
    assert_non_null(b);
    *gb_builder_metadata(b) = (gb_metadata){.architecture = "tiny",
                                            .vocab_size = (uint64_t)vocabulary,
                                            .max_context = TINY_CONTEXT,
                                            .prefill_chunk = TINY_CHUNK};
    const gb_ref positions = gb_build_input(b, GB_ROLE_POSITIONS), slots = gb_build_input(b, GB_ROLE_SLOTS);
    const gb_ref table = gb_build_constant(b, "table", GB_F32, 2, (const int64_t[]){vocabulary, TINY_WIDTH});
    const gb_ref hidden = hidden_state(b, "hidden"),
                 place = keeps_elsewhere ? hidden_state(b, "own") : hidden;
    const gb_ref before =
        gb_build_op(b, GB_OP_LOAD_HIDDEN, (const gb_ref[]){positions, slots, hidden}, 3, NULL, 0);
    const gb_ref embedded = of_two(b, GB_OP_EMBEDDING, table, gb_build_input(b, GB_ROLE_TOKENS));
    const gb_ref kept = gb_build_op(
        b, GB_OP_KEEP_HIDDEN,
        (const gb_ref[]){of_two(b, GB_OP_ADD, embedded, before), positions, slots, place}, 4, NULL, 0);
    const gb_ref rows = of_two(b, GB_OP_GATHER_ROWS, kept, gb_build_input(b, GB_ROLE_ROWS));
    gb_build_output(b, GB_ROLE_LOGITS, of_two(b, GB_OP_LINEAR, rows, table));
    gb_program *program;
    gumbel_error error;
    if (gb_builder_finish(b, &program, &error) != GUMBEL_OK)
        fail_msg("%s", error.message);
    gb_builder_destroy(b);
    return program;
}

static void take_head_of_vocabulary(gb_program *program, int64_t vocabulary) {
    replace_head(program, small_head(vocabulary, false));
}

static void take_head_of_two_states(gb_program *program, int64_t vocabulary) {
    replace_head(program, small_head(vocabulary, true));
}

static void rule_46_a_head_keeps_where_it_loads(void **state) {
    (void)state;
    refuse_pair(take_head_of_two_states, TINY_VOCABULARY,
                "the program does not keep the hidden states that its draft head takes");
}

static void rule_46_vocabularies_are_equal(void **state) {
    (void)state;
    refuse_pair(take_head_of_vocabulary, TINY_VOCABULARY - 1,
                "the draft head's vocab_size is 47, the program's 48");
}

/* The head keeps to every other rule by itself. */
static void a_broken_head_is_refused(void **state) {
    (void)state;
    gb_program *program = tiny_pair_build();
    program->head->metadata.prefill_chunk = 0;
    refuse_as(program, GUMBEL_ERROR_FORMAT, "draft head: metadata: prefill_chunk");
    gb_program_destroy(program);
}

static gb_node *node_with(gb_program *program, gb_op op) {
    for (uint32_t i = 0; i < program->node_count; i++)
        if (program->nodes[i].op == op)
            return &program->nodes[i];
    fail_msg("there is no %s", gb_op_find(op)->name);
    return NULL;
}

static void load_before(gb_program *head, int64_t before) {
    gb_node *load = node_with(head, GB_OP_LOAD_HIDDEN);
    load->attributes[0] = gb_int(GB_ATTRIBUTE_BEFORE, before);
    load->attribute_count = 1;
}

/* One that attends to the program's keys stands at their positions, and has their states and no others. */
static void rule_46_a_head_that_attends(void **state) {
    (void)state;
    gb_program *pair = tiny_reader_pair_build();
    assert_int_equal(gb_program_verify(pair, NULL), GUMBEL_OK);
    load_before(pair->head, 0);
    refuse_as(pair, GUMBEL_ERROR_FORMAT,
              "load_hidden: before is 0 in a draft head that attends to the program's keys");
    load_before(pair->head, 1);
    gb_state *ring = &pair->states[pair->values[node_with(pair, GB_OP_ATTENTION)->operands[5]].index];
    const char *name = ring->name;
    ring->name = "other";
    refuse_as(pair, GUMBEL_ERROR_FORMAT,
              "the program has not the state layers.0.key_cache of its draft head");
    ring->name = name;
    gb_program_destroy(pair);
    pair = tiny_pair_build();
    load_before(pair->head, 1);
    refuse_as(pair, GUMBEL_ERROR_FORMAT,
              "load_hidden: before is 1 in a draft head that does not attend to the program's keys");
    gb_program_destroy(pair);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rule_46_head_and_program_fit),
        cmocka_unit_test(rule_46_the_program_keeps_hidden_states),
        cmocka_unit_test(rule_46_a_head_keeps_where_it_loads),
        cmocka_unit_test(rule_46_vocabularies_are_equal),
        cmocka_unit_test(rule_46_a_head_that_attends),
        cmocka_unit_test(a_broken_head_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
