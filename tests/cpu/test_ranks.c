/* SPDX-License-Identifier: Apache-2.0
 *
 * Programs sharded over ranks of the CPU: the same bits, and states that go from any number of ranks to any
 * other.
 */
#include "backends/ranks/ranks.h"
#include "backends/ranks/split_states.h"
#include "cpu/tiny_backend.h"

enum { LENGTH = 50, RANKS = 2 };

typedef gb_program *(*build_program)(bool use_sampling);

static const build_program builds[] = {tiny_program_build, tiny_recurrent_build};
enum { PROGRAMS = sizeof builds / sizeof *builds };

/* One of them with data, as new_tiny has. */
static gb_program *new_program(build_program build) {
    gb_program *program = build(false);
    fill_tiny(program);
    return program;
}

static gb_backend *new_ranks(const gb_program *program, const gb_backend_options *options,
                             int64_t least_weights) {
    static const int numbers[RANKS] = {0, 1};
    const gb_devices devices = {.numbers = numbers, .count = RANKS, .least_weights = least_weights};
    gb_backend *backend;
    gumbel_error error;
    assert_ok(gb_ranks_backend_create(gb_cpu_backend_create, program, options, &devices, &backend, &error),
              &error);
    return backend;
}

/* With every product cut, some of them, and heads alone. */
static void logits_have_the_same_bits(void **unused) {
    (void)unused;
    static tiny_logits expected[LENGTH], found[LENGTH];
    static const int64_t least[] = {1, 300, 1 << 20};
    for (size_t p = 0; p < PROGRAMS; p++) {
        gb_program *program = new_program(builds[p]);
        gb_backend_options options = tiny_options();
        gb_backend *alone = new_backend(program, &options);
        run_text(alone, 0, 1, 0, LENGTH, 1, expected);
        alone->functions->destroy(alone);
        options.threads = 2 * RANKS;
        for (size_t i = 0; i < sizeof least / sizeof *least; i++) {
            gb_backend *backend = new_ranks(program, &options, least[i]);
            for (uint32_t chunk = 1; chunk <= TINY_CHUNK; chunk++) {
                backend->functions->reset_slot(backend, chunk % MOST_SLOTS);
                run_text(backend, chunk % MOST_SLOTS, 1, 0, LENGTH, chunk, found);
                assert_memory_equal(found, expected, sizeof found);
            }
            backend->functions->destroy(backend);
        }
        free_tiny(program);
    }
}

/* ---- States -------------------------------------------------------------------------------------------- */

static void save(gb_backend *backend, uint32_t slot, uint32_t position, gb_saved_states saved,
                 tiny_stream *s) {
    gumbel_error error;
    s->size = s->position = 0;
    assert_ok(backend->functions->save_slot(backend, slot, position, saved, tiny_write, s, &error), &error);
}

static void load(gb_backend *backend, uint32_t slot, uint32_t position, tiny_stream *s) {
    gumbel_error error;
    s->position = 0;
    assert_ok(backend->functions->load_slot(backend, slot, position, GB_SAVED_ALL, tiny_read, s, &error),
              &error);
    assert_int_equal(s->position, s->size);
}

static void check_saved(gb_backend *alone, gb_backend *ranks, uint32_t position, gb_saved_states saved) {
    static tiny_stream one, other;
    save(alone, 0, position, saved, &one);
    save(ranks, 0, position, saved, &other);
    assert_int_equal(one.size, other.size);
    assert_memory_equal(one.bytes, other.bytes, one.size);
    if (saved != GB_SAVED_ALL)
        return;
    load(ranks, 2, position, &one);
    load(alone, 3, position, &other);
}

/* From one rank to two and back, before and after the ring is full. */
static void saved_states_do_not_depend_on_ranks(void **unused) {
    (void)unused;
    static tiny_logits expected[LENGTH], found[LENGTH];
    static const uint32_t turns[] = {1, 7, TINY_WINDOW, 11, TINY_RING, 13, 29, 44};
    for (size_t p = 0; p < PROGRAMS; p++) {
        gb_program *program = new_program(builds[p]);
        gb_backend_options options = tiny_options();
        gb_backend *alone = new_backend(program, &options), *ranks = new_ranks(program, &options, 1);
        for (size_t i = 0; i < sizeof turns / sizeof *turns; i++) {
            const uint32_t at = turns[i];
            alone->functions->reset_slot(alone, 0);
            ranks->functions->reset_slot(ranks, 0);
            run_text(alone, 0, 1, 0, at, 3, expected);
            run_text(ranks, 0, 1, 0, at, 3, expected);
            check_saved(alone, ranks, at, GB_SAVED_WITHOUT_CACHES);
            check_saved(alone, ranks, at, GB_SAVED_ALL);
            run_text(alone, 0, 1, at, LENGTH, 1, expected);
            run_text(ranks, 2, 1, at, LENGTH, 2, found);
            assert_memory_equal(found[at], expected[at], (LENGTH - at) * sizeof *found);
            run_text(alone, 3, 1, at, LENGTH, 2, found);
            assert_memory_equal(found[at], expected[at], (LENGTH - at) * sizeof *found);
        }
        alone->functions->destroy(alone);
        ranks->functions->destroy(ranks);
        free_tiny(program);
    }
}

