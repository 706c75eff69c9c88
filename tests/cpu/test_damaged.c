/* SPDX-License-Identifier: Apache-2.0
 *
 * What the verifier accepts can be run: programs with a damaged graph, as far as they are valid, go through a
 * few steps. Run with the sanitizers to see that nothing is read or written out of bounds.
 */
#include "base/memory.h"
#include "cpu/tiny_backend.h"
#include "program/file/encode.h"
#include "program/file/reader.h"
#include "support/programs/program_file.h"
#include "support/test_arguments.h"

/* Some chunks in two slots, with and without rows; every number that comes out is fine. */
static bool run_steps(const gb_program *program) {
    enum { MOST_BYTES = 1 << 24 };
    gb_backend_options options = tiny_options();
    options.slots = 2;
    if (program->metadata.max_context < options.max_context)
        options.max_context = (uint32_t)program->metadata.max_context;
    gb_backend *backend;
    if (gb_program_state_bytes(program) > MOST_BYTES ||
        gb_cpu_backend_create(program, &options, &backend, NULL) != GUMBEL_OK)
        return false;
    for (uint32_t position = 0; position < 6 && position + 3 <= options.max_context; position += 3) {
        tiny_batch b = {0};
        add_text(&b, 0, 0, position, 3);
        add_text(&b, 1, 1, position, 2);
        if (position > 0)
            add_row(&b, 2), add_row(&b, 4);
        run_batch(backend, &b);
    }
    backend->functions->destroy(backend);
    return true;
}

/* Sets each 32-bit number of the graph to each of some, with checksums that fit again. */
static void check_file(program_file valid) {
    static const uint32_t numbers[] = {0, 1, 2, 3, 5, 16, 17, 0x7fffffff, 0xffffffff};
    const uint8_t *entry = section_entry(&valid, GB_SECTION_GRAPH);
    uint64_t offset = gb_get_u64(entry + GB_ENTRY_OFFSET), size = gb_get_u64(entry + GB_ENTRY_SIZE);
    program_file file = copy_program_file(&valid, 0);
    const uint64_t step = is_short_run() ? 6 : 2; /* also numbers that no word has whole */
    size_t run = 0;
    for (uint64_t at = 0; at + 4 <= size; at += step) {
        for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
            gb_program *program;
            gb_put_u32(file.bytes + offset + at, numbers[i]);
            repair_checksums(&file);
            if (gb_program_parse("damaged", file.bytes, file.size, &program, NULL) == GUMBEL_OK) {
                run += run_steps(program);
                gb_program_destroy(program);
            }
        }
        memcpy(file.bytes + offset, valid.bytes + offset, (size_t)size);
    }
    print_message("%zu damaged programs ran\n", run);
    assert_true(run > 0);
    gb_free(file.bytes);
    gb_free(valid.bytes);
}

static void attention(void **unused) {
    (void)unused;
    check_file(tiny_program_file(true));
}

static void linear_attention_and_experts(void **unused) {
    (void)unused;
    check_file(tiny_recurrent_file(true));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(attention),
        cmocka_unit_test(linear_attention_and_experts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
