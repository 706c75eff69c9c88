/* SPDX-License-Identifier: Apache-2.0
 *
 * Compiled grammars that requests share.
 */
#include "server/generate/grammars.h"
#include "support/paths.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

enum { THREADS = 8 };

static gumbel_tokenizer *tokenizer;
static server_grammars *grammars;
static server_metrics metrics;

static int set_up_group(void **state) {
    (void)state;
    return gumbel_export_tokenizer(bundled_model("gemma4-tiny"), &tokenizer, NULL) == GUMBEL_OK ? 0 : -1;
}

static int tear_down_group(void **state) {
    (void)state;
    gumbel_tokenizer_destroy(tokenizer);
    return 0;
}

static int set_up(void **state) {
    (void)state;
    gumbel_error error;
    memset(&metrics, 0, sizeof metrics);
    return server_grammars_create(tokenizer, NULL, NULL, &grammars, &error) == GUMBEL_OK ? 0 : -1;
}

static int tear_down(void **state) {
    (void)state;
    server_grammars_destroy(grammars);
    return 0;
}

static gumbel_grammar_options options_of(gumbel_grammar_kind kind, const char *text) {
    return (gumbel_grammar_options){.size = sizeof(gumbel_grammar_options), .kind = kind, .text = text};
}

static server_grammar *take(const gumbel_grammar_options *options) {
    server_grammar *taken;
    gumbel_error error;
    if (server_grammars_take(grammars, options, NULL, &metrics, &taken, &error) != GUMBEL_OK)
        fail_msg("%s: %s", options->text, error.message);
    assert_non_null(server_compiled_grammar(taken));
    return taken;
}

static void assert_counts(unsigned long long compiled, unsigned long long hits) {
    assert_int_equal(atomic_load(&metrics.grammar_compile.count), compiled);
    assert_int_equal(atomic_load(&metrics.grammar_hits), hits);
}

/* Text, kind and options make a grammar; where the text lies does not. */
static void equal_ones_are_shared(void **state) {
    (void)state;
    char copy[] = "[1]";
    const gumbel_grammar_options schema = options_of(GUMBEL_GRAMMAR_JSON_SCHEMA, "{}");
    const gumbel_grammar_options any = options_of(GUMBEL_GRAMMAR_JSON, NULL);
    const gumbel_grammar_options regex = options_of(GUMBEL_GRAMMAR_REGEX, "[1]");
    const gumbel_grammar_options same = options_of(GUMBEL_GRAMMAR_REGEX, copy);
    gumbel_grammar_options compact = schema, in_order = schema;
    compact.compact = true;
    in_order.in_order = true;
    const gumbel_grammar_options *const all[] = {&schema, &any, &regex, &compact, &in_order, &same, &any};
    server_grammar *taken[7];
    for (size_t i = 0; i < 7; i++)
        taken[i] = take(all[i]);
    for (size_t i = 0; i < 5; i++)
        for (size_t k = 0; k < i; k++)
            assert_ptr_not_equal(taken[i], taken[k]);
    assert_ptr_equal(taken[5], taken[2]);
    assert_ptr_equal(taken[6], taken[1]);
    assert_counts(5, 2);
    for (size_t i = 0; i < 7; i++)
        server_grammars_release(grammars, taken[i]);
}

