/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/model/exporter.h"

#include "cli/base/measure.h"
#include "cli/base/progress.h"
#include "cli/base/report.h"
#include "cli/base/signals.h"
#include "hub/verify.h"

typedef struct notices {
    cli_progress *progress;
    bool quiet;
} notices;

static void log_notice(void *user, gumbel_log_level level, const char *line) {
    const notices *where = user;
    bool verbose = !where->quiet;
    cli_progress_erase(where->progress);
    cli_log(&verbose, level, line);
}

gumbel_status cli_export(const char *checkpoint, const char *path, gumbel_export_options options, bool quiet,
                         gumbel_error *error) {
    cli_progress progress;
    cli_progress_begin(&progress, quiet);
    notices log_user = {&progress, quiet};
    options.size = sizeof options;
    options.log = log_notice;
    options.log_user = &log_user;
    options.progress = cli_progress_update;
    options.progress_user = &progress;
    cli_catch_interrupt();
    cli_catch_termination();
    const hub_callbacks callbacks = {.progress = cli_progress_update, .user = &progress};
    gumbel_status status = hub_verify(checkpoint, &callbacks, error);
    if (status == GUMBEL_OK)
        status = gumbel_export(checkpoint, path, &options, error);
    cli_release_signals();
    cli_progress_erase(&progress);
    if (status == GUMBEL_OK && !quiet)
        cli_progress_report(&progress, path);
    return status;
}
