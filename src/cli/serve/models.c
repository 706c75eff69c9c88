/* SPDX-License-Identifier: Apache-2.0
 *
 * Which models are loaded. A model changes outside of the lock, since that takes long: others go on
 * meanwhile.
 */
#include "cli/serve/models.h"

#include "base/status.h"
#include "cli/base/report.h"
#include "cli/base/units.h"
#include "cli/serve/load.h"

#include <stdlib.h>

/* ---- Room ---------------------------------------------------------------------------------------------- */

/* Beside the models that are loaded, or change. */
static bool has_room(const serve_models *models, const serve_model *model) {
    size_t count = 0;
    uint64_t bytes = model->bytes;
    for (size_t i = 0; i < models->count; i++) {
        const bool is_there = models->list[i].loaded || models->list[i].is_changing;
        count += is_there;
        bytes += is_there ? models->list[i].bytes : 0;
    }
    return count < models->most_loaded && bytes <= models->most_bytes;
}

/* The one that nobody has had for longest; NULL: all are in use. */
static serve_model *find_idle(const serve_models *models) {
    serve_model *oldest = NULL;
    for (size_t i = 0; i < models->count; i++) {
        serve_model *model = &models->list[i];
        if (model->loaded && !model->is_changing && model->users == 0 &&
            (!oldest || model->last_use < oldest->last_use))
            oldest = model;
    }
    return oldest;
}

/* With the lock, which is given up meanwhile. */
static void unload(serve_models *models, serve_model *model) {
    serve_loaded *loaded = model->loaded;
    char id[SERVER_MODEL_ID];
    model->loaded = NULL;
    model->is_changing = true;
    pthread_mutex_unlock(&models->lock);
    serve_unload(loaded);
    cli_note("%s: unloaded", server_first_name(model->names, id));
    pthread_mutex_lock(&models->lock);
    model->is_changing = false;
    pthread_cond_broadcast(&models->changed);
}

/* With the lock, which is given up meanwhile. False: no model can go. */
static bool make_room(serve_models *models, const serve_model *model, gumbel_error *error) {
    while (!has_room(models, model)) {
        serve_model *idle = find_idle(models);
        if (!idle) {
            gb_fail(error, GUMBEL_ERROR_MEMORY,
                    "the models that may be loaded at once (--models-max, --models-memory) are all "
                    "in use");
            return false;
        }
        unload(models, idle);
    }
    return true;
}

/* With the lock, which is given up meanwhile. */
static gumbel_status load(serve_models *models, serve_model *model, gumbel_error *error) {
    serve_loaded *loaded = NULL;
    model->is_changing = true;
    pthread_mutex_unlock(&models->lock);
    const gumbel_status status = serve_load(models->arguments, model, &loaded, error);
    pthread_mutex_lock(&models->lock);
    model->is_changing = false;
    model->loaded = loaded;
    pthread_cond_broadcast(&models->changed);
    return status;
}

/* ---- For the server ------------------------------------------------------------------------------------ */

static const char *names_of(void *user, size_t index) {
    return ((const serve_models *)user)->list[index].names;
}

/* The same, and where the machine or the device has no memory for it, without models that nobody uses. */
static bool load_in_place(serve_models *models, serve_model *model, gumbel_error *error) {
    for (;;) {
        const gumbel_status status = load(models, model, error);
        serve_model *idle = status == GUMBEL_ERROR_MEMORY ? find_idle(models) : NULL;
        if (!idle)
            return status == GUMBEL_OK;
        unload(models, idle);
        if (model->loaded || model->is_changing)
            return true; /* by another thread */
    }
}

/* Loads the model unless it is. With the lock, which may be given up meanwhile. */
static bool have(serve_models *models, serve_model *model, gumbel_error *error) {
    while (!model->loaded) {
        if (model->is_changing)
            pthread_cond_wait(&models->changed, &models->lock);
        else if (!make_room(models, model, error))
            return false;
        else if (!model->loaded && !model->is_changing && !load_in_place(models, model, error))
            return false;
    }
    return true;
}

static const server_model *acquire(void *user, size_t index, bool if_loaded, gumbel_error *error) {
    serve_models *models = user;
    serve_model *model = &models->list[index];
    const server_model *served = NULL;
    pthread_mutex_lock(&models->lock);
    if (if_loaded ? model->loaded != NULL : have(models, model, error)) {
        model->users++;
        model->last_use = if_loaded ? model->last_use : ++models->uses;
        served = &model->loaded->served;
    }
    pthread_mutex_unlock(&models->lock);
    return served;
}

