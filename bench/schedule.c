/* SPDX-License-Identifier: Apache-2.0
 *
 * Decoding by the scheduler beside the same steps made by hand, in turns: sequences of a few tokens that are
 * continued together. The best of several rounds each, and the median of what the rounds' two figures are to
 * each other, which a machine that others use changes least.
 *
 *     bench_schedule PROGRAM [SEQUENCES [TOKENS [THREADS [ROUNDS [BACKEND]]]]]       by default 8 64 2 5 cpu
 */
#include "answer_times.h"
#include "arguments.h"
#include "base/clock.h"

enum { MOST_SEQUENCES = 256, MOST_ROUNDS = 256, PROMPT = 4, SEED = 1 };

static const int32_t prompt[PROMPT] = {2, 3, 5, 7};

/* Tokens a second, the prompts' step not counted. */
static double by_hand(gumbel_engine *engine, uint32_t sequences, uint32_t tokens) {
    static gumbel_request requests[MOST_SEQUENCES];
    static gumbel_result results[MOST_SEQUENCES];
    static gumbel_session *sessions[MOST_SEQUENCES];
    gumbel_error error;
    double start = 0;
    for (uint32_t i = 0; i < sequences; i++) {
        must(gumbel_session_create(engine, &sessions[i], &error), &error);
        gumbel_session_set_seed(sessions[i], gumbel_answer_seed(SEED, i));
    }
    for (uint32_t at = 0; at < tokens; at++) {
        for (uint32_t i = 0; i < sequences; i++) {
            const int32_t *drawn = at == 0 ? prompt : &results[i].token;
            requests[i] = (gumbel_request){.size = sizeof *requests,
                                           .session = sessions[i],
                                           .tokens = drawn,
                                           .token_count = at == 0 ? PROMPT : 1,
                                           .result = &results[i]};
            results[i].size = sizeof *results;
        }
        must(gumbel_step(engine, requests, sequences, &error), &error);
        start = at == 0 ? gb_seconds() : start;
    }
    const double seconds = gb_seconds() - start;
    for (uint32_t i = 0; i < sequences; i++)
        gumbel_session_destroy(sessions[i]);
    return sequences * (tokens - 1) / seconds;
}

/* All answers are one request's, so that they begin in one step. */
static double by_scheduler(gumbel_engine *engine, uint32_t sequences, uint32_t tokens) {
    gumbel_scheduler *scheduler;
    gumbel_error error;
    answer_times t = {0};
    const gumbel_scheduler_options options = {.size = sizeof options, .no_prefix_cache = true};
    const gumbel_submission request = {.size = sizeof request,
                                       .tokens = prompt,
                                       .token_count = PROMPT,
                                       .callback = hear_times,
                                       .user = &t,
                                       .ignore_stop = true,
                                       .has_seed = true, /* the same tokens: experts depend on them */
                                       .seed = SEED,
                                       .max_new_tokens = tokens,
                                       .answers = sequences};
    must(gumbel_scheduler_create(engine, &options, &scheduler, &error), &error);
    must(gumbel_scheduler_submit(scheduler, &request, NULL, &error), &error);
    gumbel_scheduler_drain(scheduler);
    gumbel_scheduler_destroy(scheduler);
    return sequences * (tokens - 1) / (t.last - t.first);
}

int main(int count, char **arguments) {
    const uint32_t sequences = number_at(count, arguments, 2, 8), tokens = number_at(count, arguments, 3, 64),
                   threads = number_at(count, arguments, 4, 2), rounds = number_at(count, arguments, 5, 5);
    gumbel_program *program;
    gumbel_engine *engine;
    gumbel_error error;
    const gumbel_engine_options options = {.size = sizeof options,
                                           .backend = count > 6 ? arguments[6] : NULL,
                                           .slots = (int)sequences,
                                           .threads = (int)threads,
                                           .max_context = 512};
    double hand = 0, scheduled = 0, ratios[MOST_ROUNDS];
    if (rounds == 0 || rounds > MOST_ROUNDS || count < 2 || sequences == 0 || sequences > MOST_SEQUENCES ||
        tokens < 2 || tokens > 500) {
        fprintf(stderr, "usage: bench_schedule PROGRAM [SEQUENCES [TOKENS [THREADS [ROUNDS [BACKEND]]]]]\n");
        return 2;
    }
    must(gumbel_program_open(arguments[1], &program, &error), &error);
    must(gumbel_engine_create(program, &options, &engine, &error), &error);
    for (uint32_t i = 0; i < rounds; i++) {
        const double h = by_hand(engine, sequences, tokens), s = by_scheduler(engine, sequences, tokens);
        hand = h > hand ? h : hand;
        scheduled = s > scheduled ? s : scheduled;
        ratios[i] = s / h;
    }
    printf(
        "%u sequences, %u tokens each, %u threads: by hand %.1f tokens/s, by the scheduler %.1f; median of "
        "%u rounds' ratios: %.1f %%\n",
        sequences, tokens, threads, hand, scheduled, rounds, 100 * median_of(ratios, rounds));
    gumbel_engine_destroy(engine);
    gumbel_program_close(program);
    return 0;
}
