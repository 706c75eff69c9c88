/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/progress.h"

#include "cli/measure.h"
#include "cli/signals.h"

#include <stdio.h>
#include <unistd.h>

static const double line_interval = 0.1; /* seconds between two printings */

void cli_progress_begin(cli_progress *progress, bool quiet) {
    *progress = (cli_progress){.shown = !quiet && isatty(STDERR_FILENO), .begin = cli_seconds()};
}

void cli_progress_erase(cli_progress *progress) {
    if (progress->line_is_up)
        fputs("\r\033[K", stderr);
    progress->line_is_up = false;
}

void cli_progress_describe(const char *what, uint64_t done, uint64_t total, double seconds, char *text,
                           size_t capacity) {
    double unit = total >= 1000000000 ? 1e9 : 1e6;
    const char *unit_name = total >= 1000000000 ? "GB" : "MB";
    double part = total > 0 ? (double)done / (double)total : 1;
    double rate = seconds > 0 ? (double)done / seconds : 0;
    char left[32] = "";
    if (rate > 0 && done < total)
        snprintf(left, sizeof left, "  %.0f s left", (double)(total - done) / rate);
    snprintf(text, capacity, "%.40s  %3.0f%%  %.1f of %.1f %s  %.1f MB/s%s", what, 100 * part,
             (double)done / unit, (double)total / unit, unit_name, rate / 1e6, left);
}

bool cli_progress_update(void *user, const char *what, uint64_t done, uint64_t total) {
    cli_progress *progress = user;
    double now = cli_seconds();
    if (progress->shown && now - progress->last_line >= line_interval) {
        char text[160];
        cli_progress_describe(what, done, total, now - progress->begin, text, sizeof text);
        fprintf(stderr, "\r%s\033[K", text);
        progress->line_is_up = true;
        progress->last_line = now;
    }
    return !cli_interrupted();
}
