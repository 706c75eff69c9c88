/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cache/open.h"

#include "base/clock.h"
#include "base/status.h"
#include "cli/base/report.h"
#include "cli/base/signals.h"
#include "cli/cache/entry.h"
#include "cli/cache/folder.h"
#include "cli/cache/lock.h"
#include "cli/model/exporter.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The program of an entry, while it is looked for. */
typedef struct search {
    const cli_checkpoint *checkpoint;
    cli_cache_entry entry;
    gumbel_program *program; /* NULL: not opened */
    double seconds;          /* that opening took */
    bool is_damaged;         /* it is there and cannot be opened; another one can be made */
} search;

static bool is_damage(gumbel_status status) {
    return status == GUMBEL_ERROR_FORMAT || status == GUMBEL_ERROR_UNSUPPORTED || status == GUMBEL_ERROR_IO;
}

/* Opens the program where there is one. Fails where it may not be trusted, or is damaged. */
static gumbel_status open_program(search *s, gumbel_error *error) {
    bool is_there = false;
    s->is_damaged = false;
    if (access(s->entry.folder, F_OK) != 0)
        return GUMBEL_OK;
    gumbel_status status = cli_cache_check_folder(s->entry.folder, error);
    if (status == GUMBEL_OK)
        status = cli_cache_check_file(s->entry.program, &is_there, error);
    if (status != GUMBEL_OK || !is_there)
        return status;
    double begin = gb_seconds();
    status = gumbel_program_open(s->entry.program, &s->program, error);
    s->seconds = gb_seconds() - begin;
    s->is_damaged = is_damage(status);
    if (status == GUMBEL_OK)
        cli_cache_note_use(&s->entry);
    return status;
}

/* ---- Making -------------------------------------------------------------------------------------------- */

/* Why there is an export, as the beginning of a note. damage: what is wrong with the program that is there;
 * superseded: what changes have made useless; NULL: nothing. */
static const char *find_reason(const cli_cache_entry *entry, const char *damage, const char *superseded) {
    cli_cache_entry unfinished;
    if (damage)
        return "; making it again: ";
    bool is_there = cli_cache_read(entry->folder, &unfinished);
    cli_cache_entry_free(&unfinished);
    return is_there     ? "an earlier export was not finished; "
           : superseded ? "the checkpoint, its recipe or gumbel has changed; "
                        : "";
}

static void remove_superseded(const char *folder) {
    int lock = -1;
    if (cli_cache_lock(folder, NULL, &lock, NULL) == GUMBEL_OK && lock >= 0)
        (void)cli_cache_remove(folder, NULL);
    cli_cache_unlock(lock);
}

/* What is of no use goes first, to make room. */
static void prepare_entry(const search *s, const char *damage) {
    const cli_cache_entry *entry = &s->entry;
    char *superseded = cli_cache_find_superseded(entry);
    cli_note("%s%sexporting %s with recipe %s to %s", damage ? damage : "",
             find_reason(entry, damage, superseded), s->checkpoint->shown,
             entry->recipe ? entry->recipe : "none", entry->program);
    cli_cache_empty(entry->folder);
    if (superseded)
        remove_superseded(superseded);
    free(superseded);
}

/* The record is written first, so that what a killed export leaves has a name. */
static gumbel_status export_program(const search *s, gumbel_error *error) {
    const cli_cache_entry *entry = &s->entry;
    const gumbel_export_options options = {
        .quantize = entry->recipe, .max_context = entry->max_context, .name = s->checkpoint->repository};
    GB_TRY(cli_cache_write(entry, error));
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

/* Under the entry's lock. An export that fails leaves no entry. */
static gumbel_status make_program(search *s, const char *damage, gumbel_error *error) {
    prepare_entry(s, damage);
    gumbel_status status = export_program(s, error);
    if (status == GUMBEL_OK)
        return status;
    cli_checkpoint_explain(s->checkpoint, error);
    if (status == GUMBEL_ERROR_LIMIT)
        explain_space(error);
    (void)cli_cache_remove(s->entry.folder, NULL);
    return status;
}

/* Under the entry's lock: another process may have made the program meanwhile. */
static gumbel_status open_or_make(search *s, gumbel_error *error) {
    gumbel_status status = open_program(s, error);
    if (s->program || (status != GUMBEL_OK && !s->is_damaged))
        return status;
    gumbel_error damage = *error;
    status = make_program(s, s->is_damaged ? damage.message : NULL, error);
    if (status == GUMBEL_OK)
        status = open_program(s, error);
    if (status != GUMBEL_OK || s->program)
        return status;
    return gb_fail(error, GUMBEL_ERROR_IO, "%s: it was removed while it was made", s->entry.program);
}

static gumbel_status open_locked(search *s, gumbel_error *error) {
    int lock;
    gumbel_status status = cli_cache_lock(s->entry.folder, s->checkpoint->shown, &lock, error);
    if (status == GUMBEL_OK)
        status = open_or_make(s, error);
    cli_cache_unlock(lock);
    return status;
}

/* While there is an entry without a program, signals end the work, not the process: it is to be removed. */
static gumbel_status find_program(search *s, gumbel_error *error) {
    gumbel_status status = open_program(s, error);
    if (s->program || (status != GUMBEL_OK && !s->is_damaged))
        return status;
    cli_catch_interrupt();
    cli_catch_termination();
    status = open_locked(s, error);
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
    gumbel_status status = cli_cache_find(checkpoint->path, checkpoint->repository, options, &s.entry, error);
    if (status == GUMBEL_OK)
        status = find_program(&s, error);
    *program = s.program;
    *seconds = s.seconds;
    cli_cache_entry_free(&s.entry);
    return status;
}
