/* SPDX-License-Identifier: Apache-2.0
 *
 * A request's mask: what it allows is drawn as if all else were banned, rows without one are left alone, a
 * row that it leaves without a candidate has an error of its own, and programs without the input refuse it.
 * Masks that are made while the step computes are no others.
 */
#include "run/handles.h"
#include "support/backend.h"
#include "support/programs/random_program.h"
#include "support/test_arguments.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

enum { SESSIONS = 3, VOCABULARY = 160, WORDS = VOCABULARY / 32, MOST_STEPS = 60 };

static gumbel_error error;

static uint32_t steps(void) {
    return (uint32_t)shortened(MOST_STEPS, 20);
}

typedef struct opened {
    gumbel_program *program;
    gumbel_engine *engine;
    gumbel_session *sessions[SESSIONS];
} opened;

static opened start(const char *sampler) {
    opened o = {.program = export_random_program("small.json", (gumbel_export_options){.sampler = sampler})};
    gumbel_engine_options options = *TEST_ENGINE_OPTIONS;
    options.slots = SESSIONS;
    assert_ok(gumbel_engine_create(o.program, &options, &o.engine, &error), &error);
    for (uint32_t i = 0; i < SESSIONS; i++) {
        assert_ok(gumbel_session_create(o.engine, &o.sessions[i], &error), &error);
        gumbel_session_set_seed(o.sessions[i], 7 + i);
    }
    return o;
}

static void stop(opened *o) {
    gumbel_engine_destroy(o->engine);
    gumbel_program_close(o->program);
}

/* What each session of a step is given, and what it gets. */
typedef struct ragged_step {
    gumbel_request requests[SESSIONS];
    gumbel_result results[SESSIONS];
} ragged_step;

static gumbel_status run(const opened *o, ragged_step *s, const int32_t *tokens,
                         const gumbel_sampling *sampling, const uint32_t *const *masks) {
    for (uint32_t i = 0; i < SESSIONS; i++) {
        s->results[i] = (gumbel_result){.size = sizeof s->results[i]};
        s->requests[i] = (gumbel_request){.size = sizeof s->requests[i],
                                          .session = o->sessions[i],
                                          .tokens = &tokens[i],
                                          .token_count = 1,
                                          .result = &s->results[i],
                                          .sampling = &sampling[i],
                                          .wants_logprob = true,
                                          .mask = masks[i]};
    }
    return gumbel_step(o->engine, s->requests, SESSIONS, &error);
}

static bool is_allowed(const uint32_t *mask, uint32_t token) {
    return mask[token / 32] >> token % 32 & 1;
}

/* Different words in each step, of which some allow little. */
static void fill_mask(uint32_t step, uint32_t *mask) {
    for (uint32_t i = 0; i < WORDS; i++) {
        const uint32_t word = (step * WORDS + i + 1) * 2654435761u;
        mask[i] = step % 4 == 1 ? (i == step % WORDS ? 1u << word % 32 : 0) : word ^ word >> 15;
    }
    mask[step % WORDS] |= 1u << step % 32;
}

static size_t ban_others(const uint32_t *mask, gumbel_bias *bias) {
    size_t count = 0;
    for (uint32_t token = 0; token < VOCABULARY; token++)
        if (!is_allowed(mask, token))
            bias[count++] = (gumbel_bias){(int32_t)token, -INFINITY};
    return count;
}

static const gumbel_sampling settings[SESSIONS] = {
    {.size = sizeof(gumbel_sampling), .temperature = 0, .top_p = 1, .repetition_penalty = 1.4f},
    {.size = sizeof(gumbel_sampling), .temperature = 1.2f, .top_p = 0.9f, .presence_penalty = 0.5f},
    {.size = sizeof(gumbel_sampling), .temperature = 0.8f, .top_k = 20, .top_p = 1, .min_p = 0.05f},
};

/* Sessions 0 and 1 have masks in most steps, and elsewhere bans that mean the same. */
static void masks_are_bans(void **state) {
    (void)state;
    opened masked = start("full"), banned = start("full");
    int32_t tokens[SESSIONS] = {3, 5, 8};
    for (uint32_t n = 0; n < steps(); n++) {
        uint32_t mask[SESSIONS][WORDS];
        const uint32_t *masks[SESSIONS] = {NULL}, *const none[SESSIONS] = {NULL};
        gumbel_bias bias[SESSIONS][VOCABULARY];
        gumbel_sampling by_bias[SESSIONS];
        memcpy(by_bias, settings, sizeof settings);
        for (uint32_t i = 0; i < 2; i++) {
            fill_mask(n * 2 + i, mask[i]);
            masks[i] = n % 5 == i ? NULL : mask[i];
            by_bias[i].bias = bias[i];
            by_bias[i].bias_count = masks[i] ? ban_others(mask[i], bias[i]) : 0;
        }
        ragged_step with, without;
        assert_ok(run(&masked, &with, tokens, settings, masks), &error);
        assert_ok(run(&banned, &without, tokens, by_bias, none), &error);
        for (uint32_t i = 0; i < SESSIONS; i++) {
            assert_int_equal(with.results[i].token, without.results[i].token);
            assert_memory_equal(&with.results[i].logprob, &without.results[i].logprob, sizeof(float));
            assert_true(!masks[i] || is_allowed(mask[i], (uint32_t)with.results[i].token));
            tokens[i] = with.results[i].token;
        }
    }
    stop(&masked);
    stop(&banned);
}

