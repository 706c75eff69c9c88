/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/program.h"

#include "cli/cache.h"
#include "cli/exporter.h"
#include "cli/report.h"
#include "cli/storage.h"

#include <string.h>
#include <unistd.h>

/* What gumbel_export makes room for where nothing is asked. Shorter contexts share its program. */
enum { USUAL_CONTEXT = 8192 };

const cli_option cli_program_table[] = {
    {.names = "-m --model",
     .argument = "PROGRAM",
     .help = "The program, in place of the operand.",
     .type = CLI_STRING,
     .offset = offsetof(cli_program_options, path)},
    {.names = "--quantize",
     .argument = "RECIPE",
     .help = "The recipe with which a checkpoint is exported, as in gumbel export. Each has its own program.",
     .type = CLI_STRING,
     .offset = offsetof(cli_program_options, quantize)},
    {0},
};

static gumbel_status make_program(const char *checkpoint, const cli_cache_options *options,
                                  const cli_cache_entry *entry, gumbel_error *error) {
    bool is_stale = cli_cache_stale(entry, false) > 0;
    cli_note("%s%s with recipe %s to %s",
             is_stale ? "the checkpoint, its recipe or gumbel has changed; exporting " : "exporting ",
             checkpoint, options->quantize ? options->quantize : "none", entry->path);
    const gumbel_export_options export_options = {.quantize = options->quantize,
                                                  .max_context = options->max_context};
    gumbel_status status = cli_export(checkpoint, entry->path, export_options, false, error);
    if (status == GUMBEL_OK)
        cli_cache_stale(entry, true);
    return status;
}

static gumbel_status find_in_cache(const char *checkpoint, const cli_cache_options *options, char **path,
                                   gumbel_error *error) {
    cli_cache_entry entry;
    gumbel_status status = cli_cache_find(checkpoint, options, &entry, error);
    if (status == GUMBEL_OK && access(entry.path, R_OK) != 0)
        status = make_program(checkpoint, options, &entry, error);
    if (status == GUMBEL_OK)
        *path = cli_copy_text(entry.path, strlen(entry.path));
    cli_cache_entry_free(&entry);
    return status;
}

gumbel_status cli_find_program(const cli_program_options *options, uint32_t max_context, char **path,
                               gumbel_error *error) {
    if (cli_is_checkpoint(options->path)) {
        cli_cache_options export_options = {.quantize = options->quantize,
                                            .max_context = max_context > USUAL_CONTEXT ? max_context : 0};
        return find_in_cache(options->path, &export_options, path, error);
    }
    if (options->quantize) {
        cli_refuse(error, "--quantize %s: %s is no checkpoint; a program has its recipe", options->quantize,
                   options->path);
        return error->status = GUMBEL_ERROR_ARGUMENT;
    }
    *path = cli_copy_text(options->path, strlen(options->path));
    return GUMBEL_OK;
}
