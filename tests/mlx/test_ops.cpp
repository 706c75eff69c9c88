/* SPDX-License-Identifier: Apache-2.0
 *
 * Every op of ops.def, in programs of both families: MLX's result is the portable kernel's. test_formats.cpp
 * has the other formats of weights.
 */
#include "mlx/compare_ops.hpp"

extern "C" {
#include "support/programs/tiny_program.h"
#include "support/temporary.h"
}

static void test_tiny(void **) {
    gumbel_error error;
    std::set<gb_op> covered;
    for (gb_program *built :
         {tiny_program_build(true), tiny_recurrent_build(true), tiny_target_build(), tiny_head_build()}) {
        const char *path = temporary_path("tiny.gumbel");
        assert_ok(tiny_program_write(built, path, &error), &error);
        gb_program_destroy(built);
        covered.merge(compare_program(*read_program(path)));
    }
    for (uint32_t op = 1; op < GB_OP_LIMIT; op++)
        if (gb_op_find(op) && op != GB_OP_IF && op != GB_OP_SPLIT_HEADS && op != GB_OP_MERGE_HEADS &&
            op != GB_OP_ATTEND && !covered.contains(static_cast<gb_op>(op)))
            fail_msg("op %s was not compared", gb_op_find(op)->name);
}

static void test_dense(void **) {
    compare_program(*random_program("small.json", "none"));
    compare_program(*random_program("small_bf16.json", "none"));
    compare_program(*random_program("biases.json", "none"));
    compare_program(*random_program("qwen.json", "none"));
}

static void test_fused(void **) {
    compare_program(*random_program("small.json", "none"), {.has_fused_kernels = true});
    compare_program(*random_program("qwen.json", "none"), {.has_fused_kernels = true});
}

static void test_quantized(void **) {
    for (const char *recipe : {"int4", "int4-g64", "int8", "int4-affine", "int8-affine", "int4-affine-g32"}) {
        compare_program(*random_program("small_groups.json", recipe));
        compare_program(*random_program("qwen_groups.json", recipe));
    }
}

int main() {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_tiny), cmocka_unit_test(test_dense),
                                       cmocka_unit_test(test_fused), cmocka_unit_test(test_quantized)};
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
