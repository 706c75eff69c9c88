/* SPDX-License-Identifier: Apache-2.0
 *
 * Which models are loaded. A model changes outside of the lock, since that takes long: others go on
 * meanwhile.
 */
#include "cli/serve/models.h"

#include "cli/base/report.h"
#include "cli/serve/load.h"

#include <stdlib.h>

/* ---- Room ---------------------------------------------------------------------------------------------- */

/* Models that are loaded, or change. */
static size_t count_loaded(const serve_models *models) {
    size_t count = 0;
    for (size_t i = 0; i < models->count; i++)
        count += models->list[i].loaded || models->list[i].is_changing;
    return count;
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
static bool make_room(serve_models *models, gumbel_error *error) {
    while (count_loaded(models) >= models->most_loaded) {
        serve_model *idle = find_idle(models);
        if (!idle) {
            cli_refuse(error, "the models that may be loaded at once (--models-max %zu) are all in use",
                       models->most_loaded);
            error->status = GUMBEL_ERROR_MEMORY;
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

/* Loads the model unless it is. With the lock, which may be given up meanwhile. */
static bool have(serve_models *models, serve_model *model, gumbel_error *error) {
    while (!model->loaded) {
        if (model->is_changing)
            pthread_cond_wait(&models->changed, &models->lock);
        else if (!make_room(models, error))
            return false;
        else if (!model->loaded && !model->is_changing && load(models, model, error) != GUMBEL_OK)
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

gumbel_status serve_open_models(const serve_arguments *arguments, serve_models *models, gumbel_error *error) {
    const serve_options *serve = &arguments->serve;
    const size_t count = 1 + serve->more.count;
    const size_t most = serve->models_max.given ? (size_t)serve->models_max.value : count;
    gumbel_status status = GUMBEL_OK;
    *models = (serve_models){.arguments = arguments, .count = count, .most_loaded = most};
    models->list = cli_allocate(count, sizeof *models->list);
    pthread_mutex_init(&models->lock, NULL);
    pthread_cond_init(&models->changed, NULL);
    for (size_t i = 0; i < count && status == GUMBEL_OK; i++) {
        models->list[i].path = i == 0 ? arguments->model.source.path : serve->more.list[i - 1];
        status = serve_look_at(arguments, i < serve->aliases.count ? serve->aliases.list[i] : NULL,
                               &models->list[i], error);
    }
    for (size_t i = 0; i < count && i < most && status == GUMBEL_OK; i++)
        status = serve_load(arguments, &models->list[i], &models->list[i].loaded, error);
    return status;
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
