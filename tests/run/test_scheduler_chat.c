/* SPDX-License-Identifier: Apache-2.0
 *
 * Conversations given to a scheduler as messages, on the bundled models: the prompt is what
 * gumbel_chat_encode makes of them, and what they have in common is run once.
 */
#include "support/assertions.h"
#include "support/paths.h"
#include "support/temporary.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum {
    CONTEXT = 2048,
    SYSTEM_BYTES = 8192,
    SYSTEM_TOKENS = 1500,
    ANSWER = 12,
    ANSWERS = 3,
    TOP = 4,
    GRAIN = 64
};

static gumbel_error error;

typedef struct server {
    gumbel_program *program;
    gumbel_tokenizer *tokenizer;
    gumbel_engine *engine, *other;
    gumbel_scheduler *scheduler;
    gumbel_session *alone;
} server;

typedef struct received {
    int32_t prompt[CONTEXT];
    size_t prompt_count;
    gumbel_generated tokens[ANSWER];
    int32_t top_tokens[ANSWER][TOP];
    float top_logprobs[ANSWER][TOP];
    uint32_t count;
    gumbel_usage usage;
    gumbel_status status;
} received;

#define MESSAGE(...) ((gumbel_message){.size = sizeof(gumbel_message), __VA_ARGS__})

/* ---- A server ------------------------------------------------------------------------------------------ */

static void begin(server *s, const char *model) {
    char checkpoint[512];
    const char *path = temporary_path("chat.gumbel");
    const gumbel_export_options options = {.size = sizeof options, .quantize = "int4"};
    const gumbel_engine_options many = {.size = sizeof many, .slots = 6, .threads = 2},
                                one = {.size = sizeof one, .threads = 2};
    snprintf(checkpoint, sizeof checkpoint, "%s/%s", test_models_folder, model);
    assert_ok(gumbel_export(checkpoint, path, &options, &error), &error);
    assert_ok(gumbel_program_open(path, &s->program, &error), &error);
    assert_ok(gumbel_tokenizer_create(s->program, &s->tokenizer, &error), &error);
    assert_ok(gumbel_engine_create(s->program, &many, &s->engine, &error), &error);
    assert_ok(gumbel_engine_create(s->program, &one, &s->other, &error), &error);
    assert_ok(gumbel_session_create(s->other, &s->alone, &error), &error);
    assert_ok(gumbel_scheduler_create(s->engine, NULL, &s->scheduler, &error), &error);
}

static void end(server *s) {
    gumbel_scheduler_destroy(s->scheduler);
    gumbel_engine_destroy(s->engine);
    gumbel_engine_destroy(s->other);
    gumbel_tokenizer_destroy(s->tokenizer);
    gumbel_program_close(s->program);
}

static gumbel_scheduler_stats stats_of(const server *s) {
    gumbel_scheduler_stats stats = {.size = sizeof stats};
    assert_ok(gumbel_scheduler_get_stats(s->scheduler, &stats, &error), &error);
    return stats;
}

static void handle_event(void *user, const gumbel_event *event) {
    received *to = (received *)user + event->answer;
    if (event->type != GUMBEL_EVENT_TOKEN) {
        to->status = event->status;
        to->usage = *event->usage;
        return;
    }
    to->prompt_count = event->prompt_count;
    memcpy(to->prompt, event->prompt, event->prompt_count * sizeof *to->prompt);
    to->tokens[to->count] =
        (gumbel_generated){.token = event->token, .seed = event->seed, .logprob = event->logprob};
    for (uint32_t i = 0; i < event->top_logprobs; i++) {
        to->top_tokens[to->count][i] = event->top_tokens[i];
        to->top_logprobs[to->count][i] = event->top_token_logprob[i];
    }
    to->count++;
}

/* ---- Asking -------------------------------------------------------------------------------------------- */

static const gumbel_sampling sampling = {.size = sizeof sampling, .temperature = 1, .top_p = 1};

static gumbel_submission ask(const server *s, const gumbel_message *messages, size_t count, received *to) {
    return (gumbel_submission){.size = sizeof(gumbel_submission),
                               .callback = handle_event,
                               .user = to,
                               .sampling = &sampling,
                               .has_seed = true,
                               .seed = 3,
                               .wants_logprob = true,
                               .top_logprobs = TOP,
                               .ignore_stop = true,
                               .max_new_tokens = ANSWER,
                               .tokenizer = s->tokenizer,
                               .messages = messages,
                               .message_count = count};
}

