/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cache/entry.h"

#include "base/status.h"
#include "cli/base/files.h"
#include "cli/cache/folder.h"
#include "cli/cache/lock.h"
#include "cli/checkpoint/checkpoint.h"
#include "cli/checkpoint/fingerprint.h"
#include "cli/checkpoint/names.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <xxhash.h>

#define NEW_RECORD CLI_CACHE_RECORD ".new"

enum { LONGEST_NAME = 64, LEAST_DIGITS = 8, KEY_TEXT = 24, FIELDS = 4 };

static char *copy(const char *text) {
    return text ? cli_copy_text(text, strlen(text)) : NULL;
}

/* ---- Keys ---------------------------------------------------------------------------------------------- */

/* The ending of the entry's name. A repository's name is in the program; that of a recipe's file is not. */
static gumbel_status find_key(const cli_cache_entry *entry, char key[KEY_TEXT], gumbel_error *error) {
    gb_byte_buffer print = {0};
    const char *recipe = entry->recipe ? entry->recipe : ""; /* which may make another program than "none" */
    gb_buffer_print(&print, "%s %" PRIu64 " %" PRIu32 " %s %s\n", gumbel_version(),
                    (uint64_t)gumbel_program_format(), entry->max_context,
                    strchr(entry->model, '/') ? entry->model : "", recipe[0] == '/' ? "/" : recipe);
    gumbel_status status = recipe[0] == '/' ? cli_fingerprint_file(recipe, "", &print, error) : GUMBEL_OK;
    if (status == GUMBEL_OK)
        status = cli_fingerprint(entry->source, &print, error);
    snprintf(key, KEY_TEXT, "-%016" PRIx64, XXH3_64bits(print.data, print.size));
    gb_buffer_free(&print);
    return status;
}

bool cli_cache_is_current(const cli_cache_entry *entry) {
    char key[KEY_TEXT];
    return find_key(entry, key, NULL) == GUMBEL_OK && cli_ends_with(entry->folder, key);
}

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

static void place(const char *cache, const char *name, cli_cache_entry *entry) {
    entry->folder = cli_join(cache, name);
    entry->program = cli_join(entry->folder, "program.gumbel");
}

/* Where there is a program of that key, whatever its name; else in a new place. */
static void place_key(const char *cache, const char *key, cli_cache_entry *entry) {
    cli_names names = {0};
    gb_byte_buffer name = {0};
    cli_names_read(&names, cache);
    for (size_t i = 0; i < names.count && !entry->folder; i++)
        if (cli_ends_with(names.items[i], key))
            place(cache, names.items[i], entry);
    add_model(entry->model, &name);
    cli_append_string(&name, key);
    if (!entry->folder)
        place(cache, name.text, entry);
    gb_buffer_free(&name);
    cli_names_free(&names);
}

/* A recipe that is a file is known by its absolute path. */
static char *describe_recipe(const char *recipe) {
    struct stat file;
    char *whole = recipe && stat(recipe, &file) == 0 && S_ISREG(file.st_mode) ? realpath(recipe, NULL) : NULL;
    return whole ? whole : copy(recipe);
}

/* The last part of a path, of a GGUF without its ending. */
static char *last_name(const char *path) {
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    size_t length = strlen(name);
    return cli_copy_text(name, cli_ends_with(name, ".gguf") ? length - 5 : length);
}

gumbel_status cli_cache_find(const char *path, const char *repository, const cli_cache_options *options,
                             cli_cache_entry *entry, gumbel_error *error) {
    char key[KEY_TEXT], *cache = NULL;
    *entry = (cli_cache_entry){.source = cli_canonical_path(path), .max_context = options->max_context};
    if (!entry->source)
        return gb_fail_errno(error, errno, "%s", path);
    entry->model = repository ? copy(repository) : last_name(entry->source);
    entry->recipe = describe_recipe(options->quantize);
    gumbel_status status = find_key(entry, key, error);
    if (status == GUMBEL_OK)
        status = cli_cache_folder(&cache, error);
    if (status == GUMBEL_OK)
        status = cli_cache_make_folder(cache, error);
    if (status == GUMBEL_OK)
        place_key(cache, key, entry);
    free(cache);
    return status;
}

static bool is_same(const char *a, const char *b) {
    return a && b ? strcmp(a, b) == 0 : a == b;
}

static bool supersedes(const cli_cache_entry *entry, const char *folder) {
    cli_cache_entry other;
    bool is_superseded = cli_cache_read(folder, &other) && !is_same(folder, entry->folder) &&
                         is_same(other.source, entry->source) && is_same(other.recipe, entry->recipe) &&
                         other.max_context == entry->max_context;
    cli_cache_entry_free(&other);
    return is_superseded;
}

