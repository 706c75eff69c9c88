/* SPDX-License-Identifier: Apache-2.0
 *
 * Batches as rank 0 sends them to other processes: what is read equals what was written, and bytes that are
 * none are refused, or read within their bounds.
 */
#include "backends/ranks/processes/message.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { TOKENS = 9, ROWS = 5, BIASES = 3, VOCABULARY = 70, STOPS = 4 };

static uint32_t state;

static uint32_t draw(uint32_t below) {
    state = state * 1664525u + 1013904223u;
    return (state >> 8) % below;
}

/* ---- Batches ------------------------------------------------------------------------------------------- */

#define COUNT_N(tokens, rows) (size_t)(tokens)
#define COUNT_B(tokens, rows) (size_t)(rows)
#define COUNT_BL(tokens, rows) ((size_t)(rows)*BIASES)
#define COUNT_BW(tokens, rows) ((size_t)(rows) * ((VOCABULARY + 31) / 32))

typedef struct case_of_batch {
    gb_batch batch, following;
    gb_batch_arrays arrays, of_following;
    int32_t stops[STOPS];
} case_of_batch;

static void reserve(gb_batch_arrays *arrays) {
    const gb_metadata metadata = {.max_bias = BIASES, .vocab_size = VOCABULARY};
    assert_true(gb_batch_arrays_reserve(&metadata, TOKENS, ROWS, arrays));
}

static void fill(void *array, size_t bytes) {
    for (size_t i = 0; i < bytes; i++)
        ((uint8_t *)array)[i] = (uint8_t)draw(256);
}

static void fill_flags(bool *flags, size_t count) {
    for (size_t i = 0; i < count; i++)
        flags[i] = draw(2);
}

/* With anything in it; flags are flags. */
static void draw_batch(gb_batch *batch, const gb_batch_arrays *arrays) {
    *batch = (gb_batch){.token_count = 1 + draw(TOKENS), .row_count = draw(ROWS + 1)};
#define FILL_INPUT(name, dims) fill(arrays->name, COUNT_##dims(TOKENS, ROWS) * sizeof *arrays->name);
#define FILL_OUTPUT(name, dims)
#define GB_ROLE(number, NAME, name, direction, dtype, dims, required, neutral) FILL_##direction(name, dims)
#include "program/roles.def"
    fill_flags(arrays->want_logprobs, ROWS);
    fill_flags(arrays->masked, ROWS);
    fill_flags(arrays->generated, TOKENS);
    fill_flags(arrays->draft, TOKENS);
    if (draw(3) == 0)
        memset(arrays->masked, 0, ROWS * sizeof *arrays->masked);
    gb_batch_use(arrays, batch);
}

static void draw_case(case_of_batch *c) {
    draw_batch(&c->batch, &c->arrays);
    draw_batch(&c->following, &c->of_following);
    fill(c->stops, sizeof c->stops);
    if (draw(2) == 0)
        return;
    c->following.tokens = NULL;
    c->batch.following = &c->following;
    c->batch.following_count = 1 + draw(20);
    c->batch.stop_ids = c->stops;
    c->batch.stop_count = draw(STOPS + 1);
}

static void begin_case(case_of_batch *c, uint32_t seed) {
    state = seed;
    *c = (case_of_batch){0};
    reserve(&c->arrays);
    reserve(&c->of_following);
    draw_case(c);
}

static void end_case(case_of_batch *c) {
    gb_batch_arrays_free(&c->arrays);
    gb_batch_arrays_free(&c->of_following);
}

/* A copy that ends with its memory, so that a sanitizer sees what is read behind it. */
static uint8_t *copy_of(const uint8_t *bytes, size_t size) {
    uint8_t *copy = malloc(size ? size : 1);
    assert_non_null(copy);
    memcpy(copy, bytes, size);
    return copy;
}

/* ---- What is the same ---------------------------------------------------------------------------------- */

