/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/serve/load.h"

#include "base/machine.h"
#include "base/status.h"
#include "cli/base/report.h"
#include "cli/base/units.h"
#include "cli/model/conversations.h"

#include <stdlib.h>
#include <string.h>

enum { DEFAULT_SLOTS = 4, CACHE_SHARE = 4 /* of the machine's memory */ };

/* The least is for a machine that does not say what it has. */
static const uint64_t most_default_cache = (uint64_t)8 << 30, least_default_cache = (uint64_t)1 << 30;

/* ---- Names --------------------------------------------------------------------------------------------- */

/* The file's name without its ending, for a program that has none. */
static void write_stem(const char *path, char *name, size_t capacity) {
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path, *dot = strrchr(base, '.');
    snprintf(name, capacity, "%.*s", dot ? (int)(dot - base) : (int)strlen(base), base);
}

/* The aliases, then the program's own name. */
static void write_names(const char *alias, const gumbel_program_info *info, serve_model *model) {
    char stem[256];
    write_stem(model->path, stem, sizeof stem);
    snprintf(model->names, sizeof model->names, "%s%s%s", alias ? alias : "", alias ? "," : "",
             info->name[0] && !strchr(info->name, ',') ? info->name : stem);
}

static gumbel_status check_program(const char *path, const gumbel_program_info *info, gumbel_error *error) {
    if (info->has_tokenizer && info->use_sampling)
        return GUMBEL_OK;
    return gb_fail(error, GUMBEL_ERROR_UNSUPPORTED, "%s: a server needs a program with %s", path,
                   info->has_tokenizer ? "a sampler; this one was exported with --logits" : "a tokenizer");
}

static cli_model_options options_of(const serve_arguments *arguments, const serve_model *model) {
    cli_model_options options = arguments->model;
    options.source.path = model->path;
    options.slots = arguments->serve.slots.given ? (int)arguments->serve.slots.value : DEFAULT_SLOTS;
    cli_use_drafts(&arguments->draft, &options);
    return options;
}

/* Weights, and what the states of all slots take when their contexts are full. */
static gumbel_status count_bytes(const cli_model_options *options, const gumbel_program *program,
                                 const gumbel_program_info *info, uint64_t *bytes, gumbel_error *error) {
    const uint32_t context =
        options->max_context.value > 0 ? (uint32_t)options->max_context.value : info->max_context;
    const gumbel_step_shape shape = {
        .size = sizeof shape, .sequences = (uint32_t)options->slots, .tokens = 1, .position = context - 1};
    gumbel_step_costs costs = {.size = sizeof costs};
    const gumbel_status status = gumbel_program_get_costs(program, &shape, &costs, error);
    *bytes += info->weight_bytes + (uint64_t)costs.state_bytes;
    return status;
}

/* The same of what guesses. Its context is no longer than the program's. */
static gumbel_status count_bytes_of(const cli_model_options *options, const gumbel_program *draft,
                                    uint32_t context, uint64_t *bytes, gumbel_error *error) {
    cli_model_options of_draft = *options;
    gumbel_program_info info = {.size = sizeof info};
    GB_TRY(gumbel_program_get_info(draft, &info, error));
    of_draft.max_context.value = context < info.max_context ? context : info.max_context;
    return count_bytes(&of_draft, draft, &info, bytes, error);
}

/* If there is one: a draft model, or else the program's draft head. */
static gumbel_status count_draft_bytes(const cli_model_options *options, const gumbel_program *program,
                                       uint32_t context, uint64_t *bytes, gumbel_error *error) {
    const gumbel_program *head = options->draft_head ? gumbel_program_draft_head(program) : NULL;
    gumbel_program *draft = NULL;
    if (!options->draft_model)
        return head ? count_bytes_of(options, head, context, bytes, error) : GUMBEL_OK;
    gumbel_status status = cli_open_draft_model(options, context, &draft, error);
    if (status == GUMBEL_OK)
        status = count_bytes_of(options, draft, context, bytes, error);
    gumbel_program_close(draft);
    return status;
}

static uint32_t context_of(const cli_model_options *options, const gumbel_program_info *info) {
    const uint32_t wanted = (uint32_t)options->max_context.value;
    return wanted > 0 && wanted < info->max_context ? wanted : info->max_context;
}

/* On the CPU weights may be larger than memory, at a price. */
static void warn_of_memory(const char *path, const char *backend, uint64_t bytes) {
    const uint64_t machine = gb_machine_bytes();
    char needed[CLI_BYTES_TEXT], there[CLI_BYTES_TEXT];
    if ((!backend || strcmp(backend, "cpu") == 0) && machine > 0 && bytes > machine)
        cli_note("warning: %s takes %s with the states of all slots, and this machine has %s", path,
                 cli_describe_bytes(bytes, needed), cli_describe_bytes(machine, there));
}

gumbel_status serve_look_at(const serve_arguments *arguments, const char *alias, serve_model *model,
                            gumbel_error *error) {
    const cli_model_options options = options_of(arguments, model);
    gumbel_program_info info = {.size = sizeof info};
    gumbel_program *program = NULL;
    double seconds;
    gumbel_status status =
        cli_open_program(&options.source, (uint32_t)options.max_context.value, &program, &seconds, error);
    if (status == GUMBEL_OK)
        status = gumbel_program_get_info(program, &info, error);
    if (status == GUMBEL_OK)
        status = check_program(model->path, &info, error);
    if (status == GUMBEL_OK)
        status = cli_check_draft_model(&options, program, error);
    model->bytes = 0;
    if (status == GUMBEL_OK)
        status = count_bytes(&options, program, &info, &model->bytes, error);
    if (status == GUMBEL_OK)
        status = count_draft_bytes(&options, program, context_of(&options, &info), &model->bytes, error);
    if (status == GUMBEL_OK) {
        write_names(alias, &info, model);
        warn_of_memory(model->path, options.backend, model->bytes);
    }
    gumbel_program_close(program);
    return status;
}

