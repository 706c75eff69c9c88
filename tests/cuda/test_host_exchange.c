/* SPDX-License-Identifier: Apache-2.0
 *
 * The end of a step: its results are in the mailbox, and its inputs advance, unless a stop token was drawn.
 */
#include "backends/cuda/runtime/device.h"
#include "backends/cuda/runtime/host_exchange.h"
#include "backends/cuda/runtime/inputs.h"
#include "cuda/device_memory.h"
#include "run/handles.h"
#include "support/assertions.h"
#include "support/programs/random_program.h"

enum { ROWS = 3, ENTRIES = 4, NEXT_AT = 16, OTHER_AT = 20, OTHER = 150, ENTRY_WORDS = 192, SPARES = 4 };
enum { SLOTS = 3, SLOT = 1, NUMBER = 9, STOP = 77 };

static gumbel_error error;

static void fetch(const void *from, void *to, size_t size) {
    assert_cuda(cudaGetLastError());
    assert_cuda(cudaStreamSynchronize(NULL));
    assert_cuda(cudaMemcpy(to, from, size, cudaMemcpyDeviceToHost));
}

static void set(void *to, const void *from, size_t size) {
    assert_cuda(cudaMemcpy(to, from, size, cudaMemcpyHostToDevice));
}

/* ---- Rows ---------------------------------------------------------------------------------------------- */

/* Inputs that advance, as the host has them. */
typedef struct row_values {
    int32_t tokens[ROWS], positions[ROWS];
    uint64_t seed[ROWS];
    int32_t from, to; /* of the one row of a program with recurrent states */
    uint32_t turn, number;
} row_values;

static const row_values first_values = {.tokens = {3, 4, 5},
                                        .positions = {10, 0, 7},
                                        .seed = {1, UINT64_MAX, 20},
                                        .from = SLOT,
                                        .to = SLOT,
                                        .number = NUMBER};
static const float temperature[ROWS] = {0.5f, 1, 0};

/* A step of so many rows that draws tokens, and has so many stop tokens. */
typedef struct device_step {
    gb_cuda_post post;
    row_values *values;
    int32_t *drawn, *stop_ids;
    uint32_t *other, *stop_count;
} device_step;

static gb_cuda_advance advance_of(const device_step *s, uint32_t rows, bool has_versions) {
    gb_cuda_advance advance = {.count = rows,
                               .stops = {s->stop_count, s->stop_ids},
                               .drawn = s->drawn,
                               .tokens = s->values->tokens,
                               .positions = s->values->positions,
                               .seed = s->values->seed,
                               .temperature = device_copy(temperature, sizeof temperature)};
    if (!has_versions)
        return advance;
    const int32_t slot = SLOT;
    advance.slots = device_copy(&slot, sizeof slot);
    advance.from = &s->values->from;
    advance.to = &s->values->to;
    advance.turn = &s->values->turn;
    advance.first_spare = SLOTS;
    advance.spares = SPARES;
    return advance;
}

static device_step new_step(uint32_t rows, bool has_versions) {
    static const uint32_t zeros[OTHER];
    device_step s = {.values = device_copy(&first_values, sizeof first_values),
                     .drawn = device_copy(NULL, ROWS * sizeof(int32_t)),
                     .stop_ids = device_copy(NULL, GB_CUDA_MOST_STOPS * sizeof(int32_t)),
                     .other = device_copy(zeros, sizeof zeros),
                     .stop_count = device_copy(NULL, sizeof(uint32_t))};
    void *mailbox;
    assert_ok(
        gb_cuda_allocate_pinned(ENTRIES * ENTRY_WORDS * sizeof(uint32_t), "a ring's test", &mailbox, &error),
        &error);
    memset(mailbox, 0, ENTRIES * ENTRY_WORDS * sizeof(uint32_t));
    s.post =
        (gb_cuda_post){.mailbox = {mailbox, ENTRIES, ENTRY_WORDS},
                       .number = &s.values->number,
                       .count = 2,
                       .results = {{(const uint32_t *)s.drawn, rows, NEXT_AT}, {s.other, OTHER, OTHER_AT}},
                       .advance = advance_of(&s, rows, has_versions)};
    return s;
}

static void free_step(device_step *s) {
    gb_cuda_free_pinned(s->post.mailbox.memory);
    void *const memory[] = {s->values,
                            s->drawn,
                            s->stop_ids,
                            s->other,
                            s->stop_count,
                            (void *)(uintptr_t)s->post.advance.temperature,
                            (void *)(uintptr_t)s->post.advance.slots};
    for (size_t i = 0; i < sizeof memory / sizeof *memory; i++)
        gb_cuda_free(memory[i]);
}

