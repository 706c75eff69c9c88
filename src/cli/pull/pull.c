/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/pull/pull.h"

#include "base/clock.h"
#include "cli/base/progress.h"
#include "cli/base/report.h"
#include "cli/base/signals.h"
#include "cli/base/units.h"

#include <unistd.h>

typedef struct watcher {
    cli_progress line;
    bool has_begun;
} watcher;

static bool on_progress(void *user, const char *what, uint64_t done, uint64_t total) {
    watcher *watch = user;
    if (total > 0 && !watch->has_begun) {
        cli_progress_begin(&watch->line, false);
        watch->line.before = done;
        watch->has_begun = true;
    }
    if (total > 0)
        return cli_progress_update(&watch->line, what, done, total);
    return !cli_interrupted();
}

static void on_note(void *user, const char *line) {
    watcher *watch = user;
    cli_progress_erase(&watch->line);
    cli_note("%s", line);
}

static void note_plan(const hub_plan *plan) {
    char missing[CLI_BYTES_TEXT], all[CLI_BYTES_TEXT];
    cli_describe_bytes(plan->missing_bytes, missing);
    cli_describe_bytes(plan->bytes, all);
    if (plan->missing == 0)
        return;
    if (plan->missing_bytes == plan->bytes)
        cli_note("downloading %s from %s: %zu files, %s, to %s", plan->name.repository,
                 plan->settings.endpoint, plan->listing.count, all, plan->folder);
    else
        cli_note("downloading %s from %s: %zu of %zu files, %s of %s, to %s", plan->name.repository,
                 plan->settings.endpoint, plan->missing, plan->listing.count, missing, all, plan->folder);
}

static gumbel_status fetch(hub_plan *plan, unsigned connections, const hub_callbacks *callbacks,
                           gumbel_error *error) {
    char bytes[CLI_BYTES_TEXT];
    uint64_t missing_bytes = plan->missing_bytes;
    bool is_missing = plan->missing > 0;
    double begin = gb_seconds();
    note_plan(plan);
    gumbel_status status = hub_pull(plan, connections, callbacks, error);
    cli_progress_erase(&((watcher *)callbacks->user)->line);
    if (status == GUMBEL_OK && is_missing)
        cli_note("downloaded %s: %s in %.1f s", plan->name.repository,
                 cli_describe_bytes(missing_bytes, bytes), gb_seconds() - begin);
    return status;
}

static gumbel_status pull(const hub_name *name, unsigned connections, bool is_plan, hub_plan *plan,
                          gumbel_error *error) {
    watcher watch = {.has_begun = false};
    const hub_callbacks callbacks = {on_progress, on_note, &watch};
    cli_catch_interrupt();
    cli_catch_termination();
    gumbel_status status = hub_plan_pull(name, &callbacks, plan, error);
    if (status == GUMBEL_OK && !is_plan)
        status = fetch(plan, connections, &callbacks, error);
    cli_release_signals();
    return status;
}

gumbel_status cli_pull(const hub_name *name, unsigned connections, hub_plan *plan, gumbel_error *error) {
    return pull(name, connections, false, plan, error);
}

gumbel_status cli_pull_plan(const hub_name *name, hub_plan *plan, gumbel_error *error) {
    return pull(name, 0, true, plan, error);
}
