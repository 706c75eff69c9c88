/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/checkpoint/gguf.h"

#include "base/input_file.h"
#include "base/status.h"
#include "cli/checkpoint/names.h"
#include "hub/gguf_names.h"
#include "hub/names.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

/* Adds the models in the folder, or in the one called below within it. A part stands for the first. */
static bool add_models(const char *folder, const char *below, cli_names *models) {
    cli_names files = {0};
    char *path = cli_join(folder, below), name[HUB_PATH];
    bool is_read = cli_names_read(&files, path);
    for (size_t i = 0; i < files.count; i++) {
        if (!hub_is_gguf_model(files.items[i]))
            continue;
        snprintf(name, sizeof name, "%s%s%s", below, below[0] ? "/" : "", files.items[i]);
        const char *number = hub_part_number(name);
        if (number)
            memcpy(name + (number - name), "00001", 5);
        cli_names_add(models, name);
    }
    cli_names_free(&files);
    free(path);
    return is_read;
}

static void add_models_below(const char *folder, cli_names *models) {
    cli_names names = {0};
    cli_names_read(&names, folder);
    for (size_t i = 0; i < names.count; i++)
        add_models(folder, names.items[i], models);
    cli_names_free(&names);
}

/* The index of the model that is meant, or what hub_choose_gguf has for none. */
static int choose(const cli_names *models, const char *quant) {
    if (!quant && models->count > 1)
        return HUB_SEVERAL_GGUFS;
    return hub_choose_gguf((const char *const *)models->items, models->count, quant ? quant : "");
}

static gumbel_status refuse_choice(const cli_names *models, const char *shown, gumbel_error *error) {
    char list[256];
    hub_describe_names((const char *const *)models->items, models->count, list, sizeof list);
    return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "%s has %zu models: %s; name one of them, as in %s/%s",
                   shown, models->count, list, shown, models->items[0]);
}

gumbel_status cli_find_gguf(const char *path, const char *shown, const char *quant, char **gguf,
                            gumbel_error *error) {
    cli_names models = {0};
    gumbel_status status = GUMBEL_OK;
    *gguf = NULL;
    if (!add_models(path, "", &models))
        return gb_fail_errno(error, errno, "%s", path);
    if (choose(&models, quant) == HUB_NO_GGUF)
        add_models_below(path, &models);
    int choice = choose(&models, quant);
    if (choice == HUB_SEVERAL_GGUFS)
        status = refuse_choice(&models, shown, error);
    else if (choice >= 0)
        *gguf = cli_join(path, models.items[choice]);
    cli_names_free(&models);
    return status;
}