/* The last of so many stop tokens is STOP, the others are -3. */
static void set_stops(const device_step *s, uint32_t count) {
    int32_t ids[GB_CUDA_MOST_STOPS];
    for (uint32_t i = 0; i < count; i++)
        ids[i] = i + 1 < count ? -3 : STOP;
    set(s->stop_ids, ids, count * sizeof *ids);
    set(s->stop_count, &count, sizeof count);
}

/* Hands out a step that drew these tokens, and gives what the inputs are then. */
static row_values post_results(const device_step *s, const int32_t *drawn, size_t rows) {
    row_values values;
    set(s->drawn, drawn, rows * sizeof *drawn);
    gb_cuda_post_results(&s->post, NULL);
    fetch(s->values, &values, sizeof values);
    return values;
}

static const uint32_t *entry_of(const device_step *s, uint32_t number) {
    return s->post.mailbox.memory + (size_t)(number % ENTRIES) * ENTRY_WORDS;
}

static void results_are_in_the_mailbox(void **unused) {
    (void)unused;
    uint64_t random = 5;
    uint32_t expected[ENTRIES * ENTRY_WORDS] = {0};
    device_step s = new_step(ROWS, false);
    set_stops(&s, 1);
    for (uint32_t number = NUMBER; number < NUMBER + 2 * ENTRIES; number++) {
        uint32_t other[OTHER]; /* any bits, NaNs as well */
        const int32_t drawn[ROWS] = {(int32_t)number, number % 3 == 0 ? STOP : -1, 8};
        for (uint32_t i = 0; i < OTHER; i++)
            other[i] = next_random(&random);
        set(s.other, other, sizeof other);
        assert_int_equal(post_results(&s, drawn, ROWS).number, number + 1);
        uint32_t *entry = expected + (size_t)(number % ENTRIES) * ENTRY_WORDS;
        entry[0] = number;
        memcpy(entry + NEXT_AT, drawn, sizeof drawn);
        memcpy(entry + OTHER_AT, other, sizeof other);
        assert_memory_equal(s.post.mailbox.memory, expected, sizeof expected);
    }
    free_step(&s);
}

/* What row's values are after a step that drew this token, with which it goes on. */
static void advance_expected(row_values *values, size_t row, int32_t drawn) {
    values->tokens[row] = drawn > 0 ? drawn : 0;
    values->positions[row]++;
    values->seed[row] += temperature[row] > 0;
}

static void rows_advance(void **unused) {
    (void)unused;
    static const int32_t drawn[][ROWS] = {{9, 0, 123456}, {-1, 70, -2}, {STOP, STOP, STOP}};
    device_step s = new_step(ROWS, false);
    row_values expected = first_values;
    set_stops(&s, 0);
    for (size_t i = 0; i < sizeof drawn / sizeof *drawn; i++) {
        for (size_t row = 0; row < ROWS; row++)
            advance_expected(&expected, row, drawn[i][row]);
        expected.number++;
        const row_values found = post_results(&s, drawn[i], ROWS);
        assert_memory_equal(&found, &expected, sizeof found);
    }
    free_step(&s);
}

/* Each of the rows stops by turns, then all. */
static void rows_that_stop_stay(void **unused) {
    (void)unused;
    static const uint32_t counts[] = {1, 2, GB_CUDA_MOST_STOPS};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        device_step s = new_step(ROWS, false);
        row_values expected = first_values;
        set_stops(&s, counts[i]);
        for (size_t which = 0; which <= ROWS; which++) {
            int32_t drawn[ROWS] = {6, STOP + 1, -1};
            for (size_t row = 0; row < ROWS; row++) {
                if (which == row || which == ROWS)
                    drawn[row] = STOP;
                else
                    advance_expected(&expected, row, drawn[row]);
            }
            expected.number++;
            const row_values found = post_results(&s, drawn, ROWS);
            assert_memory_equal(&found, &expected, sizeof found);
        }
        free_step(&s);
    }
}

static void programs_may_lack_seeds(void **unused) {
    (void)unused;
    static const int32_t drawn[ROWS] = {1, STOP, 2};
    device_step s = new_step(ROWS, false);
    row_values expected = first_values;
    set_stops(&s, 1);
    s.post.advance.seed = NULL;
    advance_expected(&expected, 0, drawn[0]);
    advance_expected(&expected, 2, drawn[2]);
    memcpy(expected.seed, first_values.seed, sizeof expected.seed);
    expected.number++;
    const row_values found = post_results(&s, drawn, ROWS);
    assert_memory_equal(&found, &expected, sizeof found);
    free_step(&s);
}

