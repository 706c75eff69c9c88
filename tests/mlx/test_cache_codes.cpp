/* SPDX-License-Identifier: Apache-2.0
 *
 * Caches of q8 and q4: groups are rounded to the bits of tensor/cache_codes.h and read back as it says, saved
 * rows have its layout, and attention over codes is the portable kernel's, also where a ring wraps around.
 */
#include "backends/mlx/codes.hpp"
#include "mlx/compare_ops.hpp"

extern "C" {
#include "tensor/cache_codes.h"
}

#include <cmath>
#include <cstring>

using namespace gb_mlx;

enum { ROWS = 64, HEADS = 2, ELEMENTS = 64, GROUPS = ELEMENTS / GB_CODE_GROUP };

/* Rows [ROWS,HEADS,ELEMENTS] of magnitudes that float16 has, has not, or has as subnormal scales. */
static std::vector<float> random_numbers() {
    std::vector<float> x(ROWS * HEADS * ELEMENTS);
    uint32_t word = 7;
    for (size_t i = 0; i < x.size(); i++) {
        word = word * 1664525u + 1013904223u;
        const float magnitude = std::ldexp(1.0f, static_cast<int>(i / GB_CODE_GROUP % 46) - 28);
        x[i] = magnitude * (static_cast<float>(word >> 8) / 0x1p23f - 1);
    }
    return x;
}

/* A group each of zeros, negative zeros, equal magnitudes of both signs, quotients that end in a half, and
 * each of what is no number. */
static std::vector<float> some_numbers() {
    std::vector<float> x = random_numbers();
    const auto group = [&](size_t g) { return x.data() + g * GB_CODE_GROUP; };
    for (size_t i = 0; i < GB_CODE_GROUP; i++) {
        group(0)[i] = 0;
        group(1)[i] = -0.0f;
        group(2)[i] = i % 2 ? 3.0f : -3.0f;
        group(3)[i] = i == 9 ? 127 : static_cast<float>(i) - 15.5f;
        group(4)[i] = i == 9 ? -8 : static_cast<float>(i % 16) - 7.5f;
        group(5)[i] = 0x1p-30f * static_cast<float>(i);
    }
    group(20)[3] = NAN;
    group(21)[31] = INFINITY;
    group(22)[0] = -INFINITY;
    group(23)[5] = 1e30f;
    group(23)[6] = -NAN;
    return x;
}

static void round_row(const float *x, gb_dtype dtype, uint8_t *row) {
    uint8_t *scales = row + gb_code_bytes(dtype, HEADS * ELEMENTS);
    for (size_t g = 0; g < HEADS * GROUPS; g++)
        gb_round_group(x + g * GB_CODE_GROUP, dtype, row + gb_code_bytes(dtype, g * GB_CODE_GROUP),
                       scales + gb_code_scale_bytes(g * GB_CODE_GROUP));
}

static void compare_codes(gb_dtype dtype) {
    const std::vector<float> x = some_numbers();
    const int row_bytes = HEADS * coded_bytes(dtype, ELEMENTS);
    std::vector<uint8_t> expected(static_cast<size_t>(ROWS * row_bytes));
    for (int row = 0; row < ROWS; row++)
        round_row(x.data() + row * HEADS * ELEMENTS, dtype, expected.data() + row * row_bytes);
    const mx::array heads = round_to_codes(mx::array(x.data(), {ROWS, HEADS, ELEMENTS}, mx::float32), dtype);
    const mx::array saved = evaluated(mx::contiguous(to_saved(heads, dtype, ELEMENTS)));
    assert_int_equal(saved.nbytes(), expected.size());
    assert_memory_equal(saved.data<uint8_t>(), expected.data(), expected.size());
    assert_true(mx::array_equal(from_saved(saved, dtype, ELEMENTS), heads).item<bool>());
}

static void compare_numbers(gb_dtype dtype) {
    const std::vector<float> x = some_numbers();
    const mx::array heads = round_to_codes(mx::array(x.data(), {ROWS, HEADS, ELEMENTS}, mx::float32), dtype);
    const mx::array read = evaluated(mx::contiguous(numbers_of_codes(heads, dtype, ELEMENTS)));
    for (size_t g = 0; g < ROWS * HEADS * GROUPS; g++) {
        uint8_t codes[GB_CODE_GROUP], scale[sizeof(uint16_t)];
        gb_round_group(x.data() + g * GB_CODE_GROUP, dtype, codes, scale);
        for (size_t i = 0; i < GB_CODE_GROUP; i++) {
            const float expected = gb_group_element(dtype, codes, scale, i);
            const float found = read.data<float>()[g * GB_CODE_GROUP + i];
            if (found != expected && !(std::isnan(found) && std::isnan(expected)))
                fail_msg("element %zu of group %zu is %g, expected %g", i, g, static_cast<double>(found),
                         static_cast<double>(expected));
        }
    }
}

static void test_codes(void **) {
    compare_codes(GB_Q8);
    compare_codes(GB_Q4);
}

static void test_numbers(void **) {
    compare_numbers(GB_Q8);
    compare_numbers(GB_Q4);
}

/* Prompts that fit a ring's slack, and those that have to be read before the ring takes them. */
static void test_attention(void **) {
    for (const char *cache : {"q8", "q4", "q4-all"})
        for (const char *config : {"small_heads.json", "qwen_wide.json"})
            for (const int prompt : {4, 70}) {
                print_message("%s %s, a prompt of %d\n", config, cache, prompt);
                const auto program = random_program(config, "none", cache);
                compare_program(*program, {.prompt = prompt});
                compare_program(*program, {.has_fused_kernels = true, .prompt = prompt});
            }
}

/* Bytes of all caches and rings that have a token. */
static double bytes_of_caches(const char *cache) {
    const auto program = random_program("small_heads.json", "none", cache);
    slots states(*program, 1, 128, false);
    for (uint32_t i = 0; i < program->state_count; i++) {
        const gb_shape &shape = program->states[i].type.shape;
        const mx::Shape token = {1, static_cast<int>(shape.dims[1]), static_cast<int>(shape.dims[2])};
        if (shape.rank == 3)
            states.append(0, i, states.rounded(i, mx::zeros(token)), 0);
    }
    return static_cast<double>(states.cache_bytes(0));
}

static void test_bytes(void **) {
    const double numbers = bytes_of_caches("float32") / 128;
    assert_true(bytes_of_caches("q8") == numbers * 34 && bytes_of_caches("q4-all") == numbers * 18);
}

int main() {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_codes), cmocka_unit_test(test_numbers),
                                       cmocka_unit_test(test_bytes), cmocka_unit_test(test_attention)};
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