/* The tokens of a batch that follows are not there, nor are masks that nobody reads. */
static void assert_one_equal(const gb_batch *found, const gb_batch *expected) {
    const bool has_mask = gb_batch_has_mask(expected);
    assert_int_equal(found->token_count, expected->token_count);
    assert_int_equal(found->row_count, expected->row_count);
#define HAS_BYTES(NAME, name) (expected->name && (GB_ROLE_##NAME != GB_ROLE_MASK || has_mask))
#define COMPARE_INPUT(NAME, name, dims)                                                                      \
    if (HAS_BYTES(NAME, name))                                                                               \
        assert_memory_equal(found->name, expected->name,                                                     \
                            COUNT_##dims(found->token_count, found->row_count) * sizeof *found->name);
#define COMPARE_OUTPUT(NAME, name, dims)
#define GB_ROLE(number, NAME, name, direction, dtype, dims, required, neutral)                               \
    COMPARE_##direction(NAME, name, dims)
#include "program/roles.def"
    assert_memory_equal(found->generated, expected->generated, found->token_count);
    assert_memory_equal(found->draft, expected->draft, found->token_count);
    assert_int_equal(!found->tokens, !expected->tokens);
}

static void assert_batch_equal(const gb_batch *found, const gb_batch *expected) {
    assert_one_equal(found, expected);
    assert_int_equal(!found->following, !expected->following);
    if (!expected->following)
        return;
    assert_one_equal(found->following, expected->following);
    assert_null(found->following->following);
    assert_int_equal(found->following_count, expected->following_count);
    assert_int_equal(found->stop_count, expected->stop_count);
    assert_memory_equal(found->stop_ids, expected->stop_ids, found->stop_count * sizeof *found->stop_ids);
}

static gb_batch_limits usual_limits(void) {
    return (gb_batch_limits){TOKENS, ROWS, {BIASES, (VOCABULARY + 31) / 32}};
}

static void what_is_read_is_what_was_written(void **unused) {
    (void)unused;
    const gb_batch_limits limits = usual_limits();
    for (uint32_t seed = 0; seed < 500; seed++) {
        case_of_batch c;
        gb_batch batch = {0}, following = {0};
        gb_byte_buffer bytes = {0};
        begin_case(&c, seed);
        gb_batch_write(&c.batch, &limits.widths, &bytes);
        assert_false(bytes.failed);
        uint8_t *copy = copy_of(bytes.data, bytes.size);
        assert_true(gb_batch_read(copy, bytes.size, &limits, &batch, &following));
        assert_batch_equal(&batch, &c.batch);
        free(copy);
        gb_buffer_free(&bytes);
        end_case(&c);
    }
}

/* ---- What is none -------------------------------------------------------------------------------------- */

/* Reads every byte of an array that a batch has. */
static uint32_t sum;

static void touch(const void *array, size_t bytes) {
    for (size_t i = 0; i < bytes; i++)
        sum += ((const uint8_t *)array)[i];
}

/* A mask without a masked row is not read. */
static void touch_batch(const gb_batch *batch) {
    const bool has_mask = gb_batch_has_mask(batch);
#define TOUCH_INPUT(NAME, name, dims)                                                                        \
    if (batch->name && (GB_ROLE_##NAME != GB_ROLE_MASK || has_mask))                                         \
        touch(batch->name, COUNT_##dims(batch->token_count, batch->row_count) * sizeof *batch->name);
#define TOUCH_OUTPUT(NAME, name, dims)
#define GB_ROLE(number, NAME, name, direction, dtype, dims, required, neutral)                               \
    TOUCH_##direction(NAME, name, dims)
#include "program/roles.def"
    touch(batch->generated, batch->token_count);
    touch(batch->draft, batch->token_count);
    touch(batch->stop_ids, batch->stop_count * sizeof *batch->stop_ids);
}

/* Whether that many of the bytes are a batch; then all of it lies among them. */
static bool try_bytes(const uint8_t *bytes, size_t size) {
    const gb_batch_limits limits = usual_limits();
    gb_batch batch = {0}, following = {0};
    uint8_t *copy = copy_of(bytes, size);
    const bool was_read = gb_batch_read(copy, size, &limits, &batch, &following);
    if (was_read) {
        assert_true(batch.token_count > 0 && batch.token_count <= TOKENS && batch.row_count <= ROWS);
        assert_non_null(batch.tokens);
        touch_batch(&batch);
    }
    if (was_read && batch.following)
        touch_batch(batch.following);
    free(copy);
    return was_read;
}

static void a_part_is_refused(void **unused) {
    (void)unused;
    const gb_batch_limits limits = usual_limits();
    for (uint32_t seed = 0; seed < 50; seed++) {
        case_of_batch c;
        gb_byte_buffer bytes = {0};
        begin_case(&c, seed);
        gb_batch_write(&c.batch, &limits.widths, &bytes);
        for (size_t size = 0; size < bytes.size; size++)
            assert_false(try_bytes(bytes.data, size));
        gb_buffer_append(&bytes, "12345678", 8);
        assert_false(try_bytes(bytes.data, bytes.size));
        gb_buffer_free(&bytes);
        end_case(&c);
    }
}

static void larger_batches_are_refused(void **unused) {
    (void)unused;
    case_of_batch c;
    gb_batch batch, following;
    gb_byte_buffer bytes = {0};
    gb_batch_limits limits = usual_limits();
    begin_case(&c, 1);
    c.batch.token_count = TOKENS;
    c.batch.row_count = ROWS;
    gb_batch_write(&c.batch, &limits.widths, &bytes);
    assert_true(gb_batch_read(bytes.data, bytes.size, &limits, &batch, &following));
    limits.tokens--;
    assert_false(gb_batch_read(bytes.data, bytes.size, &limits, &batch, &following));
    limits = usual_limits();
    limits.rows--;
    assert_false(gb_batch_read(bytes.data, bytes.size, &limits, &batch, &following));
    gb_buffer_free(&bytes);
    end_case(&c);
}

/* The counts, which come first, are changed as often as all the rest. */
static void mutate(gb_byte_buffer *bytes) {
    static const uint8_t bytes_of_counts[] = {0, 1, 2, 127, 128, 255};
    const uint32_t changes = 1 + draw(4);
    for (uint32_t i = 0; i < changes; i++) {
        const size_t at = draw(2) ? draw(32) : draw((uint32_t)bytes->size);
        bytes->data[at] = draw(2) ? bytes_of_counts[draw(6)] : (uint8_t)draw(256);
    }
    if (draw(4) == 0)
        bytes->size -= draw((uint32_t)bytes->size);
}

static void changed_bytes_stay_within_bounds(void **unused) {
    (void)unused;
    const gb_batch_limits limits = usual_limits();
    uint32_t read = 0;
    for (uint32_t seed = 0; seed < 20000; seed++) {
        case_of_batch c;
        gb_byte_buffer bytes = {0};
        begin_case(&c, seed);
        gb_batch_write(&c.batch, &limits.widths, &bytes);
        mutate(&bytes);
        read += try_bytes(bytes.data, bytes.size);
        gb_buffer_free(&bytes);
        end_case(&c);
    }
    assert_true(read > 1000 && read < 19000);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_read_is_what_was_written),
        cmocka_unit_test(a_part_is_refused),
        cmocka_unit_test(larger_batches_are_refused),
        cmocka_unit_test(changed_bytes_stay_within_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