/* A step none of whose inputs advance has no stop tokens either. */
static void prompts_stay(void **unused) {
    (void)unused;
    static const int32_t drawn[ROWS] = {1, 2, 3};
    device_step s = new_step(ROWS, false);
    row_values expected = first_values;
    s.post.advance.count = 0;
    s.post.advance.stops = (gb_cuda_stops){NULL, NULL};
    expected.number++;
    const row_values found = post_results(&s, drawn, ROWS);
    assert_memory_equal(&found, &expected, sizeof found);
    assert_int_equal(entry_of(&s, NUMBER)[NEXT_AT + 1], 2);
    free_step(&s);
}

/* ---- Versions ------------------------------------------------------------------------------------------ */

/* The slot of a version. */
static int32_t version_slot(uint32_t turn) {
    return turn == 0 ? SLOT : (int32_t)(SLOTS + turn - 1);
}

static void advance_versions(row_values *values) {
    const uint32_t next = (values->turn + 1) % (SPARES + 1);
    values->from = version_slot(values->turn);
    values->to = version_slot(next);
    values->turn = next;
}

static void versions_go_round(void **unused) {
    (void)unused;
    device_step s = new_step(1, true);
    row_values expected = first_values;
    set_stops(&s, 2);
    for (int32_t i = 1; i < 3 * SPARES; i++) {
        advance_expected(&expected, 0, i);
        advance_versions(&expected);
        expected.number++;
        const row_values found = post_results(&s, &i, 1);
        assert_memory_equal(&found, &expected, sizeof found);
    }
    free_step(&s);
}

/* Wherever versions are, a stop token leaves them, as often as its step is repeated: but for its number,
 * which the ring has each time. Another token, which the host would send, goes on from there. */
static void stops_leave_versions(void **unused) {
    (void)unused;
    static const int32_t stop = STOP;
    device_step s = new_step(1, true);
    row_values expected = first_values;
    set_stops(&s, 2);
    for (int32_t i = 1; i < 2 * SPARES; i++) {
        for (uint32_t repeated = 0; repeated < SPARES; repeated++) {
            const row_values found = post_results(&s, &stop, 1);
            assert_int_equal(entry_of(&s, expected.number)[0], expected.number);
            assert_int_equal(entry_of(&s, expected.number)[NEXT_AT], STOP);
            expected.number++;
            assert_memory_equal(&found, &expected, sizeof found);
        }
        advance_expected(&expected, 0, i);
        advance_versions(&expected);
        expected.number++;
        const row_values found = post_results(&s, &i, 1);
        assert_memory_equal(&found, &expected, sizeof found);
    }
    free_step(&s);
}

/* ---- A step's inputs ----------------------------------------------------------------------------------- */

/* One token that was generated, and a row for it. */
static gb_batch batch_of_one(const gb_program *program, gb_batch_arrays *arrays) {
    assert_true(gb_batch_arrays_reserve(&program->metadata, 1, 1, arrays));
    gb_batch batch = {.token_count = 1, .row_count = 1};
    gb_batch_use(arrays, &batch);
    gb_batch_clear_row(arrays, 0);
    arrays->tokens[0] = 5;
    arrays->positions[0] = 12;
    arrays->slots[0] = SLOT;
    arrays->generated[0] = true;
    arrays->rows[0] = 0;
    arrays->temperature[0] = 1;
    arrays->top_k[0] = 3;
    arrays->seed[0] = 99;
    arrays->masked[0] = true; /* so that the mask is sent */
    memset(arrays->mask, 0x5a, arrays->widths.mask_words * sizeof *arrays->mask);
    return batch;
}

/* The program's inputs on the device are those that the host has. */
static void assert_same_inputs(const gb_cuda_inputs *inputs) {
    uint8_t found[2048];
    for (uint32_t i = 0; i < inputs->program->input_count; i++) {
        const size_t size = (size_t)inputs->element_row[i];
        assert_true(size <= sizeof found);
        fetch(inputs->device + inputs->offsets[i], found, size);
        assert_memory_equal(found, inputs->pinned + inputs->offsets[i], size);
    }
}

/* The slots whose state the next step reads and writes. */
static void fetch_versions(const gb_cuda_inputs *inputs, int32_t versions[2]) {
    const gb_cuda_versions at = gb_cuda_inputs_versions(inputs);
    versions[0] = versions[1] = -1;
    if (!at.from)
        return;
    fetch(at.from, &versions[0], sizeof *versions);
    fetch(at.to, &versions[1], sizeof *versions);
}

