/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cache/entry.h"

#include "base/status.h"
#include "cli/base/files.h"
#include "cli/base/report.h"
#include "cli/base/signals.h"
#include "cli/cache/folder.h"
#include "cli/checkpoint/checkpoint.h"
#include "cli/checkpoint/fingerprint.h"
#include "cli/checkpoint/names.h"
#include "hub/cache.h"
#include "hub/lock.h"

#include <ctype.h>
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

enum { LONGEST_NAME = 64, LEAST_DIGITS = 8, KEY_TEXT = 24, FIELDS = 4 };

/* ---- Keys ---------------------------------------------------------------------------------------------- */

/* The ending of the entry's name. A repository's name is in the program; that of a recipe's file is not. */
static gumbel_status find_key(const cli_cache_entry *entry, char key[KEY_TEXT], gumbel_error *error) {
    gb_byte_buffer print = {0};
    bool is_file = entry->recipe[0] == '/';
    gb_buffer_print(&print, "%s %" PRIu64 " %" PRIu32 " %s %s\n", gumbel_version(),
                    (uint64_t)gumbel_program_format(), entry->max_context,
                    strchr(entry->model, '/') ? entry->model : "", is_file ? "/" : entry->recipe);
    gumbel_status status = is_file ? cli_fingerprint_file(entry->recipe, "", &print, error) : GUMBEL_OK;
    if (status == GUMBEL_OK)
        status = cli_fingerprint(entry->source, &print, error);
    snprintf(key, KEY_TEXT, "-%016" PRIx64, XXH3_64bits(print.data, print.size));
    gb_buffer_free(&print);
    return status;
}

bool cli_cache_is_current(const cli_cache_entry *entry) {
    char key[KEY_TEXT];
    return find_key(entry, key, NULL) == GUMBEL_OK && hub_ends_with(entry->name, key);
}

/* Shorter ones are of older versions, and are listed to be removed. */
static bool has_key(const char *name) {
    const char *dash = strrchr(name, '-'), *digits = dash ? dash + 1 : "";
    size_t length = strlen(digits);
    return length >= LEAST_DIGITS && hub_is_hash(digits, length);
}

/* The model's name as a file's: "ORG/NAME" becomes ORG--NAME, and what shells would mind an underscore. */
static void add_model(const char *model, gb_byte_buffer *name) {
    for (const char *byte = model; *byte && name->size < LONGEST_NAME; byte++) {
        bool is_first = byte == model;
        bool is_plain = isalnum((unsigned char)*byte) || strchr(is_first ? "+_" : ".-+_", *byte);
        if (*byte == '/' && !is_first)
            cli_append_string(name, "--");
        else
            cli_append(name, is_plain ? byte : "_", 1);
    }
}

/* ---- The record ---------------------------------------------------------------------------------------- */

static void parse(cli_cache_entry *entry) {
    const gb_byte_buffer *record = &entry->record;
    const char *fields[FIELDS];
    size_t count = 0;
    for (size_t at = 0; at < record->size && count < FIELDS; at += strlen(record->text + at) + 1)
        fields[count++] = record->text + at;
    if (count < FIELDS || fields[0][0] != '/')
        return;
    entry->source = fields[0];
    entry->model = fields[1];
    entry->recipe = fields[2];
    entry->max_context = (uint32_t)strtoul(fields[3], NULL, 10);
}

static void add_field(cli_cache_entry *entry, const char *text, size_t length) {
    cli_append(&entry->record, text, length);
    cli_append(&entry->record, "", 1);
}

/* The last part of a path, of a GGUF without its ending. */
static void add_last_name(cli_cache_entry *entry, const char *path) {
    const char *name = strrchr(path, '/') + 1;
    size_t length = strlen(name);
    add_field(entry, name, hub_ends_with(name, ".gguf") ? length - 5 : length);
}

