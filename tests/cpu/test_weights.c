/* SPDX-License-Identifier: Apache-2.0
 *
 * Where the backend finds its weights: mapped where kernels can read them, otherwise laid out anew.
 */
#include "backends/cpu/weights.h"
#include "base/memory.h"
#include "program/constant_packing.h"
#include "program/file/reader.h"
#include "support/assertions.h"
#include "support/programs/program_file.h"
#include "support/programs/quantized_program.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static gumbel_error error;

/* What became of the program in a file: the head is compared, the rest stays where it is. */
static void place(const program_file *file, unsigned threads, bool is_interleaved, bool is_rearranged,
                  const uint8_t *head) {
    gb_program *program;
    gb_team *team;
    gb_placed_weights weights;
    assert_ok(gb_program_parse("test", file->bytes, file->size, &program, &error), &error);
    assert_ok(gb_team_create(threads, &team, &error), &error);
    assert_ok(gb_place_weights(program, team, threads, NULL, NULL, &weights, &error), &error);
    for (uint32_t i = 0; i < program->constant_count; i++) {
        const gb_placed_weight *weight = &weights.of[i];
        bool is_head = i == QUANTIZED_HEAD;
        assert_int_equal(weight->is_interleaved, is_head && is_interleaved);
        assert_int_equal(weight->is_rearranged, is_head && is_rearranged);
        assert_int_equal(weight->data != program->constants[i].data, weight->is_rearranged);
        assert_int_equal((uintptr_t)weight->data % 64, 0);
    }
    assert_int_equal(weights.memory != NULL, is_rearranged);
    assert_memory_equal(weights.of[QUANTIZED_HEAD].data, head, program->constants[QUANTIZED_HEAD].size);
    gb_free_weights(&weights);
    gb_team_destroy(team);
    gb_program_destroy(program);
}

/* The head's bytes in a file. */
static uint8_t *head_of(const program_file *file, bool is_canonical) {
    gb_program *program;
    assert_ok(gb_program_parse("test", file->bytes, file->size, &program, &error), &error);
    const gb_constant *head = &program->constants[QUANTIZED_HEAD];
    uint8_t *bytes = gb_allocate((size_t)head->size, 1);
    assert_non_null(bytes);
    if (is_canonical)
        gb_constant_canonical(head, bytes);
    else
        memcpy(bytes, head->data, (size_t)head->size);
    gb_program_destroy(program);
    return bytes;
}

/* All three files have the same weights. */
static void weights_are_laid_out_where_they_have_to_be(void **state) {
    (void)state;
    gb_program *odd = packed_program_build();
    gb_packing *packing = &odd->constants[QUANTIZED_HEAD].packing;
    packing->block_rows = 8;
    packing->codes = packing->scales = gb_layout_interleaved(8, 2);
    program_file files[] = {program_file_of(quantized_program_build()), packed_program_file(),
                            program_file_of(odd)};
    uint8_t *canonical = head_of(&files[0], false), *interleaved = head_of(&files[1], false),
            *undone = head_of(&files[2], true);
    assert_memory_not_equal(canonical, interleaved, QUANTIZED_VOCABULARY * QUANTIZED_WIDTH / 2);
    for (unsigned threads = 1; threads <= 7; threads += 2) {
        place(&files[0], threads, true, true, interleaved);
        place(&files[1], threads, true, false, interleaved);
        place(&files[2], threads, false, true, undone);
    }
    assert_memory_equal(undone, canonical, QUANTIZED_VOCABULARY * QUANTIZED_WIDTH / 2);
    gb_free(canonical);
    gb_free(interleaved);
    gb_free(undone);
    for (size_t i = 0; i < 3; i++)
        gb_free(files[i].bytes);
}

static void weights_must_have_been_read(void **state) {
    (void)state;
    gb_program *program = quantized_program_build();
    gb_placed_weights weights;
    assert_fails(gb_place_weights(program, NULL, 1, NULL, NULL, &weights, &error), GUMBEL_ERROR_UNSUPPORTED,
                 &error, "constant table has no data");
    assert_null(weights.of);
    gb_program_destroy(program);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_are_laid_out_where_they_have_to_be),
        cmocka_unit_test(weights_must_have_been_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
