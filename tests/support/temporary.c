/* SPDX-License-Identifier: Apache-2.0 */
#include "support/temporary.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

enum { MOST_LEVELS = 8 }; /* of directories below it */

static char directory[256];

static void empty(const char *path, int depth) {
    DIR *entries = opendir(path);
    if (!entries)
        return;
    for (const struct dirent *entry; (entry = readdir(entries));) {
        char full[600];
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        snprintf(full, sizeof full, "%s/%s", path, entry->d_name);
        if (unlink(full) != 0 && depth > 0) {
            empty(full, depth - 1);
            rmdir(full);
        }
    }
    closedir(entries);
}

void empty_temporary_directory(void) {
    empty(temporary_directory(), MOST_LEVELS);
}

static void remove_directory(void) {
    empty(directory, MOST_LEVELS);
    rmdir(directory);
}

const char *temporary_directory(void) {
    if (directory[0] == '\0') {
        const char *folder = getenv("TMPDIR");
        snprintf(directory, sizeof directory, "%s/gumbel-test-XXXXXX", folder ? folder : "/tmp");
        assert_non_null(mkdtemp(directory));
        atexit(remove_directory);
    }
    return directory;
}

const char *temporary_path(const char *name) {
    enum { MAX_NAMES = 64 };
    static char paths[MAX_NAMES][512];
    static size_t count;
    char path[512];
    snprintf(path, sizeof path, "%s/%s", temporary_directory(), name);
    char *slash = strrchr(path, '/');
    *slash = '\0';
    mkdir(path, 0777);
    *slash = '/';
    size_t at = 0;
    while (at < count && strcmp(paths[at], path) != 0)
        at++;
    assert_true(at < MAX_NAMES);
    if (at == count)
        memcpy(paths[count++], path, sizeof path);
    return paths[at];
}

void write_file(const char *path, const void *data, size_t size) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

void write_text(const char *path, const char *text) {
    write_file(path, text, strlen(text));
}

size_t count_files(const char *path) {
    size_t count = 0;
    DIR *entries = opendir(path);
    assert_non_null(entries);
    for (const struct dirent *entry; (entry = readdir(entries));)
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    closedir(entries);
    return count;
}
