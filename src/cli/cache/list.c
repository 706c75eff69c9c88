/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cache/list.h"

#include "cli/base/storage.h"
#include "cli/cache/folder.h"
#include "hub/lock.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

const char *cli_entry_state_name(cli_entry_state state) {
    static const char *const names[] = {"current",    "stale",      "orphaned",
                                        "unreadable", "unfinished", "exporting"};
    return names[state];
}

static uint64_t size_of(const char *folder) {
    DIR *directory = opendir(folder);
    uint64_t bytes = 0;
    struct stat file;
    for (const struct dirent *name; directory && (name = readdir(directory));)
        if (fstatat(dirfd(directory), name->d_name, &file, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(file.st_mode))
            bytes += (uint64_t)file.st_size;
    if (directory)
        closedir(directory);
    return bytes;
}

static bool is_locked(const cli_cache_entry *entry) {
    int lock;
    bool is_known = cli_cache_lock(entry, NULL, &lock, NULL) == GUMBEL_OK;
    hub_unlock(lock);
    return is_known && lock < 0;
}

/* Whether nothing is where the checkpoint was. What cannot be looked at may still be there. */
static bool is_gone(const char *source) {
    struct stat file;
    return stat(source, &file) != 0 && (errno == ENOENT || errno == ENOTDIR);
}

static cli_entry_state state_of(const cli_cache_entry *entry, gumbel_error *error) {
    gumbel_program *program;
    bool is_damaged;
    gumbel_status status = cli_cache_load(entry, &program, &is_damaged, error);
    bool is_there = program != NULL;
    gumbel_program_close(program);
    if (status == GUMBEL_OK && !entry->source)
        status = gb_fail(error, GUMBEL_ERROR_FORMAT, "%s/entry cannot be read", entry->folder);
    return status != GUMBEL_OK           ? CLI_ENTRY_UNREADABLE
           : !is_there                   ? CLI_ENTRY_UNFINISHED
           : is_gone(entry->source)      ? CLI_ENTRY_ORPHANED
           : cli_cache_is_current(entry) ? CLI_ENTRY_CURRENT
                                         : CLI_ENTRY_STALE;
}

static void look(cli_cache_entry *entry) {
    gumbel_error error;
    entry->bytes = size_of(entry->folder);
    entry->state = is_locked(entry) ? CLI_ENTRY_EXPORTING : state_of(entry, &error);
    if (entry->state == CLI_ENTRY_UNREADABLE)
        entry->reason = cli_copy_text(error.message, strlen(error.message));
}

static int compare_use(const void *a, const void *b) {
    const cli_cache_entry *left = a, *right = b;
    if (left->last_use != right->last_use)
        return left->last_use < right->last_use ? 1 : -1;
    return strcmp(left->name, right->name);
}

gumbel_status cli_cache_list(const char *path, cli_cache_entries *entries, gumbel_error *error) {
    bool is_there;
    *entries = (cli_cache_entries){0};
    GB_TRY(cli_cache_check(path, S_IFDIR, &is_there, error));
    if (!is_there)
        return GUMBEL_OK;
    GB_TRY(cli_cache_read(path, entries, error));
    for (size_t i = 0; i < entries->count; i++)
        look(&entries->items[i]);
    qsort(entries->items, entries->count, sizeof *entries->items, compare_use);
    return GUMBEL_OK;
}
