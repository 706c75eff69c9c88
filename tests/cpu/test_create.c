/* SPDX-License-Identifier: Apache-2.0 */
#include "base/byte_buffer.h"
#include "base/text_sink.h"
#include "cpu/tiny_backend.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct budget {
    size_t allowed, asked;
} budget;

static bool spend(void *user, size_t bytes) {
    (void)bytes;
    budget *b = user;
    return b->asked++ < b->allowed;
}

static void steps_do_not_allocate(void **unused) {
    (void)unused;
    gb_program *program = new_tiny(true);
    for (int fuse = 0; fuse < 2; fuse++) {
        gb_backend_options options = tiny_options();
        options.threads = 2;
        options.fuse = fuse;
        gb_backend *backend = new_backend(program, &options);
        budget b = {SIZE_MAX, 0};
        gb_set_allocation_hook(spend, &b);
        for (uint32_t position = 0; position < 40; position += 4) {
            tiny_batch batch = {0};
            add_text(&batch, 1, 0, position, 4);
            if (position % 8 == 0)
                add_row(&batch, 3);
            batch.temperature[0] = 0.8f;
            run_batch(backend, &batch);
        }
        backend->functions->take_snapshot(backend, 1, 40, NULL);
        backend->functions->restore_snapshot(backend, 1, 40);
        backend->functions->copy_slot(backend, 1, 0, 40, NULL);
        backend->functions->reset_slot(backend, 1);
        gb_set_allocation_hook(NULL, NULL);
        assert_int_equal(b.asked, 0);
        backend->functions->destroy(backend);
    }
    free_tiny(program);
}

/* The n-th allocation fails, for every n: an error and, under the sanitizer, no leak. */
static void memory_runs_out(void **unused) {
    (void)unused;
    gb_program *program = new_tiny(true);
    gb_backend_options options = tiny_options();
    options.threads = 2;
    gumbel_status status = GUMBEL_ERROR_MEMORY;
    for (size_t allowed = 0; status != GUMBEL_OK; allowed++) {
        budget b = {allowed, 0};
        gb_backend *backend;
        gumbel_error error;
        gb_set_allocation_hook(spend, &b);
        status = gb_cpu_backend_create(program, &options, &backend, &error);
        gb_set_allocation_hook(NULL, NULL);
        if (status == GUMBEL_OK) {
            assert_true(allowed > 10);
            backend->functions->destroy(backend);
        } else {
            assert_int_equal(status, GUMBEL_ERROR_MEMORY);
            assert_null(backend);
        }
    }
    free_tiny(program);
}

static void refusals(void **unused) {
    (void)unused;
    gb_program *program = new_tiny(true);
    gb_backend_options options = tiny_options();
    gb_backend *backend;
    gumbel_error error;
    options.cpu_isa = "mmx";
    assert_fails(gb_cpu_backend_create(program, &options, &backend, &error), GUMBEL_ERROR_ARGUMENT, &error,
                 "instruction set \"mmx\": this machine has portable");
    options.cpu_isa = NULL;
    options.threads = -1;
    assert_fails(gb_cpu_backend_create(program, &options, &backend, &error), GUMBEL_ERROR_ARGUMENT, &error,
                 "-1 threads");
    options.threads = 1;
    const uint8_t *data = program->constants[3].data;
    program->constants[3].data = NULL;
    assert_fails(gb_cpu_backend_create(program, &options, &backend, &error), GUMBEL_ERROR_UNSUPPORTED, &error,
                 program->constants[3].name);
    program->constants[3].data = data;
    free_tiny(program);
}

/* gumbel.h names every set. One is used by its name where the machine has it, and refused elsewhere. */
static void every_instruction_set_has_a_name(void **unused) {
    (void)unused;
    static const char *const names[] = {"portable",   "avx2", "avxvnni", "avx512",  "avx512vnni",
                                        "avx512bf16", "neon", "neondot", "neoni8mm"};
    gb_program *program = new_tiny(true);
    gb_backend_options options = tiny_options();
    gumbel_error error;
    size_t available = 0, used = 0;
    while (gb_available_vector_kernels(available))
        available++;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        gb_backend *backend;
        char description[64];
        options.cpu_isa = names[i];
        if (gb_cpu_backend_create(program, &options, &backend, &error) != GUMBEL_OK) {
            assert_non_null(strstr(error.message, "this machine has portable"));
            continue;
        }
        snprintf(description, sizeof description, "cpu %s 1 thread", names[i]);
        assert_string_equal(backend->description, description);
        backend->functions->destroy(backend);
        used++;
    }
    assert_int_equal(used, available);
    free_tiny(program);
}

static void description(void **unused) {
    (void)unused;
    gb_program *program = new_tiny(true);
    gb_backend_options options = tiny_options();
    options.cpu_isa = "portable";
    gb_backend *backend = new_backend(program, &options);
    assert_string_equal(backend->description, "cpu portable 1 thread");
    backend->functions->destroy(backend);
    options.threads = 0;
    options.lock = GUMBEL_LOCK_TOUCHED;
    backend = new_backend(program, &options);
    assert_non_null(strstr(backend->description, " thread"));
    backend->functions->destroy(backend);
    gb_byte_buffer text = {0};
    gb_text_sink sink = {gb_buffer_write, &text};
    gb_cpu_describe(sink.write, sink.user);
    assert_non_null(strstr(gb_buffer_string(&text), "instruction sets portable"));
    assert_non_null(strstr(gb_buffer_string(&text), " core"));
    gb_buffer_free(&text);
    free_tiny(program);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_do_not_allocate),
        cmocka_unit_test(memory_runs_out),
        cmocka_unit_test(refusals),
        cmocka_unit_test(every_instruction_set_has_a_name),
        cmocka_unit_test(description),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
