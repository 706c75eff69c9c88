/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/programs/perplexity_scores.h"

#include "cli/base/json.h"
#include "gumbel.h"

#include <math.h>

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

void cli_add_prediction(cli_scores *scores, const float *logits, const float *reference, uint32_t count,
                        int32_t token) {
    uint32_t best, reference_best;
    double sum = log_sum(logits, count, &best);
    cli_average_add(&scores->surprise, sum - (double)logits[token]);
    if (!reference)
        return;
    double reference_sum = log_sum(reference, count, &reference_best), divergence = 0;
    for (uint32_t i = 0; i < count; i++) {
        double p = (double)reference[i] - reference_sum, q = (double)logits[i] - sum;
        if (p > -100)
            divergence += exp(p) * (p - q);
    }
    cli_average_add(&scores->divergence, divergence);
    cli_average_add(&scores->agreement, best == reference_best);
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
