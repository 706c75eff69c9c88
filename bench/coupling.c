/* SPDX-License-Identifier: Apache-2.0
 *
 * How often a draft model's guess is accepted, by temperature, along a text: what the two models'
 * probabilities say of drawing with shared noise, what was drawn so, and the expectation of ratio rejection
 * (Leviathan et al., 2023), which no way of guessing can pass (1 - total variation distance).
 *
 *     bench_coupling TARGET DRAFT TEXT [TOKENS [DRAWS]]
 *
 * TARGET and DRAFT are programs exported with --logits, of one vocabulary. DRAWS: for each token of the text.
 */
#include "arguments.h"

#include <math.h>
#include <string.h>

enum { MOST_TEXT = 1 << 16 };

typedef struct model {
    gumbel_program *program;
    gumbel_engine *engine;
    gumbel_session *session;
    const float *logits; /* behind the token that was run last */
    double *masses;      /* [vocabulary] at a temperature */
} model;

typedef struct token_masses {
    double target, draft;
} token_masses;

typedef struct tally {
    double expected, drawn, rejection; /* sums over places */
} tally;

static gumbel_error error;

static model open_model(const char *path, uint32_t vocabulary) {
    model m = {0};
    gumbel_program_info info = {.size = sizeof info};
    must(gumbel_program_open(path, &m.program, &error), &error);
    must(gumbel_program_get_info(m.program, &info, &error), &error);
    if (info.use_sampling || (vocabulary && info.vocab_size != vocabulary)) {
        fprintf(stderr, "%s: not a program with --logits and the same vocabulary\n", path);
        exit(1);
    }
    must(gumbel_engine_create(m.program, NULL, &m.engine, &error), &error);
    must(gumbel_session_create(m.engine, &m.session, &error), &error);
    m.masses = malloc(info.vocab_size * sizeof *m.masses);
    return m;
}

static void close_model(model *m) {
    gumbel_session_destroy(m->session);
    gumbel_engine_destroy(m->engine);
    gumbel_program_close(m->program);
    free(m->masses);
}

static void run_token(model *m, int32_t token) {
    gumbel_result result = {.size = sizeof result};
    const gumbel_request request = {
        .size = sizeof request, .session = m->session, .tokens = &token, .token_count = 1, .result = &result};
    must(gumbel_step(m->engine, &request, 1, &error), &error);
    m->logits = result.logits;
}

static void find_masses(model *m, uint32_t vocabulary, double temperature) {
    double most = -INFINITY, total = 0;
    for (uint32_t i = 0; i < vocabulary; i++)
        most = fmax(most, (double)m->logits[i]);
    for (uint32_t i = 0; i < vocabulary; i++)
        total += m->masses[i] = exp(((double)m->logits[i] - most) / temperature);
    for (uint32_t i = 0; i < vocabulary; i++)
        m->masses[i] /= total;
}

/* Those first that the target prefers. */
static int by_ratio(const void *one, const void *other) {
    const token_masses *a = one, *b = other;
    const double x = a->target * b->draft, y = b->target * a->draft;
    return (x < y) - (x > y);
}

/* The sum over i of 1 / sum over j of max(p_j / p_i, q_j / q_i): of the j that the target prefers at least as
 * much as i the first one is larger, of all others the second. (Daliri, Musco, Suresh, 2024) */
static double chance_of_same(const token_masses *sorted, uint32_t count) {
    double before = 0, behind = 1, chance = 0;
    for (uint32_t i = 0; i < count; i++) {
        before += sorted[i].target;
        behind -= sorted[i].draft;
        if (sorted[i].target > 0 && sorted[i].draft > 0)
            chance += 1 / (before / sorted[i].target + fmax(behind, 0) / sorted[i].draft);
    }
    return chance;
}

static double overlap_of(const token_masses *masses, uint32_t count) {
    double sum = 0;
    for (uint32_t i = 0; i < count; i++)
        sum += fmin(masses[i].target, masses[i].draft);
    return sum;
}

