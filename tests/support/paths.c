/* SPDX-License-Identifier: Apache-2.0 */
#include "support/paths.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char test_data_folder[] = GUMBEL_TEST_DATA;
const char test_models_folder[] = GUMBEL_TEST_MODELS;

static char paths[1 << 16]; /* one after the other, until an empty one */

static const char *path_below(const char *folder, const char *name) {
    const size_t folder_length = strlen(folder);
    char *path = paths;
    for (; *path; path += strlen(path) + 1)
        if (strncmp(path, folder, folder_length) == 0 && strcmp(path + folder_length + 1, name) == 0)
            return path;
    if (folder_length + strlen(name) + 3 > (size_t)(paths + sizeof paths - path)) {
        fprintf(stderr, "no room for the path of %s\n", name);
        abort();
    }
    sprintf(path, "%s/%s", folder, name);
    return path;
}

const char *test_data(const char *name) {
    return path_below(test_data_folder, name);
}

const char *bundled_model(const char *name) {
    return path_below(test_models_folder, name);
}
