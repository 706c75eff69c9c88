/* SPDX-License-Identifier: Apache-2.0
 *
 * What prompts begin with instead of running it: states of finished and of running sequences, of both kinds.
 */
#include "support/assertions.h"
#include "support/schedule_case.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { ANSWER = 6, TOLD = 8, REQUESTS = 200 };

static schedule_case c;
static told to[TOLD];

static void begin(bool recurrent, uint32_t slots, gumbel_scheduler_options options) {
    memset(to, 0, sizeof to);
    begin_case(&c, slots, 128 + slots, 128, recurrent, options);
}

static uint64_t ask(const int32_t *prompt, uint32_t count, told *answer) {
    return submit(&c, (gumbel_submission){.tokens = prompt, .token_count = count, .max_new_tokens = ANSWER},
                  answer);
}

/* Runs all kept answers again as prompts. Returns how many steps that took. */
static unsigned rerun_all(void) {
    unsigned steps = 0;
    for (; gb_has_rerun(&c.schedule); steps++) {
        gb_rerun(&c.schedule);
        check_sums(&c);
    }
    return steps;
}

/* Runs a request to its end: it has the tokens of a cold run, and so many of its prompt were not run. */
static void run(const int32_t *prompt, uint32_t count, told *answer, uint32_t cached) {
    const uint64_t number = ask(prompt, count, answer);
    turn_until_done(&c);
    assert_answer(&c, answer, prompt, count, number, ANSWER, GUMBEL_FINISH_LENGTH);
    assert_int_equal(answer->usage.cached_tokens, cached);
}

/* The conversation's next turn: prompt, answer, and so many tokens. */
static uint32_t continue_with(int32_t *tokens, uint32_t count, const told *answer, uint32_t more) {
    memcpy(tokens + count, answer->tokens, ANSWER * sizeof *tokens);
    fake_prompt(77, tokens + count + ANSWER, more);
    return count + ANSWER + more;
}

static void a_next_turn_runs_what_is_new(void **state) {
    for (int recurrent = 0; recurrent < 2; recurrent++) {
        int32_t tokens[FAKE_CONTEXT];
        (void)state;
        begin(recurrent == 1, 2, (gumbel_scheduler_options){0});
        fake_prompt(1, tokens, 100);
        run(tokens, 100, &to[0], 0);
        const uint32_t count = continue_with(tokens, 100, &to[0], 20);
        run(tokens, count, &to[1], 100 + ANSWER - 1); /* the last token was drawn and not run */
        end_case(&c);
    }
}

/* Caches are cut at the last token; what cannot be cut is kept at the last multiple of the grain. */
static void the_same_prompt_again(void **state) {
    (void)state;
    int32_t tokens[200];
    fake_prompt(1, tokens, 200);
    begin(false, 2, (gumbel_scheduler_options){0});
    run(tokens, 200, &to[0], 0);
    run(tokens, 200, &to[1], 199);
    end_case(&c);
    begin(true, 2, (gumbel_scheduler_options){0});
    run(tokens, 200, &to[0], 0);
    run(tokens, 200, &to[1], 192);
    run(tokens, 193, &to[2], 192);
    run(tokens, 192, &to[3], 0); /* its last token must run, and nothing was kept earlier */
    end_case(&c);
}

/* Many users behind one system prompt, whose end is marked; the first one's slot is lost meanwhile. Where
 * blocks of tokens are computed together, the mark is rounded down to the grain. */
