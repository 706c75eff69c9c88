/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/model/model.h"

#include "base/clock.h"
#include "base/status.h"
#include "cli/base/report.h"
#include "cli/model/devices.h"
#include "cli/model/launched.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const cli_option cli_model_table[] = {
    {.names = "-t --threads",
     .argument = "N",
     .help = "CPU threads; 0, the default, is one per physical core. The result does not depend on it.",
     .type = CLI_INTEGER,
     .range = {.low = 0, .high = 1024},
     .offset = offsetof(cli_model_options, threads)},
    {.names = "--backend",
     .argument = "NAME",
     .help = "Where to run: cpu, cuda or mlx. gumbel inspect --backends lists what this build has.",
     .type = CLI_CHOICE,
     .choices = "cpu cuda mlx",
     .offset = offsetof(cli_model_options, backend)},
    {.names = "--devices",
     .argument = "LIST",
     .help =
         "Numbers of the devices to run on, such as 0,1: each has a part of the model, and the answers are "
         "those of one. The default is the first; auto takes as few as there is room on, and more where an "
         "answer is faster.",
     .type = CLI_INTEGERS,
     .range = {.low = 0, .high = 1023},
     .choices = "auto",
     .offset = offsetof(cli_model_options, devices)},
    {.names = "--launched",
     .help = "This process is one of those that mpirun, srun or torchrun has started with this command: each "
             "has a device (--devices: its own, by its number on the host) and a part of the model, and the "
             "answers, of the first process, are those of one.",
     .type = CLI_FLAG,
     .offset = offsetof(cli_model_options, launched)},
    {.names = "-c --max-context --ctx-size",
     .argument = "N",
     .help = "Positions of the session, at most those the program was exported for; 0, the default, is all "
             "of them.",
     .type = CLI_INTEGER,
     .range = {.low = 0, .high = INT32_MAX},
     .offset = offsetof(cli_model_options, max_context)},
    {.names = "--prefill-chunk",
     .argument = "N",
     .help = "Tokens of a prompt in one step, at most. Longer steps read a long prompt sooner and take more "
             "memory; 0, the default, is what the backend does best.",
     .type = CLI_INTEGER,
     .range = {.low = 0, .high = INT32_MAX},
     .offset = offsetof(cli_model_options, prefill_chunk)},
    {.names = "--lock",
     .argument = "WHAT",
     .help =
         "Weights to keep in memory: touched (the default: those read once, as far as the system allows), "
         "all (read now, refuse to run otherwise), or none.",
     .type = CLI_CHOICE,
     .choices = "touched all none",
     .offset = offsetof(cli_model_options, lock)},
    {.names = "--cpu-isa",
     .argument = "NAME",
     .help =
         "Instruction set of the CPU's kernels, one that the machine has: portable, avx2, avxvnni, avx512, "
         "avx512vnni, avx512bf16, neon, neondot or neoni8mm; the default is the strongest of them. The "
         "result does not depend on it.",
     .type = CLI_STRING,
     .offset = offsetof(cli_model_options, cpu_isa)},
    {.names = "-v --verbose",
     .help = "Print the engine's notices.",
     .type = CLI_FLAG,
     .offset = offsetof(cli_model_options, verbose)},
    {0},
};

static gumbel_lock lock_of(const char *name) {
    if (!name || strcmp(name, "touched") == 0)
        return GUMBEL_LOCK_TOUCHED;
    return strcmp(name, "all") == 0 ? GUMBEL_LOCK_ALL : GUMBEL_LOCK_NONE;
}

/* The session, and what it is like. */
static gumbel_status start_session(cli_model *model, gumbel_error *error) {
    gumbel_engine_info info = {.size = sizeof info};
    GB_TRY(gumbel_engine_get_info(model->engine, &info, error));
    model->prefill_chunk = info.prefill_chunk;
    return gumbel_session_create(model->engine, &model->session, error);
}

/* What the flags say of every engine. */
static gumbel_engine_options usual_options(const cli_model_options *options) {
    return (gumbel_engine_options){
        .size = sizeof(gumbel_engine_options),
        .backend = options->backend,
        .threads = (int)options->threads.value,
        .prefill_chunk = (uint32_t)options->prefill_chunk.value,
        .cpu_isa = options->cpu_isa,
        .lock = lock_of(options->lock),
        .log = cli_log,
        .log_user = (bool *)(uintptr_t)&options->verbose,
    };
}

