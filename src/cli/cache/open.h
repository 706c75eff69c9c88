/* SPDX-License-Identifier: Apache-2.0
 *
 * The program of a checkpoint, out of the cache: the one that is there, one whose checkpoint has moved, or
 * one that is exported now. Of several processes that want the same one first, one exports it.
 */
#ifndef GUMBEL_CLI_CACHE_OPEN_H
#define GUMBEL_CLI_CACHE_OPEN_H

#include "cli/cache/entry.h"
#include "cli/checkpoint/checkpoint.h"
#include "gumbel.h"

/* Opens the program of a checkpoint, whose path is set, and notes its use. What takes time is reported in
 * notes on standard error. A program that is damaged is made again, once. *seconds is what opening took,
 * without an export before it. Errors: those of gumbel_export and gumbel_program_open; IO where others could
 * have written to the cache. */
gumbel_status cli_cache_open(const cli_checkpoint *checkpoint, const cli_cache_options *options,
                             gumbel_program **program, double *seconds, gumbel_error *error);

#endif