static void a_shared_beginning(void **state) {
    for (int in_blocks = 0; in_blocks < 2; in_blocks++) {
        (void)state;
        begin(true, 2, (gumbel_scheduler_options){0});
        c.fake.base.reuse = in_blocks ? GB_REUSE_PROMPT : GB_REUSE_ALL;
        for (uint32_t i = 0; i < 5; i++) {
            int32_t tokens[260];
            const uint32_t branch = 150, cached = in_blocks ? 128 : 150;
            fake_prompt(9, tokens, 150);
            fake_prompt(20 + i, tokens + 150, 110);
            gumbel_submission submission = {.tokens = tokens,
                                            .token_count = 260,
                                            .max_new_tokens = ANSWER,
                                            .branch_positions = &branch,
                                            .branch_position_count = 1};
            const uint64_t number = submit(&c, submission, &to[i]);
            turn_until_done(&c);
            assert_answer(&c, &to[i], tokens, 260, number, ANSWER, GUMBEL_FINISH_LENGTH);
            assert_int_equal(to[i].usage.cached_tokens, i == 0 ? 0 : cached);
        }
        end_case(&c);
    }
}

/* A short conversation whose template writes the next turn without the generation prompt: of a recurrent
 * state all that came before that is kept, and nothing is kept twice. */
static void a_short_second_turn(void **state) {
    (void)state;
    int32_t tokens[90];
    const uint32_t branches[2] = {7, 30};
    fake_prompt(1, tokens, 37);
    begin(true, 2, (gumbel_scheduler_options){0});
    gumbel_submission submission = {.tokens = tokens,
                                    .token_count = 37,
                                    .max_new_tokens = ANSWER,
                                    .branch_positions = branches,
                                    .branch_position_count = 2};
    submit(&c, submission, &to[0]);
    turn_until_done(&c);
    assert_steps(&c, "0:7|0:23|0:7+|0:1+|0:1+|0:1+|0:1+|0:1+|");
    fake_prompt(2, tokens + 30, 60);
    submission.token_count = 90;
    const uint64_t number = submit(&c, submission, &to[1]);
    turn_until_done(&c);
    assert_answer(&c, &to[1], tokens, 90, number, ANSWER, GUMBEL_FINISH_LENGTH);
    assert_int_equal(to[1].usage.cached_tokens, 30);
    end_case(&c);
}

/* One prompt, four answers: it is run once, by the first. */
static void answers_to_one_prompt(void **state) {
    for (int recurrent = 0; recurrent < 2; recurrent++) {
        int32_t tokens[200];
        (void)state;
        fake_prompt(3, tokens, 200);
        begin(recurrent == 1, 4, (gumbel_scheduler_options){0});
        const gumbel_submission submission = {
            .tokens = tokens, .token_count = 200, .max_new_tokens = ANSWER, .answers = 4};
        const uint64_t number = submit(&c, submission, to);
        turn_until_done(&c);
        for (uint32_t i = 0; i < 4; i++) {
            assert_answer(&c, &to[i], tokens, 200, gumbel_answer_seed(number, i), ANSWER,
                          GUMBEL_FINISH_LENGTH);
            assert_int_equal(to[i].usage.cached_tokens, i == 0 ? 0 : recurrent ? 192 : 199);
        }
        end_case(&c);
    }
}

/* On a backend whose answers have kernels of their own, only what was run as a prompt is taken. */
static void only_what_was_a_prompt(void **state) {
    (void)state;
    int32_t tokens[FAKE_CONTEXT];
    begin(false, 2, (gumbel_scheduler_options){0});
    c.fake.base.reuse = GB_REUSE_PROMPT;
    fake_prompt(1, tokens, 100);
    run(tokens, 100, &to[0], 0);
    uint32_t count = continue_with(tokens, 100, &to[0], 20);
    run(tokens, count, &to[1], 100);
    const uint32_t before = count;
    count = continue_with(tokens, count, &to[1], 5);
    run(tokens, count, &to[2], before);
    end_case(&c);
}

/* While nobody waits the last answer is run again as a prompt, chunk by chunk, so that the next turn need not
 * run it. */
