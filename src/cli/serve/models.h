/* SPDX-License-Identifier: Apache-2.0
 *
 * The models of a server: opened from its command line, loaded when requests name them, and unloaded again
 * where others need the room.
 */
#ifndef GUMBEL_CLI_SERVE_MODELS_H
#define GUMBEL_CLI_SERVE_MODELS_H

#include "cli/serve/serve.h"
#include "server/generate/grammars.h"
#include "server/models.h"

#include <pthread.h>

/* Everything of one program that is loaded. */
typedef struct serve_loaded {
    cli_model model;
    cli_sampling sampling;
    cli_template template;
    gumbel_scheduler *scheduler;
    server_grammars *grammars;
    server_model served; /* what the server is given of it */
} serve_loaded;

typedef struct serve_model {
    const char *path;
    char names[512];
    uint64_t bytes;       /* of its weights, and of the states of all slots */
    serve_loaded *loaded; /* NULL: it is not */
    bool is_changing;     /* it is being loaded or unloaded */
    unsigned users;       /* requests that have it */
    uint64_t last_use;    /* counts on with each request */
} serve_model;

/* Starts zeroed. */
typedef struct serve_models {
    const serve_arguments *arguments;
    serve_model *list;
    size_t count, most_loaded;
    uint64_t most_bytes; /* of those loaded */
    uint64_t uses;
    pthread_mutex_t lock;
    pthread_cond_t changed;
} serve_models;

/* Looks at all programs, of which each must have room and a name of its own, and loads as many as may be
 * loaded at once. */
gumbel_status serve_open_models(const serve_arguments *arguments, serve_models *models, gumbel_error *error);

/* Whether requests may load some that are not loaded yet, or are unloaded again. */
bool serve_loads_later(const serve_models *models);

/* What the server is given. */
server_models serve_models_of(serve_models *models);

/* Refuses requests and waits for those under way. No model is loaded any more. */
void serve_drain_models(serve_models *models);
void serve_close_models(serve_models *models);

#endif