/* Rows of codes: all heads' codes, then all heads' scales, of one rank or of two. */
static void rows_of_codes_are_cut_by_heads(void **unused) {
    (void)unused;
    enum { HEAD = 32, ROWS = 3, CODES = HEAD, SCALES = 2, OWN = CODES + SCALES };
    static gb_state state = {
        .name = "keys", .kind = GB_STATE_CACHE, .type = {GB_Q8, {.rank = 3, .dims = {ROWS, RANKS, HEAD}}}};
    static const gb_shard shard = {.dim = 1, .section_count = 1, .sections = {{RANKS, RANKS}}};
    const gb_program program = {.states = &state, .state_count = 1};
    uint8_t own[RANKS][ROWS * OWN];
    static tiny_stream joined;
    gb_rank_bytes bytes[RANKS] = {0};
    gb_split_states split = {.program = &program,
                             .shards = &shard,
                             .ranks = RANKS,
                             .max_context = ROWS,
                             .position = ROWS,
                             .of = bytes};
    gumbel_error error;
    for (unsigned r = 0; r < RANKS; r++)
        for (unsigned i = 0; i < ROWS * OWN; i++)
            own[r][i] = (uint8_t)(i % OWN < CODES ? 2 * (i / OWN) + r : 100 + 2 * (i / OWN) + r);
    for (unsigned r = 0; r < RANKS; r++)
        assert_true(gb_rank_bytes_append(&bytes[r], own[r], sizeof own[r]));
    joined.size = joined.position = 0;
    assert_ok(gb_split_states_join(&split, tiny_write, &joined, &error), &error);
    assert_int_equal(joined.size, RANKS * ROWS * OWN);
    for (unsigned row = 0; row < ROWS; row++)
        for (unsigned r = 0; r < RANKS; r++) {
            const uint8_t *of_row = joined.bytes + row * RANKS * OWN;
            assert_int_equal(of_row[r * CODES], 2 * row + r);
            assert_int_equal(of_row[r * CODES + CODES - 1], 2 * row + r);
            assert_int_equal(of_row[RANKS * CODES + r * SCALES], 100 + 2 * row + r);
        }
    for (unsigned r = 0; r < RANKS; r++)
        bytes[r].size = bytes[r].at = 0;
    assert_ok(gb_split_states_part(&split, tiny_read, &joined, &error), &error);
    for (unsigned r = 0; r < RANKS; r++) {
        assert_int_equal(bytes[r].size, sizeof own[r]);
        assert_memory_equal(bytes[r].data, own[r], sizeof own[r]);
        gb_free(bytes[r].data);
    }
}

static void copies_and_snapshots_are_of_all_ranks(void **unused) {
    (void)unused;
    static tiny_logits expected[LENGTH], found[LENGTH];
    enum { AT = 13 };
    for (size_t p = 0; p < PROGRAMS; p++) {
        gb_program *program = new_program(builds[p]);
        gb_backend_options options = tiny_options();
        gb_backend *backend = new_ranks(program, &options, 1);
        gumbel_error error;
        run_text(backend, 0, 1, 0, AT, 4, expected);
        assert_ok(backend->functions->copy_slot(backend, 0, 1, AT, &error), &error);
        assert_ok(backend->functions->take_snapshot(backend, 0, AT, &error), &error);
        run_text(backend, 0, 1, AT, LENGTH, 4, expected);
        run_text(backend, 1, 1, AT, LENGTH, 1, found);
        assert_memory_equal(found[AT], expected[AT], (LENGTH - AT) * sizeof *found);
        if (p == 1) { /* the ring of the other one has gone on by more than its slack */
            backend->functions->restore_snapshot(backend, 0, AT);
            run_text(backend, 0, 1, AT, LENGTH, 2, found);
            assert_memory_equal(found[AT], expected[AT], (LENGTH - AT) * sizeof *found);
        }
        backend->functions->destroy(backend);
        free_tiny(program);
    }
}

/* ---- What cannot be ------------------------------------------------------------------------------------ */

static void heads_that_are_not_divided_are_refused(void **unused) {
    (void)unused;
    static const int numbers[] = {0, 1, 2};
    const gb_devices devices = {.numbers = numbers, .count = 3, .least_weights = 1};
    gb_program *program = new_program(tiny_program_build);
    gb_backend_options options = tiny_options();
    gb_backend *backend;
    gumbel_error error;
    assert_fails(
        gb_ranks_backend_create(gb_cpu_backend_create, program, &options, &devices, &backend, &error),
        GUMBEL_ERROR_UNSUPPORTED, &error, "these counts do: 1, 2)");
    free_tiny(program);
}

static void a_rank_that_cannot_be_made_is_named(void **unused) {
    (void)unused;
    static const int numbers[] = {0, 7};
    const gb_devices devices = {.numbers = numbers, .count = 2, .least_weights = 1};
    gb_program *program = new_program(tiny_program_build);
    gb_backend_options options = tiny_options();
    gb_backend *backend;
    gumbel_error error;
    options.cpu_isa = "none such";
    assert_fails(
        gb_ranks_backend_create(gb_cpu_backend_create, program, &options, &devices, &backend, &error),
        GUMBEL_ERROR_ARGUMENT, &error, "device ");
    free_tiny(program);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(logits_have_the_same_bits),
        cmocka_unit_test(saved_states_do_not_depend_on_ranks),
        cmocka_unit_test(rows_of_codes_are_cut_by_heads),
        cmocka_unit_test(copies_and_snapshots_are_of_all_ranks),
        cmocka_unit_test(heads_that_are_not_divided_are_refused),
        cmocka_unit_test(a_rank_that_cannot_be_made_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
