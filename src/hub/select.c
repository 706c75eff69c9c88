/* SPDX-License-Identifier: Apache-2.0
 *
 * Which files of a repository are downloaded.
 */
#include "base/memory.h"
#include "base/status.h"
#include "hub/gguf_names.h"
#include "hub/listing.h"

#include <stdio.h>
#include <string.h>

static bool begins_with(const char *text, const char *beginning) {
    return strncmp(text, beginning, strlen(beginning)) == 0;
}

static bool is_top_level(const char *name) {
    return !strchr(name, '/');
}

/* Keeps the files that wanted accepts. */
typedef bool (*wanted_function)(const hub_file *file, const void *user);

static void keep(hub_listing *listing, wanted_function wanted, const void *user) {
    size_t count = 0;
    for (size_t i = 0; i < listing->count; i++) {
        if (wanted(&listing->files[i], user))
            listing->files[count++] = listing->files[i];
        else
            gb_free(listing->files[i].name);
    }
    listing->count = count;
}

/* ---- Safetensors --------------------------------------------------------------------------------------- */

/* "consolidated.safetensors" has the weights of the model files a second time. */
static bool is_checkpoint_file(const hub_file *file, const void *user) {
    (void)user;
    const char *name = file->name;
    if (begins_with(name, "additional_chat_templates/") && hub_ends_with(name, ".jinja"))
        return is_top_level(strchr(name, '/') + 1);
    if (!is_top_level(name) || name[0] == '.' || begins_with(name, "consolidated"))
        return false;
    return hub_ends_with(name, ".safetensors") || hub_ends_with(name, ".json") ||
           hub_ends_with(name, ".jinja");
}

static bool has_safetensors(const hub_listing *listing) {
    bool has_config = false, has_weights = false;
    for (size_t i = 0; i < listing->count; i++) {
        const char *name = listing->files[i].name;
        has_config = has_config || strcmp(name, "config.json") == 0;
        has_weights = has_weights ||
                      (is_checkpoint_file(&listing->files[i], NULL) && hub_ends_with(name, ".safetensors"));
    }
    return has_config && has_weights;
}

/* ---- GGUF ---------------------------------------------------------------------------------------------- */

static bool is_same_gguf(const hub_file *file, const void *user) {
    return hub_is_same_gguf(file->name, user);
}

static gumbel_status refuse_choice(const hub_name *name, const char *const *models, size_t count,
                                   gumbel_error *error) {
    char list[320], quant[HUB_QUANT + 16] = "";
    hub_describe_names(models, count, list, sizeof list);
    if (name->quant[0])
        snprintf(quant, sizeof quant, " of %s", name->quant);
    if (count == 0)
        return gb_fail(
            error, GUMBEL_ERROR_ARGUMENT,
            "%s has no model%s that gumbel reads: neither config.json with .safetensors nor a .gguf",
            name->repository, quant);
    return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "%s: which model%s? There are %s; name one, as in %s/%.100s",
                   name->repository, quant, list, name->repository, models[0]);
}

static gumbel_status select_gguf(hub_listing *listing, const hub_name *name, gumbel_error *error) {
    const char **models = gb_allocate(listing->count, sizeof *models);
    char chosen[HUB_FILE];
    size_t count = 0;
    if (!models)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "%s: no memory for its files", name->repository);
    for (size_t i = 0; i < listing->count; i++)
        if (hub_is_gguf_model(listing->files[i].name) && hub_is_first_part(listing->files[i].name))
            models[count++] = listing->files[i].name;
    int choice = hub_choose_gguf(models, count, name->quant);
    gumbel_status status = choice < 0 ? refuse_choice(name, models, count, error) : GUMBEL_OK;
    if (status == GUMBEL_OK)
        snprintf(chosen, sizeof chosen, "%s", models[choice]);
    gb_free(models);
    if (status == GUMBEL_OK)
        keep(listing, is_same_gguf, chosen);
    return status;
}

/* ---- A file that was named ----------------------------------------------------------------------------- */

/* The file itself, the other parts of a split one, or what is in a folder of that name. */
static bool is_named(const hub_file *file, const void *user) {
    const char *name = user;
    size_t length = strlen(name);
    bool is_below = strncmp(file->name, name, length) == 0 && file->name[length] == '/';
    return hub_is_same_gguf(file->name, name) || (is_below && hub_is_gguf_model(file->name));
}

static gumbel_status select_named(hub_listing *listing, const hub_name *name, gumbel_error *error) {
    keep(listing, is_named, name->file);
    if (listing->count > 0)
        return GUMBEL_OK;
    return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "%s has no file %s", name->repository, name->file);
}

gumbel_status hub_select(hub_listing *listing, const hub_name *name, gumbel_error *error) {
    if (name->file[0])
        return select_named(listing, name, error);
    if (name->quant[0] || !has_safetensors(listing))
        return select_gguf(listing, name, error);
    keep(listing, is_checkpoint_file, NULL);
    return GUMBEL_OK;
}
