/* SPDX-License-Identifier: Apache-2.0 */
#include "originals.h"

#include "base/file_map.h"
#include "bundled.h"
#include "support/paths.h"
#include "support/temporary.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_ORIGINALS = 160 };

static program_file originals[MOST_ORIGINALS];
static size_t count;

static void add_original(const char *path) {
    gb_file_map map;
    gumbel_error error;
    if (count == MOST_ORIGINALS || gb_map_file(path, &map, &error) != GUMBEL_OK) {
        fprintf(stderr, "%s: no room, or it cannot be read\n", path);
        exit(1);
    }
    originals[count++] = (program_file){(uint8_t *)(uintptr_t)map.data, map.size};
}

/* The recipes in turns; rows that one does not divide keep their floats. */
static void export_configuration(const char *config, size_t turn) {
    static const char *const recipes[] = {NULL, "int4", "int8", "int4-affine", "sensitive"};
    const char *path = temporary_path("original.gumbel");
    gumbel_error error;
    gumbel_export_options options = {.size = sizeof options,
                                     .quantize = recipes[turn % (sizeof recipes / sizeof *recipes)],
                                     .max_context = 256,
                                     .max_top_logprobs = turn % 7 == 2 ? 5 : 0,
                                     .logits = turn % 7 == 3,
                                     .random_weights = true,
                                     .random_seed = turn};
    gumbel_status status = gumbel_export(config, path, &options, &error);
    if (status != GUMBEL_OK && options.quantize) {
        options.quantize = NULL;
        status = gumbel_export(config, path, &options, &error);
    }
    if (status != GUMBEL_OK) {
        fprintf(stderr, "%s: %s\n", config, error.message);
        exit(1);
    }
    add_original(path);
    unlink(path);
}

static int is_configuration(const struct dirent *entry) {
    return strstr(entry->d_name, ".json") && !strstr(entry->d_name, ".golden.json");
}

static void export_configurations(void) {
    char folder[512], config[1024];
    struct dirent **entries;
    snprintf(folder, sizeof folder, "%s/export/agreement", test_data_folder);
    const int found = scandir(folder, &entries, is_configuration, alphasort);
    if (found <= 0) {
        fprintf(stderr, "%s: no configurations\n", folder);
        exit(1);
    }
    for (int i = 0; i < found; i++) {
        snprintf(config, sizeof config, "%s/%s", folder, entries[i]->d_name);
        export_configuration(config, (size_t)i);
        free(entries[i]);
    }
    free(entries);
}

void read_originals(void) {
    export_bundled();
    for (size_t i = 0; i < BUNDLED_PROGRAMS; i++)
        add_original(bundled_path(i));
    export_configurations();
}

size_t original_count(void) {
    return count;
}

const program_file *original_file(size_t i) {
    return &originals[i];
}
