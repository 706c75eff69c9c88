/* SPDX-License-Identifier: Apache-2.0
 *
 * Whole programs with caches of codes, on the CPU and on MLX: the logits of a text's tokens. Its prompt comes
 * in pieces that a ring's slack holds and in others that it does not; there are rewinds, a copy and a
 * snapshot; and each backend goes on with the session that the other one saved.
 */
#include "base/file_map.h"
#include "base/memory.h"
#include "support/programs/random_program.h"
#include "support/temporary.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { VOCAB = 160, TEXT = 120, SAVED = 93, SIDES = 2, MOST_BYTES = 1 << 22 };

static gumbel_error error;

typedef struct side {
    gumbel_engine *engine;
    gumbel_session *session;
    float logits[TEXT][VOCAB]; /* behind each token; zeros behind those that were appended */
    const char *saved;
} side;

static side sides[SIDES];
static int32_t text[TEXT];

static void open_side(side *s, const gumbel_program *program, const char *backend) {
    const gumbel_engine_options options = {
        .size = sizeof options, .slots = 2, .snapshots = true, .backend = backend};
    memset(s, 0, sizeof *s);
    s->saved = temporary_path(backend);
    assert_ok(gumbel_engine_create(program, &options, &s->engine, &error), &error);
    assert_ok(gumbel_session_create(s->engine, &s->session, &error), &error);
}

static void append(side *s, size_t first, size_t end) {
    assert_ok(gumbel_session_append(s->session, text + first, end - first, &error), &error);
}

/* One token a step. */
static void run(side *s, size_t first, size_t end) {
    for (size_t n = first; n < end; n++) {
        gumbel_result result = {.size = sizeof result};
        const gumbel_request request = {.size = sizeof request,
                                        .session = s->session,
                                        .tokens = text + n,
                                        .token_count = 1,
                                        .result = &result};
        assert_ok(gumbel_step(s->engine, &request, 1, &error), &error);
        memcpy(s->logits[n], result.logits, sizeof s->logits[n]);
    }
}

/* Other tokens in a copy, which shares the memory of the session's states until then. */
static void run_a_copy(const side *s) {
    gumbel_session *copy;
    assert_ok(gumbel_session_fork(s->session, &copy, &error), &error);
    assert_ok(gumbel_session_append(copy, text, 12, &error), &error);
    gumbel_session_destroy(copy);
}

/* Back to a snapshot, of which a ring has lost rows since. */
static void go_back(side *s, size_t end) {
    const uint32_t position = gumbel_session_position(s->session, NULL);
    assert_ok(gumbel_session_snapshot(s->session, &error), &error);
    assert_ok(gumbel_session_append(s->session, text + 7, end - position, &error), &error);
    assert_ok(gumbel_session_rewind(s->session, position, &error), &error);
}

static void run_to_saved(side *s) {
    append(s, 0, 5);
    run(s, 5, 20);
    run_a_copy(s);
    run(s, 20, 25);
    go_back(s, 70);
    run(s, 25, 30);
    append(s, 30, 80); /* more than a ring has */
    run(s, 80, 90);
    assert_ok(gumbel_session_rewind(s->session, 86, &error), &error);
    append(s, 86, SAVED);
    assert_ok(gumbel_session_save(s->session, s->saved, &error), &error);
}

/* What a session was loaded from it saves again: the bytes do not depend on the backend. */
static void run_from_saved(side *s, const char *path) {
    const char *again = temporary_path("again");
    char *file, *file_again;
    size_t size, size_again;
    assert_ok(gumbel_session_load(s->session, path, &error), &error);
    assert_ok(gumbel_session_save(s->session, again, &error), &error);
    assert_ok(gb_read_file(path, MOST_BYTES, &file, &size, &error), &error);
    assert_ok(gb_read_file(again, MOST_BYTES, &file_again, &size_again, &error), &error);
    assert_int_equal(size_again, size);
    assert_memory_equal(file_again, file, size);
    gb_free(file);
    gb_free(file_again);
    run(s, SAVED, TEXT);
}

/* The root mean square of the logits' differences, in parts of the logits' own. */
static double difference(void) {
    double differences = 0, squares = 0;
    for (size_t n = 0; n < TEXT; n++)
        for (size_t v = 0; v < VOCAB; v++) {
            const double expected = (double)sides[0].logits[n][v];
            differences += pow((double)sides[1].logits[n][v] - expected, 2);
            squares += pow(expected, 2);
        }
    return sqrt(differences / squares);
}

/* A last bit that differs makes another code where a quotient is nearly a half: that moves one number by a
 * step of the cache's precision. A cache that is read wrongly differs by more than a tenth. */
static void compare(const char *config, const char *cache) {
    gumbel_program *program = export_random_program(
        config, (gumbel_export_options){.activations = "none", .logits = true, .cache = cache});
    random_tokens(4, VOCAB, text, TEXT);
    open_side(&sides[0], program, "cpu");
    open_side(&sides[1], program, "mlx");
    for (size_t i = 0; i < SIDES; i++)
        run_to_saved(&sides[i]);
    for (size_t i = 0; i < SIDES; i++)
        run_from_saved(&sides[i], sides[SIDES - 1 - i].saved);
    const double found = difference();
    print_message("%s %s: logits differ by %.2g\n", config, cache, found);
    assert_true(found < 0.02);
    for (size_t i = 0; i < SIDES; i++)
        gumbel_engine_destroy(sides[i].engine);
    gumbel_program_close(program);
}

static void test_rings(void **state) {
    (void)state;
    compare("small_heads.json", "bfloat16");
    compare("small_heads.json", "q8");
    compare("small_heads.json", "q4");
    compare("small_heads.json", "q4-all");
}

static void test_recurrent(void **state) {
    (void)state;
    compare("qwen_wide.json", "q8");
    compare("qwen_wide.json", "q4");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rings), cmocka_unit_test(test_recurrent)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
