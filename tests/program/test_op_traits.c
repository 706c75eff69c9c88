/* SPDX-License-Identifier: Apache-2.0
 *
 * What ops.def and an op's signature say of sharing it and of its work.
 */
#include "program/infer.h"
#include "program/op_traits.h"
#include "program/signature.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { FIRST = 1, SECOND = 2, THIRD = 4, FOURTH = 8, FIFTH = 16, SIXTH = 32, SEVENTH = 64 };

static void operands_follow_from_signatures(void **state) {
    (void)state;
    static const struct {
        gb_op op;
        unsigned by_token, by_column, states;
    } cases[] = {
        {GB_OP_EMBEDDING, SECOND, FIRST, 0},
        {GB_OP_LINEAR, FIRST, 0, 0},
        {GB_OP_RMS_NORM, FIRST, FIRST | SECOND, 0},
        {GB_OP_ROPE, FIRST | SECOND, FIRST, 0},
        {GB_OP_ATTENTION, FIRST | SECOND | THIRD | FOURTH | FIFTH, THIRD | SEVENTH, SIXTH | SEVENTH},
        {GB_OP_ADD, FIRST | SECOND, FIRST | SECOND, 0},
        {GB_OP_ADD_BIAS, FIRST, FIRST | SECOND, 0},
        {GB_OP_SCALE, FIRST, FIRST, 0},
        {GB_OP_GATHER_ROWS, SECOND, FIRST, 0},
        {GB_OP_SLICE, FIRST, 0, 0},
        {GB_OP_CONCATENATE, FIRST | SECOND, 0, 0},
        {GB_OP_CAUSAL_CONV, FIRST | THIRD, FIRST | FOURTH, FOURTH},
        {GB_OP_EXPERT_LINEAR, FIRST, 0, 0},
        {GB_OP_COMBINE_EXPERTS, FIRST | SECOND, FIRST, 0},
        {GB_OP_SCALE_ROWS, FIRST | SECOND, FIRST, 0},
        {GB_OP_TOP_P_MASK, FIRST | SECOND | THIRD, FIRST | SECOND, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const gb_operand_roles roles = gb_op_operand_roles(cases[i].op);
        const char *name = gb_op_find(cases[i].op)->name;
        if (roles.by_token != cases[i].by_token || roles.by_column != cases[i].by_column ||
            roles.states != cases[i].states)
            fail_msg("%s: by token %x, by column %x, states %x", name, roles.by_token, roles.by_column,
                     roles.states);
    }
    assert_int_equal(gb_op_operand_roles(GB_OP_GATED_DELTA).states, SEVENTH);
    assert_int_equal(gb_op_operand_roles(GB_OP_COUNT_TOKENS).states, SIXTH);
    assert_int_equal(gb_op_operand_roles(GB_OP_NONE).by_token, 0);
}

/* What a line speaks of is there. */
static void every_line_is_consistent(void **state) {
    (void)state;
    for (uint32_t number = 0; number < GB_OP_LIMIT; number++) {
        const gb_op_traits *traits = gb_op_traits_find(number);
        gb_signature signature;
        if (!gb_op_find(number)) {
            assert_null(traits);
            continue;
        }
        assert_true(gb_signature_parse(gb_op_find(number), &signature));
        const gb_work works[] = {traits->work, traits->work_before};
        assert_int_not_equal(traits->work.kind, 0);
        for (size_t i = 0; i < 2; i++) {
            assert_true(works[i].operand < signature.operand_count);
            if (works[i].kind == GB_WORK_PRODUCTS)
                assert_true(works[i].dim < signature.operands[works[i].operand].dim_count);
        }
        assert_true(traits->before != GB_BEFORE_NONE ||
                    (!traits->splits_before && !traits->work_before.kind));
        assert_true(traits->before != GB_BEFORE_APPEND || gb_op_operand_roles((gb_op)number).states);
        assert_true(traits->before != GB_BEFORE_ROUND ||
                    gb_op_attribute_type((gb_op)number, GB_ATTRIBUTE_ACTIVATION) == GB_ATTRIBUTE_INT);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operands_follow_from_signatures),
        cmocka_unit_test(every_line_is_consistent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
