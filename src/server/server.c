/* SPDX-License-Identifier: Apache-2.0 */
#include "server/server.h"

#include "server/base/clock.h"
#include "server/base/json.h"
#include "server/http/origin.h"
#include "server/http/sockets.h"
#include "server/routes/routes.h"
#include "server/state.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

typedef struct listeners {
    int sockets[SERVER_LISTENERS];
    size_t count;
} listeners;

static gumbel_status check_address(const server_options *options, bool is_local, gumbel_error *error) {
    if (is_local || options->key_count > 0 || options->no_auth)
        return GUMBEL_OK;
    snprintf(error->message, sizeof error->message,
             "--host %s: others can reach this address; give --api-key KEY, or --no-auth to let everybody in",
             options->host);
    return error->status = GUMBEL_ERROR_ARGUMENT;
}

static gumbel_status check_origins(const server_options *options, gumbel_error *error) {
    size_t length;
    const char *bad = server_find_bad_origin(options->cors_origins, &length);
    if (!bad)
        return GUMBEL_OK;
    snprintf(error->message, sizeof error->message,
             "--cors-origins: \"%.*s\": expected an origin with its scheme, such as https://app.example, "
             "null or *",
             (int)length, bad);
    return error->status = GUMBEL_ERROR_ARGUMENT;
}

static gumbel_status open_listeners(const server_options *options, listeners *opened, gumbel_error *error) {
    gumbel_status status = check_origins(options, error);
    bool is_local = true;
    for (size_t i = 0; i < options->listener_count && opened->count < SERVER_LISTENERS - 2; i++)
        opened->sockets[opened->count++] = options->listeners[i];
    if (status == GUMBEL_OK && options->host) {
        status =
            server_listen(options->host, options->port, &opened->sockets[opened->count], &is_local, error);
        opened->count += status == GUMBEL_OK;
    }
    if (status == GUMBEL_OK)
        status = check_address(options, is_local, error);
    if (status == GUMBEL_OK && options->unix_path) {
        status = server_listen_unix(options->unix_path, &opened->sockets[opened->count], error);
        opened->count += status == GUMBEL_OK;
    }
    return status;
}

static server_http_options http_options(server *s) {
    const server_options *options = &s->options;
    return (server_http_options){.certificate = options->certificate,
                                 .private_key = options->private_key,
                                 .max_body_bytes = options->max_body_bytes,
                                 .max_connections = options->max_connections,
                                 .max_connections_per_address = options->max_connections_per_address,
                                 .idle_seconds = options->idle_seconds,
                                 .request_seconds = options->request_seconds,
                                 .send_seconds = options->send_seconds,
                                 .admit = server_admit,
                                 .handle = server_handle,
                                 .done = server_note_done,
                                 .user = s};
}

gumbel_status server_create(const server_options *options, const server_models *models, server **created,
                            gumbel_error *error) {
    listeners opened = {.count = 0};
    server *s = calloc(1, sizeof *s);
    *created = NULL;
    if (!s) {
        *error = (gumbel_error){GUMBEL_ERROR_MEMORY, "no memory for the server"};
        return error->status;
    }
    server_json_init();
    s->options = *options;
    s->models = *models;
    s->started = server_unix_time();
    s->access = (server_access){options->keys, options->key_count, options->no_auth, options->cors_origins};
    server_responses_init(&s->responses, options->max_stored_bytes);
    gumbel_status status = open_listeners(options, &opened, error);
    for (size_t i = 0; i < opened.count && s->port == 0; i++)
        s->port = server_port_of(opened.sockets[i]);
    if (status == GUMBEL_OK) {
        const server_http_options http = http_options(s);
        status = server_http_start(&s->http, &http, opened.sockets, opened.count, error);
    }
    if (status == GUMBEL_OK) {
        *created = s;
        return status;
    }
    for (size_t i = options->listener_count; i < opened.count; i++)
        close(opened.sockets[i]);
    server_responses_free(&s->responses);
    free(s);
    return status;
}

uint16_t server_port(const server *s) {
    return s->port;
}

void server_drain(server *s) {
    atomic_store(&s->is_draining, true);
    server_http_quiesce(&s->http);
}

void server_give_up(server *s) {
    atomic_store(&s->has_failed, true);
    server_drain(s);
}

void server_destroy(server *s) {
    if (!s)
        return;
    server_http_stop(&s->http);
    if (s->options.unix_path)
        unlink(s->options.unix_path);
    server_responses_free(&s->responses);
    free(s);
}