static void release(void *user, const server_model *served) {
    serve_models *models = user;
    pthread_mutex_lock(&models->lock);
    for (size_t i = 0; i < models->count; i++)
        if (models->list[i].loaded && &models->list[i].loaded->served == served)
            models->list[i].users--;
    pthread_mutex_unlock(&models->lock);
}

server_models serve_models_of(serve_models *models) {
    return (server_models){models, models->count, names_of, acquire, release};
}

/* ---- Opening ------------------------------------------------------------------------------------------- */

static gumbel_status check_memory(const serve_models *models, const serve_model *model, gumbel_error *error) {
    char needed[CLI_BYTES_TEXT], most[CLI_BYTES_TEXT];
    if (model->bytes <= models->most_bytes)
        return GUMBEL_OK;
    return gb_fail(error, GUMBEL_ERROR_LIMIT,
                   "%s takes %s with the states of all slots, and --models-memory is %s; --parallel and "
                   "--max-context make it smaller",
                   model->path, cli_describe_bytes(model->bytes, needed),
                   cli_describe_bytes(models->most_bytes, most));
}

/* Requests find a model by its first name. */
static gumbel_status check_name(const serve_models *models, const serve_model *model, gumbel_error *error) {
    char id[SERVER_MODEL_ID];
    server_first_name(model->names, id);
    for (const serve_model *other = models->list; other < model; other++)
        if (server_is_named(other->names, id)) {
            return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "%s and %s are both named %s: give each an --alias",
                           other->path, model->path, id);
        }
    return GUMBEL_OK;
}

static gumbel_status look_at_all(serve_models *models, gumbel_error *error) {
    const serve_arguments *arguments = models->arguments;
    const cli_strings *aliases = &arguments->serve.aliases;
    gumbel_status status = GUMBEL_OK;
    for (size_t i = 0; i < models->count && status == GUMBEL_OK; i++) {
        serve_model *model = &models->list[i];
        model->path = i == 0 ? arguments->model.source.path : arguments->serve.more.list[i - 1];
        status = serve_look_at(arguments, i < aliases->count ? aliases->list[i] : NULL, model, error);
        if (status == GUMBEL_OK)
            status = check_memory(models, model, error);
        if (status == GUMBEL_OK)
            status = check_name(models, model, error);
    }
    return status;
}

gumbel_status serve_open_models(const serve_arguments *arguments, serve_models *models, gumbel_error *error) {
    const serve_options *serve = &arguments->serve;
    const size_t count = 1 + serve->more.count;
    *models = (serve_models){.arguments = arguments,
                             .count = count,
                             .most_loaded = serve->models_max.given ? (size_t)serve->models_max.value : count,
                             .most_bytes = UINT64_MAX};
    if (serve->models_memory)
        (void)cli_parse_bytes(serve->models_memory, &models->most_bytes); /* the command has checked it */
    models->list = cli_allocate(count, sizeof *models->list);
    pthread_mutex_init(&models->lock, NULL);
    pthread_cond_init(&models->changed, NULL);
    gumbel_status status = look_at_all(models, error);
    for (size_t i = 0; i < count && status == GUMBEL_OK && has_room(models, &models->list[i]); i++)
        status = serve_load(arguments, &models->list[i], &models->list[i].loaded, error);
    return status;
}

bool serve_loads_later(const serve_models *models) {
    for (size_t i = 0; i < models->count; i++)
        if (!models->list[i].loaded)
            return true;
    return false;
}

void serve_drain_models(serve_models *models) {
    pthread_mutex_lock(&models->lock);
    for (size_t i = 0; i < models->count; i++) {
        while (models->list[i].is_changing)
            pthread_cond_wait(&models->changed, &models->lock);
        serve_loaded *loaded = models->list[i].loaded;
        models->list[i].users += loaded != NULL; /* it stays until the end */
        pthread_mutex_unlock(&models->lock);
        if (loaded)
            gumbel_scheduler_drain(loaded->scheduler);
        pthread_mutex_lock(&models->lock);
    }
    pthread_mutex_unlock(&models->lock);
}

void serve_close_models(serve_models *models) {
    for (size_t i = 0; models->list && i < models->count; i++)
        serve_unload(models->list[i].loaded);
    free(models->list);
    *models = (serve_models){0};
}