static void answers_become_prompts_while_nobody_waits(void **state) {
    enum { FIRST = 100, SECOND = FIRST + ANSWER + 20 };
    for (int recurrent = 0; recurrent < 2; recurrent++) {
        int32_t tokens[FAKE_CONTEXT];
        (void)state;
        begin(recurrent == 1, 2, (gumbel_scheduler_options){0});
        c.fake.base.reuse = GB_REUSE_PROMPT;
        fake_prompt(1, tokens, FIRST);
        run(tokens, FIRST, &to[0], 0);
        c.fake.log[0] = 0;
        assert_int_equal(rerun_all(), 1);
        assert_steps(&c, recurrent ? "0:41|" : "0:5|");
        assert_int_equal(rerun_all(), 0);
        assert_int_equal(continue_with(tokens, FIRST, &to[0], 20), SECOND);
        run(tokens, SECOND, &to[1], FIRST + ANSWER - 1);
        end_case(&c);
    }
}

/* A request that comes in between finds what has been run until then. */
static void a_rerun_can_be_interrupted(void **state) {
    for (int recurrent = 0; recurrent < 2; recurrent++) {
        enum { FIRST = 10, LONG = 200, SECOND = FIRST + LONG + 20 };
        int32_t tokens[FAKE_CONTEXT];
        (void)state;
        begin(recurrent == 1, 2, (gumbel_scheduler_options){0});
        c.fake.base.reuse = GB_REUSE_PROMPT;
        c.fake.base.prefill_chunk = 256; /* of long steps, for which the request would wait */
        c.fake.base.step_tokens = 264;
        fake_prompt(1, tokens, FIRST);
        submit(&c, (gumbel_submission){.tokens = tokens, .token_count = FIRST, .max_new_tokens = LONG},
               &to[0]);
        turn_until_done(&c);
        assert_true(gb_has_rerun(&c.schedule));
        gb_rerun(&c.schedule);
        check_sums(&c);
        memcpy(tokens + FIRST, to[0].tokens, LONG * sizeof *tokens);
        fake_prompt(99, tokens + FIRST + LONG, 20);
        run(tokens, SECOND, &to[1], 128); /* a chunk */
        rerun_all();
        run(tokens, SECOND, &to[2], recurrent ? 192 : SECOND - 1);
        end_case(&c);
    }
}

/* A step that fails costs what was kept, and nothing else. */
static void a_rerun_that_fails_drops_what_was_kept(void **state) {
    (void)state;
    int32_t tokens[FAKE_CONTEXT];
    begin(false, 2, (gumbel_scheduler_options){0});
    c.fake.base.reuse = GB_REUSE_PROMPT;
    fake_prompt(1, tokens, 100);
    run(tokens, 100, &to[0], 0);
    c.fake.memory = 1;
    assert_int_equal(rerun_all(), 1);
    c.fake.memory = 0;
    check_sums(&c);
    run(tokens, 100, &to[1], 0);
    end_case(&c);
}

static void nobody_keeps_what_should_not_be_kept(void **state) {
    (void)state;
    int32_t tokens[100];
    fake_prompt(1, tokens, 100);
    begin(false, 2, (gumbel_scheduler_options){.no_prefix_cache = true});
    run(tokens, 100, &to[0], 0);
    run(tokens, 100, &to[1], 0);
    end_case(&c);
    begin(false, 2, (gumbel_scheduler_options){0});
    gumbel_submission submission = {
        .tokens = tokens, .token_count = 100, .max_new_tokens = ANSWER, .no_prefix_cache = true};
    submit(&c, submission, &to[2]);
    turn_until_done(&c);
    run(tokens, 100, &to[3], 0);
    submit(&c, submission, &to[4]);
    turn_until_done(&c);
    assert_int_equal(to[4].usage.cached_tokens, 0);
    tokens[99] = FAKE_POISON; /* states with a NaN are nobody's */
    ask(tokens, 100, &to[5]);
    turn_until_done(&c);
    assert_int_equal(to[5].status, GUMBEL_ERROR_NUMERIC);
    run(tokens, 99, &to[6], 98);
    end_case(&c);
}

/* Three conversations in turn on two slots: the one used least recently is evicted, into host memory where
 * there is room, and comes back from there. */
