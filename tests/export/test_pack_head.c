/* SPDX-License-Identifier: Apache-2.0
 *
 * Packing a program with a draft head: the file is the one that is written for that order at once, shared
 * matrices still once.
 */
#include "base/file_map.h"
#include "gumbel.h"
#include "program/constant_packing.h"
#include "program/draft_head.h"
#include "program/file/reader.h"
#include "support/assertions.h"
#include "support/programs/quantized_program.h"
#include "support/programs/tiny_program.h"
#include "support/temporary.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static gumbel_error error;

static void write_for(gb_packing_order order, const char *name) {
    gb_program *program = quantized_pair_build();
    assert_ok(gb_program_choose_packings(program, order, &error), &error);
    assert_ok(tiny_program_write(program, temporary_path(name), &error), &error);
    gb_program_destroy(program);
}

static bool keep_total(void *user, const char *what, uint64_t done, uint64_t total) {
    uint64_t *counts = user;
    (void)what;
    counts[0] = done;
    counts[1] = total;
    return true;
}

static void pack(const char *from, const char *backend, uint64_t counts[2]) {
    const gumbel_pack_options options = {
        .size = sizeof options, .backend = backend, .progress = keep_total, .progress_user = counts};
    assert_ok(gumbel_pack(temporary_path(from), temporary_path("out.gumbel"), &options, &error), &error);
}

static void assert_packed_as(const char *name) {
    gb_file_map a, b;
    assert_ok(gb_map_file(temporary_path("out.gumbel"), &a, &error), &error);
    assert_ok(gb_map_file(temporary_path(name), &b, &error), &error);
    assert_int_equal(a.size, b.size);
    assert_memory_equal(a.data, b.data, a.size);
    gb_unmap_file(&a);
    gb_unmap_file(&b);
}

static void packing_gives_the_file_of_that_order(void **state) {
    (void)state;
    uint64_t counts[2];
    write_for(GB_ORDER_CANONICAL, "canonical.gumbel");
    write_for(GB_ORDER_INTERLEAVED, "cpu.gumbel");
    write_for(GB_ORDER_FRAGMENTS, "cuda.gumbel");
    pack("canonical.gumbel", "cpu", counts);
    assert_packed_as("cpu.gumbel");
    pack("cpu.gumbel", "cuda", counts);
    assert_packed_as("cuda.gumbel");
    pack("cuda.gumbel", "none", counts);
    assert_packed_as("canonical.gumbel");
    gb_program *program;
    assert_ok(gb_program_read(temporary_path("out.gumbel"), &program, &error), &error);
    assert_int_equal(counts[0], gb_program_weight_bytes(program) + gb_head_own_bytes(program));
    assert_int_equal(counts[1], counts[0]);
    gb_program_destroy(program);
}

static void shared_matrices_are_packed_once(void **state) {
    (void)state;
    gb_program *program;
    size_t shared = 0, packed = 0;
    write_for(GB_ORDER_INTERLEAVED, "cpu.gumbel");
    assert_ok(gb_program_read(temporary_path("cpu.gumbel"), &program, &error), &error);
    for (uint32_t i = 0; i < program->head->constant_count; i++) {
        const gb_constant *constant = &program->head->constants[i];
        shared += constant->same != NULL;
        packed += constant->packing.block_rows > 0;
        assert_true(!constant->same || constant->same->data == constant->data);
    }
    assert_int_equal(shared, 2); /* table and head */
    assert_int_equal(packed, 2); /* head and mix */
    assert_ok(gb_check_weights(program, &error), &error);
    gb_program_destroy(program);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packing_gives_the_file_of_that_order),
        cmocka_unit_test(shared_matrices_are_packed_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
