/* SPDX-License-Identifier: Apache-2.0
 *
 * The operand PROGRAM: a program file, or a checkpoint, which is exported once into the user's cache.
 */
#ifndef GUMBEL_CLI_MODEL_PROGRAM_H
#define GUMBEL_CLI_MODEL_PROGRAM_H

#include "cli/options/options.h"
#include "cli/pull/get.h"
#include "gumbel.h"

typedef struct cli_program_options {
    const char *path;
    const char *quantize;
    int pull;          /* see cli/pull/get.h */
    const char *cache; /* of attention; NULL: the program's own */
} cli_program_options;

extern const cli_option cli_program_table[];

/* What help says about the choices of --cache. */
#define CLI_CACHES                                                                                           \
    "float32, bfloat16, q8 (8 bits and a scale for 32 numbers), q4 (4 bits in layers that attend to "        \
    "everything, q8 in those with a window) or q4-all"

/* What help says about the operand PROGRAM. */
#define CLI_PROGRAM_HELP                                                                                     \
    "A program file made by gumbel export, or a checkpoint: a Hugging Face directory, a .gguf or the "       \
    "folder it lies in, or " CLI_HUB_HELP                                                                    \
    ". A checkpoint is exported into ~/.cache/gumbel when it is first "                                      \
    "used. -m PROGRAM does the same."

/* Opens the program file, or that of the checkpoint in the cache, which is made, with notes on standard
 * error, where it is missing or older than the checkpoint. max_context is the number of positions that are
 * wanted, 0: the default. *seconds is what opening took, without an export before it. Errors: those of
 * gumbel_export and gumbel_program_open; ARGUMENT for a recipe given with a program file;
 * those of gumbel_program_set_cache. */
gumbel_status cli_open_program(const cli_program_options *options, uint32_t max_context,
                               gumbel_program **program, double *seconds, gumbel_error *error);

#endif
