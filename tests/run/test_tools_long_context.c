/* SPDX-License-Identifier: Apache-2.0
 *
 * A call of a tool after a prompt that is longer than windows and chunks: with every kind of cache the next
 * turns have the bits of a cold run, in the session that was kept, behind a scheduler's prefix, and whatever
 * the chunk.
 */
#include "run/turns.h"

#include <time.h>

enum { WINDOW = 64, ANSWER = 6, PROMPTS = 3, LONGEST = 1024, LONG_CHUNK = 512 };

static const char one_tool[] = "[{\"type\":\"function\",\"function\":{\"name\":\"t1\",\"parameters\":{}}}]";

static const gumbel_sampling warm = {.size = sizeof warm, .temperature = 1, .top_p = 1};

typedef struct answer {
    int32_t tokens[ANSWER];
    float logprobs[ANSWER];
} answer;

/* Of the question's prompt so many tokens, and what is said before the call. */
typedef struct lengths {
    size_t prompt, reply;
} lengths;

typedef struct prompt {
    int32_t tokens[LONGEST];
    size_t count;
    uint32_t stable; /* as in gumbel_turn */
} prompt;

/* The prompts of the question, of the tool's result and of the next question, with answers to them; the first
 * one has none in the conversation itself, which goes on with a call. */
typedef struct exchange {
    prompt prompts[PROMPTS];
    answer answers[PROMPTS];
} exchange;

/* ---- Answers ------------------------------------------------------------------------------------------- */

static answer generate_answer(gumbel_session *session, const int32_t *tokens, size_t count) {
    const gumbel_generate_options options = {.size = sizeof options,
                                             .sampling = &warm,
                                             .wants_logprob = true,
                                             .max_new_tokens = ANSWER,
                                             .ignore_stop = true};
    answer made = {0};
    gumbel_session_set_seed(session, 5);
    assert_ok(gumbel_generate(session, tokens, count, &options, &error), &error);
    for (int i = 0; i < ANSWER; i++) {
        gumbel_generated next = {.size = sizeof next};
        assert_ok(gumbel_next(session, &next, &error), &error);
        made.tokens[i] = next.token;
        made.logprobs[i] = next.logprob;
    }
    return made;
}

static gumbel_engine *make_engine(const family *f, uint32_t chunk, int slots) {
    const gumbel_engine_options options = {.size = sizeof options,
                                           .threads = 2,
                                           .slots = slots,
                                           .max_context = LONGEST,
                                           .snapshots = true,
                                           .prefill_chunk = chunk};
    gumbel_engine *engine;
    assert_ok(gumbel_engine_create(f->program, &options, &engine, &error), &error);
    return engine;
}

/* Each prompt whole, in a session that has run nothing. */
static void answer_cold(const family *f, uint32_t chunk, exchange *x) {
    gumbel_session *session;
    gumbel_engine *engine = make_engine(f, chunk, 1);
    assert_ok(gumbel_session_create(engine, &session, &error), &error);
    for (int i = 0; i < PROMPTS; i++) {
        gumbel_session_reset(session);
        x->answers[i] = generate_answer(session, x->prompts[i].tokens, x->prompts[i].count);
    }
    gumbel_engine_destroy(engine);
}

/* ---- The conversation ---------------------------------------------------------------------------------- */

static void begin(talk *t, const family *f, uint32_t chunk) {
    const gumbel_chat_options chat = {.size = sizeof chat, .tools = one_tool};
    *t = (talk){.family = f, .turn = {.size = sizeof t->turn}, .engine = make_engine(f, chunk, 1)};
    assert_ok(gumbel_session_create(t->engine, &t->session, &error), &error);
    assert_ok(gumbel_conversation_create(f->tokenizer, &t->conversation, &error), &error);
    assert_ok(gumbel_conversation_set_chat(t->conversation, &chat, &error), &error);
}

