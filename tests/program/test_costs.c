/* SPDX-License-Identifier: Apache-2.0
 *
 * What a step of the tiny programs reads and multiplies, beside sums made by hand.
 */
#include "program/costs.h"
#include "support/programs/tiny_program.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <string.h>

#include <cmocka.h>

enum { W = TINY_WIDTH, D = TINY_HEAD_WIDTH, H = TINY_HEADS, G = TINY_KEY_HEADS, V = TINY_VOCABULARY };

/* Of one layer, in numbers: query, key, value, output, gate, up, down. */
enum { LAYER_MATRICES = W * H * D + 2 * W * G * D + H * D * W + 3 * 2 * W * W };

/* Of one layer: two norms, the query's norm, frequencies for queries and for keys, the scalar. */
enum { LAYER_VECTORS = 2 * W + D + 2 * (D / 2) + 1 };

static gumbel_step_costs costs_of(const gb_program *program, gumbel_step_shape shape) {
    gumbel_step_costs costs = {.size = sizeof costs};
    gb_program_costs(program, &shape, &costs);
    return costs;
}

static gb_program *program;

static int set_up(void **state) {
    (void)state;
    program = tiny_program_build(true);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    gb_program_destroy(program);
    return 0;
}

static void one_token_reads_every_weight_once(void **state) {
    (void)state;
    gumbel_step_costs costs =
        costs_of(program, (gumbel_step_shape){.sequences = 1, .tokens = 1, .wants_tokens = true});
    double layers = 2 * (LAYER_MATRICES + LAYER_VECTORS) + H /* the sinks of one */, head = V * W + W,
           embedding_row = W;
    assert_true(costs.weight_bytes == sizeof(float) * (layers + head + embedding_row));
    assert_true(costs.int8_products == 0);
    double attention = 2.0 * H * 2 * D; /* two layers that look at one position */
    assert_true(costs.float_products == 2.0 * LAYER_MATRICES + V * W + attention);
    assert_true(costs.state_bytes == 2 * sizeof(float) * 2 * G * D);
}

/* Two nodes attend to a ring, and one to a whole cache. */
static void keys_of_a_program_are_read(void **state) {
    (void)state;
    gb_program *reader = tiny_reader_build();
    const gumbel_step_costs costs = costs_of(
        reader, (gumbel_step_shape){.sequences = 1, .tokens = 1, .position = 20, .wants_tokens = true});
    assert_true(costs.state_bytes == sizeof(float) * (2 * TINY_WINDOW + 21) * 2 * G * D);
    gb_program_destroy(reader);
}

static void the_head_is_left_out_where_no_token_is_wanted(void **state) {
    (void)state;
    gumbel_step_shape shape = {.sequences = 1, .tokens = 4, .wants_tokens = true};
    gumbel_step_costs with = costs_of(program, shape);
    shape.wants_tokens = false;
    gumbel_step_costs without = costs_of(program, shape);
    assert_true(with.weight_bytes - without.weight_bytes == sizeof(float) * (V * W + W));
    assert_true(with.float_products - without.float_products == V * W);
}

/* Weights are shared by a batch, caches are not. */
static void batches_share_weights(void **state) {
    (void)state;
    gumbel_step_shape shape = {.sequences = 1, .tokens = 1, .position = 20, .wants_tokens = true};
    gumbel_step_costs one = costs_of(program, shape);
    shape.sequences = 3;
    gumbel_step_costs three = costs_of(program, shape);
    assert_true(three.weight_bytes == one.weight_bytes + 2 * sizeof(float) * W); /* of the embedding */
    assert_true(three.state_bytes == 3 * one.state_bytes);
    assert_true(three.float_products == 3 * one.float_products);
}

/* Token by token, as the op's equation has it. */
static double attended(uint32_t position, uint32_t tokens, uint32_t window) {
    double sum = 0;
    for (uint32_t p = position; p < position + tokens; p++)
        sum += window > 0 && p + 1 > window ? window : p + 1;
    return sum;
}

static void attention_reads_the_window(void **state) {
    (void)state;
    static const struct {
        uint32_t position, tokens;
    } cases[] = {{0, 1}, {0, 4}, {5, 2}, {6, 4}, {7, 1}, {8, 4}, {40, 3}};
    gumbel_step_shape first = {.sequences = 1, .tokens = 1};
    double at_start = costs_of(program, first).float_products - 2 * H * 2 * D;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint32_t position = cases[i].position, tokens = cases[i].tokens;
        gumbel_step_costs costs =
            costs_of(program, (gumbel_step_shape){.sequences = 1, .tokens = tokens, .position = position});
        double scores = attended(position, tokens, TINY_WINDOW) + attended(position, tokens, 0);
        assert_true(costs.float_products == at_start * tokens + scores * H * 2 * D);
        uint32_t end = position + tokens, kept = position + 1 < TINY_WINDOW ? position + 1 : TINY_WINDOW;
        double rows = end + (kept + tokens - 1);
        assert_true(costs.state_bytes == rows * sizeof(float) * 2 * G * D);
    }
}

/* Of five experts two are read for one token, and more the more tokens choose. */
static void experts_are_those_chosen(void **state) {
    (void)state;
    gb_program *recurrent = tiny_recurrent_build(true);
    double experts = 0, small = 0;
    for (uint32_t i = 0; i < recurrent->constant_count; i++) {
        const gb_constant *constant = &recurrent->constants[i];
        bool is_matrix = constant->type.shape.rank == 3 && constant->type.shape.dims[0] == TINY_EXPERTS;
        bool is_expert = is_matrix || strcmp(constant->name, "up_bias") == 0;
        *(is_expert ? &experts : &small) += (double)constant->size;
    }
    assert_true(experts > 0);
    gumbel_step_shape shape = {.sequences = 1, .tokens = 1, .wants_tokens = true};
    double one = costs_of(recurrent, shape).weight_bytes;
    shape.tokens = 2;
    double two = costs_of(recurrent, shape).weight_bytes;
    double embedding_row = sizeof(float) * W, share = (double)TINY_CHOICES / TINY_EXPERTS;
    assert_true(fabs(one - small - embedding_row - experts * share) < 1e-6);
    assert_true(fabs(two - small - 2 * embedding_row - experts * (1 - (1 - share) * (1 - share))) < 1e-6);
    gb_program_destroy(recurrent);
}

static void recurrent_states_are_read_whole(void **state) {
    (void)state;
    gb_program *recurrent = tiny_recurrent_build(true);
    double bytes = 0;
    for (uint32_t i = 0; i < recurrent->state_count; i++)
        if (recurrent->states[i].kind == GB_STATE_RECURRENT)
            bytes += (double)gb_state_bytes(&recurrent->states[i]);
    gumbel_step_shape shape = {.sequences = 2, .tokens = 3};
    assert_true(bytes > 0);
    assert_true(costs_of(recurrent, shape).state_bytes == 2 * bytes);
    gb_program_destroy(recurrent);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_token_reads_every_weight_once),
        cmocka_unit_test(keys_of_a_program_are_read),
        cmocka_unit_test(the_head_is_left_out_where_no_token_is_wanted),
        cmocka_unit_test(batches_share_weights),
        cmocka_unit_test(attention_reads_the_window),
        cmocka_unit_test(experts_are_those_chosen),
        cmocka_unit_test(recurrent_states_are_read_whole),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
