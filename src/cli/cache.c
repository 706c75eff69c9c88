/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cache.h"

#include "base/input_file.h"
#include "cli/report.h"
#include "cli/storage.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <xxhash.h>

static void add_text(cli_text *text, const char *added) {
    cli_text_add(text, added, strlen(added));
}

static gumbel_status refuse_path(const char *path, gumbel_error *error) {
    cli_refuse(error, "%s: %s", path, strerror(errno));
    return error->status = GUMBEL_ERROR_IO;
}

static bool ends_with(const char *text, const char *ending) {
    size_t length = strlen(text), tail = strlen(ending);
    return length >= tail && strcmp(text + length - tail, ending) == 0;
}

/* ---- Checkpoints --------------------------------------------------------------------------------------- */

static bool is_gguf(const char *path) {
    char magic[4];
    struct stat information;
    int descriptor;
    if (gb_open_input(path, &descriptor, &information, NULL) != GUMBEL_OK)
        return false;
    bool found = read(descriptor, magic, sizeof magic) == sizeof magic && memcmp(magic, "GGUF", 4) == 0;
    close(descriptor);
    return found;
}

bool cli_is_checkpoint(const char *path) {
    struct stat file;
    return stat(path, &file) == 0 && (S_ISDIR(file.st_mode) || (S_ISREG(file.st_mode) && is_gguf(path)));
}

/* Whether a directory's export may read the file of that name. */
static bool is_part_of_directory(const char *name) {
    return ends_with(name, ".safetensors") || ends_with(name, ".json") || ends_with(name, ".jinja");
}

/* Whether both name parts of one GGUF: they are equal but for the five digits of NAME-00001-of-00002.gguf. */
static bool is_part_of_gguf(const char *name, const char *first) {
    enum { DIGITS = 5, TAIL = sizeof "-of-00002.gguf" - 1 };
    size_t length = strlen(first);
    if (strcmp(name, first) == 0)
        return true;
    if (strlen(name) != length || length < DIGITS + TAIL || !strstr(first, "-of-"))
        return false;
    size_t digits = length - TAIL - DIGITS;
    return memcmp(name, first, digits) == 0 && strcmp(name + digits + DIGITS, first + digits + DIGITS) == 0;
}

/* ---- States -------------------------------------------------------------------------------------------- */

/* The state of a file that the program is made from: no output may replace it. */
static void add_file_state(const char *name, const struct stat *file, cli_text *state) {
    char line[96];
    snprintf(line, sizeof line, "%jd %jd.%09ld\n", (intmax_t)file->st_size, (intmax_t)file->st_mtim.tv_sec,
             file->st_mtim.tv_nsec);
    add_text(state, name);
    cli_text_add(state, "", 1);
    add_text(state, line);
    gumbel_error error;
    if (gb_note_input(name, file, &error) != GUMBEL_OK)
        exit(cli_fail("%s", error.message));
}

/* Adds the state of each file of directory that belongs to the checkpoint; gguf: the first part's name, or
 * NULL. */
static gumbel_status add_file_states(const char *directory, const char *gguf, cli_text *state,
                                     gumbel_error *error) {
    struct dirent **entries;
    int count = scandir(directory, &entries, NULL, alphasort);
    if (count < 0)
        return refuse_path(directory, error);
    cli_text path = {0};
    for (int i = 0; i < count; i++) {
        const char *name = entries[i]->d_name;
        struct stat file;
        cli_text_clear(&path);
        add_text(&path, directory);
        add_text(&path, "/");
        add_text(&path, name);
        if ((gguf ? is_part_of_gguf(name, gguf) : is_part_of_directory(name)) &&
            stat(path.bytes, &file) == 0 && S_ISREG(file.st_mode))
            add_file_state(name, &file, state);
        free(entries[i]);
    }
    free(entries);
    cli_text_free(&path);
    return GUMBEL_OK;
}

/* A recipe's name, or of a file where it lies and its state; nothing where none is given, of which another
 * program may come than of a given "none". */
static void add_recipe(const char *quantize, cli_text *identity, cli_text *state) {
    const char *recipe = quantize ? quantize : "";
    struct stat file;
    char *full = stat(recipe, &file) == 0 && S_ISREG(file.st_mode) ? realpath(recipe, NULL) : NULL;
    add_text(identity, full ? full : recipe);
    if (full)
        add_file_state(full, &file, state);
    free(full);
}

/* ---- Places -------------------------------------------------------------------------------------------- */