/* Hands out one step that drew a token; gives whether the host went on, as the device must. */
static bool go_on(gb_cuda_inputs *inputs, uint32_t *mailbox, int32_t *on_device, int32_t drawn) {
    int32_t before[2], after[2];
    fetch_versions(inputs, before);
    set(on_device, &drawn, sizeof drawn);
    const gb_cuda_post post = {.mailbox = {mailbox, ENTRIES, ENTRY_WORDS},
                               .number = gb_cuda_inputs_number(inputs),
                               .advance = gb_cuda_inputs_advancing(inputs, on_device, 1, SPARES)};
    gb_cuda_post_results(&post, NULL);
    const bool goes_on = gb_cuda_inputs_advance(inputs, drawn);
    assert_same_inputs(inputs);
    fetch_versions(inputs, after);
    const bool is_as_before = memcmp(before, after, sizeof before) == 0;
    assert_true(is_as_before == (!goes_on || !inputs->has_versions));
    return goes_on;
}

/* The stop tokens are STOP, STOP + 1 and so on, of which the blocks hold so many. */
static void try_stops(gb_cuda_inputs *inputs, gb_batch *batch, uint32_t *mailbox, int32_t *on_device,
                      int32_t count) {
    int32_t ids[GB_CUDA_MOST_STOPS + 6];
    const int32_t held = count < GB_CUDA_MOST_STOPS ? count : GB_CUDA_MOST_STOPS;
    for (int32_t i = 0; i < count; i++)
        ids[i] = STOP + i;
    batch->stop_ids = ids;
    batch->stop_count = (uint32_t)count;
    gb_cuda_inputs_fill(inputs, batch, &(gb_cuda_slots){.slot_count = SLOTS}, NUMBER);
    gb_cuda_inputs_send(inputs, NULL);
    assert_same_inputs(inputs);
    assert_true(go_on(inputs, mailbox, on_device, 7));
    assert_true(go_on(inputs, mailbox, on_device, STOP + held)); /* one that is not held */
    for (int32_t i = 0; i < held; i++)
        assert_false(go_on(inputs, mailbox, on_device, STOP + i));
    assert_true(go_on(inputs, mailbox, on_device, STOP - 1));
}

static void try_program(const char *config) {
    const gb_backend_options options = {.slots = SLOTS, .step_tokens = 4};
    gumbel_program *program = open_random_program(config, false);
    gb_batch_arrays arrays;
    gb_batch batch = batch_of_one(program->program, &arrays);
    gb_cuda_inputs inputs;
    void *mailbox;
    int32_t *on_device = device_copy(NULL, sizeof *on_device);
    assert_ok(gb_cuda_inputs_create(program->program, &options, &inputs, &error), &error);
    assert_ok(
        gb_cuda_allocate_pinned(ENTRIES * ENTRY_WORDS * sizeof(uint32_t), "a ring's test", &mailbox, &error),
        &error);
    static const int32_t counts[] = {0, 1, 3, GB_CUDA_MOST_STOPS, GB_CUDA_MOST_STOPS + 6, 0};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        try_stops(&inputs, &batch, mailbox, on_device, counts[i]);
    gb_cuda_free_pinned(mailbox);
    gb_cuda_free(on_device);
    gb_cuda_inputs_destroy(&inputs);
    gb_batch_arrays_free(&arrays);
    gumbel_program_close(program);
}

static void inputs_advance_on_both_sides(void **unused) {
    (void)unused;
    try_program("small.json");
    try_program("qwen.json");
}

/* ---- Parts --------------------------------------------------------------------------------------------- */

/* Parts as short as a token and as long as the masks of many rows, with words between them that stay. */
static void parts_arrive(void **unused) {
    (void)unused;
    enum { WORDS = 300007, LONGEST = 270000 };
    static const gb_cuda_parts parts = {3, {1, 5, 5 + LONGEST + 2}, {3, LONGEST, 1025}};
    static uint32_t found[WORDS], expected[WORDS];
    uint64_t random = 7;
    void *pinned;
    uint32_t *device = device_copy(expected, sizeof expected);
    assert_ok(gb_cuda_allocate_pinned(sizeof found, "parts", &pinned, &error), &error);
    for (size_t i = 0; i < WORDS; i++)
        ((uint32_t *)pinned)[i] = next_random(&random);
    for (size_t p = 0; p < parts.count; p++)
        memcpy(expected + parts.first[p], (uint32_t *)pinned + parts.first[p], 4 * (size_t)parts.words[p]);
    gb_cuda_fetch_inputs(&parts, pinned, device, NULL);
    fetch(device, found, sizeof found);
    assert_memory_equal(found, expected, sizeof found);
    gb_cuda_free_pinned(pinned);
    gb_cuda_free(device);
}

int main(void) {
    need_device();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_are_in_the_mailbox),
        cmocka_unit_test(rows_advance),
        cmocka_unit_test(rows_that_stop_stay),
        cmocka_unit_test(programs_may_lack_seeds),
        cmocka_unit_test(prompts_stay),
        cmocka_unit_test(versions_go_round),
        cmocka_unit_test(stops_leave_versions),
        cmocka_unit_test(inputs_advance_on_both_sides),
        cmocka_unit_test(parts_arrive),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