/* One that is in use outlives its place in the list. */
static void old_ones_give_way(void **state) {
    (void)state;
    const gumbel_grammar_options first = options_of(GUMBEL_GRAMMAR_REGEX, "first");
    const gumbel_grammar_options second = options_of(GUMBEL_GRAMMAR_REGEX, "second");
    server_grammar *held = take(&first);
    server_grammars_release(grammars, take(&second));
    for (int i = 0; i < SERVER_MOST_GRAMMARS - 1; i++) {
        char text[24];
        snprintf(text, sizeof text, "x%d", i);
        const gumbel_grammar_options more = options_of(GUMBEL_GRAMMAR_REGEX, text);
        server_grammars_release(grammars, take(&more));
        server_grammars_release(grammars, take(&second));
    }
    assert_counts(SERVER_MOST_GRAMMARS + 1, SERVER_MOST_GRAMMARS - 1);
    server_grammar *again = take(&first);
    assert_ptr_not_equal(again, held);
    assert_counts(SERVER_MOST_GRAMMARS + 2, SERVER_MOST_GRAMMARS - 1);
    gumbel_matcher *matcher;
    assert_int_equal(gumbel_matcher_create(server_compiled_grammar(held), NULL, 0, &matcher, NULL),
                     GUMBEL_OK);
    gumbel_matcher_destroy(matcher);
    server_grammars_release(grammars, held);
    server_grammars_release(grammars, again);
}

/* The bytes of their texts count, too. */
static void long_ones_give_way(void **state) {
    (void)state;
    enum { LENGTH = SERVER_MOST_GRAMMAR_BYTES / 3 };
    static char text[LENGTH + 1];
    memset(text, ' ', LENGTH);
    const gumbel_grammar_options options = options_of(GUMBEL_GRAMMAR_JSON_SCHEMA, text);
    for (char i = 0; i < 4; i++) {
        memcpy(text, "{}", 2);
        text[LENGTH - 1 - i] = '\n';
        server_grammars_release(grammars, take(&options));
        server_grammars_release(grammars, take(&options));
        assert_counts((unsigned)i + 1, (unsigned)i + 1);
    }
    text[LENGTH - 2] = text[LENGTH - 3] = text[LENGTH - 4] = ' '; /* the first one again */
    server_grammars_release(grammars, take(&options));
    assert_counts(5, 4);
}

/* What is wrong once is wrong again, and is not compiled for every turn of an agent. */
static void failures_are_kept(void **state) {
    (void)state;
    const gumbel_grammar_options wrong = options_of(GUMBEL_GRAMMAR_REGEX, "(");
    for (unsigned i = 0; i < 3; i++) {
        gumbel_error error = {.status = GUMBEL_OK};
        server_grammar *taken;
        assert_int_not_equal(server_grammars_take(grammars, &wrong, NULL, &metrics, &taken, &error),
                             GUMBEL_OK);
        assert_null(taken);
        assert_int_not_equal(error.status, GUMBEL_OK);
        assert_non_null(strstr(error.message, "regular expression"));
        assert_counts(1, 0);
    }
}

/* Counts of optional members are had in any order alone. */
static void any_order_where_it_must_be(void **state) {
    (void)state;
    gumbel_grammar_options options =
        options_of(GUMBEL_GRAMMAR_JSON_SCHEMA,
                   "{\"type\":\"object\",\"properties\":{\"a\":{},\"b\":{},\"c\":{}},\"minProperties\":2,"
                   "\"additionalProperties\":false}");
    gumbel_grammar *grammar;
    options.in_order = true;
    assert_int_equal(gumbel_grammar_create(tokenizer, &options, &grammar, NULL), GUMBEL_ERROR_UNSUPPORTED);
    server_grammars_release(grammars, take(&options));
    server_grammars_release(grammars, take(&options));
    assert_counts(1, 1);
}

/* ---- Those who wait ------------------------------------------------------------------------------------ */

enum { VALUES = 100000 }; /* enough that compiling them takes longer than until somebody is looked after */

static char *large_list(void) {
    char *text = malloc(16 * VALUES), *at = text;
    for (int i = 0; i < VALUES; i++)
        at += sprintf(at, "%s\"value %d\"", i ? "," : "[", i);
    sprintf(at, "]");
    return text;
}

static void assert_cancelled(const gumbel_grammar_options *options, const server_waiter *waiter) {
    server_grammar *taken;
    gumbel_error error;
    assert_int_equal(server_grammars_take(grammars, options, waiter, &metrics, &taken, &error),
                     GUMBEL_ERROR_CANCELLED);
    assert_null(taken);
}

