/* SPDX-License-Identifier: Apache-2.0
 *
 * Chains of ops on rows beside the same ops one after the other, however they are split.
 */
#include "backends/cpu/kernels/chain.h"
#include "cpu/kernel_check.h"

enum { PARTS = 3 };

/* y = silu(x) * other; z = y + other. Others read z, and perhaps y. */
typedef struct sums {
    gb_cpu_tensor x, other, active, y, z;
    gb_node nodes[PARTS];
    gb_chain chain;
    gb_kernel_call call;
} sums;

static void set_part(sums *s, uint32_t index, gb_op op, const gb_cpu_tensor *a, const gb_cpu_tensor *b,
                     const gb_cpu_tensor *result) {
    gb_kernel before;
    gb_chain_part *part = &s->chain.parts[index];
    s->nodes[index] = (gb_node){.op = op, .operand_count = b ? 2 : 1, .result_count = 1};
    part->call = (gb_kernel_call){.node = &s->nodes[index],
                                  .operands = {a, b},
                                  .results = {result},
                                  .vector = gb_available_vector_kernels(0),
                                  .split = GB_SPLIT_ALONE};
    part->kernel = gb_find_kernel(&part->call, &before);
    part->by_token = gb_op_operand_roles(op).by_token;
}

static void keep(sums *s, uint32_t index) {
    uint32_t kept = 0;
    s->chain.parts[index].is_kept = true;
    while (s->call.results[kept])
        kept++;
    s->call.results[kept] = s->chain.parts[index].call.results[0];
}

static sums *new_sums(size_t tokens, size_t columns, bool keeps_y) {
    uint64_t random = tokens * 31 + columns;
    sums *s = calloc(1, sizeof *s);
    assert_non_null(s);
    s->x = random_tensor(&random, GB_F32, 2, tokens, columns, 0);
    s->other = random_tensor(&random, GB_F32, 2, tokens, columns, 0);
    s->active = new_tensor(GB_F32, 2, tokens, columns, 0);
    s->y = new_tensor(GB_F32, 2, tokens, columns, 0);
    s->z = new_tensor(GB_F32, 2, tokens, columns, 0);
    set_part(s, 0, GB_OP_SILU, &s->x, NULL, &s->active);
    set_part(s, 1, GB_OP_MULTIPLY, &s->active, &s->other, &s->y);
    set_part(s, 2, GB_OP_ADD, &s->y, &s->other, &s->z);
    s->chain.count = PARTS;
    s->chain.parts[1].is_made = 1;
    if (keeps_y)
        keep(s, 1);
    else {
        s->chain.parts[2].is_made = 1;
        s->chain.parts[2].sources[0] = 1;
    }
    keep(s, 2);
    s->call.operands[0] = &s->x;
    s->call.operands[1] = &s->other;
    s->call.vector = gb_available_vector_kernels(0);
    s->call.chain = &s->chain;
    return s;
}

static void free_sums(sums *s) {
    const gb_cpu_tensor *all[] = {&s->x, &s->other, &s->active, &s->y, &s->z};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free_tensor(all[i]);
    free(s);
}

/* The bytes of y and z that the ops make one after the other. */
static uint8_t *expected_bytes(sums *s) {
    uint8_t *expected = malloc(2 * tensor_bytes(&s->z));
    assert_non_null(expected);
    for (uint32_t i = 0; i < PARTS; i++)
        run_as_team(s->chain.parts[i].kernel, &s->chain.parts[i].call, 1);
    memcpy(expected, s->y.data, tensor_bytes(&s->y));
    memcpy(expected + tensor_bytes(&s->y), s->z.data, tensor_bytes(&s->z));
    return expected;
}

static void check_split(sums *s, gb_split split, const uint8_t *expected, bool keeps_y) {
    for (size_t team = 1; team <= MAX_TEAM; team++) {
        const gb_cpu_tensor *results[] = {&s->active, &s->y, &s->z};
        for (size_t i = 0; i < PARTS; i++)
            memset(results[i]->data, 0x5a, tensor_bytes(results[i]));
        s->call.split = split;
        run_as_team(gb_kernel_chain, &s->call, team);
        if (keeps_y)
            assert_memory_equal(s->y.data, expected, tensor_bytes(&s->y));
        else
            assert_int_equal(*(uint8_t *)s->y.data, 0x5a);
        assert_int_equal(*(uint8_t *)s->active.data, 0x5a);
        assert_memory_equal(s->z.data, expected + tensor_bytes(&s->y), tensor_bytes(&s->z));
        assert_guarded(s->z.data, tensor_bytes(&s->z));
    }
}

/* Rows of which many go through the chain together, and of which one does. */
static void chains_have_the_bits_of_their_ops(void **unused) {
    (void)unused;
    static const size_t sizes[][2] = {{1, 5}, {7, 100}, {40, 16}, {3, 9000}, {300, 64}};
    for (size_t i = 0; i < 2 * sizeof sizes / sizeof *sizes; i++) {
        const bool keeps_y = i % 2;
        sums *s = new_sums(sizes[i / 2][0], sizes[i / 2][1], keeps_y);
        uint8_t *expected = expected_bytes(s);
        check_split(s, GB_SPLIT_TOKENS, expected, keeps_y);
        check_split(s, GB_SPLIT_COLUMNS, expected, keeps_y);
        free(expected);
        free_sums(s);
    }
}

static void splits_are_those_of_all_parts(void **unused) {
    (void)unused;
    sums *s = new_sums(4, 32, false);
    gb_kernel_traits traits = gb_chain_traits(&s->call);
    assert_int_equal(traits.splits, GB_SPLIT_TOKENS | GB_SPLIT_COLUMNS);
    assert_int_equal(traits.own_tokens & 3u, 3);
    assert_int_equal(traits.own_columns & 3u, 3);
    s->nodes[2].op = GB_OP_RMS_NORM; /* of y, with a weight */
    s->chain.parts[2].by_token = gb_op_operand_roles(GB_OP_RMS_NORM).by_token;
    traits = gb_chain_traits(&s->call);
    assert_int_equal(traits.splits, GB_SPLIT_TOKENS);
    assert_int_equal(traits.own_tokens & 3u, 1);
    free_sums(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chains_have_the_bits_of_their_ops),
        cmocka_unit_test(splits_are_those_of_all_parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