/* Makes a mask as slowly as a grammar that is new. */
typedef struct slow_mask {
    uint32_t step, made;
} slow_mask;

static void make_slowly(void *user, uint32_t *words, uint32_t rows) {
    assert_int_equal(rows, 1);
    slow_mask *mask = user;
    nanosleep(&(struct timespec){.tv_nsec = 200000 * (mask->step % 3)}, NULL);
    fill_mask(mask->step, words);
    mask->made++;
}

/* Session 0 has a mask of its request, session 1 one that is late, in steps of other sizes, too. */
static void late_masks_are_masks(void **state) {
    (void)state;
    opened early = start("full"), late = start("full");
    int32_t tokens[SESSIONS] = {3, 5, 8};
    slow_mask slow = {0};
    for (uint32_t n = 0; n < steps(); n++) {
        uint32_t mask[2][WORDS];
        const bool has_mask = n % 4 != 3;
        fill_mask(n + 7, mask[0]);
        fill_mask(n, mask[1]);
        const uint32_t *const all[SESSIONS] = {mask[0], has_mask ? mask[1] : NULL, NULL},
                              *const some[SESSIONS] = {mask[0], NULL, NULL};
        ragged_step expected, found;
        slow.step = n;
        late.sessions[1]->mask = (gb_mask_source){has_mask ? make_slowly : NULL, &slow};
        assert_ok(run(&early, &expected, tokens, settings, all), &error);
        assert_ok(run(&late, &found, tokens, settings, some), &error);
        for (uint32_t i = 0; i < SESSIONS; i++) {
            assert_int_equal(found.results[i].token, expected.results[i].token);
            assert_memory_equal(&found.results[i].logprob, &expected.results[i].logprob, sizeof(float));
            tokens[i] = expected.results[i].token;
        }
    }
    assert_int_equal(slow.made, steps() * 3 / 4);
    stop(&early);
    stop(&late);
}

/* A step of one row, and one that is refused while a mask is to be made, which is made all the same. */
static void late_masks_of_one_row_and_of_none(void **state) {
    (void)state;
    opened o = start("full");
    slow_mask slow = {.step = 1};
    uint32_t mask[WORDS];
    gumbel_result result = {.size = sizeof result};
    gumbel_request requests[] = {{.size = sizeof *requests,
                                  .session = o.sessions[0],
                                  .tokens = (const int32_t[]){4},
                                  .token_count = 1,
                                  .result = &result,
                                  .sampling = &settings[1]},
                                 {.size = sizeof *requests,
                                  .session = o.sessions[1],
                                  .tokens = (const int32_t[]){4},
                                  .token_count = 1,
                                  .result = &result,
                                  .sampling = &settings[1],
                                  .top_logprobs = 100}};
    fill_mask(1, mask);
    o.sessions[0]->mask = (gb_mask_source){make_slowly, &slow};
    assert_fails(gumbel_step(o.engine, requests, 2, &error), GUMBEL_ERROR_ARGUMENT, &error, "request 1: ");
    assert_int_equal(slow.made, 1);
    assert_ok(gumbel_step(o.engine, requests, 1, &error), &error);
    assert_int_equal(slow.made, 2);
    assert_true(is_allowed(mask, (uint32_t)result.token));
    stop(&o);
}

static void a_row_without_candidates_is_its_own_error(void **state) {
    (void)state;
    opened o = start("full");
    const uint32_t nothing[WORDS] = {0};
    const uint32_t *const masks[SESSIONS] = {NULL, nothing, NULL};
    const int32_t tokens[SESSIONS] = {3, 5, 8};
    ragged_step s;
    assert_fails(run(&o, &s, tokens, settings, masks), GUMBEL_ERROR_NUMERIC, &error, "request 1: ");
    assert_int_equal(s.results[1].status, GUMBEL_ERROR_NUMERIC);
    assert_int_equal(s.results[1].token, -1);
    assert_true(s.results[0].token >= 0 && s.results[2].token >= 0);
    stop(&o);
}

static void programs_without_the_input_refuse(void **state) {
    (void)state;
    opened o = start("minimal");
    const uint32_t all[WORDS] = {UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX};
    const gumbel_sampling sampling = {.size = sizeof sampling, .temperature = 1, .top_p = 1};
    gumbel_result result = {.size = sizeof result};
    gumbel_request request = {.size = sizeof request,
                              .session = o.sessions[0],
                              .tokens = (const int32_t[]){4},
                              .token_count = 1,
                              .result = &result,
                              .sampling = &sampling,
                              .mask = all};
    assert_fails(gumbel_step(o.engine, &request, 1, &error), GUMBEL_ERROR_UNSUPPORTED, &error,
                 "no input mask; export it again");
    request.mask = NULL;
    assert_ok(gumbel_step(o.engine, &request, 1, &error), &error);
    stop(&o);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(masks_are_bans),
        cmocka_unit_test(late_masks_are_masks),
        cmocka_unit_test(late_masks_of_one_row_and_of_none),
        cmocka_unit_test(a_row_without_candidates_is_its_own_error),
        cmocka_unit_test(programs_without_the_input_refuse),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