/* The part of so many draws with shared noise that are the same. */
static double draw(const model *target, const model *draft, uint32_t vocabulary, float temperature,
                   uint64_t seed, uint32_t draws) {
    const gumbel_sampling sampling = {.size = sizeof sampling, .temperature = temperature, .top_p = 1};
    uint32_t same = 0;
    for (uint32_t i = 0; i < draws; i++) {
        int32_t tokens[2];
        must(gumbel_sample(target->logits, vocabulary, &sampling, seed + i, &tokens[0], &error), &error);
        must(gumbel_sample(draft->logits, vocabulary, &sampling, seed + i, &tokens[1], &error), &error);
        same += tokens[0] == tokens[1];
    }
    return (double)same / draws;
}

static void add_place(tally *sums, model *target, model *draft, token_masses *masses, uint32_t vocabulary,
                      float temperature, uint64_t seed, uint32_t draws) {
    find_masses(target, vocabulary, (double)temperature);
    find_masses(draft, vocabulary, (double)temperature);
    for (uint32_t i = 0; i < vocabulary; i++)
        masses[i] = (token_masses){target->masses[i], draft->masses[i]};
    sums->rejection += overlap_of(masses, vocabulary);
    qsort(masses, vocabulary, sizeof *masses, by_ratio);
    sums->expected += chance_of_same(masses, vocabulary);
    sums->drawn += draw(target, draft, vocabulary, temperature, seed, draws);
}

static size_t read_tokens(const model *target, const char *path, int32_t *tokens, size_t most) {
    static char text[MOST_TEXT];
    gumbel_tokenizer *tokenizer;
    size_t count = 0;
    FILE *file = fopen(path, "rb");
    const size_t length = file ? fread(text, 1, sizeof text, file) : 0;
    if (file)
        fclose(file);
    must(gumbel_tokenizer_create(target->program, &tokenizer, &error), &error);
    const gumbel_encode_options options = {.size = sizeof options, .add_special = true};
    must(gumbel_encode(tokenizer, text, length, &options, tokens, most, &count, &error), &error);
    gumbel_tokenizer_destroy(tokenizer);
    return count < most ? count : most;
}

int main(int count, char **words) {
    static const float temperatures[] = {0.3f, 0.7f, 1.0f, 1.5f};
    enum { TEMPERATURES = sizeof temperatures / sizeof *temperatures };
    if (count < 4) {
        fprintf(stderr, "usage: bench_coupling TARGET DRAFT TEXT [TOKENS [DRAWS]]\n");
        return 2;
    }
    model target = open_model(words[1], 0);
    gumbel_program_info info = {.size = sizeof info};
    must(gumbel_program_get_info(target.program, &info, &error), &error);
    model draft = open_model(words[2], info.vocab_size);
    const uint32_t most = number_at(count, words, 4, 200), draws = number_at(count, words, 5, 20);
    int32_t *tokens = malloc(MOST_TEXT * sizeof *tokens);
    token_masses *masses = malloc(info.vocab_size * sizeof *masses);
    tally sums[TEMPERATURES] = {0};
    size_t length = read_tokens(&target, words[3], tokens, MOST_TEXT);
    length = length < most ? length : most;
    for (size_t i = 0; i < length; i++) {
        run_token(&target, tokens[i]);
        run_token(&draft, tokens[i]);
        for (int t = 0; t < TEMPERATURES; t++)
            add_place(&sums[t], &target, &draft, masses, info.vocab_size, temperatures[t], i * draws, draws);
    }
    printf(
        "temperature   expected   drawn   ratio rejection   (%% of the tokens, %zu places, %u draws each)\n",
        length, draws);
    for (int t = 0; t < TEMPERATURES && length > 0; t++)
        printf("%11.1f %10.2f %7.2f %17.2f\n", (double)temperatures[t],
               100 * sums[t].expected / (double)length, 100 * sums[t].drawn / (double)length,
               100 * sums[t].rejection / (double)length);
    free(masses);
    free(tokens);
    close_model(&target);
    close_model(&draft);
    return 0;
}