/* Asks a question that makes the prompt so many tokens long; each letter of it is one, but for a few. */
static void ask_at_length(talk *t, size_t length) {
    char question[LONGEST + 1] = "?";
    for (size_t letters = 1; letters < LONGEST;) {
        add(t, "user", question);
        assert_ok(gumbel_conversation_prompt(t->conversation, NULL, 0, &t->turn, &error), &error);
        if (t->turn.count >= length)
            break;
        gumbel_conversation_truncate(t->conversation, 0);
        letters += length - t->turn.count;
        assert_true(letters < sizeof question);
        memset(question, '?', letters);
    }
    assert_int_equal(t->turn.count, length);
    assert_ok(gumbel_conversation_prefill(t->conversation, t->session, &t->turn, &error), &error);
}

/* So many letters and a call. */
static void call_tool(talk *t, size_t letters) {
    char text[512], call[128];
    int32_t tokens[MAX_TOKENS];
    assert_true(letters < sizeof text / 2);
    memset(text, '?', letters);
    snprintf(call, sizeof call, t->family->call, 1, 1);
    snprintf(text + letters, sizeof text - letters, "%s%s", call, t->family->stop);
    reply_with(t, tokens, encode(t->family, text, tokens));
    answer_call(t, 0);
}

static void keep_prompt(const talk *t, prompt *kept) {
    assert_in_range(t->turn.count, 1, LONGEST - ANSWER);
    memcpy(kept->tokens, t->turn.tokens, t->turn.count * sizeof *kept->tokens);
    kept->count = t->turn.count;
    kept->stable = (uint32_t)t->turn.stable;
}

/* What the prompt has in common with the one before it, up to there at least, is not run again. */
static void answer_turn(talk *t, exchange *x, int number) {
    answer *given = &x->answers[number];
    assert_ok(gumbel_conversation_prefill(t->conversation, t->session, &t->turn, &error), &error);
    assert_in_range(t->turn.held, x->prompts[number - 1].stable, t->turn.count);
    keep_prompt(t, &x->prompts[number]);
    *given = generate_answer(t->session, t->turn.tokens + t->turn.begin, t->turn.count - t->turn.begin);
    for (int i = 0; i < ANSWER; i++) {
        const gumbel_finish finish = i + 1 == ANSWER ? GUMBEL_FINISH_LENGTH : GUMBEL_FINISH_NONE;
        const gumbel_generated token = {.size = sizeof token, .token = given->tokens[i], .finish = finish};
        assert_ok(gumbel_conversation_add_generated(t->conversation, &token, &error), &error);
    }
}

static void converse(const family *f, uint32_t chunk, lengths of, exchange *x) {
    talk t;
    *x = (exchange){0};
    begin(&t, f, chunk);
    ask_at_length(&t, of.prompt);
    keep_prompt(&t, &x->prompts[0]);
    call_tool(&t, of.reply);
    answer_turn(&t, x, 1);
    add(&t, "user", "Why?");
    answer_turn(&t, x, 2);
    end_talk(&t);
}

/* ---- A scheduler --------------------------------------------------------------------------------------- */

typedef struct arrival {
    answer answer;
    int count;
} arrival;

static void handle_event(void *user, const gumbel_event *event) {
    arrival *to = user;
    if (event->type != GUMBEL_EVENT_TOKEN)
        return;
    to->answer.tokens[to->count] = event->token;
    to->answer.logprobs[to->count++] = event->logprob;
}

static gumbel_scheduler_stats stats_of(gumbel_scheduler *scheduler) {
    gumbel_scheduler_stats stats = {.size = sizeof stats};
    assert_ok(gumbel_scheduler_get_stats(scheduler, &stats, &error), &error);
    return stats;
}