/* The folder of gumbel within that of all caches. */
static gumbel_status find_directory(cli_text *directory, gumbel_error *error) {
    const char *caches = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (caches && caches[0] == '/') { /* a relative one is to be ignored */
        add_text(directory, caches);
    } else if (home && home[0] == '/') {
        add_text(directory, home);
        add_text(directory, "/.cache");
    } else {
        cli_refuse(error, "no place for a program made from a checkpoint: neither XDG_CACHE_HOME nor HOME is "
                          "an absolute path; gumbel export writes it where -o says");
        return error->status = GUMBEL_ERROR_UNSUPPORTED;
    }
    add_text(directory, "/gumbel");
    return GUMBEL_OK;
}

static gumbel_status make_directories(char *path, gumbel_error *error) {
    for (char *slash = strchr(path + 1, '/');; slash = strchr(slash + 1, '/')) {
        if (slash)
            *slash = '\0';
        bool is_there = mkdir(path, 0700) == 0 || errno == EEXIST || access(path, X_OK) == 0;
        gumbel_status status = is_there ? GUMBEL_OK : refuse_path(path, error);
        if (slash)
            *slash = '/';
        if (status != GUMBEL_OK || !slash)
            return status;
    }
}

static void add_hash(const cli_text *hashed, cli_text *name) {
    char digits[24];
    snprintf(digits, sizeof digits, "-%016" PRIx64, (uint64_t)XXH3_64bits(hashed->bytes, hashed->length));
    add_text(name, digits);
}

/* Describes the checkpoint at full, a path without links: what is to be hashed, and its name for people. */
static gumbel_status describe(const char *full, const cli_cache_options *options, cli_text *identity,
                              cli_text *state, cli_text *name, gumbel_error *error) {
    struct stat file;
    if (stat(full, &file) != 0)
        return refuse_path(full, error);
    char context[24];
    snprintf(context, sizeof context, " %" PRIu32 " ", options->max_context);
    add_text(identity, full);
    add_text(identity, context);
    add_text(state, gumbel_version());
    add_recipe(options->quantize, identity, state);
    const char *last = strrchr(full, '/') + 1;
    bool is_file = !S_ISDIR(file.st_mode);
    size_t length = strlen(last), shown = is_file && ends_with(last, ".gguf") ? length - 5 : length;
    cli_text_add(name, last, shown < 64 ? shown : 64);
    if (!is_file)
        return add_file_states(full, NULL, state, error);
    char *directory = cli_copy_text(full, last == full + 1 ? 1 : (size_t)(last - full) - 1);
    gumbel_status status = add_file_states(directory, last, state, error);
    free(directory);
    return status;
}

static gumbel_status fill_entry(const char *full, const cli_cache_options *options, cli_cache_entry *entry,
                                gumbel_error *error) {
    cli_text identity = {0}, state = {0}, name = {0}, directory = {0}, path = {0};
    gumbel_status status = describe(full, options, &identity, &state, &name, error);
    if (status == GUMBEL_OK)
        status = find_directory(&directory, error);
    if (status == GUMBEL_OK)
        status = make_directories(directory.bytes, error);
    if (status == GUMBEL_OK) {
        add_hash(&identity, &name);
        entry->identity_length = name.length;
        add_hash(&state, &name);
        add_text(&name, ".gumbel");
        add_text(&path, directory.bytes);
        add_text(&path, "/");
        add_text(&path, name.bytes);
    }
    entry->directory = directory.bytes;
    entry->name = name.bytes;
    entry->path = path.bytes;
    cli_text_free(&identity);
    cli_text_free(&state);
    return status;
}

gumbel_status cli_cache_find(const char *checkpoint, const cli_cache_options *options, cli_cache_entry *entry,
                             gumbel_error *error) {
    *entry = (cli_cache_entry){0};
    char *full = realpath(checkpoint, NULL);
    if (!full)
        return refuse_path(checkpoint, error);
    gumbel_status status = fill_entry(full, options, entry, error);
    free(full);
    return status;
}

size_t cli_cache_stale(const cli_cache_entry *entry, bool remove) {
    DIR *directory = opendir(entry->directory);
    size_t count = 0;
    for (const struct dirent *file; directory && (file = readdir(directory));) {
        const char *name = file->d_name;
        if (strncmp(name, entry->name, entry->identity_length) != 0 || strlen(name) != strlen(entry->name) ||
            strcmp(name, entry->name) == 0)
            continue;
        count++;
        if (remove)
            unlinkat(dirfd(directory), name, 0);
    }
    if (directory)
        closedir(directory);
    return count;
}

void cli_cache_entry_free(cli_cache_entry *entry) {
    free(entry->directory);
    free(entry->name);
    free(entry->path);
    *entry = (cli_cache_entry){0};
}
