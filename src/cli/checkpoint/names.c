/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/checkpoint/names.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

void cli_names_add(cli_names *names, const char *name) {
    for (size_t i = 0; i < names->count; i++)
        if (strcmp(names->items[i], name) == 0)
            return;
    cli_reserve((void **)&names->items, &names->capacity, names->count + 1, sizeof *names->items);
    names->items[names->count++] = cli_copy_text(name, strlen(name));
}

void cli_names_free(cli_names *names) {
    for (size_t i = 0; i < names->count; i++)
        free(names->items[i]);
    free(names->items);
    *names = (cli_names){0};
}

bool cli_names_read(cli_names *names, const char *path) {
    struct dirent **entries;
    int count = scandir(path, &entries, NULL, alphasort);
    if (count < 0)
        return false;
    for (int i = 0; i < count; i++) {
        if (entries[i]->d_name[0] != '.')
            cli_names_add(names, entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
    return true;
}

char *cli_join(const char *folder, const char *name) {
    gb_byte_buffer path = {0};
    cli_append_string(&path, folder);
    cli_append_string(&path, "/");
    cli_append_string(&path, name);
    return path.text;
}
