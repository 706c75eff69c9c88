/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cache/entry.h"

#include "base/status.h"
#include "cli/base/storage.h"
#include "cli/cache/folder.h"
#include "cli/cache/lock.h"
#include "cli/checkpoint/names.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LONGEST_NAME = 64, IDENTITY_DIGITS = 8 };

/* ---- Finding ------------------------------------------------------------------------------------------- */

static bool is_plain(char byte) {
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9') ||
           byte == '.' || byte == '-' || byte == '+' || byte == '_';
}

/* The model's name as a file's: "ORG/NAME" becomes ORG--NAME, and what shells would mind an underscore. */
static void add_model(const char *model, gb_byte_buffer *name) {
    for (const char *byte = model; *byte && name->size < LONGEST_NAME; byte++) {
        bool is_first = byte == model;
        if (*byte == '/' && !is_first)
            cli_append_string(name, "--");
        else
            cli_append(name, is_plain(*byte) && !(is_first && (*byte == '.' || *byte == '-')) ? byte : "_",
                       1);
    }
}

char *cli_cache_program_path(const char *folder, uint64_t state) {
    char name[40];
    snprintf(name, sizeof name, "%016" PRIx64 ".gumbel", state);
    return cli_join(folder, name);
}

static void place_entry(const char *folder, cli_cache_entry *entry) {
    gb_byte_buffer name = {0};
    char identity[16];
    add_model(entry->record.model, &name);
    snprintf(identity, sizeof identity, "-%08" PRIx32, cli_cache_identity(&entry->record));
    cli_append_string(&name, identity);
    entry->folder = cli_join(folder, name.text);
    entry->program = cli_cache_program_path(entry->folder, entry->record.state);
    gb_buffer_free(&name);
}

gumbel_status cli_cache_find(const char *path, const char *repository, const cli_cache_options *options,
                             cli_cache_entry *entry, gumbel_error *error) {
    *entry = (cli_cache_entry){0};
    char *folder = NULL;
    gumbel_status status = cli_cache_describe(path, repository, options, &entry->record, error);
    if (status == GUMBEL_OK)
        status = cli_cache_folder(&folder, error);
    if (status == GUMBEL_OK)
        status = cli_cache_make_folder(folder, error);
    if (status == GUMBEL_OK)
        place_entry(folder, entry);
    free(folder);
    return status;
}

void cli_cache_entry_free(cli_cache_entry *entry) {
    free(entry->folder);
    free(entry->program);
    cli_cache_record_free(&entry->record);
    *entry = (cli_cache_entry){0};
}

bool cli_cache_is_entry_name(const char *name) {
    size_t length = strlen(name);
    return name[0] != '.' && length > IDENTITY_DIGITS + 1 && name[length - IDENTITY_DIGITS - 1] == '-' &&
           strspn(name + length - IDENTITY_DIGITS, "0123456789abcdef") == IDENTITY_DIGITS;
}

/* ---- Removing ------------------------------------------------------------------------------------------ */

/* Removes the files in a folder but for those of these names, which end in NULL. */
static void remove_files(const char *folder, const char *const *kept) {
    DIR *directory = opendir(folder);
    for (const struct dirent *file; directory && (file = readdir(directory));) {
        const char *const *name = kept;
        while (*name && strcmp(*name, file->d_name) != 0)
            name++;
        if (!*name)
            (void)unlinkat(dirfd(directory), file->d_name, 0); /* "." and ".." are refused */
    }
    if (directory)
        closedir(directory);
}

void cli_cache_empty(const char *folder) {
    remove_files(folder, (const char *const[]){CLI_CACHE_LOCK, CLI_CACHE_RECORD, NULL});
}

gumbel_status cli_cache_remove(const char *folder, gumbel_error *error) {
    remove_files(folder, (const char *const[]){CLI_CACHE_LOCK, NULL});
    char *lock = cli_join(folder, CLI_CACHE_LOCK);
    bool is_removed = unlink(lock) == 0 && rmdir(folder) == 0;
    free(lock);
    if (is_removed || errno == ENOENT)
        return GUMBEL_OK;
    return gb_fail_errno(error, errno, "%s", folder);
}
