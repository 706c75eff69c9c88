/* SPDX-License-Identifier: Apache-2.0
 *
 * The devices that an engine can be made on together: those of the first one's kind that reach each other.
 */
#include "backends/cuda/cuda.h"
#include "device_memory.h"
#include "support/programs/random_program.h"

enum { MOST = 16 };

static gumbel_error error;
static gb_device_info devices[MOST];

static uint32_t list(uint32_t capacity) {
    uint32_t count;
    assert_ok(gb_cuda_list_devices(devices, capacity, &count, &error), &error);
    return count;
}

static void each_is_described(void **unused) {
    (void)unused;
    int there, before, after;
    assert_cuda(cudaGetDeviceCount(&there));
    assert_cuda(cudaGetDevice(&before));
    const uint32_t count = list(MOST);
    assert_true(count >= 1 && count <= (uint32_t)there);
    assert_int_equal(devices[0].number, 0);
    for (uint32_t i = 0; i < count; i++) {
        assert_string_equal(devices[i].name, devices[0].name);
        assert_true(devices[i].free_bytes > 0 && devices[i].free_bytes <= devices[i].memory_bytes);
        assert_true(devices[i].bytes_per_second > 1e11 && devices[i].bytes_per_second < 1e14);
    }
    assert_int_equal(list(1), 1);
    assert_cuda(cudaGetDevice(&after));
    assert_int_equal(before, after);
}

/* Small weights are not sharded, so that more devices only add exchanges. */
static void one_is_advised(void **unused) {
    (void)unused;
    gumbel_program *program = open_random_program("small.json", false);
    const gumbel_engine_options options = {.size = sizeof options, .backend = "cuda"};
    gumbel_device_advice advice = {.size = sizeof advice};
    assert_ok(gumbel_advise_devices(program, &options, &advice, &error), &error);
    assert_int_equal(advice.device_count, 1);
    assert_int_equal(advice.devices[0], 0);
    assert_true(advice.estimate_count >= 1 && advice.estimates[0].fits);
    assert_true(advice.estimates[0].step_seconds > 1e-6 && advice.estimates[0].bytes > 1000);
    gumbel_program_close(program);
}

#if defined(GUMBEL_EMULATED_DEVICE)

static void others_are_left_out(void **unused) {
    (void)unused;
    const uint32_t all = list(MOST);
    emulated_other_device = 1;
    assert_int_equal(list(MOST), all - 1);
    assert_int_equal(devices[1].number, 2);
    emulated_apart_device = 2;
    assert_int_equal(list(MOST), all - 2);
    assert_int_equal(devices[1].number, 3);
    emulated_apart_device = 0;
    assert_int_equal(list(MOST), 1);
    emulated_other_device = emulated_apart_device = -1;
}

static void memory_in_use_is_not_free(void **unused) {
    (void)unused;
    enum { TAKEN = 1 << 20 };
    void *memory;
    list(1);
    const uint64_t before = devices[0].free_bytes;
    assert_cuda(cudaMalloc(&memory, TAKEN));
    list(1);
    assert_int_equal(before - devices[0].free_bytes, TAKEN);
    assert_int_equal(devices[0].memory_bytes, emulated_memory_bytes);
    assert_cuda(cudaFree(memory));
}

#else

static void others_are_left_out(void **unused) {
    (void)unused;
    skip();
}

static void memory_in_use_is_not_free(void **unused) {
    (void)unused;
    skip();
}

#endif

int main(void) {
    need_device();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_is_described),
        cmocka_unit_test(one_is_advised),
        cmocka_unit_test(others_are_left_out),
        cmocka_unit_test(memory_in_use_is_not_free),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
