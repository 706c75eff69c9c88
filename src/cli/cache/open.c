/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cache/open.h"

#include "base/clock.h"
#include "cli/base/report.h"
#include "cli/base/signals.h"
#include "cli/model/exporter.h"
#include "hub/lock.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* The program of an entry, while it is looked for. */
typedef struct search {
    const cli_checkpoint *checkpoint;
    cli_cache_entry entry, superseded;
    gumbel_program *program; /* NULL: not opened */
    double seconds;          /* that opening took */
    bool is_damaged;         /* it is there and cannot be opened; another one can be made */
} search;

/* Opens the program where there is one. True: that is all, whether it went well or not. */
static bool has_program(search *s, gumbel_status *status, gumbel_error *error) {
    double begin = gb_seconds();
    *status = cli_cache_load(&s->entry, &s->program, &s->is_damaged, error);
    s->seconds = gb_seconds() - begin;
    if (s->program)
        cli_cache_note_use(&s->entry);
    return s->program || (*status != GUMBEL_OK && !s->is_damaged);
}

/* ---- Making -------------------------------------------------------------------------------------------- */

/* Says that there is an export, and why. damage: what is wrong with the program that is there. */
static void note_export(const search *s, const char *damage) {
    const cli_cache_entry *entry = &s->entry;
    const char *reason = damage                          ? "; making it again: "
                         : cli_cache_last_use(entry) > 0 ? "an earlier export was not finished; "
                         : s->superseded.folder ? "the checkpoint, its recipe or gumbel has changed; "
                                                : "";
    cli_note("%s%sexporting %s with recipe %s to %s", damage ? damage : "", reason, s->checkpoint->shown,
             entry->recipe[0] ? entry->recipe : "none", entry->program);
}

static void remove_superseded(const cli_cache_entry *entry) {
    int lock;
    if (entry->folder && cli_cache_lock(entry, NULL, &lock, NULL) == GUMBEL_OK && lock >= 0) {
        (void)cli_cache_remove(entry, NULL);
        hub_unlock(lock);
    }
}

/* What is of no use goes first, to make room; the record comes before the program, so that what a killed
 * export leaves has a name. */
static gumbel_status export_program(const search *s, gumbel_error *error) {
    const cli_cache_entry *entry = &s->entry;
    const gumbel_export_options options = {.quantize = entry->recipe[0] ? entry->recipe : NULL,
                                           .max_context = entry->max_context,
                                           .name = s->checkpoint->repository};
    GB_TRY(cli_cache_remove(entry, error));
    remove_superseded(&s->superseded);
    GB_TRY(cli_cache_create(entry, error));
    mode_t mask = umask(S_IRWXG | S_IRWXO);
    gumbel_status status = cli_export(s->checkpoint->path, entry->program, options, false, error);
    umask(mask);
    return status;
}

static void explain_space(gumbel_error *error) {
    size_t used = strlen(error->message);
    snprintf(error->message + used, sizeof error->message - used,
             "; gumbel cache prune removes programs of no use, XDG_CACHE_HOME can name another disk");
}

/* Under the entry's lock: another process may have made the program meanwhile. An export that fails leaves no
 * entry. */
static gumbel_status open_or_make(search *s, gumbel_error *error) {
    gumbel_status status;
    if (has_program(s, &status, error))
        return status;
    note_export(s, s->is_damaged ? error->message : NULL);
    status = export_program(s, error);
    if (status != GUMBEL_OK) {
        cli_checkpoint_explain(s->checkpoint, error);
        if (status == GUMBEL_ERROR_LIMIT)
            explain_space(error);
        (void)cli_cache_remove(&s->entry, NULL);
    } else if (!has_program(s, &status, error) && status == GUMBEL_OK) {
        status = gb_fail(error, GUMBEL_ERROR_IO, "%s: it was removed while it was made", s->entry.program);
    }
    return status;
}

/* While there is an entry without a program, signals end the work, not the process: it is to be removed. */
static gumbel_status find_program(search *s, gumbel_error *error) {
    gumbel_status status;
    int lock;
    if (has_program(s, &status, error))
        return status;
    cli_catch_interrupt();
    cli_catch_termination();
    status = cli_cache_lock(&s->entry, s->checkpoint->shown, &lock, error);
    if (status == GUMBEL_OK)
        status = open_or_make(s, error);
    hub_unlock(lock);
    cli_release_signals();
    if (status != GUMBEL_OK || !cli_interrupted())
        return status;
    gumbel_program_close(s->program);
    s->program = NULL;
    return gb_fail(error, GUMBEL_ERROR_CANCELLED, "%s: cancelled", s->checkpoint->shown);
}

gumbel_status cli_cache_open(const cli_checkpoint *checkpoint, const cli_cache_options *options,
                             gumbel_program **program, double *seconds, gumbel_error *error) {
    search s = {.checkpoint = checkpoint};
    gumbel_status status =
        cli_cache_find(checkpoint->path, checkpoint->repository, options, &s.entry, &s.superseded, error);
    if (status == GUMBEL_OK)
        status = find_program(&s, error);
    *program = s.program;
    *seconds = s.seconds;
    cli_cache_entry_free(&s.entry);
    cli_cache_entry_free(&s.superseded);
    return status;
}