/* ---- Loading ------------------------------------------------------------------------------------------- */

/* Of a model; by default all of them together have a share of the machine's memory. */
static uint64_t cache_bytes(const serve_options *serve) {
    const cli_integer *given = &serve->cache_mebibytes;
    const uint64_t machine = gb_machine_bytes(), models = 1 + serve->more.count;
    const uint64_t share = machine > 0 ? machine / CACHE_SHARE / models : least_default_cache;
    if (given->given)
        return (uint64_t)given->value << 20;
    return share < most_default_cache ? share : most_default_cache;
}

static gumbel_status open_scheduler(const serve_options *serve, serve_loaded *loaded, gumbel_error *error) {
    const gumbel_scheduler_options options = {.size = sizeof options,
                                              .max_queued = (uint32_t)serve->max_queued.value,
                                              .host_bytes = cache_bytes(serve),
                                              .no_prefix_cache = serve->no_prefix_cache,
                                              .on_failure = serve_note_failure};
    gumbel_session_destroy(loaded->model.session); /* all slots are the scheduler's */
    loaded->model.session = NULL;
    return gumbel_scheduler_create(loaded->model.engine, &options, &loaded->scheduler, error);
}

static gumbel_status open_parts(const serve_arguments *arguments, const serve_model *model,
                                serve_loaded *loaded, gumbel_error *error) {
    const cli_model_options options = options_of(arguments, model);
    gumbel_status status = cli_model_open(&options, false, &loaded->model, error);
    if (status == GUMBEL_OK)
        status = cli_settle_sampling(&arguments->sampling, &loaded->model, &loaded->sampling, error);
    if (status == GUMBEL_OK && cli_has_template(&arguments->template, &loaded->model.info))
        status = cli_template_check(&arguments->template, loaded->model.tokenizer, &loaded->template, error);
    if (status == GUMBEL_OK)
        status =
            server_grammars_create(loaded->model.tokenizer, cli_log,
                                   (bool *)(uintptr_t)&arguments->model.verbose, &loaded->grammars, error);
    return status == GUMBEL_OK ? open_scheduler(&arguments->serve, loaded, error) : status;
}

static server_model served_of(const serve_arguments *arguments, const serve_model *model,
                              const serve_loaded *loaded) {
    gumbel_engine_info engine = {.size = sizeof engine};
    gumbel_engine_get_info(loaded->model.engine, &engine, NULL); /* it cannot fail */
    server_model served = {.names = model->names,
                           .program = loaded->model.program,
                           .tokenizer = loaded->model.tokenizer,
                           .info = loaded->model.info,
                           .max_context = loaded->model.max_context,
                           .backend = engine.backend,
                           .sampling = loaded->sampling.values,
                           .chat = loaded->template.options,
                           .has_draft_model = loaded->model.draft_engine != NULL,
                           .grammars = loaded->grammars,
                           .generator = server_generator_of(loaded->scheduler)};
    if (served.has_draft_model)
        served.drafting = cli_drafting(&arguments->draft);
    served.has_reasoning_budget = cli_has_reasoning_budget(&arguments->reasoning, &served.reasoning_budget);
    for (size_t i = 0; i < SERVER_MOST_SETTINGS && i < CLI_MOST_SETTINGS; i++)
        served.origins[i] = loaded->sampling.origins[i];
    return served;
}

/* What the process grows to: slots and kept conversations take memory when they are first used. */
static void log_memory(const serve_options *serve, const serve_model *model) {
    char slots[CLI_BYTES_TEXT], cache[CLI_BYTES_TEXT];
    if (serve->no_prefix_cache)
        cli_note("memory: up to %s with all slots full (--parallel, --max-context)",
                 cli_describe_bytes(model->bytes, slots));
    else
        cli_note(
            "memory: up to %s with all slots full (--parallel, --max-context), and %s for conversations that "
            "are kept (--cache-ram)",
            cli_describe_bytes(model->bytes, slots), cli_describe_bytes(cache_bytes(serve), cache));
}

/* How many conversations of a length have room, whatever the slots. */
static void log_conversations(const gumbel_engine *engine) {
    gumbel_conversation_memory memory = {.size = sizeof memory};
    char text[CLI_CONVERSATION_TEXT];
    for (size_t i = 0; gumbel_engine_conversation_memory(engine, i, &memory); i++)
        cli_note("memory at %u tokens: %s", memory.tokens, cli_describe_conversation(&memory, text));
}

gumbel_status serve_load(const serve_arguments *arguments, const serve_model *model, serve_loaded **loaded,
                         gumbel_error *error) {
    serve_loaded *made = cli_allocate(1, sizeof *made);
    const gumbel_status status = open_parts(arguments, model, made, error);
    if (status != GUMBEL_OK) {
        serve_unload(made);
        return status;
    }
    made->served = served_of(arguments, model, made);
    *loaded = made;
    char id[SERVER_MODEL_ID];
    cli_note("%s: %u positions, %s", server_first_name(model->names, id), made->served.max_context,
             gumbel_engine_description(made->model.engine));
    log_memory(&arguments->serve, model);
    log_conversations(made->model.engine);
    return status;
}

void serve_unload(serve_loaded *loaded) {
    if (!loaded)
        return;
    gumbel_scheduler_destroy(loaded->scheduler);
    server_grammars_destroy(loaded->grammars);
    cli_template_free(&loaded->template);
    cli_model_close(&loaded->model);
    free(loaded);
}
