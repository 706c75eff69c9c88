/* SPDX-License-Identifier: Apache-2.0
 *
 * Conversations of 20 turns with tools on the bundled models: each turn runs only what is new, and where the
 * template leaves out a thought, what stands behind it.
 */
#include "run/handles.h"
#include "run/turns.h"

/* ---- Counting ------------------------------------------------------------------------------------------ */

/* The engine's backend, with steps that count their tokens. */
static const gb_backend_functions *uncounted;
static gb_backend_functions counted;
static size_t tokens_run;

static gumbel_status count_step(gb_backend *backend, gb_batch *batch, gumbel_error *told) {
    tokens_run += batch->token_count;
    return uncounted->step(backend, batch, told);
}

static void count_tokens(gumbel_engine *engine) {
    uncounted = engine->backend->functions;
    counted = *uncounted;
    counted.step = count_step;
    engine->backend->functions = &counted;
}

/* ---- 20 turns ------------------------------------------------------------------------------------------ */

/* What a turn is about: its replies are scripted but for the last kind's. */
typedef enum turn_kind { CALLS, PLAIN, GENERATED, TURN_KINDS } turn_kind;

typedef struct expectation {
    size_t held;      /* tokens that the session had run */
    size_t stable;    /* the question's prompt up to the reply */
    bool has_dropped; /* the template leaves out something behind there */
} expectation;

/* Prefills and compares: only what is new is run; where the template leaves out a thought, what stands behind
 * it is new. */
static void prefill(talk *t, const expectation *expected, bool is_question) {
    const bool goes_back = expected->has_dropped;
    tokens_run = 0;
    assert_ok(gumbel_conversation_prefill(t->conversation, t->session, &t->turn, &error), &error);
    if (!goes_back) {
        assert_int_equal(t->turn.held, expected->held);
        assert_int_equal(tokens_run, t->turn.begin - t->turn.held);
    } else { /* the snapshot stands one token before the end of a prompt that the history has whole */
        assert_in_range(t->turn.held, expected->stable, expected->stable + 1);
        assert_in_range(tokens_run, t->turn.begin - t->turn.held, t->turn.begin - expected->stable);
    }
    tokens_run = 0;
    assert_true(is_question ? t->turn.begin == t->turn.stable : t->turn.begin >= t->turn.held);
}

/* Notes what the session holds after a reply of count tokens to the prompt, and that just these were run. */
static void note(const talk *t, size_t count, expectation *expected) {
    assert_int_equal(tokens_run, t->turn.count - t->turn.begin + count - 1);
    assert_int_equal(gumbel_session_position(t->session, NULL), t->turn.count + count - 1);
    expected->held = t->turn.count + count - 1;
}

static void reply_and_note(talk *t, const char *text, expectation *expected) {
    int32_t tokens[MAX_TOKENS];
    const size_t count = encode(t->family, text, tokens);
    reply_with(t, tokens, count);
    note(t, count, expected);
}

/* Two calls at once and the answer to their results, in which the thoughts before the calls stay. */
static void call_tools(talk *t, bool thinks, expectation *expected) {
    char text[512];
    const family *f = t->family;
    size_t length = (size_t)snprintf(text, sizeof text, "%s", thinks ? f->thought : "");
    length += (size_t)snprintf(text + length, sizeof text - length, f->call, 1, 1);
    length += (size_t)snprintf(text + length, sizeof text - length, "%s", strchr(f->call, '\n') ? "\n" : "");
    length += (size_t)snprintf(text + length, sizeof text - length, f->call, 2, 2);
    snprintf(text + length, sizeof text - length, "%s", f->stop);
    reply_and_note(t, text, expected);
    answer_call(t, 0);
    answer_call(t, 1);
    expected->has_dropped = !f->opens_thought && !thinks; /* the empty thought of the first reply */
    prefill(t, expected, false);
}

/* Whether the turn has a thought that the next question's prompt leaves out. Qwen's template opens one for
 * each reply. Gemma's opens an empty one where thinking is off, but not behind results; where it is on, only
 * scripted calls have one. */
static bool leaves_thought(const family *f, turn_kind kind, bool thinks) {
    return f->opens_thought || thinks == (kind == CALLS);
}

static void take_turn(talk *t, turn_kind kind, bool thinks, expectation *expected) {
    char text[256];
    const family *f = t->family;
    add(t, "user", "Why?");
    prefill(t, expected, true);
    expected->stable = t->turn.stable;
    if (kind == CALLS)
        call_tools(t, thinks, expected);
    if (kind == GENERATED) {
        note(t, generate(t, 6), expected);
    } else {
        snprintf(text, sizeof text, "%sThe cat sat.%s", f->opens_thought && thinks ? f->thought : "",
                 f->stop);
        reply_and_note(t, text, expected);
    }
    expected->has_dropped = leaves_thought(f, kind, thinks);
}

static void talk_for_twenty_turns(const family *f, gumbel_thinking thinking) {
    talk t;
    expectation expected = {0};
    begin_talk(&t, f, thinking);
    count_tokens(t.engine);
    for (int i = 0; i < TURNS; i++)
        take_turn(&t, (turn_kind)(i % TURN_KINDS), thinking == GUMBEL_THINKING_ON, &expected);
    assert_int_equal(gumbel_conversation_count(t.conversation), 7 * 5 + 7 * 2 + 6 * 2);
    end_talk(&t);
}

static void twenty_turns_run_only_what_is_new(void **state) {
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        talk_for_twenty_turns(&families[i], GUMBEL_THINKING_ON);
        talk_for_twenty_turns(&families[i], GUMBEL_THINKING_OFF);
    }
}

int main(int argument_count, char **arguments) {
    read_test_arguments(argument_count, arguments);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(twenty_turns_run_only_what_is_new),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
