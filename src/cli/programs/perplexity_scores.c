/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/programs/perplexity_scores.h"

#include "cli/base/json.h"
#include "gumbel.h"

#include <math.h>

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