gumbel_status cli_check_draft_model(const cli_model_options *options, const gumbel_program *program,
                                    gumbel_error *error) {
    if (!options->needs_draft_model || options->draft_model || gumbel_program_draft_head(program))
        return GUMBEL_OK;
    return gb_fail(error, GUMBEL_ERROR_ARGUMENT,
                   "the program has no heads that guess: export it with --draft-head or --assistant, or "
                   "give --draft PROGRAM");
}

gumbel_status cli_open_draft_model(const cli_model_options *options, uint32_t max_context,
                                   gumbel_program **program, gumbel_error *error) {
    const cli_program_options source = {.path = options->draft_model, .pull = options->source.pull};
    double seconds;
    const gumbel_status status = cli_open_program(&source, max_context, program, &seconds, error);
    if (status != GUMBEL_ERROR_IO || access(options->draft_model, F_OK) == 0)
        return status;
    return gb_prefix(error, status, "--draft %s: neither auto, lookup, heads nor off, and no program",
                     options->draft_model);
}

/* What guesses; NULL: nothing does. */
static gumbel_status find_draft_program(const cli_model_options *options, cli_model *model,
                                        const gumbel_program **program, gumbel_error *error) {
    *program = options->draft_head ? gumbel_program_draft_head(model->program) : NULL;
    GB_TRY(cli_check_draft_model(options, model->program, error));
    if (!options->draft_model)
        return GUMBEL_OK;
    GB_TRY(cli_open_draft_model(options, model->max_context, &model->draft_program, error));
    *program = model->draft_program;
    return GUMBEL_OK;
}

/* The context is the program's where that of its draft model is not shorter. A draft head runs on the
 * program's devices, and keeps no snapshots. */
static gumbel_status start_draft_model(const cli_model_options *options, const gumbel_engine_options *own,
                                       cli_model *model, gumbel_error *error) {
    gumbel_engine_options engine_options = usual_options(options);
    gumbel_program_info info = {.size = sizeof info};
    const gumbel_program *program;
    GB_TRY(find_draft_program(options, model, &program, error));
    if (!program)
        return GUMBEL_OK;
    GB_TRY(gumbel_program_get_info(program, &info, error));
    engine_options.max_context =
        model->max_context < info.max_context ? model->max_context : info.max_context;
    engine_options.slots = options->slots;
    engine_options.snapshots = options->draft_model != NULL;
    engine_options.devices = options->draft_model ? NULL : own->devices;
    engine_options.device_count = options->draft_model ? 0 : own->device_count;
    engine_options.process_group = options->draft_model ? NULL : own->process_group;
    const gumbel_status status = gumbel_engine_create(program, &engine_options, &model->draft_engine, error);
    const bool is_wanted = options->draft_model || options->needs_draft_model;
    if (status == GUMBEL_OK || is_wanted || own->process_group) /* processes end where an engine fails */
        return status;
    cli_note("answers go on without the draft head: %s", error->message);
    return GUMBEL_OK;
}

/* The rest of the process is rank 0's. */
static _Noreturn void follow(const gumbel_engine_options *options, cli_model *model) {
    gumbel_error error;
    const gumbel_status status = cli_follow(model->processes, model->program, options, &error);
    cli_model_close(model);
    cli_leave_processes();
    exit(status == GUMBEL_OK ? CLI_OK : cli_fail_with(&error));
}

/* --launched: a process has one device, by default that of its number on the host. */
static void use_processes(const cli_model_options *options, cli_model *model, int *device,
                          gumbel_engine_options *engine_options) {
    const cli_integers *given = &options->devices;
    gumbel_process_group_info info = {.size = sizeof info};
    gumbel_process_group_get_info(model->processes, &info, NULL); /* it cannot fail */
    if (given->count > 0)
        *device = (int)given->values[info.local_rank % given->count];
    engine_options->devices = device;
    engine_options->device_count = given->count > 0;
    engine_options->process_group = model->processes;
    if (info.rank > 0)
        follow(engine_options, model);
}

