/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/checkpoint/gguf.h"

#include "base/input_file.h"
#include "cli/base/report.h"
#include "cli/checkpoint/names.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The ending of a part; its number is the first DIGITS bytes after the dash. */
#define PART_ENDING "-00001-of-00002.gguf"
enum { DIGITS = 5, ENDING = sizeof PART_ENDING - 1 };

bool cli_is_gguf(const char *path) {
    char magic[4];
    struct stat information;
    int descriptor;
    if (gb_open_input(path, &descriptor, &information, NULL) != GUMBEL_OK)
        return false;
    bool found = read(descriptor, magic, sizeof magic) == sizeof magic && memcmp(magic, "GGUF", 4) == 0;
    close(descriptor);
    return found;
}

/* Where the number of a part stands in its name, or NULL. */
static char *part_number(char *name) {
    size_t length = strlen(name);
    if (length < ENDING)
        return NULL;
    char *ending = name + length - ENDING;
    for (size_t i = 0; i < ENDING; i++) {
        bool is_digit = PART_ENDING[i] >= '0' && PART_ENDING[i] <= '9';
        if (is_digit ? ending[i] < '0' || ending[i] > '9' : ending[i] != PART_ENDING[i])
            return NULL;
    }
    return ending + 1;
}

/* The name of the first part, of a whole file its own; in new memory. */
static char *first_part(const char *name) {
    char *first = cli_copy_text(name, strlen(name)), *number = part_number(first);
    if (number)
        memcpy(number, "00001", DIGITS);
    return first;
}

bool cli_is_part_of_gguf(const char *name, const char *first) {
    char *a = first_part(name), *b = first_part(first);
    bool is_part = strcmp(a, b) == 0;
    free(a);
    free(b);
    return is_part;
}

/* Projectors of images and importance matrices lie beside models under the same ending. */
static bool is_model(const char *name) {
    return cli_ends_with(name, ".gguf") && !strstr(name, "mmproj") && !strstr(name, "imatrix");
}

/* Adds the models in a folder; prefix: "" or the folder's name within another, with a slash. */
static bool add_models(const char *path, const char *prefix, cli_names *models) {
    cli_names files = {0};
    bool is_read = cli_names_read(&files, path);
    for (size_t i = 0; i < files.count; i++) {
        if (!is_model(files.items[i]))
            continue;
        cli_text name = {0};
        char *first = first_part(files.items[i]);
        cli_text_add(&name, prefix, strlen(prefix));
        cli_text_add(&name, first, strlen(first));
        cli_names_add(models, name.bytes);
        cli_text_free(&name);
        free(first);
    }
    cli_names_free(&files);
    return is_read;
}

static void add_models_below(const char *path, cli_names *models) {
    cli_names folders = {0};
    cli_names_read(&folders, path);
    for (size_t i = 0; i < folders.count; i++) {
        char *folder = cli_join(path, folders.items[i]), *prefix = cli_join(folders.items[i], "");
        add_models(folder, prefix, models);
        free(folder);
        free(prefix);
    }
    cli_names_free(&folders);
}

gumbel_status cli_find_gguf(const char *path, const char *shown, char **name, gumbel_error *error) {
    cli_names models = {0};
    gumbel_status status = GUMBEL_OK;
    *name = NULL;
    if (!add_models(path, "", &models)) {
        cli_refuse(error, "%s: %s", path, strerror(errno));
        status = error->status = GUMBEL_ERROR_IO;
    } else if (models.count == 0) {
        add_models_below(path, &models);
    }
    if (models.count > 1) {
        char list[256];
        cli_names_describe(&models, list, sizeof list);
        cli_refuse(error, "%s has %zu models: %s; name one of them, as in %s/%s", shown, models.count, list,
                   shown, models.items[0]);
        status = error->status;
    } else if (models.count == 1) {
        *name = cli_copy_text(models.items[0], strlen(models.items[0]));
    }
    cli_names_free(&models);
    return status;
}
