/* SPDX-License-Identifier: Apache-2.0
 *
 * A schedule over fake slots, turned by the test, and what its callers are told.
 */
#ifndef GUMBEL_TESTS_SCHEDULE_CASE_H
#define GUMBEL_TESTS_SCHEDULE_CASE_H

#include "run/schedule/schedule.h"
#include "support/fake_slots.h"

enum { CASE_ANSWERS = 64 };

/* What the callback of one answer got. */
typedef struct told {
    uint32_t answer; /* its number in the request; tokens of several go to told[1], told[2] ... behind it */
    int32_t tokens[FAKE_CONTEXT + 1];
    uint32_t count;
    unsigned last_events; /* FINISH or ERROR */
    gumbel_finish finish;
    gumbel_status status;
    gumbel_usage usage;
} told;

typedef struct schedule_case {
    fake_slots fake;
    gb_serving_schedule schedule;
    double now;
    uint64_t submitted;
    gb_answer *of[CASE_ANSWERS + 1]; /* [request] while it goes on */
} schedule_case;

/* Slots and steps as in fake_slots_init. */
void begin_case(schedule_case *c, uint32_t slots, uint32_t step_tokens, uint32_t chunk, bool recurrent,
                gumbel_scheduler_options options);

/* The same with slots that take drafts. */
void begin_drafting_case(schedule_case *c, uint32_t slots, uint32_t step_tokens, uint32_t chunk,
                         bool recurrent, uint32_t draft_tokens, gumbel_scheduler_options options);

/* Checks that nothing but kept sequences is left. */
void end_case(schedule_case *c);

/* A prompt of tokens that depend on seed alone. */
void fake_prompt(uint32_t seed, int32_t *tokens, uint32_t count);

/* The callback that fills a told, which must be zero. */
void tell(void *user, const gumbel_event *event);

/* Queues a request: size, callback, user and seed (the request's number) are filled in. Returns its number.
 */
uint64_t submit(schedule_case *c, gumbel_submission submission, told *to);

/* Turns so many times, checking the sums of memory each time; or until nothing is left. */
void turn(schedule_case *c, unsigned times);
void turn_until_done(schedule_case *c);

/* Free, kept and running slots are all, and no more bytes are used than may be. */
void check_sums(const schedule_case *c);

/* The answer has these many tokens, those that it has alone, and ended for that reason. */
void assert_answer(const schedule_case *c, const told *to, const int32_t *prompt, uint32_t prompt_count,
                   uint64_t seed, uint32_t count, gumbel_finish finish);

/* The steps since the last time were these, as fake_slots.log has them. */
void assert_steps(schedule_case *c, const char *expected);

#endif
