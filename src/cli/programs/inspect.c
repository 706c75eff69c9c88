/* SPDX-License-Identifier: Apache-2.0
 *
 * gumbel inspect: what a program is made of, and what this build can run it on.
 */
#include "cli/base/report.h"
#include "cli/command.h"
#include "cli/model/program.h"

typedef struct inspect_arguments {
    cli_program_options source;
    int part; /* gumbel_inspect_part */
    bool backends, plan;
    const char *backend;
} inspect_arguments;

static const cli_option inspect_table[] = {
    {.names = "--graph",
     .help = "The nodes in SSA form, with the sampler's branches.",
     .type = CLI_SET,
     .constant = GUMBEL_INSPECT_GRAPH,
     .offset = offsetof(inspect_arguments, part)},
    {.names = "--tensors",
     .help = "The weights: name, shape, type and size.",
     .type = CLI_SET,
     .constant = GUMBEL_INSPECT_TENSORS,
     .offset = offsetof(inspect_arguments, part)},
    {.names = "--json",
     .help = "All of it as one JSON object.",
     .type = CLI_SET,
     .constant = GUMBEL_INSPECT_JSON,
     .offset = offsetof(inspect_arguments, part)},
    {.names = "--plan",
     .help = "The steps that a backend executes: what is fused, and the kernel chosen for each. Needs no "
             "GPU; without one CUDA's kernels are those of a Hopper GPU.",
     .type = CLI_FLAG,
     .offset = offsetof(inspect_arguments, plan)},
    {.names = "--backend",
     .argument = "NAME",
     .help = "Whose plan: cpu (the default) or cuda; mlx executes the graph's nodes.",
     .type = CLI_CHOICE,
     .choices = "cpu cuda mlx",
     .offset = offsetof(inspect_arguments, backend)},
    {.names = "--backends",
     .help = "What this build and this machine can run on; needs no program.",
     .type = CLI_FLAG,
     .offset = offsetof(inspect_arguments, backends)},
    {0},
};

static int inspect(void *given) {
    const inspect_arguments *arguments = given;
    if (arguments->backends) {
        gumbel_describe_backends(cli_write, stdout);
        return CLI_OK;
    }
    if (!arguments->source.path)
        return cli_fail_usage("inspect needs a PROGRAM, or --backends (see gumbel help inspect)");
    if (arguments->backend && !arguments->plan)
        return cli_fail_usage("--backend says whose --plan is printed (see gumbel help inspect)");
    gumbel_program *program = NULL;
    gumbel_error error;
    double seconds;
    gumbel_status status = cli_open_program(&arguments->source, 0, &program, &seconds, &error);
    if (status == GUMBEL_OK)
        status = arguments->plan
                     ? gumbel_program_describe_plan(program, arguments->backend, cli_write, stdout, &error)
                     : gumbel_program_inspect(program, (gumbel_inspect_part)arguments->part, cli_write,
                                              stdout, &error);
    gumbel_program_close(program);
    return status == GUMBEL_OK ? CLI_OK : cli_fail_with(&error);
}

const cli_command cli_command_inspect = {
    .name = "inspect",
    .summary = "show what a program is made of",
    .synopsis = "PROGRAM [--graph | --tensors | --json | --plan [--backend NAME]]\n"
                "--backends",
    .description =
        "Prints a program's description: where it came from, its limits, its recommended settings, "
        "the memory it needs, and how many nodes of each op it has.",
    .operands =
        (const cli_operand[]){{"PROGRAM", offsetof(inspect_arguments, source.path), false, CLI_PROGRAM_HELP},
                              {0}},
    .groups =
        (const cli_option_group[]){
            {.title = "Options", .options = inspect_table},
            {.title = "Program", .options = cli_program_table, .offset = offsetof(inspect_arguments, source)},
            {0}},
    .examples = (const cli_example[]){{"gumbel inspect model.gumbel", "The summary."},
                                      {"gumbel inspect model.gumbel --graph | less", "The whole graph."},
                                      {"gumbel inspect model.gumbel --plan --backend cuda",
                                       "What is launched for a step, in order."},
                                      {0}},
    .arguments_size = sizeof(inspect_arguments),
    .run = inspect,
};
