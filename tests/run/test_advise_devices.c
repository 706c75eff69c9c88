/* SPDX-License-Identifier: Apache-2.0
 *
 * On how many devices to run a program, for devices that are made up: as few as it fits on, more where they
 * are faster, and an error where it fits on none.
 */
#include "base/status.h"
#include "program/file/reader.h"
#include "run/advise_devices.h"
#include "support/programs/random_program.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { THERE = 4, NUMBER = 3 /* of the first */, CONTEXT = 128, ROOMY = 1 << 30 };

/* Memory that is read at once, and memory that is all that a step waits for. */
static const double quick = 1e18, slow = 1e3;

static gumbel_error error;
static gumbel_device_advice advice;

typedef struct machine {
    gb_device_info devices[THERE];
    uint32_t count;
} machine;

static machine machine_of(uint32_t count, uint64_t bytes, double bytes_per_second) {
    machine made = {.count = count};
    for (uint32_t i = 0; i < count; i++)
        made.devices[i] = (gb_device_info){.number = (int)(NUMBER + i),
                                           .name = "made up",
                                           .memory_bytes = bytes,
                                           .free_bytes = bytes,
                                           .bytes_per_second = bytes_per_second};
    return made;
}

static gb_program *read_program(const char *config) {
    gb_program *program;
    gumbel_program_close(open_random_program(config, false));
    assert_ok(gb_program_read(random_program_path(), &program, &error), &error);
    return program;
}

static gumbel_status advise(const gb_program *program, const machine *m, int slots) {
    const gumbel_engine_options options = {
        .size = sizeof options, .slots = slots, .max_context = CONTEXT, .least_sharded_weights = 1};
    const gb_backend_entry *entry;
    assert_ok(gb_backend_find("cpu", &entry, &error), &error);
    memset(&advice, 0, sizeof advice);
    return gb_advise_devices(program, entry, &options, m->devices, m->count, &advice, &error);
}

static void assert_advised(uint32_t count) {
    assert_int_equal(advice.device_count, count);
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal(advice.devices[i], NUMBER + (int)i);
}

static const gumbel_device_estimate *estimates(const gb_program *program, int slots) {
    const machine m = machine_of(THERE, ROOMY, quick);
    assert_ok(advise(program, &m, slots), &error);
    return advice.estimates;
}

/* Bytes of a device that has room for so many beside what a step takes. */
static uint64_t with_room(uint64_t bytes) {
    return bytes + bytes / 9 + 10;
}

/* ---- Cases --------------------------------------------------------------------------------------------- */

static void one_is_enough(void **unused) {
    (void)unused;
    gb_program *program = read_program("small.json");
    const gumbel_device_estimate *found = estimates(program, 1);
    assert_advised(1);
    assert_int_equal(advice.estimate_count, 3);
    assert_true(found[0].fits && found[1].fits && found[0].devices == 1 && found[1].devices == 2);
    assert_true(found[0].step_seconds < found[1].step_seconds && found[0].bytes > found[1].bytes);
    const machine alone = machine_of(1, ROOMY, slow);
    assert_ok(advise(program, &alone, 1), &error);
    assert_advised(1);
    assert_int_equal(advice.estimate_count, 1);
    gb_program_destroy(program);
}

static void two_have_room(void **unused) {
    (void)unused;
    gb_program *program = read_program("small.json");
    const uint64_t one = estimates(program, 1)[0].bytes, two = advice.estimates[1].bytes;
    const machine full = machine_of(2, with_room(two), quick), fits = machine_of(2, with_room(one), quick);
    assert_ok(advise(program, &full, 1), &error);
    assert_advised(2);
    assert_false(advice.estimates[0].fits);
    assert_true(advice.estimates[1].fits);
    assert_ok(advise(program, &fits, 1), &error);
    assert_advised(1);
    gb_program_destroy(program);
}