static void the_least_recently_used_is_evicted(void **state) {
    for (int kept_on_host = 0; kept_on_host < 2; kept_on_host++) {
        int32_t tokens[3][100];
        (void)state;
        begin(kept_on_host == 1, 2, (gumbel_scheduler_options){.host_bytes = kept_on_host ? 0 : 1});
        for (uint32_t i = 0; i < 3; i++) {
            fake_prompt(i, tokens[i], 100);
            run(tokens[i], 90, &to[i], 0);
        }
        run(tokens[2], 100, &to[3], kept_on_host ? 64 : 90); /* of the recurrent state a snapshot */
        run(tokens[0], 100, &to[4], kept_on_host ? 64 : 0);
        gumbel_scheduler_stats stats;
        gb_schedule_get_stats(&c.schedule, &stats);
        assert_true(stats.evictions >= 1 && (stats.host_bytes > 0) == (kept_on_host == 1));
        end_case(&c);
    }
}

/* Prompts that begin like earlier ones in all ways, at once: every answer is that of a cold run. */
static void any_mix_has_the_tokens_of_cold_runs(void **state) {
    static told answers[CASE_ANSWERS];
    static int32_t tokens[CASE_ANSWERS][300];
    uint64_t random = 1;
    for (int round = 0; round < 60; round++) {
        (void)state;
        const gumbel_scheduler_options options = {
            .host_bytes = round % 3 == 0 ? 900 : 0, .state_bytes = round % 2 ? 600 : 0, .answer_reserve = 1};
        memset(answers, 0, sizeof answers);
        begin(round % 4 < 2, 1 + (uint32_t)round % 4, options);
        c.fake.save_fails = round % 6 == 5;
        if (round % 12 >= 6)
            c.fake.base.reuse = GB_REUSE_PROMPT;
        uint32_t counts[CASE_ANSWERS];
        for (uint32_t i = 0; i < CASE_ANSWERS; i++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            const uint32_t shared = (uint32_t)(random >> 33) % 150, own = 1 + (uint32_t)(random >> 50) % 100;
            fake_prompt((uint32_t)(random >> 40) % 3, tokens[i], shared);
            fake_prompt(i, tokens[i] + shared, own);
            counts[i] = shared + own;
            const uint32_t branches[2] = {shared / 2, shared};
            submit(&c,
                   (gumbel_submission){.tokens = tokens[i],
                                       .token_count = counts[i],
                                       .max_new_tokens = ANSWER,
                                       .branch_positions = branches,
                                       .branch_position_count = (random >> 62) % 3},
                   &answers[i]);
            turn(&c, (unsigned)(random >> 60));
            if (gb_has_rerun(&c.schedule))
                gb_rerun(&c.schedule);
            check_sums(&c);
            if (i % 7 == 6 && c.of[i])
                atomic_store(&c.of[i]->cancelled, true);
        }
        turn_until_done(&c);
        for (uint32_t i = 0; i < CASE_ANSWERS; i++)
            if (answers[i].status == GUMBEL_OK)
                assert_answer(&c, &answers[i], tokens[i], counts[i], i + 1, ANSWER, GUMBEL_FINISH_LENGTH);
        end_case(&c);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_next_turn_runs_what_is_new),
        cmocka_unit_test(the_same_prompt_again),
        cmocka_unit_test(a_shared_beginning),
        cmocka_unit_test(a_short_second_turn),
        cmocka_unit_test(answers_to_one_prompt),
        cmocka_unit_test(only_what_was_a_prompt),
        cmocka_unit_test(answers_become_prompts_while_nobody_waits),
        cmocka_unit_test(a_rerun_can_be_interrupted),
        cmocka_unit_test(a_rerun_that_fails_drops_what_was_kept),
        cmocka_unit_test(nobody_keeps_what_should_not_be_kept),
        cmocka_unit_test(the_least_recently_used_is_evicted),
        cmocka_unit_test(any_mix_has_the_tokens_of_cold_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