/* What nobody waits for is given up, and compiled anew for the next one. */
static void nobody_waits(void **state) {
    (void)state;
    int sockets[2];
    char *text = large_list();
    const gumbel_grammar_options options = options_of(GUMBEL_GRAMMAR_CHOICES, text);
    atomic_bool is_draining = true;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
    assert_cancelled(&options, &(server_waiter){sockets[0], &is_draining});
    atomic_store(&is_draining, false);
    close(sockets[1]);
    assert_cancelled(&options, &(server_waiter){sockets[0], &is_draining});
    assert_counts(2, 0);
    server_grammars_release(grammars, take(&options));
    close(sockets[0]);
    free(text);
}

typedef struct taker {
    const gumbel_grammar_options *options;
    server_waiter waiter;
    gumbel_status status;
} taker;

static void *take_one(void *user) {
    taker *one = user;
    server_grammar *taken;
    gumbel_error error;
    one->status = server_grammars_take(grammars, one->options, &one->waiter, &metrics, &taken, &error);
    if (taken)
        server_grammars_release(grammars, taken);
    return NULL;
}

/* Whoever of them compiles leaves at once: the others get the grammar. */
static void others_wait(void **state) {
    (void)state;
    int sockets[2];
    char *text = large_list();
    const gumbel_grammar_options options = options_of(GUMBEL_GRAMMAR_CHOICES, text);
    taker takers[THREADS];
    pthread_t threads[THREADS];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
    close(sockets[1]);
    for (size_t i = 0; i < THREADS; i++) {
        takers[i] = (taker){.options = &options, .waiter.socket = i ? -1 : sockets[0]};
        assert_int_equal(pthread_create(&threads[i], NULL, take_one, &takers[i]), 0);
    }
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    for (size_t i = 1; i < THREADS; i++)
        assert_int_equal(takers[i].status, GUMBEL_OK);
    assert_in_range(metrics.grammar_compile.count, 1, 2); /* again where the one who left began alone */
    close(sockets[0]);
    free(text);
}

static void *take_many(void *user) {
    for (int i = 0; i < 200; i++) {
        char text[24];
        snprintf(text, sizeof text, "[a-z]{%d}", 1 + i / 2);
        const gumbel_grammar_options options = options_of(GUMBEL_GRAMMAR_REGEX, text);
        server_grammar *taken = NULL;
        gumbel_error error;
        if (server_grammars_take(grammars, &options, NULL, &metrics, &taken, &error) != GUMBEL_OK)
            return user;
        server_grammars_release(grammars, taken);
    }
    return NULL;
}

/* Threads that want the same one wait for the first; more than are kept come and go meanwhile. */
static void many_threads(void **state) {
    (void)state;
    pthread_t threads[THREADS];
    void *failed;
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, take_many, grammars), 0);
    for (size_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], &failed), 0);
        assert_null(failed);
    }
    const unsigned long long compiled = atomic_load(&metrics.grammar_compile.count);
    assert_in_range(compiled, 100, 100 * THREADS);
    assert_int_equal(compiled + atomic_load(&metrics.grammar_hits), 200 * THREADS);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(equal_ones_are_shared, set_up, tear_down),
        cmocka_unit_test_setup_teardown(old_ones_give_way, set_up, tear_down),
        cmocka_unit_test_setup_teardown(long_ones_give_way, set_up, tear_down),
        cmocka_unit_test_setup_teardown(failures_are_kept, set_up, tear_down),
        cmocka_unit_test_setup_teardown(any_order_where_it_must_be, set_up, tear_down),
        cmocka_unit_test_setup_teardown(nobody_waits, set_up, tear_down),
        cmocka_unit_test_setup_teardown(others_wait, set_up, tear_down),
        cmocka_unit_test_setup_teardown(many_threads, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, set_up_group, tear_down_group);
}