static gumbel_status start_parts(const cli_model_options *options, bool snapshots, cli_model *model,
                                 gumbel_error *error) {
    gumbel_engine_options engine_options = usual_options(options);
    int devices[CLI_MOST_INTEGERS];
    engine_options.slots = options->slots;
    engine_options.draft_tokens = options->draft_tokens;
    engine_options.max_context = (uint32_t)options->max_context.value;
    engine_options.snapshots = snapshots;
    engine_options.profile = options->profile;
    engine_options.profile_user = options->profile_user;
    engine_options.observe = options->observe;
    engine_options.observe_user = options->observe_user;
    if (model->processes)
        use_processes(options, model, devices, &engine_options);
    else
        GB_TRY(cli_use_devices(&options->devices, model->program, devices, &engine_options, error));
    GB_TRY(start_draft_model(options, &engine_options, model, error));
    engine_options.draft_engine = model->draft_engine;
    const gumbel_status status = gumbel_engine_create(model->program, &engine_options, &model->engine, error);
    return status == GUMBEL_OK ? start_session(model, error) : status;
}

static gumbel_status open_tokenizer(cli_model *model, gumbel_error *error) {
    model->info.size = sizeof model->info;
    const gumbel_status status = gumbel_program_get_info(model->program, &model->info, error);
    return status == GUMBEL_OK && model->info.has_tokenizer
               ? gumbel_tokenizer_create(model->program, &model->tokenizer, error)
               : status;
}

gumbel_status cli_model_open_program(const cli_model_options *options, cli_model *model,
                                     gumbel_error *error) {
    *model = (cli_model){0};
    if (options->launched && options->devices.word)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT,
                       "--devices auto: the launcher has chosen how many (--launched)");
    if (options->launched)
        GB_TRY(cli_join_processes(&model->processes, error));
    if (options->devices.count > 1 || options->devices.word || options->launched)
        setenv("CUDA_MODULE_LOADING", "EAGER", 0); /* which several GPUs need, before CUDA is first used */
    const uint32_t wanted = (uint32_t)options->max_context.value;
    gumbel_status status =
        cli_open_program(&options->source, wanted, &model->program, &model->load_seconds, error);
    if (status != GUMBEL_OK)
        return status;
    const double begin = gb_seconds();
    status = open_tokenizer(model, error);
    if (status != GUMBEL_OK) {
        cli_model_close(model);
        return status;
    }
    const uint32_t most = model->info.max_context;
    model->max_context = wanted > 0 && wanted < most ? wanted : most;
    model->load_seconds += gb_seconds() - begin;
    return GUMBEL_OK;
}

gumbel_status cli_model_start(const cli_model_options *options, bool snapshots, cli_model *model,
                              gumbel_error *error) {
    const double begin = gb_seconds();
    const gumbel_status status = start_parts(options, snapshots, model, error);
    if (status != GUMBEL_OK) {
        cli_model_close(model);
        return status;
    }
    model->load_seconds += gb_seconds() - begin;
    return GUMBEL_OK;
}

gumbel_status cli_model_open(const cli_model_options *options, bool snapshots, cli_model *model,
                             gumbel_error *error) {
    const gumbel_status status = cli_model_open_program(options, model, error);
    return status == GUMBEL_OK ? cli_model_start(options, snapshots, model, error) : status;
}

gumbel_status cli_check_tokens(const cli_model *model, const cli_tokens *tokens, gumbel_error *error) {
    for (size_t i = 0; i < tokens->count; i++)
        if (tokens->ids[i] < 0 || (uint32_t)tokens->ids[i] >= model->info.vocab_size) {
            return gb_fail(error, GUMBEL_ERROR_ARGUMENT,
                           "--tokens: %d: expected ids from 0 to %u, the program's vocabulary",
                           tokens->ids[i], model->info.vocab_size - 1);
        }
    return GUMBEL_OK;
}

bool cli_has_device(const cli_model_options *options) {
    return options->backend && strcmp(options->backend, "cpu") != 0;
}

void cli_model_close(cli_model *model) {
    gumbel_session_destroy(model->session);
    gumbel_engine_destroy(model->engine);
    gumbel_engine_destroy(model->draft_engine);
    gumbel_tokenizer_destroy(model->tokenizer);
    gumbel_program_close(model->program);
    gumbel_program_close(model->draft_program);
    *model = (cli_model){0};
}
