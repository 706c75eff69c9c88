/* SPDX-License-Identifier: Apache-2.0
 *
 * Loading one program for a server.
 */
#ifndef GUMBEL_CLI_SERVE_LOAD_H
#define GUMBEL_CLI_SERVE_LOAD_H

#include "cli/serve/models.h"

/* Reads a program's names and how much memory it takes, and refuses one that cannot be served. */
gumbel_status serve_look_at(const serve_arguments *arguments, const char *alias, serve_model *model,
                            gumbel_error *error);

gumbel_status serve_load(const serve_arguments *arguments, const serve_model *model, serve_loaded **loaded,
                         gumbel_error *error);

/* NULL is allowed. */
void serve_unload(serve_loaded *loaded);

#endif
