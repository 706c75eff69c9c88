/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cache/list.h"

#include "base/status.h"
#include "cli/base/report.h"
#include "cli/base/storage.h"
#include "cli/cache/entry.h"
#include "cli/cache/folder.h"
#include "cli/cache/lock.h"
#include "cli/checkpoint/names.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const char *cli_entry_state_name(cli_entry_state state) {
    static const char *const names[] = {"current",    "stale",      "orphaned",
                                        "unreadable", "unfinished", "exporting"};
    return names[state];
}

/* ---- One entry ----------------------------------------------------------------------------------------- */

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

/* Whether nothing is where the checkpoint was. What cannot be looked at may still be there. */
static bool is_gone(const char *source) {
    struct stat file;
    return stat(source, &file) != 0 && (errno == ENOENT || errno == ENOTDIR);
}

static gumbel_status check_program(const char *path, bool *is_there, gumbel_error *error) {
    gumbel_program *program = NULL;
    gumbel_status status = cli_cache_check_file(path, is_there, error);
    if (status == GUMBEL_OK && *is_there)
        status = gumbel_program_open(path, &program, error);
    gumbel_program_close(program);
    return status;
}

static cli_entry_state state_of(const cli_cache_entry *entry, gumbel_error *error) {
    bool is_there = false;
    if (!entry->source) {
        gb_fail(error, GUMBEL_ERROR_FORMAT, "%s/" CLI_CACHE_RECORD " cannot be read", entry->folder);
        return CLI_ENTRY_UNREADABLE;
    }
    if (check_program(entry->program, &is_there, error) != GUMBEL_OK)
        return CLI_ENTRY_UNREADABLE;
    if (!is_there)
        return CLI_ENTRY_UNFINISHED;
    return is_gone(entry->source)        ? CLI_ENTRY_ORPHANED
           : cli_cache_is_current(entry) ? CLI_ENTRY_CURRENT
                                         : CLI_ENTRY_STALE;
}

void cli_cache_look(const char *folder, const char *name, cli_cache_item *item) {
    gumbel_error error;
    *item = (cli_cache_item){.name = cli_copy_text(name, strlen(name)),
                             .bytes = size_of(folder),
                             .last_use = cli_cache_last_use(folder)};
    bool is_private = cli_cache_check_folder(folder, &error) == GUMBEL_OK;
    (void)cli_cache_read(folder, &item->entry);
    item->state = is_private ? state_of(&item->entry, &error) : CLI_ENTRY_UNREADABLE;
    if (item->state == CLI_ENTRY_UNREADABLE)
        item->reason = cli_copy_text(error.message, strlen(error.message));
}

void cli_cache_item_free(cli_cache_item *item) {
    free(item->name);
    free(item->reason);
    cli_cache_entry_free(&item->entry);
    *item = (cli_cache_item){0};
}

/* ---- All of them --------------------------------------------------------------------------------------- */

static int compare_use(const void *a, const void *b) {
    const cli_cache_item *left = a, *right = b;
    if (left->last_use != right->last_use)
        return left->last_use < right->last_use ? 1 : -1;
    return strcmp(left->name, right->name);
}

static void add_entry(const char *cache, const char *name, cli_cache_items *items) {
    char *folder = cli_join(cache, name);
    struct stat file;
    if (cli_cache_is_entry_name(name) && lstat(folder, &file) == 0 && S_ISDIR(file.st_mode)) {
        cli_cache_item *item = &items->items[items->count++];
        cli_cache_look(folder, name, item);
        if (cli_cache_is_locked(folder))
            item->state = CLI_ENTRY_EXPORTING;
    }
    free(folder);
}

gumbel_status cli_cache_list(const char *path, cli_cache_items *items, gumbel_error *error) {
    cli_names names = {0};
    *items = (cli_cache_items){0};
    if (access(path, F_OK) != 0 && errno == ENOENT)
        return GUMBEL_OK;
    gumbel_status status = cli_cache_check_folder(path, error);
    if (status == GUMBEL_OK && !cli_names_read(&names, path)) {
        status = gb_fail_errno(error, errno, "%s", path);
    }
    items->items = cli_allocate(names.count, sizeof *items->items);
    for (size_t i = 0; i < names.count; i++)
        add_entry(path, names.items[i], items);
    qsort(items->items, items->count, sizeof *items->items, compare_use);
    cli_names_free(&names);
    return status;
}

void cli_cache_items_free(cli_cache_items *items) {
    for (size_t i = 0; i < items->count; i++)
        cli_cache_item_free(&items->items[i]);
    free(items->items);
    *items = (cli_cache_items){0};
}