static answer answer_scheduled(gumbel_scheduler *scheduler, const prompt *given) {
    arrival to = {0};
    const gumbel_submission submission = {.size = sizeof submission,
                                          .tokens = given->tokens,
                                          .token_count = given->count,
                                          .branch_positions = &given->stable,
                                          .branch_position_count = 1,
                                          .callback = handle_event,
                                          .user = &to,
                                          .sampling = &warm,
                                          .has_seed = true,
                                          .seed = 5,
                                          .wants_logprob = true,
                                          .ignore_stop = true,
                                          .max_new_tokens = ANSWER};
    const uint64_t before = stats_of(scheduler).finished;
    assert_ok(gumbel_scheduler_submit(scheduler, &submission, NULL, &error), &error);
    while (stats_of(scheduler).finished == before) {
        assert_int_equal(stats_of(scheduler).failed, 0);
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    }
    assert_int_equal(to.count, ANSWER);
    return to.answer;
}

/* Each prompt goes on behind what the one before left. */
static void answer_in_turn(const family *f, uint32_t chunk, exchange *x) {
    gumbel_scheduler *scheduler;
    gumbel_engine *engine = make_engine(f, chunk, 2);
    assert_ok(gumbel_scheduler_create(engine, NULL, &scheduler, &error), &error);
    for (int i = 0; i < PROMPTS; i++) {
        const uint64_t cached = stats_of(scheduler).cached_tokens;
        x->answers[i] = answer_scheduled(scheduler, &x->prompts[i]);
        assert_true(i == 0 || stats_of(scheduler).cached_tokens >= cached + x->prompts[i - 1].stable);
    }
    gumbel_scheduler_destroy(scheduler);
    gumbel_engine_destroy(engine);
}

/* ---- Tests --------------------------------------------------------------------------------------------- */

static void assert_same_answers(const exchange *found, const exchange *expected, int first) {
    for (int i = first; i < PROMPTS; i++)
        assert_memory_equal(&found->answers[i], &expected->answers[i], sizeof found->answers[i]);
}

static void compare(const family *f, uint32_t chunk, lengths of, const exchange *expected) {
    static exchange kept, other;
    converse(f, chunk, of, &kept);
    assert_memory_equal(kept.prompts, expected->prompts, sizeof kept.prompts);
    assert_same_answers(&kept, expected, 1);
    other = kept;
    answer_cold(f, chunk, &other);
    assert_same_answers(&other, expected, 0);
    answer_in_turn(f, chunk, &other);
    assert_same_answers(&other, expected, 0);
}

static void compare_chunks(const char *cache, lengths of) {
    static const uint32_t chunks[] = {16, WINDOW, LONG_CHUNK};
    static exchange expected;
    family f = families[0];
    assert_ok(gumbel_program_open(temporary_path(f.path), &f.program, &error), &error);
    assert_ok(gumbel_program_set_cache(f.program, cache, &error), &error);
    converse(&f, LONGEST, of, &expected);
    answer_cold(&f, LONGEST, &expected);
    for (size_t i = 0; i < sizeof chunks / sizeof *chunks; i++)
        compare(&f, chunks[i], of, &expected);
    gumbel_program_close(f.program);
}

enum { CACHES = 3 };
static const char *caches[CACHES] = {"bfloat16", "q8", "q4"};

/* Prompts a little beyond the window, a short chunk more, twice the window, and beyond a long chunk. The next
 * turn goes back behind the reply, which rings have room for where it is short. */
static void a_call_goes_on(void **state) {
    static const lengths all[] = {
        {WINDOW + 1, 0}, {WINDOW + 16, 80}, {2 * WINDOW, 0}, {WINDOW + LONG_CHUNK + 1, 80}};
    const char *const *cache = *state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (!is_short_run() || i % CACHES == (size_t)(cache - caches)) /* each length with one kind */
            compare_chunks(*cache, all[i]);
}

int main(int argument_count, char **arguments) {
    read_test_arguments(argument_count, arguments);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(a_call_goes_on, &caches[0]),
        cmocka_unit_test_prestate(a_call_goes_on, &caches[1]),
        cmocka_unit_test_prestate(a_call_goes_on, &caches[2]),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
