/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor/cache_codes.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static uint16_t rounded(const float *x, gb_dtype dtype, float *back) {
    uint8_t codes[GB_CODE_GROUP], scale[2];
    uint16_t half;
    gb_round_group(x, dtype, codes, scale);
    for (size_t i = 0; i < GB_CODE_GROUP; i++)
        back[i] = gb_group_element(dtype, codes, scale, i);
    memcpy(&half, scale, sizeof half);
    return half;
}

static void integers_stay(void **state) {
    (void)state;
    float x[GB_CODE_GROUP], back[GB_CODE_GROUP];
    for (int i = 0; i < GB_CODE_GROUP; i++)
        x[i] = (float)(i == 7 ? -127 : i * 8 - 121);
    assert_int_equal(rounded(x, GB_Q8, back), gb_f16_from_float(1));
    assert_memory_equal(back, x, sizeof x);
    for (int i = 0; i < GB_CODE_GROUP; i++)
        x[i] = (float)(i % 16 - 8) / 4;
    assert_int_equal(rounded(x, GB_Q4, back), gb_f16_from_float(0.25f));
    assert_memory_equal(back, x, sizeof x);
    for (int i = 0; i < GB_CODE_GROUP; i++)
        x[i] = -x[i]; /* the largest is +2: the scale's sign makes it -8 */
    assert_int_equal(rounded(x, GB_Q4, back), gb_f16_from_float(-0.25f));
    for (int i = 0; i < GB_CODE_GROUP; i++)
        assert_true(back[i] == x[i]);
}

static void ties_go_to_even_codes(void **state) {
    (void)state;
    float x[GB_CODE_GROUP] = {127, 0.5f, 1.5f, 2.5f, -0.5f, -1.5f}, back[GB_CODE_GROUP];
    const float expected[] = {127, 0, 2, 2, 0, -2};
    rounded(x, GB_Q8, back);
    for (size_t i = 0; i < 6; i++)
        assert_true(back[i] == expected[i]);
}

static void bytes_of_four_bits(void **state) {
    (void)state;
    float x[GB_CODE_GROUP] = {0};
    uint8_t codes[GB_CODE_GROUP], scale[2];
    x[1] = -8;
    x[17] = 3;
    gb_round_group(x, GB_Q4, codes, scale);
    assert_int_equal(codes[0], 0x88);
    assert_int_equal(codes[1], 0xb0);
    assert_int_equal(gb_code_bytes(GB_Q4, 64) + gb_code_scale_bytes(64), 36);
    assert_int_equal(gb_code_bytes(GB_Q8, 64) + gb_code_scale_bytes(64), 68);
}

static void errors_are_half_a_step(void **state) {
    (void)state;
    uint32_t bits = 1;
    for (int round = 0; round < 2000; round++) {
        float x[GB_CODE_GROUP], back[GB_CODE_GROUP], largest = 0;
        for (size_t i = 0; i < GB_CODE_GROUP; i++) {
            bits = bits * 1664525u + 1013904223u;
            x[i] = ldexpf((float)(int32_t)bits, -31 + round % 30 - 10);
            largest = fmaxf(largest, fabsf(x[i]));
        }
        rounded(x, GB_Q8, back);
        for (size_t i = 0; i < GB_CODE_GROUP; i++)
            assert_true(fabsf(back[i] - x[i]) <= largest * 0.51f / 127);
        rounded(x, GB_Q4, back);
        for (size_t i = 0; i < GB_CODE_GROUP; i++) /* the opposite of the largest has no code of its own */
            assert_true(fabsf(back[i] - x[i]) <= largest * 1.01f / 8);
    }
}

static void what_has_no_codes(void **state) {
    (void)state;
    static const gb_dtype dtypes[] = {GB_Q8, GB_Q4};
    for (size_t d = 0; d < 2; d++) {
        float back[GB_CODE_GROUP], x[GB_CODE_GROUP] = {0};
        assert_int_equal(rounded(x, dtypes[d], back) & 0x7fff, 0);
        assert_true(back[0] == 0);
        x[5] = 1e-9f; /* the scale would be below float16 */
        assert_int_equal(rounded(x, dtypes[d], back) & 0x7fff, 0);
        assert_true(back[5] == 0);
        static const float not_numbers[] = {INFINITY, -INFINITY, NAN, 1e30f};
        for (size_t i = 0; i < 4; i++) {
            x[5] = not_numbers[i];
            assert_int_equal(rounded(x, dtypes[d], back), 0x7e00);
            assert_true(isnan(back[0]) && isnan(back[5]));
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(integers_stay),      cmocka_unit_test(ties_go_to_even_codes),
        cmocka_unit_test(bytes_of_four_bits), cmocka_unit_test(errors_are_half_a_step),
        cmocka_unit_test(what_has_no_codes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
