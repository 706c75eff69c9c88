/* SPDX-License-Identifier: Apache-2.0
 *
 * Conversations of a scheduler with drafts and of one without, on the bundled models: the same tokens, and as
 * much of them kept for the next turn, where an answer ends at a stop string amid a draft, begins with given
 * tokens, or may not end yet.
 */
#include "run/handles.h"
#include "support/assertions.h"
#include "support/programs/bundled_program.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

enum { PROMPT = 9, ANSWER = 40, MOST = 3 * (PROMPT + ANSWER) };

static gumbel_error error;
static const gumbel_sampling warm = {.size = sizeof warm, .temperature = 0.8f, .top_p = 1};

typedef struct answer {
    int32_t tokens[ANSWER];
    uint32_t count;
    gumbel_finish finish;
    gumbel_status status;
    gumbel_usage usage;
} answer;

typedef struct side {
    gumbel_program *program;
    gumbel_tokenizer *tokenizer;
    gumbel_engine *engine;
    gumbel_scheduler *scheduler;
    uint64_t asked;
} side;

static side open_side(const char *model, uint32_t drafts) {
    side s = {0};
    s.program = open_bundled_program(model, NULL);
    assert_ok(gumbel_tokenizer_create(s.program, &s.tokenizer, &error), &error);
    const gumbel_engine_options options = {.size = sizeof options, .slots = 3, .draft_tokens = drafts};
    assert_ok(gumbel_engine_create(s.program, &options, &s.engine, &error), &error);
    s.engine->step_times.is_fixed = true;
    assert_ok(gumbel_scheduler_create(s.engine, NULL, &s.scheduler, &error), &error);
    return s;
}

static void close_side(side *s) {
    gumbel_scheduler_destroy(s->scheduler);
    gumbel_engine_destroy(s->engine);
    gumbel_tokenizer_destroy(s->tokenizer);
    gumbel_program_close(s->program);
}

static void handle_event(void *user, const gumbel_event *event) {
    answer *a = user;
    if (event->type == GUMBEL_EVENT_TOKEN) {
        a->tokens[a->count++] = event->token;
        return;
    }
    a->status = event->status;
    a->finish = event->finish;
    a->usage = *event->usage;
}

static answer ask(side *s, gumbel_submission submission) {
    gumbel_scheduler_stats stats = {.size = sizeof stats};
    answer a = {0};
    submission.size = sizeof submission;
    submission.callback = handle_event;
    submission.user = &a;
    submission.sampling = submission.sampling ? submission.sampling : &warm;
    submission.has_seed = true;
    submission.tokenizer = s->tokenizer;
    submission.max_new_tokens = ANSWER;
    assert_ok(gumbel_scheduler_submit(s->scheduler, &submission, NULL, &error), &error);
    s->asked++;
    for (;;) {
        assert_ok(gumbel_scheduler_get_stats(s->scheduler, &stats, &error), &error);
        if (stats.finished + stats.failed == s->asked)
            break;
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    }
    assert_int_equal(a.status, GUMBEL_OK);
    return a;
}

static void assert_same(const answer *a, const answer *b) {
    assert_int_equal(a->count, b->count);
    assert_memory_equal(a->tokens, b->tokens, a->count * sizeof *a->tokens);
    assert_int_equal(a->finish, b->finish);
    assert_int_equal(a->usage.cached_tokens, b->usage.cached_tokens);
}

/* An answer to the prompt of both sides, predicted on the second one. Behind it stand its tokens and another.
 */
static answer take_turn(side sides[2], gumbel_submission submission, int32_t *tokens, size_t *count) {
    submission.tokens = tokens;
    submission.token_count = *count;
    gumbel_submission whole = submission;
    whole.stop_string_count = 0;
    whole.no_prefix_cache = true;
    const answer predicted = ask(&sides[0], whole), plain = ask(&sides[0], submission);
    ask(&sides[1], whole);
    submission.predicted_tokens = predicted.tokens;
    submission.predicted_count = predicted.count;
    const answer drafted = ask(&sides[1], submission);
    assert_same(&plain, &drafted);
    memcpy(tokens + *count, plain.tokens, plain.count * sizeof *tokens);
    *count += plain.count;
    tokens[(*count)++] = 30;
    return drafted;
}

static uint64_t accepted_of(const side *s) {
    gumbel_scheduler_stats stats = {.size = sizeof stats};
    assert_ok(gumbel_scheduler_get_stats(s->scheduler, &stats, &error), &error);
    return stats.drafts.accepted;
}

static void converse(void **state) {
    side sides[2] = {open_side(*state, 0), open_side(*state, 7)};
    static const char *const strings[] = {"e"};
    static const int32_t given[] = {20, 21, 22, 23, 24, 25};
    gumbel_program_info info = {.size = sizeof info};
    assert_ok(gumbel_program_get_info(sides[0].program, &info, &error), &error);
    const gumbel_bias ends = {.token = info.stop_tokens[0], .value = 100}; /* as soon as it may */
    gumbel_sampling hasty = warm;
    hasty.bias = &ends;
    hasty.bias_count = 1;
    uint32_t stopped = 0;
    for (uint64_t seed = 0; seed < 12; seed++) {
        int32_t tokens[MOST];
        size_t count = PROMPT;
        for (int32_t i = 0; i < PROMPT; i++)
            tokens[i] = 20 + (i * 7 + (int32_t)seed * 13) % 90;
        gumbel_submission submission = {.seed = seed, .ignore_stop = true, .stop_strings = strings};
        submission.stop_string_count = 1;
        stopped += take_turn(sides, submission, tokens, &count).finish == GUMBEL_FINISH_STOP_STRING;
        submission = (gumbel_submission){.seed = seed + 50, .min_new_tokens = 6 + (uint32_t)seed};
        submission.forced_tokens = given;
        submission.forced_count = seed % 2 ? 6 : 0;
        submission.sampling = &hasty;
        assert_int_equal(take_turn(sides, submission, tokens, &count).count, 7 + seed);
    }
    assert_true(stopped > 5);
    assert_int_equal(accepted_of(&sides[0]), 0);
    assert_true(accepted_of(&sides[1]) > 100);
    close_side(&sides[0]);
    close_side(&sides[1]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        {"gemma4-tiny", converse, NULL, NULL, (void *)(uintptr_t) "gemma4-tiny"},
        {"qwen3_5-moe-tiny", converse, NULL, NULL, (void *)(uintptr_t) "qwen3_5-moe-tiny"},
    };
    return cmocka_run_group_tests_name("drafted_turns", tests, NULL, NULL);
}
