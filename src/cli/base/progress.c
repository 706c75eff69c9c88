/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/base/progress.h"

#include "base/clock.h"
#include "cli/base/report.h"
#include "cli/base/signals.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static const double line_interval = 0.1; /* seconds between two printings */

void cli_progress_begin(cli_progress *progress, bool quiet) {
    *progress =
        (cli_progress){.shown = !quiet && !cli_is_quiet() && isatty(STDERR_FILENO), .begin = gb_seconds()};
}

void cli_progress_erase(cli_progress *progress) {
    if (progress->line_is_up)
        fputs("\r\033[K", stderr);
    progress->line_is_up = false;
}

/* A task's state in numbers: how much is done, how much of it in a second, and the time left in words. */
typedef struct pace {
    double part, rate;
    char left[32];
} pace;

/* In the unit that people would use; nothing for a rate that says nothing yet. */
static void describe_left(double seconds, char *text, size_t capacity) {
    static const struct {
        double from, unit;
        const char *name;
    } units[] = {{7200, 3600, "h"}, {120, 60, "min"}, {0, 1, "s"}};
    size_t i = 0;
    while (seconds < units[i].from)
        i++;
    if (seconds < 1000 * 3600)
        snprintf(text, capacity, "  %.0f %s left", seconds / units[i].unit, units[i].name);
}

static pace pace_of(uint64_t done, uint64_t total, double seconds) {
    pace p = {.part = total > 0 ? (double)done / (double)total : 1,
              .rate = seconds > 0 ? (double)done / seconds : 0};
    if (p.rate > 0 && done < total)
        describe_left((double)(total - done) / p.rate, p.left, sizeof p.left);
    return p;
}

void cli_progress_describe(const char *what, uint64_t done, uint64_t total, double seconds, char *text,
                           size_t capacity) {
    double unit = total >= 1000000000 ? 1e9 : 1e6;
    const char *unit_name = total >= 1000000000 ? "GB" : "MB";
    pace p = pace_of(done, total, seconds);
    snprintf(text, capacity, "%.40s  %3.0f%%  %.1f of %.1f %s  %.1f MB/s%s", what, 100 * p.part,
             (double)done / unit, (double)total / unit, unit_name, p.rate / 1e6, p.left);
}

void cli_progress_describe_count(const char *what, uint64_t done, uint64_t total, double seconds, char *text,
                                 size_t capacity) {
    pace p = pace_of(done, total, seconds);
    snprintf(text, capacity, "%.40s  %3.0f%%  %" PRIu64 " of %" PRIu64 "  %.1f a second%s", what,
             100 * p.part, done, total, p.rate, p.left);
}

typedef void (*describe_function)(const char *what, uint64_t done, uint64_t total, double seconds, char *text,
                                  size_t capacity);

static void show(cli_progress *progress, describe_function describe, const char *what, uint64_t done,
                 uint64_t total) {
    double now = gb_seconds();
    if (!progress->shown || now - progress->last_line < line_interval)
        return;
    char text[160];
    double seconds = now - progress->begin;
    if (progress->before > 0) /* what all of done would have taken */
        seconds *= done > progress->before ? (double)done / (double)(done - progress->before) : 0;
    describe(what, done, total, seconds, text, sizeof text);
    fprintf(stderr, "\r%s\033[K", text);
    progress->line_is_up = true;
    progress->last_line = now;
}

bool cli_progress_update(void *user, const char *what, uint64_t done, uint64_t total) {
    show(user, cli_progress_describe, what, done, total);
    return !cli_interrupted();
}

void cli_progress_report(const cli_progress *progress, const char *path) {
    struct stat file;
    if (stat(path, &file) == 0)
        cli_note("wrote %s: %.1f MB in %.1f s", path, (double)file.st_size / 1e6,
                 gb_seconds() - progress->begin);
}

void cli_progress_count(cli_progress *progress, const char *what, uint64_t done, uint64_t total) {
    show(progress, cli_progress_describe_count, what, done, total);
}
