/* SPDX-License-Identifier: Apache-2.0
 *
 * Snapshots that are staged in slots: none goes to host memory before an answer's first token, and tokens are
 * those of cold runs wherever a snapshot lies.
 */
#include "support/assertions.h"
#include "support/schedule_case.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { ANSWER = 6, TOLD = 8, PROMPT = 100, BRANCH = 90 };

static schedule_case c;
static told to[TOLD];
static int32_t tokens[TOLD][PROMPT];

static void begin(uint32_t slots, gumbel_scheduler_options options) {
    memset(to, 0, sizeof to);
    begin_case(&c, slots, 128 + slots, 128, true, options);
    c.fake.base.stages_snapshots = true;
}

static uint64_t ask(const int32_t *prompt, told *answer) {
    static const uint32_t branch = BRANCH;
    return submit(&c,
                  (gumbel_submission){.tokens = prompt,
                                      .token_count = PROMPT,
                                      .max_new_tokens = ANSWER,
                                      .branch_positions = &branch,
                                      .branch_position_count = 1},
                  answer);
}

/* A prompt of conversation number `shared`, whose last tokens are its own. */
static void run(uint32_t shared, uint32_t index, uint32_t cached) {
    fake_prompt(shared, tokens[index], PROMPT);
    fake_prompt(index + 50, tokens[index] + BRANCH, PROMPT - BRANCH);
    const uint64_t number = ask(tokens[index], &to[index]);
    turn_until_done(&c);
    assert_answer(&c, &to[index], tokens[index], PROMPT, number, ANSWER, GUMBEL_FINISH_LENGTH);
    assert_int_equal(to[index].usage.cached_tokens, cached);
}

static void assert_stats(uint32_t free, uint32_t kept, bool has_host_bytes) {
    gumbel_scheduler_stats stats;
    gb_schedule_get_stats(&c.schedule, &stats);
    assert_int_equal(stats.free_slots, free);
    assert_int_equal(stats.kept_slots, kept);
    assert_int_equal(stats.host_bytes > 0, has_host_bytes);
}

/* While there are free slots nothing is copied to host memory, and what is staged serves the next turn. */
static void the_first_token_does_not_wait(void **state) {
    (void)state;
    begin(4, (gumbel_scheduler_options){0});
    run(1, 0, 0);
    assert_int_equal(gb_staged_count(&c.schedule), 1);
    run(1, 1, BRANCH);
    assert_int_equal(c.fake.saves, 0);
    assert_int_equal(gb_staged_count(&c.schedule), 1); /* it is shared, not taken again */
    assert_stats(1, 3, false);
    end_case(&c);
}

/* Without a device's fast copies it goes to host memory at once. */
static void others_stage_nothing(void **state) {
    (void)state;
    begin(4, (gumbel_scheduler_options){0});
    c.fake.base.stages_snapshots = false;
    run(1, 0, 0);
    assert_int_equal(c.fake.saves, 1);
    assert_int_equal(gb_staged_count(&c.schedule), 0);
    run(1, 1, BRANCH);
    end_case(&c);
}

/* Who needs the slot sends the snapshot to host memory, from where it serves as well. */
static void a_slot_that_is_needed(void **state) {
    (void)state;
    begin(2, (gumbel_scheduler_options){0});
    run(1, 0, 0);
    assert_stats(0, 2, false);
    assert_true(gb_is_stage_full(&c.schedule));
    run(2, 1, 0);
    assert_true(c.fake.saves > 0);
    assert_stats(0, 2, true);
    run(1, 2, BRANCH);
    run(2, 3, BRANCH);
    end_case(&c);
}

/* While nobody waits a slot is made free, so that the next request need not wait for it. */
static void an_idle_scheduler_frees_a_slot(void **state) {
    (void)state;
    begin(2, (gumbel_scheduler_options){0});
    run(1, 0, 0);
    assert_true(gb_is_stage_full(&c.schedule));
    assert_true(gb_unstage(&c.schedule));
    check_sums(&c);
    assert_stats(1, 1, true);
    assert_false(gb_unstage(&c.schedule));
    assert_false(gb_is_stage_full(&c.schedule));
    run(1, 1, BRANCH);
    end_case(&c);
}

/* A snapshot that finds no host memory is nobody's; the prompt is run from its beginning. */
static void a_snapshot_that_is_lost(void **state) {
    (void)state;
    begin(4, (gumbel_scheduler_options){0});
    run(1, 0, 0);
    c.fake.save_fails = true;
    assert_true(gb_unstage(&c.schedule));
    check_sums(&c);
    assert_stats(3, 1, false);
    run(1, 1, 0);
    run(1, 2, BRANCH); /* staged again */
    end_case(&c);
}

/* The same while the answer that would begin with it makes room. */
static void a_snapshot_that_is_lost_for_its_user(void **state) {
    (void)state;
    begin(2, (gumbel_scheduler_options){0});
    run(1, 0, 0);
    c.fake.save_fails = true;
    run(1, 1, 0);
    end_case(&c);
}

/* A prompt that goes on from the snapshot after its sequence has been run again as a prompt. */
static void reruns_begin_at_staged_snapshots(void **state) {
    (void)state;
    begin(4, (gumbel_scheduler_options){0});
    c.fake.base.reuse = GB_REUSE_PROMPT;
    run(1, 0, 0);
    while (gb_has_rerun(&c.schedule)) {
        gb_rerun(&c.schedule);
        check_sums(&c);
    }
    assert_int_equal(c.fake.saves, 0);
    run(1, 1, 64);
    end_case(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_token_does_not_wait),
        cmocka_unit_test(others_stage_nothing),
        cmocka_unit_test(a_slot_that_is_needed),
        cmocka_unit_test(an_idle_scheduler_frees_a_slot),
        cmocka_unit_test(a_snapshot_that_is_lost),
        cmocka_unit_test(a_snapshot_that_is_lost_for_its_user),
        cmocka_unit_test(reruns_begin_at_staged_snapshots),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
