/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cache/moved.h"

#include "cli/base/report.h"
#include "cli/cache/folder.h"
#include "cli/cache/lock.h"
#include "cli/checkpoint/fingerprint.h"
#include "cli/checkpoint/names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The sample is taken when the first entry's state is the same: it takes reading. */
static bool has_same_sample(cli_cache_entry *entry, uint64_t sample) {
    gumbel_error error;
    if (entry->record.sample == 0 &&
        cli_fingerprint_sample(entry->record.source, &entry->record.sample, &error) != GUMBEL_OK)
        return false;
    return entry->record.sample == sample;
}

static bool is_gone(const cli_cache_record *record) {
    uint64_t now;
    return !cli_cache_state_now(record, &now) || now != record->state;
}

/* Under the other entry's lock. */
static bool take(const char *folder, const char *program, const cli_cache_record *other,
                 const cli_cache_entry *entry) {
    gumbel_error error;
    cli_cache_empty(entry->folder);
    if (cli_cache_write_record(entry->folder, &entry->record, &error) != GUMBEL_OK ||
        rename(program, entry->program) != 0)
        return false;
    cli_note("%s was moved to %s; its program goes with it", other->source, entry->record.source);
    (void)cli_cache_remove(folder, &error);
    return true;
}

static bool try_entry(const char *folder, cli_cache_entry *entry) {
    cli_cache_record other;
    gumbel_error error;
    bool is_there = false, is_taken = false;
    if (strcmp(folder, entry->folder) == 0 || !cli_cache_read_record(folder, &other))
        return false;
    char *program = cli_cache_program_path(folder, other.state);
    int lock = -1;
    if (other.state == entry->record.state && cli_cache_check_folder(folder, &error) == GUMBEL_OK &&
        cli_cache_check_file(program, &is_there, &error) == GUMBEL_OK && is_there && is_gone(&other) &&
        has_same_sample(entry, other.sample) && cli_cache_lock(folder, NULL, &lock, &error) == GUMBEL_OK &&
        lock >= 0)
        is_taken = take(folder, program, &other, entry);
    cli_cache_unlock(lock);
    cli_cache_record_free(&other);
    free(program);
    return is_taken;
}

bool cli_cache_take_moved(cli_cache_entry *entry) {
    char *cache = cli_copy_text(entry->folder, (size_t)(strrchr(entry->folder, '/') - entry->folder));
    cli_names names = {0};
    bool is_taken = false;
    cli_names_read(&names, cache);
    for (size_t i = 0; i < names.count && !is_taken; i++) {
        char *folder = cli_join(cache, names.items[i]);
        is_taken = cli_cache_is_entry_name(names.items[i]) && try_entry(folder, entry);
        free(folder);
    }
    cli_names_free(&names);
    free(cache);
    return is_taken;
}
