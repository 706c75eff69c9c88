/* SPDX-License-Identifier: Apache-2.0
 *
 * Answers on their way: events in order, readers that fall behind, cancelling, tokens that wait for stop
 * strings.
 */
#include "fake_generator.h"
#include "server/generate/lag.h"
#include "server/generate/run.h"

#include <sys/socket.h>
#include <unistd.h>

static fake_generator fake;
static server_model model;

static int set_up(void **state) {
    (void)state;
    model = fake_model("qwen3_5-moe-tiny", &fake);
    return 0;
}

static void submit(server_run *run, size_t requests, size_t limit) {
    static const int32_t prompt = 1;
    server_failure failure;
    assert_true(server_run_init(run, &model.generator, requests, limit, &failure));
    for (size_t i = 0; i < requests; i++) {
        gumbel_submission submission = {
            .size = sizeof submission, .tokens = &prompt, .token_count = 1, .answers = 1, .seed = 100 * i};
        assert_true(server_run_submit(run, &submission, &failure));
    }
}

/* Answers of several requests are numbered on, and each one's events come in order. */
static void events_in_order(void **state) {
    (void)state;
    server_run run;
    server_event event;
    size_t tokens[3] = {0}, ended = 0;
    fake_say(&fake, "Once upon a time there was a baker.");
    submit(&run, 3, 0);
    while (ended < 3) {
        assert_int_equal(server_run_take(&run, -1, 5000, &event), SERVER_TAKEN);
        assert_in_range(event.answer, 0, 2);
        if (event.type == GUMBEL_EVENT_TOKEN) {
            assert_int_equal(event.token, fake.tokens[tokens[event.answer]]);
            assert_int_equal(event.seed, 100 * event.answer + tokens[event.answer]++);
        } else {
            assert_int_equal(tokens[event.answer], fake.count);
            assert_int_equal(event.usage.generated_tokens, fake.count);
            ended++;
        }
    }
    assert_int_equal(server_run_take(&run, -1, 1, &event), SERVER_QUIET);
    server_run_free(&run);
    fake_join(&fake);
}

/* A reader that takes nothing: its answer is cancelled, and its queue keeps to its bound. */
static void a_slow_reader(void **state) {
    (void)state;
    server_run run;
    server_event event;
    fake_say(&fake, "Once upon a time there was a baker.");
    fake.repeats = 1000000;
    submit(&run, 1, 4096);
    fake_join(&fake);
    assert_true(run.has_overflowed);
    assert_in_range(run.incoming.size, 1, 4096 + 512);
    assert_int_equal(server_run_take(&run, -1, 0, &event), SERVER_OVERFLOWED);
    server_run_free(&run);
    fake.repeats = 0;
}

static void a_client_that_leaves(void **state) {
    (void)state;
    int ends[2];
    server_run run;
    server_event event;
    server_taken taken;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    fake.count = 1;
    submit(&run, 1, 0);
    fake_join(&fake);
    close(ends[1]);
    while ((taken = server_run_take(&run, ends[0], 5000, &event)) == SERVER_TAKEN) {
    }
    assert_int_equal(taken, SERVER_LEFT);
    server_run_free(&run);
    close(ends[0]);
}

/* Freeing what goes on cancels it and waits. */
static void freeing_cancels(void **state) {
    (void)state;
    server_run run;
    fake_say(&fake, "Once upon a time there was a baker.");
    fake.repeats = 100000000;
    submit(&run, 2, 0);
    server_run_free(&run);
    assert_true(atomic_load(&fake.is_cancelled));
    fake_join(&fake);
    fake.repeats = 0;
}

/* ---- Tokens that wait ---------------------------------------------------------------------------------- */

/* What the reply is when the text stops at the first `stop` characters. */
static void cut_reply(const char *text, size_t stop, char *content) {
    gumbel_reply *reply;
    gumbel_detokenizer *detokenizer;
    server_lag *lag = server_lag_create(model.tokenizer);
    gumbel_error error;
    gumbel_reply_create(model.tokenizer, NULL, &reply, &error);
    gumbel_detokenizer_create(model.tokenizer, false, &detokenizer, &error);
    fake_say(&fake, text);
    size_t sent = 0, left = stop;
    for (size_t i = 0; i < fake.count; i++) {
        const char *piece;
        size_t length;
        gumbel_detokenize(detokenizer, fake.tokens[i], &piece, &length, &error);
        const size_t certain = length < left ? length : left;
        assert_int_equal(server_lag_add(lag, fake.tokens[i], piece, certain, reply, &error), GUMBEL_OK);
        left -= certain;
        sent += length;
    }
    assert_int_equal(server_lag_end(lag, stop < sent, reply, &error), GUMBEL_OK);
    assert_int_equal(gumbel_reply_end(reply, &error), GUMBEL_OK);
    gumbel_reply_part part = {.size = sizeof part};
    content[0] = '\0';
    for (size_t i = 0; gumbel_reply_get_part(reply, i, &part, NULL) == GUMBEL_OK; i++)
        strncat(content, part.raw, part.raw_length);
    gumbel_detokenizer_destroy(detokenizer);
    gumbel_reply_destroy(reply);
    server_lag_destroy(lag);
}

/* Wherever a stop string cuts the text, within tokens too, the reply has all before it and nothing behind. */
static void cut_anywhere(void **state) {
    (void)state;
    static const char text[] = "Once upon a time a baker, named Mira, went out.";
    char content[256], expected[256];
    for (size_t stop = 0; stop <= strlen(text); stop++) {
        cut_reply(text, stop, content);
        snprintf(expected, sizeof expected, "%.*s", (int)stop, text);
        assert_string_equal(content, expected);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_in_order),      cmocka_unit_test(a_slow_reader),
        cmocka_unit_test(a_client_that_leaves), cmocka_unit_test(freeing_cancels),
        cmocka_unit_test(cut_anywhere),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
