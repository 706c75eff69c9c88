/* SPDX-License-Identifier: Apache-2.0
 *
 * What is in the graph of a step: one random source however many rows, a sort only where a setting needs one,
 * and nothing as long as the vocabulary among the outputs but the logits, which are lent.
 */
#include "mlx/graph_support.hpp"

#include <mlx/primitives.h>

#include <map>
#include <set>
#include <string>

using namespace gb_mlx;

/* How many primitives of each name the graph of an array has. */
static std::map<std::string, int> count_primitives(const mx::array &output) {
    std::map<std::string, int> counts;
    std::set<std::uintptr_t> seen;
    std::vector<mx::array> left = {output};
    while (!left.empty()) {
        const mx::array next = left.back();
        left.pop_back();
        if (!next.has_primitive() || !seen.insert(next.primitive_id()).second)
            continue;
        counts[next.primitive().name()]++;
        for (const mx::array &input : next.inputs())
            left.push_back(input);
    }
    return counts;
}

static int sorts(std::map<std::string, int> &counts) {
    return counts["Sort"] + counts["ArgSort"] + counts["Partition"] + counts["ArgPartition"];
}

static program_pointer program;
static std::unique_ptr<lowered_program> lowered;

static int set_up(void **) {
    program = random_program("small.json", "none");
    lowered = std::make_unique<lowered_program>(*program, backend_options(), false);
    return 0;
}

static int tear_down(void **) {
    lowered.reset();
    program.reset();
    return 0;
}

/* The graph of an output in a step of that many slots with one row each. */
static std::map<std::string, int> graph_of(gb_role role, int rows, float temperature, int32_t top_k,
                                           float top_p) {
    slots states(*program, 4, 128, false);
    test_batch b(*program);
    for (int i = 0; i < rows; i++) {
        b.add(i, 0, {3 + i, 9});
        b.add_row(temperature, top_k, top_p);
    }
    step s(lowered->plan(), b.batch, states);
    lowered->build(s);
    const mx::array output = s[gb_program_output(program.get(), role)];
    if (role == GB_ROLE_NEXT) {
        assert_int_equal(output.size(), rows);
        assert_true(output.dtype() == mx::int32);
    }
    return count_primitives(output);
}

static void test_sampled(void **) {
    for (int rows : {1, 3}) {
        std::map<std::string, int> counts = graph_of(GB_ROLE_NEXT, rows, 0.8f, 0, 1);
        assert_int_equal(counts["RandomBits"], 1);
        assert_int_equal(sorts(counts), 0);
    }
}

static void test_masks(void **) {
    std::map<std::string, int> top_k = graph_of(GB_ROLE_NEXT, 2, 0.8f, 7, 1);
    assert_int_equal(top_k["RandomBits"], 1);
    assert_int_equal(top_k["Partition"], 1);
    std::map<std::string, int> top_p = graph_of(GB_ROLE_NEXT, 2, 0.8f, 0, 0.9f);
    assert_int_equal(top_p["RandomBits"], 1);
    assert_int_equal(sorts(top_p), 1);
}

static void test_greedy(void **) {
    std::map<std::string, int> counts = graph_of(GB_ROLE_NEXT, 2, 0, 7, 0.9f);
    std::map<std::string, int> logits = graph_of(GB_ROLE_LOGITS, 2, 0, 7, 0.9f);
    assert_int_equal(counts["RandomBits"], 0);
    assert_int_equal(sorts(counts), 0);
    assert_int_equal(counts["Divide"], logits["Divide"]);
}

/* Branches and views are no ops of MLX's, nor is what draft heads alone have, which it does not run: using
 * one as if it were is an error that names it. */
static void test_lacking(void **) {
    const std::set<gb_op> without = {GB_OP_IF, GB_OP_SPLIT_HEADS, GB_OP_MERGE_HEADS, GB_OP_ATTEND};
    for (uint32_t op = 1; op < GB_OP_LIMIT; op++) {
        if (!gb_op_find(op))
            continue;
        std::string reason;
        try {
            find_maker(static_cast<gb_op>(op));
        } catch (const failure &thrown) {
            assert_int_equal(thrown.status, GUMBEL_ERROR_UNSUPPORTED);
            reason = thrown.what();
        }
        const std::string expected =
            std::string("the mlx backend has no op ") + gb_op_find(op)->name + "; use --backend cpu";
        assert_string_equal(reason.c_str(), without.contains(static_cast<gb_op>(op)) ? expected.c_str() : "");
    }
}

int main() {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_lacking), cmocka_unit_test(test_sampled),
                                       cmocka_unit_test(test_masks), cmocka_unit_test(test_greedy)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
