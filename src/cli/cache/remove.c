/* SPDX-License-Identifier: Apache-2.0
 *
 * Which of the cache's entries are removed, and their removal.
 */
#include "cli/base/report.h"
#include "cli/base/units.h"
#include "cli/cache/list.h"
#include "cli/checkpoint/checkpoint.h"
#include "hub/lock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static bool is_of_use(const cli_cache_entry *entry, double oldest) {
    double days = difftime(time(NULL), (time_t)entry->last_use) / 86400;
    return entry->state == CLI_ENTRY_CURRENT && (oldest < 0 || days <= oldest);
}

void cli_cache_choose_old(cli_cache_entries *entries, double oldest, uint64_t most_size) {
    uint64_t room = most_size;
    for (size_t i = 0; i < entries->count; i++) { /* those used last come first */
        cli_cache_entry *entry = &entries->items[i];
        if (entry->state == CLI_ENTRY_EXPORTING)
            continue;
        entry->is_chosen = !is_of_use(entry, oldest) || entry->bytes > room;
        if (entry->bytes > room)
            room = 0;
        else if (!entry->is_chosen)
            room -= entry->bytes;
    }
}

/* Whether a word is the entry's name, its model's, or, as such or as a path, its checkpoint. */
static bool is_called(const cli_cache_entry *entry, const char *word, const char *path) {
    return strcmp(entry->name, word) == 0 ||
           (entry->source &&
            (strcmp(entry->model, word) == 0 || strcmp(entry->source, path ? path : word) == 0));
}

gumbel_status cli_cache_choose_named(cli_cache_entries *entries, const cli_words *names,
                                     gumbel_error *error) {
    for (size_t n = 0; n < names->count; n++) {
        const char *word = names->list[n];
        char *path = cli_canonical_path(word);
        bool is_found = false;
        for (size_t i = 0; i < entries->count; i++)
            if (is_called(&entries->items[i], word, path))
                entries->items[i].is_chosen = is_found = true;
        free(path);
        if (!is_found)
            return gb_fail(
                error, GUMBEL_ERROR_ARGUMENT,
                "%.200s: there is no such entry or model in the cache; gumbel cache list shows them", word);
    }
    return GUMBEL_OK;
}

static gumbel_status remove_entry(const cli_cache_entry *entry, bool *is_removed, gumbel_error *error) {
    int lock;
    *is_removed = false;
    GB_TRY(cli_cache_lock(entry, NULL, &lock, error));
    if (lock < 0)
        return gb_fail(error, GUMBEL_ERROR_IO, "%s is being exported; it stays", entry->name);
    gumbel_status status = GUMBEL_OK;
    if (cli_cache_last_use(entry) != entry->last_use)
        cli_note("%s has been used or made again meanwhile; it stays", entry->name);
    else
        *is_removed = (status = cli_cache_remove(entry, error)) == GUMBEL_OK;
    hub_unlock(lock);
    return status;
}

gumbel_status cli_cache_remove_chosen(const cli_cache_entries *entries, bool dry_run, gumbel_error *error) {
    gumbel_status status = GUMBEL_OK;
    uint64_t bytes = 0;
    char text[CLI_BYTES_TEXT];
    for (size_t i = 0; i < entries->count; i++) {
        const cli_cache_entry *entry = &entries->items[i];
        bool is_removed = dry_run;
        if (!entry->is_chosen)
            continue;
        if (!dry_run && remove_entry(entry, &is_removed, error) != GUMBEL_OK)
            status = error->status;
        if (!is_removed)
            continue;
        bytes += entry->bytes;
        printf("%s %s: %s, %s\n", dry_run ? "would remove" : "removed", entry->name,
               cli_entry_state_name(entry->state), cli_describe_bytes(entry->bytes, text));
    }
    printf("%s %s\n", dry_run ? "would free" : "freed", cli_describe_bytes(bytes, text));
    return status;
}
