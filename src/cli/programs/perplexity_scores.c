/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/programs/perplexity_scores.h"

#include "cli/base/json.h"
#include "gumbel.h"

#include <math.h>
#include <pthread.h>

enum { MOST_THREADS = 64 };

/* ---- Rows ---------------------------------------------------------------------------------------------- */

/* log of the sum of exp(logits), and where the largest is. */
static double log_sum(const float *logits, uint32_t count, uint32_t *best) {
    *best = 0;
    for (uint32_t i = 1; i < count; i++)
        if (logits[i] > logits[*best])
            *best = i;
    double largest = (double)logits[*best], sum = 0;
    for (uint32_t i = 0; i < count; i++)
        sum += exp((double)logits[i] - largest);
    return largest + log(sum);
}

static void score_row(const cli_scored_row *row, uint32_t count) {
    uint32_t best, reference_best;
    double sum = log_sum(row->logits, count, &best);
    *row->prediction = (cli_prediction){.surprise = sum - (double)row->logits[row->token]};
    if (!row->reference)
        return;
    double reference_sum = log_sum(row->reference, count, &reference_best), divergence = 0;
    for (uint32_t i = 0; i < count; i++) {
        double p = (double)row->reference[i] - reference_sum, q = (double)row->logits[i] - sum;
        if (p > -100)
            divergence += exp(p) * (p - q);
    }
    row->prediction->divergence = divergence;
    row->prediction->agrees = best == reference_best;
}

/* Every stride-th row from the first. */
typedef struct share {
    const cli_scored_row *rows;
    size_t first, count, stride;
    uint32_t vocab_size;
    pthread_t thread;
    bool has_thread;
} share;

static void *score_share(void *given) {
    const share *s = given;
    for (size_t i = s->first; i < s->count; i += s->stride)
        score_row(&s->rows[i], s->vocab_size);
    return NULL;
}

/* Starting a thread is short beside a row, which takes about a millisecond. Where the system has no more of
 * them, the caller's own scores the share. */
void cli_score_rows(const cli_scored_row *rows, size_t count, uint32_t vocab_size, uint32_t threads) {
    share shares[MOST_THREADS];
    size_t stride = threads < MOST_THREADS ? threads : MOST_THREADS;
    stride = stride < count ? stride : count;
    for (size_t t = 0; t < stride; t++) {
        share *s = &shares[t];
        *s = (share){rows, t, count, stride, vocab_size, .has_thread = false};
        s->has_thread = t + 1 < stride && pthread_create(&s->thread, NULL, score_share, s) == 0;
        if (!s->has_thread)
            score_share(s);
    }
    for (size_t t = 0; t < stride; t++)
        if (shares[t].has_thread)
            pthread_join(shares[t].thread, NULL);
}

/* ---- Sums ---------------------------------------------------------------------------------------------- */

void cli_add_prediction(cli_scores *scores, const cli_prediction *prediction, bool has_reference) {
    cli_average_add(&scores->surprise, prediction->surprise);
    if (!has_reference)
        return;
    cli_average_add(&scores->divergence, prediction->divergence);
    cli_average_add(&scores->agreement, prediction->agrees);
}

/* The error of exp(mean) is that of the mean times its slope. */
static double perplexity_error(const cli_scores *scores) {
    return exp(scores->surprise.mean) * cli_average_error(&scores->surprise);
}

void cli_print_scores(const cli_scores *scores, FILE *file) {
    fprintf(file, "tokens          %.0f\n", scores->surprise.count);
    fprintf(file, "perplexity      %.4f +- %.4f\n", exp(scores->surprise.mean), perplexity_error(scores));
    if (scores->divergence.count == 0)
        return;
    fprintf(file, "kl divergence   %.6f +- %.6f\n", scores->divergence.mean,
            cli_average_error(&scores->divergence));
    fprintf(file, "top-1 agreement %.2f +- %.2f %%\n", 100 * scores->agreement.mean,
            100 * cli_average_error(&scores->agreement));
}

/* A mean with its standard error. */
static json_t *mean_json(const cli_average *average) {
    return json_pack("{s:f, s:f}", "mean", average->mean, "error", cli_average_error(average));
}

void cli_print_scores_json(const cli_scored *scored, const cli_scores *scores, FILE *file) {
    json_t *object = json_pack(
        "{s:s, s:s, s:s, s:s, s:I, s:I, s:{s:f, s:f}, s:o}", "gumbel", gumbel_version(), "program",
        scored->program, "engine", scored->engine, "file", scored->file, "window", (json_int_t)scored->window,
        "tokens", (json_int_t)scores->surprise.count, "perplexity", "mean", exp(scores->surprise.mean),
        "error", perplexity_error(scores), "negative_log_likelihood", mean_json(&scores->surprise));
    if (scores->divergence.count > 0) {
        json_object_set_new(object, "against", json_string(scored->against));
        json_object_set_new(object, "kl_divergence", mean_json(&scores->divergence));
        json_object_set_new(object, "top_1_agreement", mean_json(&scores->agreement));
    }
    cli_json_print(object, JSON_INDENT(2) | JSON_REAL_PRECISION(10), file);
    fputc('\n', file);
    json_decref(object);
}
