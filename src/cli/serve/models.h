/* SPDX-License-Identifier: Apache-2.0
 *
 * The models that a server has, opened from its command line.
 */
#ifndef GUMBEL_CLI_SERVE_MODELS_H
#define GUMBEL_CLI_SERVE_MODELS_H

#include "cli/serve/serve.h"
#include "server/models.h"

/* Everything of one program. */
typedef struct serve_model {
    cli_model model;
    cli_sampling sampling;
    cli_template template;
    gumbel_scheduler *scheduler;
    char names[512];
} serve_model;

/* Starts zeroed. */
typedef struct serve_models {
    serve_model *list;
    server_model *served; /* what the server is given of them */
    size_t count;
} serve_models;

gumbel_status serve_open_models(const serve_arguments *arguments, serve_models *models, gumbel_error *error);

/* Refuses requests and waits for those under way. */
void serve_drain_models(const serve_models *models);
void serve_close_models(serve_models *models);

#endif
