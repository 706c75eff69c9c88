/* SPDX-License-Identifier: Apache-2.0
 *
 * gumbel pack: a program's weights in the order that a backend reads.
 */
#include "cli/base/progress.h"
#include "cli/base/report.h"
#include "cli/base/signals.h"
#include "cli/command.h"

typedef struct pack_arguments {
    const char *program, *output, *backend;
    bool quiet;
} pack_arguments;

static const cli_option pack_table[] = {
    {.names = "-o --output",
     .argument = "OUT",
     .help =
         "The file to write. One that exists is replaced once the new one is complete; it may be PROGRAM.",
     .type = CLI_STRING,
     .offset = offsetof(pack_arguments, output)},
    {.names = "--backend",
     .argument = "NAME",
     .help =
         "Lay the weights out for this backend: cpu, the default, cuda or mlx; none: in the order of their "
         "formats.",
     .type = CLI_CHOICE,
     .choices = "cpu cuda mlx none",
     .offset = offsetof(pack_arguments, backend)},
    {.names = "-m --model",
     .argument = "PROGRAM",
     .help = "The program, in place of the operand.",
     .type = CLI_STRING,
     .offset = offsetof(pack_arguments, program)},
    {.names = "-q --quiet",
     .help = "No progress and no closing line.",
     .type = CLI_FLAG,
     .offset = offsetof(pack_arguments, quiet)},
    {0},
};

static int pack(void *given) {
    const pack_arguments *arguments = given;
    if (!arguments->program)
        return cli_fail_usage("pack needs a PROGRAM (see gumbel help pack)");
    if (!arguments->output)
        return cli_fail_usage("pack needs -o OUT, the file to write");
    cli_progress progress;
    cli_progress_begin(&progress, arguments->quiet);
    gumbel_pack_options options = {.size = sizeof options,
                                   .backend = arguments->backend,
                                   .progress = cli_progress_update,
                                   .progress_user = &progress};
    gumbel_error error;
    cli_catch_interrupt();
    cli_catch_termination();
    gumbel_status status = gumbel_pack(arguments->program, arguments->output, &options, &error);
    cli_progress_erase(&progress);
    if (status != GUMBEL_OK)
        return cli_fail_with(&error);
    if (!arguments->quiet)
        cli_progress_report(&progress, arguments->output);
    return CLI_OK;
}

const cli_command cli_command_pack = {
    .name = "pack",
    .summary = "lay a program's weights out for a backend",
    .synopsis = "PROGRAM -o OUT [--backend NAME]",
    .description =
        "Writes the program again with its weights in the order that the backend's kernels read, as "
        "export would have written it; the checkpoint is not needed. Any backend runs any program, "
        "but one that is laid out for another takes time and memory at every start.",
    .operands = (const cli_operand[]){{"PROGRAM", offsetof(pack_arguments, program), false,
                                       "A program file made by gumbel export; -m PROGRAM does the same."},
                                      {0}},
    .groups = (const cli_option_group[]){{.title = "Options", .options = pack_table}, {0}},
    .examples = (const cli_example[]){{"gumbel pack model.gumbel -o model.gumbel",
                                       "Lays a program out for this command's default backend, in place."},
                                      {"gumbel pack model.gumbel -o model-mlx.gumbel --backend mlx",
                                       "Makes one for MLX."},
                                      {0}},
    .arguments_size = sizeof(pack_arguments),
    .run = pack,
};
