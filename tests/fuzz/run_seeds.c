/* SPDX-License-Identifier: Apache-2.0
 *
 * Stands in for libFuzzer: runs a fuzz target once on each file in the directories that are its arguments.
 */
#include "base/file_map.h"
#include "base/memory.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The bytes are copied to a block of just their size, so that the sanitizer sees a read past them. */
static bool run_file(const char *path) {
    gb_file_map map;
    gumbel_error error;
    if (gb_map_file(path, &map, &error) != GUMBEL_OK) {
        fprintf(stderr, "%s\n", error.message);
        return false;
    }
    uint8_t *bytes = gb_allocate(map.size, 1);
    if (bytes) {
        if (map.size)
            memcpy(bytes, map.data, map.size);
        LLVMFuzzerTestOneInput(bytes, map.size);
    }
    gb_unmap_file(&map);
    gb_free(bytes);
    return bytes != NULL;
}

/* Returns the number of files run, or -1. */
static int run_directory(const char *path) {
    DIR *directory = opendir(path);
    if (!directory) {
        perror(path);
        return -1;
    }
    int count = 0;
    for (const struct dirent *entry; count >= 0 && (entry = readdir(directory));) {
        char file[4096];
        if (entry->d_name[0] == '.')
            continue;
        snprintf(file, sizeof file, "%s/%s", path, entry->d_name);
        count = run_file(file) ? count + 1 : -1;
    }
    closedir(directory);
    return count;
}

int main(int argument_count, char **arguments) {
    for (int i = 1; i < argument_count; i++) {
        int count = run_directory(arguments[i]);
        if (count <= 0)
            return fprintf(stderr, "%s: no seeds were run\n", arguments[i]), 1;
        printf("%s: %d seeds\n", arguments[i], count);
    }
    return 0;
}