/* A recipe that is a file is known by its absolute path. */
static void add_recipe(cli_cache_entry *entry, const char *recipe) {
    struct stat file;
    bool is_file = stat(recipe, &file) == 0 && S_ISREG(file.st_mode);
    char *whole = is_file ? realpath(recipe, NULL) : NULL;
    add_field(entry, whole ? whole : recipe, strlen(whole ? whole : recipe));
    free(whole);
}

static gumbel_status describe(const char *path, const char *repository, const cli_cache_options *options,
                              cli_cache_entry *entry, gumbel_error *error) {
    char *source = cli_canonical_path(path), number[16];
    if (!source)
        return gb_fail_errno(error, errno, "%s", path);
    add_field(entry, source, strlen(source));
    if (repository)
        add_field(entry, repository, strlen(repository));
    else
        add_last_name(entry, source);
    add_recipe(entry, options->quantize ? options->quantize : "");
    snprintf(number, sizeof number, "%" PRIu32, options->max_context);
    add_field(entry, number, strlen(number));
    parse(entry);
    free(source);
    return GUMBEL_OK;
}

void cli_cache_note_use(const cli_cache_entry *entry) {
    gb_byte_buffer before = {0};
    (void)cli_read_file(entry->record_path, &before, NULL);
    if (before.size == entry->record.size && memcmp(before.data, entry->record.data, before.size) == 0)
        (void)utimensat(AT_FDCWD, entry->record_path, NULL, 0);
    else
        (void)cli_write_file(entry->record_path, &entry->record, NULL);
    gb_buffer_free(&before);
}

int64_t cli_cache_last_use(const cli_cache_entry *entry) {
    struct stat file;
    return stat(entry->record_path, &file) == 0 ? (int64_t)file.st_mtime : 0;
}

/* ---- Entries ------------------------------------------------------------------------------------------- */

static void place(const char *cache, const char *name, cli_cache_entry *entry) {
    gb_byte_buffer lock = {0};
    cli_append_string(&lock, cache);
    cli_append_string(&lock, "/.");
    cli_append_string(&lock, name);
    entry->lock = lock.text;
    entry->folder = cli_join(cache, name);
    entry->program = cli_join(entry->folder, "program.gumbel");
    entry->record_path = cli_join(entry->folder, "entry");
    entry->name = strrchr(entry->folder, '/') + 1;
}

void cli_cache_entry_free(cli_cache_entry *entry) {
    free(entry->folder);
    free(entry->program);
    free(entry->record_path);
    free(entry->lock);
    free(entry->reason);
    gb_buffer_free(&entry->record);
    *entry = (cli_cache_entry){0};
}

static void read_entry(const char *cache, const char *name, cli_cache_entry *entry) {
    place(cache, name, entry);
    cli_clear_folder_of(entry->record_path);
    if (cli_read_file(entry->record_path, &entry->record, NULL) == GUMBEL_OK)
        parse(entry);
    entry->last_use = cli_cache_last_use(entry);
}

gumbel_status cli_cache_read(const char *path, cli_cache_entries *entries, gumbel_error *error) {
    cli_names names = {0};
    struct stat file;
    bool is_read = cli_names_read(&names, path);
    gumbel_status status = is_read ? GUMBEL_OK : gb_fail_errno(error, errno, "%s", path);
    *entries = (cli_cache_entries){.items = cli_allocate(names.count, sizeof *entries->items)};
    for (size_t i = 0; i < names.count; i++) {
        cli_cache_entry *entry = &entries->items[entries->count];
        if (has_key(names.items[i]))
            read_entry(path, names.items[i], entry);
        if (entry->folder && lstat(entry->folder, &file) == 0 && S_ISDIR(file.st_mode))
            entries->count++;
        else
            cli_cache_entry_free(entry);
    }
    cli_names_free(&names);
    return status;
}

void cli_cache_entries_free(cli_cache_entries *entries) {
    for (size_t i = 0; i < entries->count; i++)
        cli_cache_entry_free(&entries->items[i]);
    free(entries->items);
    *entries = (cli_cache_entries){0};
}

static bool supersedes(const cli_cache_entry *entry, const cli_cache_entry *other) {
    return other->source && strcmp(other->source, entry->source) == 0 &&
           strcmp(other->recipe, entry->recipe) == 0 && other->max_context == entry->max_context;
}

