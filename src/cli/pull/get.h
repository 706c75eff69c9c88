/* SPDX-License-Identifier: Apache-2.0
 *
 * Checkpoints that commands are given by a name of the hub: taken from the cache, and downloaded where they
 * are not there. A download begins where standard input and standard error are terminals, or where --pull or
 * -hf say so; --no-pull and HF_HUB_OFFLINE forbid it.
 */
#ifndef GUMBEL_CLI_PULL_GET_H
#define GUMBEL_CLI_PULL_GET_H

#include "cli/checkpoint/checkpoint.h"
#include "cli/options/options.h"
#include "gumbel.h"

enum { CLI_PULL_ON_TERMINALS = 0, CLI_PULL = 1, CLI_NO_PULL = 2 };

/* Three rows of an option table: structure has the model's name, a const char *, and how it is got, an int.
 */
#define CLI_PULL_OPTIONS(structure, name, mode)                                                              \
    {.names = "-hf -hfr --hf-repo",                                                                          \
     .argument = "ORG/NAME[:QUANT]",                                                                         \
     .help = "The model of that name on the hub, in place of the operand; it is downloaded if it is not "    \
             "there.",                                                                                       \
     .type = CLI_STRING,                                                                                     \
     .offset = offsetof(structure, name),                                                                    \
     .constant = CLI_PULL,                                                                                   \
     .constant_offset = offsetof(structure, mode)},                                                          \
        {.names = "--pull",                                                                                  \
         .help = "Download a model of the hub that is not there, also where no terminal shows it.",          \
         .type = CLI_SET,                                                                                    \
         .offset = offsetof(structure, mode),                                                                \
         .constant = CLI_PULL},                                                                              \
    {                                                                                                        \
        .names = "--no-pull --offline", .help = "Download nothing: a model is there, or it is an error.",    \
        .type = CLI_SET, .offset = offsetof(structure, mode), .constant = CLI_NO_PULL                        \
    }

/* What help says of names of the hub, after a list of paths. */
#define CLI_HUB_HELP                                                                                         \
    "ORG/NAME[:QUANT][/FILE][@REVISION], a model of the Hugging Face hub, which is downloaded when it is "   \
    "not there (gumbel help pull)"

/* Finds a checkpoint as cli_checkpoint_find does, and downloads what the cache lacks as mode says. Errors:
 * those of both. */
gumbel_status cli_checkpoint_get(const char *given, int mode, cli_checkpoint *checkpoint,
                                 gumbel_error *error);

#endif
