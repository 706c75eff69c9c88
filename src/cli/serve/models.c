/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/serve/models.h"

#include "cli/base/report.h"

#include <stdlib.h>
#include <string.h>

enum { DEFAULT_SLOTS = 4 };

/* The file's name without its ending, for a program that has none. */
static void write_stem(const char *path, char *name, size_t capacity) {
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path, *dot = strrchr(base, '.');
    snprintf(name, capacity, "%.*s", dot ? (int)(dot - base) : (int)strlen(base), base);
}

/* The aliases, then the program's own name. */
static void write_names(const char *alias, const char *path, serve_model *opened) {
    const char *own = opened->model.info.name;
    char stem[256];
    write_stem(path, stem, sizeof stem);
    snprintf(opened->names, sizeof opened->names, "%s%s%s", alias ? alias : "", alias ? "," : "",
             own && own[0] && !strchr(own, ',') ? own : stem);
}

static gumbel_status check_program(const char *path, const cli_model *model, gumbel_error *error) {
    if (model->tokenizer && model->info.use_sampling)
        return GUMBEL_OK;
    cli_refuse(error, "%s: a server needs a program with %s", path,
               model->tokenizer ? "a sampler; this one was exported with --logits" : "a tokenizer");
    return error->status = GUMBEL_ERROR_UNSUPPORTED;
}

static gumbel_status open_scheduler(const serve_options *serve, serve_model *opened, gumbel_error *error) {
    const gumbel_scheduler_options options = {.size = sizeof options,
                                              .max_queued = (uint32_t)serve->max_queued.value,
                                              .host_bytes = (uint64_t)serve->cache_mebibytes.value << 20,
                                              .no_prefix_cache = serve->no_prefix_cache};
    gumbel_session_destroy(opened->model.session); /* all slots are the scheduler's */
    opened->model.session = NULL;
    return gumbel_scheduler_create(opened->model.engine, &options, &opened->scheduler, error);
}

static gumbel_status open_model(const serve_arguments *arguments, const char *path, const char *alias,
                                serve_model *opened, gumbel_error *error) {
    cli_model_options options = arguments->model;
    options.source.path = path;
    options.slots = arguments->serve.slots.given ? (int)arguments->serve.slots.value : DEFAULT_SLOTS;
    gumbel_status status = cli_model_open(&options, false, &opened->model, error);
    if (status == GUMBEL_OK)
        status = check_program(path, &opened->model, error);
    if (status == GUMBEL_OK)
        status = cli_settle_sampling(&arguments->sampling, &opened->model, &opened->sampling, error);
    if (status == GUMBEL_OK && cli_has_template(&arguments->template, &opened->model.info))
        status = cli_template_check(&arguments->template, opened->model.tokenizer, &opened->template, error);
    if (status == GUMBEL_OK)
        status = open_scheduler(&arguments->serve, opened, error);
    if (status == GUMBEL_OK)
        write_names(alias, path, opened);
    return status;
}

static server_model served_of(const serve_model *opened) {
    gumbel_engine_info engine = {.size = sizeof engine};
    gumbel_engine_get_info(opened->model.engine, &engine, NULL); /* it cannot fail */
    server_model served = {.names = opened->names,
                           .program = opened->model.program,
                           .tokenizer = opened->model.tokenizer,
                           .info = opened->model.info,
                           .max_context = opened->model.max_context,
                           .backend = engine.backend,
                           .sampling = opened->sampling.values,
                           .chat = opened->template.options,
                           .generator = server_generator_of(opened->scheduler)};
    for (size_t i = 0; i < SERVER_MOST_SETTINGS && i < CLI_MOST_SETTINGS; i++)
        served.origins[i] = opened->sampling.origins[i];
    return served;
}

gumbel_status serve_open_models(const serve_arguments *arguments, serve_models *models, gumbel_error *error) {
    const serve_options *serve = &arguments->serve;
    const size_t count = 1 + serve->more.count;
    models->list = cli_allocate(count, sizeof *models->list);
    models->served = cli_allocate(count, sizeof *models->served);
    for (; models->count < count; models->count++) {
        const size_t i = models->count;
        const gumbel_status status =
            open_model(arguments, i == 0 ? arguments->model.source.path : serve->more.list[i - 1],
                       i < serve->aliases.count ? serve->aliases.list[i] : NULL, &models->list[i], error);
        if (status != GUMBEL_OK) {
            models->count++; /* it may be half open */
            return status;
        }
        models->served[i] = served_of(&models->list[i]);
    }
    return GUMBEL_OK;
}

void serve_drain_models(const serve_models *models) {
    for (size_t i = 0; i < models->count; i++)
        gumbel_scheduler_drain(models->list[i].scheduler);
}

void serve_close_models(serve_models *models) {
    for (size_t i = 0; i < models->count; i++) {
        gumbel_scheduler_destroy(models->list[i].scheduler);
        cli_template_free(&models->list[i].template);
        cli_model_close(&models->list[i].model);
    }
    free(models->list);
    free(models->served);
    *models = (serve_models){0};
}