/* Where there is a program of that key, whatever its name; else in a new place. */
static void place_key(const char *cache, const char *key, cli_cache_entry *entry,
                      cli_cache_entry *superseded) {
    cli_cache_entries others;
    gb_byte_buffer name = {0};
    (void)cli_cache_read(cache, &others, NULL);
    add_model(entry->model, &name);
    cli_append_string(&name, key);
    for (size_t i = 0; i < others.count; i++) {
        cli_cache_entry *other = &others.items[i];
        if (hub_ends_with(other->name, key)) {
            gb_buffer_clear(&name);
            cli_append_string(&name, other->name);
        } else if (!superseded->folder && supersedes(entry, other)) {
            *superseded = *other;
            *other = (cli_cache_entry){0};
        }
    }
    place(cache, name.text, entry);
    gb_buffer_free(&name);
    cli_cache_entries_free(&others);
}

gumbel_status cli_cache_find(const char *path, const char *repository, const cli_cache_options *options,
                             cli_cache_entry *entry, cli_cache_entry *superseded, gumbel_error *error) {
    char key[KEY_TEXT], *cache;
    bool is_there;
    *entry = *superseded = (cli_cache_entry){0};
    GB_TRY(describe(path, repository, options, entry, error));
    GB_TRY(find_key(entry, key, error));
    GB_TRY(cli_cache_folder(&cache, error));
    gumbel_status status = hub_make_folder(cache, 0700, error);
    if (status == GUMBEL_OK)
        status = cli_cache_check(cache, S_IFDIR, &is_there, error);
    if (status == GUMBEL_OK)
        place_key(cache, key, entry, superseded);
    free(cache);
    return status;
}

/* ---- Programs ------------------------------------------------------------------------------------------ */

static bool go_on(void *user, const char *what, uint64_t done, uint64_t total) {
    (void)user, (void)what, (void)done, (void)total;
    return !cli_interrupted();
}

static void note(void *user, const char *line) {
    (void)user;
    cli_note("%s", line);
}

gumbel_status cli_cache_lock(const cli_cache_entry *entry, const char *waited_for, int *lock,
                             gumbel_error *error) {
    static const hub_callbacks callbacks = {.progress = go_on, .note = note};
    return hub_lock_file(entry->lock, "exports", waited_for, waited_for ? &callbacks : NULL, lock, error);
}

gumbel_status cli_cache_load(const cli_cache_entry *entry, gumbel_program **program, bool *is_damaged,
                             gumbel_error *error) {
    bool is_there;
    *program = NULL;
    *is_damaged = false;
    GB_TRY(cli_cache_check(entry->folder, S_IFDIR, &is_there, error));
    GB_TRY(cli_cache_check(entry->program, S_IFREG, &is_there, error));
    if (!is_there)
        return GUMBEL_OK;
    gumbel_status status = gumbel_program_open(entry->program, program, error);
    *is_damaged =
        status == GUMBEL_ERROR_FORMAT || status == GUMBEL_ERROR_UNSUPPORTED || status == GUMBEL_ERROR_IO;
    return status;
}

gumbel_status cli_cache_create(const cli_cache_entry *entry, gumbel_error *error) {
    if (mkdir(entry->folder, 0700) != 0)
        return gb_fail_errno(error, errno, "%s", entry->folder);
    return cli_write_file(entry->record_path, &entry->record, error);
}

gumbel_status cli_cache_remove(const cli_cache_entry *entry, gumbel_error *error) {
    DIR *directory = opendir(entry->folder);
    for (const struct dirent *file; directory && (file = readdir(directory));)
        (void)unlinkat(dirfd(directory), file->d_name, 0); /* "." and ".." are refused */
    if (directory)
        closedir(directory);
    if (rmdir(entry->folder) == 0 || errno == ENOENT)
        return GUMBEL_OK;
    return gb_fail_errno(error, errno, "%s", entry->folder);
}