char *cli_cache_find_superseded(const cli_cache_entry *entry) {
    char *cache = cli_copy_text(entry->folder, (size_t)(strrchr(entry->folder, '/') - entry->folder));
    char *found = NULL;
    cli_names names = {0};
    cli_names_read(&names, cache);
    for (size_t i = 0; i < names.count && !found; i++) {
        char *folder = cli_join(cache, names.items[i]);
        if (cli_cache_is_entry_name(names.items[i]) && supersedes(entry, folder))
            found = folder;
        else
            free(folder);
    }
    cli_names_free(&names);
    free(cache);
    return found;
}

void cli_cache_entry_free(cli_cache_entry *entry) {
    free(entry->folder);
    free(entry->program);
    free(entry->source);
    free(entry->model);
    free(entry->recipe);
    *entry = (cli_cache_entry){0};
}

/* Shorter ones are of older versions, and are listed to be removed. */
bool cli_cache_is_entry_name(const char *name) {
    const char *dash = strrchr(name, '-'), *digits = dash ? dash + 1 : "";
    size_t length = strlen(digits);
    return name[0] != '.' && length >= LEAST_DIGITS && strspn(digits, "0123456789abcdef") == length;
}

/* ---- The record: texts, each ended by a zero byte -------------------------------------------------------
 */

static bool read_fields(const char *folder, gb_byte_buffer *text, const char *fields[FIELDS]) {
    gumbel_error error;
    char *path = cli_join(folder, CLI_CACHE_RECORD);
    size_t count = 0;
    if (cli_read_file(path, text, &error) == GUMBEL_OK)
        for (size_t at = 0; at < text->size && count < FIELDS; at += strlen(text->text + at) + 1)
            fields[count++] = text->text + at;
    free(path);
    return count == FIELDS && fields[0][0] == '/';
}

bool cli_cache_read(const char *folder, cli_cache_entry *entry) {
    gb_byte_buffer text = {0};
    const char *fields[FIELDS];
    bool is_read = read_fields(folder, &text, fields);
    *entry = (cli_cache_entry){.folder = copy(folder), .program = cli_join(folder, "program.gumbel")};
    if (is_read) {
        entry->source = copy(fields[0]);
        entry->model = copy(fields[1]);
        entry->recipe = fields[2][0] ? copy(fields[2]) : NULL;
        entry->max_context = (uint32_t)strtoul(fields[3], NULL, 10);
    }
    gb_buffer_free(&text);
    return is_read;
}

static bool write_file(const char *path, const gb_byte_buffer *text) {
    FILE *file = fopen(path, "wb");
    bool is_written = file && fwrite(text->data, 1, text->size, file) == text->size;
    return file && fclose(file) == 0 && is_written;
}

gumbel_status cli_cache_write(const cli_cache_entry *entry, gumbel_error *error) {
    char *path = cli_join(entry->folder, CLI_CACHE_RECORD), *new_path = cli_join(entry->folder, NEW_RECORD);
    gb_byte_buffer text = {0};
    cli_append(&text, entry->source, strlen(entry->source) + 1);
    cli_append(&text, entry->model, strlen(entry->model) + 1);
    cli_append(&text, entry->recipe ? entry->recipe : "", entry->recipe ? strlen(entry->recipe) + 1 : 1);
    gb_buffer_print(&text, "%" PRIu32 "%c", entry->max_context, '\0');
    bool is_written = write_file(new_path, &text) && rename(new_path, path) == 0;
    gumbel_status status = is_written ? GUMBEL_OK : gb_fail_errno(error, errno, "%s", path);
    gb_buffer_free(&text);
    free(path);
    free(new_path);
    return status;
}

void cli_cache_note_use(const cli_cache_entry *entry) {
    cli_cache_entry before;
    char *path = cli_join(entry->folder, CLI_CACHE_RECORD);
    if (cli_cache_read(entry->folder, &before) && is_same(before.source, entry->source))
        (void)utimensat(AT_FDCWD, path, NULL, 0);
    else
        (void)cli_cache_write(entry, NULL);
    cli_cache_entry_free(&before);
    free(path);
}

int64_t cli_cache_last_use(const char *folder) {
    char *path = cli_join(folder, CLI_CACHE_RECORD);
    struct stat file;
    int64_t seconds = stat(path, &file) == 0 ? (int64_t)file.st_mtim.tv_sec : 0;
    free(path);
    return seconds;
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
