/* SPDX-License-Identifier: Apache-2.0
 *
 * What a grammar costs a step: answers of the scheduler that are held to a JSON Schema beside the same number
 * of answers without one, in turns, each as long as the other. The schema has to allow answers of that
 * length. A program of random weights has no tokenizer: VOCABULARY is a program that has one of as many
 * tokens.
 *
 *     bench_schedule_grammar PROGRAM SCHEMA [SEQUENCES [TOKENS [THREADS [ROUNDS [BACKEND [VOCABULARY]]]]]]
 *                                                                        by default 1 128 2 5 cpu PROGRAM
 */
#include "answer_times.h"
#include "arguments.h"
#include "base/clock.h"

enum { MOST_ROUNDS = 256, MOST_SCHEMA = 1 << 20, PROMPT = 4, SEED = 1 };

static const int32_t prompt[PROMPT] = {2, 3, 5, 7};

/* Tokens a second; grammar may be NULL. All answers are one request's, so that they begin in one step. */
static double tokens_per_second(gumbel_engine *engine, const gumbel_tokenizer *tokenizer,
                                const gumbel_grammar *grammar, uint32_t sequences, uint32_t tokens) {
    gumbel_scheduler *scheduler;
    gumbel_error error;
    answer_times t = {0};
    const gumbel_scheduler_options options = {.size = sizeof options, .no_prefix_cache = true};
    const gumbel_submission request = {.size = sizeof request,
                                       .tokens = prompt,
                                       .token_count = PROMPT,
                                       .tokenizer = grammar ? tokenizer : NULL,
                                       .grammar = grammar,
                                       .callback = hear_times,
                                       .user = &t,
                                       .ignore_stop = !grammar,
                                       .has_seed = true,
                                       .seed = SEED,
                                       .max_new_tokens = tokens,
                                       .answers = sequences};
    must(gumbel_scheduler_create(engine, &options, &scheduler, &error), &error);
    must(gumbel_scheduler_submit(scheduler, &request, NULL, &error), &error);
    gumbel_scheduler_drain(scheduler);
    gumbel_scheduler_destroy(scheduler);
    if (t.tokens < (uint64_t)sequences * tokens)
        printf("%llu of %llu tokens: the schema allows no longer answers\n", (unsigned long long)t.tokens,
               (unsigned long long)sequences * tokens);
    return (double)(t.tokens - sequences) / (t.last - t.first);
}

static gumbel_grammar *compile(const gumbel_tokenizer *tokenizer, const char *path) {
    static char schema[MOST_SCHEMA];
    gumbel_grammar *grammar;
    gumbel_error error;
    FILE *file = fopen(path, "rb");
    if (!file || fread(schema, 1, sizeof schema - 1, file) == 0) {
        fprintf(stderr, "%s: it cannot be read\n", path);
        exit(1);
    }
    fclose(file);
    const gumbel_grammar_options options = {
        .size = sizeof options, .kind = GUMBEL_GRAMMAR_JSON_SCHEMA, .text = schema};
    for (int i = 0; i < 2; i++) {
        const double start = gb_seconds();
        must(gumbel_grammar_create(tokenizer, &options, &grammar, &error), &error);
        printf("%s grammar: %.2f ms\n", i == 0 ? "first" : "second", 1e3 * (gb_seconds() - start));
        if (i == 0)
            gumbel_grammar_destroy(grammar);
    }
    return grammar;
}

static gumbel_program *open_program(const char *path) {
    gumbel_program *program;
    gumbel_error error;
    must(gumbel_program_open(path, &program, &error), &error);
    return program;
}

int main(int count, char **arguments) {
    const uint32_t sequences = number_at(count, arguments, 3, 1),
                   tokens = number_at(count, arguments, 4, 128), threads = number_at(count, arguments, 5, 2),
                   rounds = number_at(count, arguments, 6, 5);
    double ratios[MOST_ROUNDS], best[2] = {0, 0};
    if (count < 3 || sequences == 0 || tokens < 2 || rounds == 0 || rounds > MOST_ROUNDS) {
        fprintf(stderr, "usage: bench_schedule_grammar PROGRAM SCHEMA [SEQUENCES [TOKENS [THREADS [ROUNDS "
                        "[BACKEND [VOCABULARY]]]]]]\n");
        return 2;
    }
    gumbel_engine *engine;
    gumbel_tokenizer *tokenizer;
    gumbel_error error;
    gumbel_program *program = open_program(arguments[1]),
                   *vocabulary = count > 8 ? open_program(arguments[8]) : program;
    const gumbel_engine_options options = {.size = sizeof options,
                                           .backend = count > 7 ? arguments[7] : NULL,
                                           .slots = (int)sequences,
                                           .threads = (int)threads,
                                           .max_context = tokens + 16};
    must(gumbel_tokenizer_create(vocabulary, &tokenizer, &error), &error);
    gumbel_grammar *grammar = compile(tokenizer, arguments[2]);
    must(gumbel_engine_create(program, &options, &engine, &error), &error);
    for (uint32_t i = 0; i < rounds; i++) {
        const double plain = tokens_per_second(engine, tokenizer, NULL, sequences, tokens),
                     held = tokens_per_second(engine, tokenizer, grammar, sequences, tokens);
        best[0] = plain > best[0] ? plain : best[0];
        best[1] = held > best[1] ? held : best[1];
        ratios[i] = held / plain;
    }
    printf("%u sequences, %u tokens each: %.1f tokens/s without a schema, %.1f with it; median of %u rounds' "
           "ratios: %.1f %%\n",
           sequences, tokens, best[0], best[1], rounds, 100 * median_of(ratios, rounds));
    gumbel_engine_destroy(engine);
    gumbel_grammar_destroy(grammar);
    gumbel_tokenizer_destroy(tokenizer);
    if (vocabulary != program)
        gumbel_program_close(vocabulary);
    gumbel_program_close(program);
    return 0;
}
