/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/model/program.h"

#include "base/clock.h"
#include "base/status.h"
#include "cli/base/files.h"
#include "cli/cache/open.h"

/* What gumbel_export makes room for where nothing is asked. Shorter contexts share its program. */
enum { USUAL_CONTEXT = 8192 };

const cli_option cli_program_table[] = {
    {.names = "-m --model",
     .argument = "PROGRAM",
     .help = "The program, in place of the operand.",
     .type = CLI_STRING,
     .offset = offsetof(cli_program_options, path)},
    CLI_PULL_OPTIONS(cli_program_options, path, pull),
    {.names = "--quantize",
     .argument = "RECIPE",
     .help = "The recipe with which a checkpoint is exported, as in gumbel export. Each has its own program.",
     .type = CLI_STRING,
     .offset = offsetof(cli_program_options, quantize)},
    {.names = "--cache",
     .argument = "DTYPE",
     .help = "What attention's caches hold here, whatever the program was exported with: " CLI_CACHES
             ". Sessions are saved for one of them.",
     .type = CLI_STRING,
     .offset = offsetof(cli_program_options, cache)},
    {0},
};

static gumbel_status open_file(const cli_program_options *options, gumbel_program **program, double *seconds,
                               gumbel_error *error) {
    if (options->quantize) {
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT,
                       "--quantize %s: %s is no checkpoint; a program has its recipe", options->quantize,
                       options->path);
    }
    cli_clear_folder_of(options->path);
    double begin = gb_seconds();
    gumbel_status status = gumbel_program_open(options->path, program, error);
    *seconds = gb_seconds() - begin;
    return status;
}

gumbel_status cli_open_program(const cli_program_options *options, uint32_t max_context,
                               gumbel_program **program, double *seconds, gumbel_error *error) {
    const cli_cache_options cache_options = {.quantize = options->quantize,
                                             .max_context = max_context > USUAL_CONTEXT ? max_context : 0};
    cli_checkpoint checkpoint;
    *program = NULL;
    gumbel_status status = cli_checkpoint_get(options->path, options->pull, &checkpoint, error);
    if (status == GUMBEL_OK)
        status = checkpoint.path ? cli_cache_open(&checkpoint, &cache_options, program, seconds, error)
                                 : open_file(options, program, seconds, error);
    if (status == GUMBEL_OK && options->cache)
        status = gumbel_program_set_cache(*program, options->cache, error);
    if (status != GUMBEL_OK) {
        gumbel_program_close(*program);
        *program = NULL;
    }
    cli_checkpoint_free(&checkpoint);
    return status;
}
