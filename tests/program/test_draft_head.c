/* SPDX-License-Identifier: Apache-2.0
 *
 * What a draft head shares with its program, and what is changed of both at once.
 */
#include "program/caches.h"
#include "program/draft_head.h"
#include "support/assertions.h"
#include "support/programs/quantized_program.h"
#include "support/programs/tiny_program.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static gumbel_error error;

static size_t count_shared(gb_program *program) {
    size_t count = 0;
    assert_ok(gb_share_constants(program, &error), &error);
    for (uint32_t i = 0; i < program->head->constant_count; i++)
        count += program->head->constants[i].same != NULL;
    return count;
}

static void equal_constants_are_shared(void **state) {
    (void)state;
    gb_program *program = quantized_pair_build();
    gb_constant *table = &program->head->constants[0];
    const gb_constant before = *table;
    assert_int_equal(count_shared(program), 2);
    assert_ptr_equal(table->same, &program->constants[0]);
    table->name = "tablet";
    assert_int_equal(count_shared(program), 1);
    *table = before;
    table->type.shape.dims[0]++;
    assert_int_equal(count_shared(program), 1);
    *table = before;
    table->format.bits = 4;
    assert_int_equal(count_shared(program), 1);
    *table = before;
    table->packing.block_rows = 16;
    assert_int_equal(count_shared(program), 1);
    *table = before;
    assert_int_equal(count_shared(program), 2);
    gb_program_destroy(program);
}

static void constants_are_numbered_on(void **state) {
    (void)state;
    gb_program *program = tiny_pair_build();
    const uint32_t own = program->constant_count, all = gb_file_constant_count(program);
    uint64_t bytes = 0;
    assert_int_equal(all, own + program->head->constant_count);
    assert_ptr_equal(gb_file_constant(program, own - 1), &program->constants[own - 1]);
    assert_ptr_equal(gb_file_constant(program, own), program->head->constants);
    for (uint32_t i = own; i < all; i++)
        bytes += gb_file_constant(program, i)->same ? 0 : gb_file_constant(program, i)->size;
    assert_int_equal(gb_head_own_bytes(program), bytes);
    gb_program_destroy(program);
}

static gb_dtype cache_of(const gb_program *program) {
    for (uint32_t i = 0; i < program->state_count; i++)
        if (strstr(program->states[i].name, "key_cache"))
            return program->states[i].type.dtype;
    fail_msg("no cache");
    return GB_DTYPE_NONE;
}

/* Heads of 8 elements hold no codes: what is refused changes neither graph nor id. */
static void caches_change_in_both(void **state) {
    (void)state;
    gb_program *program = tiny_pair_build();
    const gb_cache_choice *choice;
    gb_head_inherit(program);
    const gb_program before = *program, head_before = *program->head;
    assert_ok(gb_cache_find("q8", &choice, &error), &error);
    assert_fails(gb_program_set_caches(program, choice, &error), GUMBEL_ERROR_UNSUPPORTED, &error,
                 "heads of 8");
    assert_int_equal(cache_of(program->head), GB_F32);
    assert_memory_equal(program->id, before.id, sizeof before.id);
    assert_ok(gb_cache_find("bfloat16", &choice, &error), &error);
    assert_ok(gb_program_set_caches(program, choice, &error), &error);
    assert_int_equal(cache_of(program), GB_BF16);
    assert_int_equal(cache_of(program->head), GB_BF16);
    assert_memory_not_equal(program->id, before.id, sizeof before.id);
    assert_memory_not_equal(program->head->id, head_before.id, sizeof before.id);
    gb_program_destroy(program);
}

/* A program is verified with its head after the change. */
static void a_refusal_of_the_head_changes_nothing(void **state) {
    (void)state;
    gb_program *program = tiny_pair_build();
    const gb_cache_choice *choice;
    gb_head_inherit(program);
    const gb_program before = *program;
    program->head->metadata.prefill_chunk = 0; /* no longer valid */
    assert_ok(gb_cache_find("bfloat16", &choice, &error), &error);
    assert_fails(gb_program_set_caches(program, choice, &error), GUMBEL_ERROR_FORMAT, &error,
                 "prefill_chunk");
    assert_int_equal(cache_of(program), GB_F32);
    assert_int_equal(cache_of(program->head), GB_F32);
    assert_memory_equal(program->id, before.id, sizeof before.id);
    gb_program_destroy(program);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_constants_are_shared),
        cmocka_unit_test(constants_are_numbered_on),
        cmocka_unit_test(caches_change_in_both),
        cmocka_unit_test(a_refusal_of_the_head_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
