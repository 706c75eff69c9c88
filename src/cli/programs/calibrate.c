/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/programs/calibrate.h"

#include "cli/base/report.h"
#include "cli/model/exporter.h"
#include "cli/programs/perplexity_windows.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Windows at once: so many rows in a step that sums, which are large, are read from memory seldom. */
enum { WINDOW = 256, WINDOWS_AT_ONCE = 128 };

static char *temporary_path(const char *output) {
    static const char SUFFIX[] = ".calibration";
    const size_t length = strlen(output);
    char *path = cli_allocate(length + sizeof SUFFIX + 24, 1);
    snprintf(path, length + sizeof SUFFIX + 24, "%s%s.%ld", output, SUFFIX, (long)getpid());
    return path;
}

/* The model in full precision, of which only the logits are wanted. */
static gumbel_status export_whole(const cli_calibrate_options *options, const char *path,
                                  gumbel_error *error) {
    const gumbel_export_options whole = {.quantize = "none",
                                         .max_context = WINDOW,
                                         .logits = true,
                                         .layers = options->export.layers,
                                         .random_weights = options->export.random_weights,
                                         .random_seed = options->export.random_seed,
                                         .name = options->export.name};
    return cli_export(options->checkpoint, path, whole, options->quiet, error);
}

static gumbel_status read_text(const cli_model *model, const char *file, cli_scored_text *text,
                               gumbel_error *error) {
    const cli_model none = {0};
    gb_byte_buffer built_in = {0};
    cli_scored_source source = {.program = "the checkpoint", .file = file, .window = model->max_context};
    if (strcmp(file, "built-in") == 0) {
        cli_append(&built_in, (const char *)cli_calibration_text, cli_calibration_text_length);
        source.text = &built_in;
    }
    const gumbel_status status = cli_read_scored_text(model, &none, &source, text, error);
    gb_buffer_free(&built_in);
    return status;
}

/* Runs all windows. What they predict is of no interest but for its perplexity, which shows whether the
 * model can read the text at all. */
static gumbel_status run_text(cli_model_options *options, const cli_scored_text *text, cli_model *model,
                              bool quiet, cli_scores *scores, gumbel_error *error) {
    const cli_model none = {0};
    uint32_t batch;
    gumbel_status status = cli_settle_batch(model, &none, text, WINDOWS_AT_ONCE, &batch, error);
    options->slots = (int)batch;
    if (status == GUMBEL_OK)
        status = cli_model_start(options, false, model, error);
    cli_progress progress;
    cli_progress_begin(&progress, quiet);
    if (status == GUMBEL_OK)
        status = cli_score_windows(model, &none, text, batch, &progress, scores, error);
    cli_progress_erase(&progress);
    return status;
}

/* path is removed as soon as it is open: the system keeps what is mapped. */
static gumbel_status observe_text(const cli_calibrate_options *options, const char *path,
                                  gumbel_calibration *calibration, gumbel_error *error) {
    cli_model_options model_options = {
        .source = {.path = path}, .observe = gumbel_calibration_observe, .observe_user = calibration};
    cli_model model = {0};
    cli_scored_text text = {0};
    cli_scores scores = {0};
    gumbel_status status = cli_model_open_program(&model_options, &model, error);
    unlink(path);
    if (status == GUMBEL_OK)
        status = read_text(&model, options->file, &text, error);
    if (status == GUMBEL_OK)
        status = run_text(&model_options, &text, &model, options->quiet, &scores, error);
    if (status == GUMBEL_OK && !options->quiet)
        cli_note("calibrated on %zu tokens, perplexity %.2f", text.tokens.count, exp(scores.surprise.mean));
    cli_tokens_free(&text.tokens);
    cli_model_close(&model);
    return status;
}

/* What is wrong with the export itself is said before minutes of work for it. */
static gumbel_status check_export(const cli_calibrate_options *options, gumbel_error *error) {
    gumbel_export_options checked = options->export;
    checked.size = sizeof checked;
    checked.stats = NULL;
    return gumbel_export(options->checkpoint, NULL, &checked, error);
}

gumbel_status cli_calibrate(const cli_calibrate_options *options, gumbel_calibration **calibration,
                            gumbel_error *error) {
    gumbel_status status = check_export(options, error);
    if (status == GUMBEL_OK)
        status = gumbel_calibration_create(NULL, calibration, error);
    if (status != GUMBEL_OK)
        return status;
    char *path = temporary_path(options->output);
    status = export_whole(options, path, error);
    if (status == GUMBEL_OK)
        status = observe_text(options, path, *calibration, error);
    unlink(path);
    free(path);
    if (status == GUMBEL_OK)
        return status;
    gumbel_calibration_destroy(*calibration);
    *calibration = NULL;
    return status;
}