/* Runs a request to its end. Returns how many prompt tokens were run for it. */
static uint64_t run(const server *s, const gumbel_submission *submission) {
    const gumbel_scheduler_stats before = stats_of(s);
    gumbel_scheduler_stats stats;
    assert_ok(gumbel_scheduler_submit(s->scheduler, submission, NULL, &error), &error);
    do
        stats = stats_of(s);
    while (stats.finished + stats.failed == before.finished + before.failed || stats.running || stats.queued);
    return stats.prompt_tokens - before.prompt_tokens;
}

/* The answer is that of a fresh session to the encoded conversation. */
static void assert_as_alone(const server *s, const gumbel_message *messages, size_t count, uint32_t answer,
                            const received *found) {
    static int32_t tokens[CONTEXT];
    size_t token_count;
    const gumbel_generate_options options = {.size = sizeof options,
                                             .sampling = &sampling,
                                             .max_new_tokens = ANSWER,
                                             .wants_logprob = true,
                                             .top_logprobs = TOP,
                                             .ignore_stop = true};
    assert_ok(gumbel_chat_encode(s->tokenizer, messages, count, NULL, tokens, CONTEXT, &token_count, &error),
              &error);
    assert_int_equal(found->status, GUMBEL_OK);
    assert_int_equal(found->count, ANSWER);
    assert_int_equal(found->usage.prompt_tokens, token_count);
    assert_int_equal(found->prompt_count, token_count);
    assert_memory_equal(found->prompt, tokens, token_count * sizeof *tokens);
    assert_int_equal(found->usage.seed, gumbel_answer_seed(3, answer));
    gumbel_session_reset(s->alone);
    gumbel_session_set_seed(s->alone, found->usage.seed);
    assert_ok(gumbel_generate(s->alone, tokens, token_count, &options, &error), &error);
    for (int i = 0; i < ANSWER; i++) {
        gumbel_generated next = {.size = sizeof next};
        assert_ok(gumbel_next(s->alone, &next, &error), &error);
        assert_int_equal(found->tokens[i].token, next.token);
        assert_int_equal(found->tokens[i].seed, next.seed);
        assert_memory_equal(&found->tokens[i].logprob, &next.logprob, sizeof next.logprob);
        assert_memory_equal(found->top_tokens[i], next.top_tokens, sizeof found->top_tokens[i]);
        assert_memory_equal(found->top_logprobs[i], next.top_token_logprob, sizeof found->top_logprobs[i]);
    }
}

static const char *const models[] = {"gemma4-tiny", "qwen3_5-moe-tiny"};

/* A text of about so many tokens. */
static void fill_system(const server *s, char text[SYSTEM_BYTES]) {
    size_t count = 0;
    text[0] = 0;
    for (int i = 0; count < SYSTEM_TOKENS; i++) {
        const size_t used = strlen(text);
        assert_true(used + 64 < SYSTEM_BYTES);
        snprintf(text + used, SYSTEM_BYTES - used, "Rule %d: the baker of Fernhill wakes at %d. ", i, i % 24);
        gumbel_encode(s->tokenizer, text, strlen(text), NULL, NULL, 0, &count, NULL);
    }
}

/* The first user's request runs the system message, the others what they say themselves. */
static void a_system_message_is_run_once(void **state) {
    (void)state;
    for (int m = 0; m < 2; m++) {
        static char system[SYSTEM_BYTES];
        static const char *const questions[] = {"Who is the baker?", "Who has a goat, and since when?",
                                                "Why?"};
        server s;
        begin(&s, models[m]);
        fill_system(&s, system);
        for (int i = 0; i < 3; i++) {
            static received to;
            const gumbel_message messages[] = {MESSAGE(.role = "system", .content = system),
                                               MESSAGE(.role = "user", .content = questions[i])};
            memset(&to, 0, sizeof to);
            const gumbel_submission submission = ask(&s, messages, 2, &to);
            const uint64_t ran = run(&s, &submission);
            assert_as_alone(&s, messages, 2, 0, &to);
            assert_int_equal(ran, to.usage.prompt_tokens - to.usage.cached_tokens);
            if (i == 0)
                assert_int_equal(to.usage.cached_tokens, 0);
            else /* what they share reaches to a multiple of the grain at least */
                assert_true(to.usage.cached_tokens > SYSTEM_TOKENS - GRAIN);
        }
        end(&s);
    }
}