/* What others use is not there, and the fullest device counts. */
static void used_memory_is_not_there(void **unused) {
    (void)unused;
    gb_program *program = read_program("small.json");
    machine m = machine_of(2, ROOMY, slow);
    m.devices[1].free_bytes = 0;
    assert_ok(advise(program, &m, 1), &error);
    assert_advised(1);
    m.devices[0].free_bytes = ROOMY / 11;
    assert_fails(advise(program, &m, 1), GUMBEL_ERROR_MEMORY, &error, "on 2 each needs 0.00 GB");
    gb_program_destroy(program);
}

static void there_is_no_room(void **unused) {
    (void)unused;
    gb_program *program = read_program("small.json");
    const machine m = machine_of(2, with_room(estimates(program, 1)[1].bytes) / 2, slow);
    assert_fails(advise(program, &m, 1), GUMBEL_ERROR_MEMORY, &error,
                 "a context of 128 positions fit on no number of devices");
    gb_program_destroy(program);
}

static void two_are_faster(void **unused) {
    (void)unused;
    gb_program *program = read_program("small.json");
    machine m = machine_of(2, ROOMY, slow);
    assert_ok(advise(program, &m, 1), &error);
    assert_advised(2);
    assert_true(advice.estimates[0].step_seconds > 1.1 * advice.estimates[1].step_seconds);
    const machine more = machine_of(4, ROOMY, slow); /* on which no step was measured */
    assert_ok(advise(program, &more, 1), &error);
    assert_advised(2);
    assert_true(advice.estimates[1].step_seconds > 1.1 * advice.estimates[2].step_seconds);
    m.devices[0].bytes_per_second = 0; /* not known */
    assert_ok(advise(program, &m, 1), &error);
    assert_advised(1);
    assert_true(advice.estimates[1].step_seconds == 0);
    gb_program_destroy(program);
}

static void counts_that_do_not_divide_are_left_out(void **unused) {
    (void)unused;
    gb_program *program = read_program("biases.json");
    const machine m = machine_of(THERE, ROOMY, slow);
    assert_ok(advise(program, &m, 1), &error);
    assert_advised(1);
    assert_int_equal(advice.estimate_count, 1);
    gb_program_destroy(program);
}

/* A conversation may be as long as the context, and all of them are of usual lengths. */
static void conversations_take_memory(void **unused) {
    (void)unused;
    gb_program *program = read_program("small.json");
    const uint64_t weights = gb_program_weight_bytes(program),
                   each = gb_program_state_bytes_at(program, CONTEXT);
    assert_int_equal(estimates(program, 1)[0].bytes, weights + each);
    assert_int_equal(estimates(program, 5)[0].bytes, weights + 5 * each);
    gb_program_destroy(program);
}

/* The CPU's devices are not looked at. */
static void the_first_is_advised(void **unused) {
    (void)unused;
    gumbel_program *program = open_random_program("small.json", false);
    gumbel_device_advice found = {.size = sizeof found};
    gumbel_engine_options options = {.size = sizeof options, .backend = "cpu"};
    assert_ok(gumbel_advise_devices(program, &options, &found, &error), &error);
    assert_int_equal(found.device_count, 1);
    assert_int_equal(found.devices[0], 0);
    assert_int_equal(found.estimate_count, 0);
    assert_ok(gumbel_advise_devices(program, NULL, &found, &error), &error);
    options.backend = "abacus";
    assert_fails(gumbel_advise_devices(program, &options, &found, &error), GUMBEL_ERROR_ARGUMENT, &error,
                 "abacus");
    options.slots = -1;
    assert_fails(gumbel_advise_devices(program, &options, &found, &error), GUMBEL_ERROR_ARGUMENT, &error,
                 "slots -1");
    found.size = 0;
    assert_fails(gumbel_advise_devices(program, NULL, &found, &error), GUMBEL_ERROR_ARGUMENT, &error,
                 "device advice");
    gumbel_program_close(program);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_is_enough),
        cmocka_unit_test(two_have_room),
        cmocka_unit_test(used_memory_is_not_there),
        cmocka_unit_test(there_is_no_room),
        cmocka_unit_test(two_are_faster),
        cmocka_unit_test(counts_that_do_not_divide_are_left_out),
        cmocka_unit_test(conversations_take_memory),
        cmocka_unit_test(the_first_is_advised),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
