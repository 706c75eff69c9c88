/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cache/remove.h"

#include "base/status.h"
#include "cli/base/report.h"
#include "cli/base/storage.h"
#include "cli/base/units.h"
#include "cli/cache/entry.h"
#include "cli/cache/lock.h"
#include "cli/checkpoint/checkpoint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- Choosing ------------------------------------------------------------------------------------------ */

static bool is_of_use(const cli_cache_item *item, double oldest) {
    double days = difftime(time(NULL), (time_t)item->last_use) / 86400;
    return item->state == CLI_ENTRY_CURRENT && (oldest < 0 || days <= oldest);
}

void cli_cache_choose_old(const cli_cache_items *items, const cli_prune_options *options, bool *chosen) {
    uint64_t room = options->most_size;
    for (size_t i = 0; i < items->count; i++) { /* those used last come first */
        const cli_cache_item *item = &items->items[i];
        if (item->state == CLI_ENTRY_EXPORTING)
            continue;
        chosen[i] = !is_of_use(item, options->oldest) || item->bytes > room;
        if (item->bytes > room)
            room = 0;
        else if (!chosen[i])
            room -= item->bytes;
    }
}

/* Whether a word is the item's name, its model's, or leads to its checkpoint. */
static bool is_called(const cli_cache_item *item, const char *word) {
    const cli_cache_entry *entry = &item->entry;
    if (strcmp(item->name, word) == 0)
        return true;
    if (!entry->source)
        return false;
    char *path = cli_canonical_path(word);
    bool is_same = strcmp(entry->model, word) == 0 || strcmp(entry->source, path ? path : word) == 0;
    free(path);
    return is_same;
}

static gumbel_status choose_named(const cli_cache_items *items, const char *word, bool *chosen,
                                  gumbel_error *error) {
    bool is_found = false;
    for (size_t i = 0; i < items->count; i++)
        if (is_called(&items->items[i], word))
            chosen[i] = is_found = true;
    if (is_found)
        return GUMBEL_OK;
    return gb_fail(error, GUMBEL_ERROR_ARGUMENT,
                   "%.200s: there is no such entry or model in the cache; gumbel cache list shows them",
                   word);
}

gumbel_status cli_cache_choose_named(const cli_cache_items *items, const cli_words *names, bool *chosen,
                                     gumbel_error *error) {
    gumbel_status status = GUMBEL_OK;
    for (size_t i = 0; i < names->count && status == GUMBEL_OK; i++)
        status = choose_named(items, names->list[i], chosen, error);
    return status;
}

/* ---- Removing ------------------------------------------------------------------------------------------ */

/* Under the entry's lock: whether it is still what was listed. */
static bool is_unchanged(const cli_cache_item *item) {
    cli_cache_item now;
    cli_cache_look(item->entry.folder, item->name, &now);
    bool is_same = now.state == item->state && now.last_use == item->last_use;
    cli_cache_item_free(&now);
    return is_same;
}

static gumbel_status remove_item(const cli_cache_item *item, bool *is_removed, gumbel_error *error) {
    int lock;
    *is_removed = false;
    gumbel_status status = cli_cache_lock(item->entry.folder, NULL, &lock, error);
    if (status != GUMBEL_OK)
        return status;
    if (lock < 0) {
        return gb_fail(error, GUMBEL_ERROR_IO, "%s is being exported; it stays", item->name);
    }
    if (!is_unchanged(item))
        cli_note("%s has been used or made again meanwhile; it stays", item->name);
    else
        *is_removed = (status = cli_cache_remove(item->entry.folder, error)) == GUMBEL_OK;
    cli_cache_unlock(lock);
    return status;
}

static void print_removed(const cli_cache_item *item, bool dry_run) {
    char text[CLI_BYTES_TEXT];
    printf("%s %s: %s, %s\n", dry_run ? "would remove" : "removed", item->name,
           cli_entry_state_name(item->state), cli_describe_bytes(item->bytes, text));
}

gumbel_status cli_cache_remove_chosen(const cli_cache_items *items, const bool *chosen, bool dry_run,
                                      gumbel_error *error) {
    gumbel_status status = GUMBEL_OK;
    uint64_t bytes = 0;
    char text[CLI_BYTES_TEXT];
    for (size_t i = 0; i < items->count; i++) {
        const cli_cache_item *item = &items->items[i];
        bool is_removed = dry_run;
        gumbel_error reason;
        if (chosen[i] && !dry_run && remove_item(item, &is_removed, &reason) != GUMBEL_OK) {
            status = reason.status;
            *error = reason;
        }
        if (!chosen[i] || !is_removed)
            continue;
        bytes += item->bytes;
        print_removed(item, dry_run);
    }
    printf("%s %s\n", dry_run ? "would free" : "freed", cli_describe_bytes(bytes, text));
    return status;
}