static size_t encode(const server *s, const gumbel_message *messages, size_t count, int32_t tokens[CONTEXT]) {
    size_t token_count;
    assert_ok(gumbel_chat_encode(s->tokenizer, messages, count, NULL, tokens, CONTEXT, &token_count, &error),
              &error);
    return token_count;
}

/* The next turn is written without a part of the generation prompt, in which a multiple of the grain lies: it
 * begins with what was kept before that prompt. */
static void a_turn_that_parts_in_the_generation_prompt(void **state) {
    (void)state;
    for (int m = 0; m < 2; m++) {
        static int32_t first[CONTEXT], second[CONTEXT];
        static received to[2];
        char question[1024] = "Who is the baker";
        server s;
        begin(&s, models[m]);
        memset(to, 0, sizeof to);
        const gumbel_message messages[] = {MESSAGE(.role = "user", .content = question),
                                           MESSAGE(.role = "assistant", .content = "Mira."),
                                           MESSAGE(.role = "user", .content = "Really?")};
        size_t common = 0, last = 0;
        while (common < GRAIN || last - last % GRAIN <= common) {
            strcat(question, " and why");
            last = encode(&s, messages, 1, first) - 1;
            const size_t count = encode(&s, messages, 3, second);
            for (common = 0; common < last && common < count && first[common] == second[common];)
                common++;
        }
        const gumbel_submission one = ask(&s, messages, 1, &to[0]), three = ask(&s, messages, 3, &to[1]);
        run(&s, &one);
        run(&s, &three);
        assert_as_alone(&s, messages, 3, 0, &to[1]);
        assert_true(common >= GRAIN && to[1].usage.cached_tokens >= common - common % GRAIN);
        end(&s);
    }
}

static void answers_are_forks_with_seeds_of_their_own(void **state) {
    (void)state;
    for (int m = 0; m < 2; m++) {
        static received to[ANSWERS];
        server s;
        const gumbel_message message = MESSAGE(.role = "user", .content = "Tell me a story of the baker.");
        begin(&s, models[m]);
        memset(to, 0, sizeof to);
        gumbel_submission submission = ask(&s, &message, 1, to);
        submission.answers = ANSWERS;
        run(&s, &submission);
        while (stats_of(&s).finished < ANSWERS)
            ;
        for (uint32_t i = 0; i < ANSWERS; i++)
            assert_as_alone(&s, &message, 1, i, &to[i]);
        end(&s);
    }
}

static void conversations_that_are_refused(void **state) {
    (void)state;
    static received to;
    server s;
    begin(&s, models[0]);
    const gumbel_message message = MESSAGE(.role = "user", .content = "Why?"),
                         nobody = MESSAGE(.role = "nobody", .content = "Why?");
    const gumbel_chat_options chat = {.size = sizeof chat, .template_kwargs = "3"};
    gumbel_submission submission = ask(&s, &message, 1, &to);
    submission.tokenizer = NULL;
    assert_fails(gumbel_scheduler_submit(s.scheduler, &submission, NULL, &error), GUMBEL_ERROR_ARGUMENT,
                 &error, "messages need a tokenizer");
    submission = ask(&s, &message, 1, &to);
    submission.tokens = to.prompt;
    assert_fails(gumbel_scheduler_submit(s.scheduler, &submission, NULL, &error), GUMBEL_ERROR_ARGUMENT,
                 &error, "both are given");
    submission = ask(&s, NULL, 1, &to);
    assert_fails(gumbel_scheduler_submit(s.scheduler, &submission, NULL, &error), GUMBEL_ERROR_ARGUMENT,
                 &error, "messages is NULL");
    submission = ask(&s, &nobody, 1, &to);
    assert_fails(gumbel_scheduler_submit(s.scheduler, &submission, NULL, &error), GUMBEL_ERROR_ARGUMENT,
                 &error, "message 0");
    submission = ask(&s, &message, 1, &to);
    submission.chat = &chat;
    assert_fails(gumbel_scheduler_submit(s.scheduler, &submission, NULL, &error), GUMBEL_ERROR_FORMAT, &error,
                 "template_kwargs: expected an object");
    submission = ask(&s, &message, 1, &to);
    submission.branch_position_count = 1;
    assert_fails(gumbel_scheduler_submit(s.scheduler, &submission, NULL, &error), GUMBEL_ERROR_ARGUMENT,
                 &error, "branch_positions is NULL");
    end(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_system_message_is_run_once),
        cmocka_unit_test(a_turn_that_parts_in_the_generation_prompt),
        cmocka_unit_test(answers_are_forks_with_seeds_of_their_own),
        cmocka_unit_test(conversations_that_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
