/* SPDX-License-Identifier: Apache-2.0
 *
 * An HTTP server that speaks OpenAI's and Anthropic's APIs for models that schedulers answer for. It uses
 * gumbel.h alone; docs/server.md describes it.
 */
#ifndef GUMBEL_SERVER_SERVER_H
#define GUMBEL_SERVER_SERVER_H

#include "server/models.h"

typedef struct server server;

/* Texts and lists are the caller's and live as long as the server. */
typedef struct server_options {
    const char *host; /* NULL: no TCP socket of its own */
    uint16_t port;    /* 0: a free one */
    const char *unix_path;
    const int *listeners; /* sockets that listen already, such as systemd's; they are closed in the end */
    size_t listener_count;
    const char *const *keys; /* one of them is needed for all but /health */
    size_t key_count;
    bool no_auth; /* without keys, an address that others reach is refused unless this is set */
    const char *certificate, *private_key; /* TLS, as PEM; NULL: none */
    size_t max_body_bytes;
    unsigned max_connections;
    uint32_t max_prompt_tokens; /* 0: a context */
    size_t max_stream_bytes;    /* events that a stream's reader may be behind */
    size_t max_stored_bytes;    /* of responses */
    double idle_seconds;        /* of a connection without a request; like the next, 0: any */
    double request_seconds;     /* to send a request */
    double send_seconds;        /* to take what was written */
    bool with_vllm_metrics;
} server_options;

/* Starts to serve. Errors: ARGUMENT (an address for others without keys), IO, MEMORY. */
gumbel_status server_create(const server_options *options, const server_model *models, size_t model_count,
                            server **created, gumbel_error *error);

/* The port; 0: there is no TCP socket. */
uint16_t server_port(const server *s);

/* Takes no more connections and no more requests to generate; what goes on goes on. */
void server_drain(server *s);

/* Waits for the replies that are under way, which the schedulers must have answered, and ends. NULL allowed.
 */
void server_destroy(server *s);

#endif
