/* SPDX-License-Identifier: Apache-2.0
 *
 * How a server is set up.
 */
#ifndef GUMBEL_SERVER_OPTIONS_H
#define GUMBEL_SERVER_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
    bool with_open_metrics;   /* /metrics needs none either */
    bool no_auth;             /* without keys, an address that others reach is refused unless this is set */
    const char *cors_origins; /* separated by commas, "*": any; NULL: no page of another site may ask */
    const char *certificate, *private_key; /* TLS, as PEM; NULL: none */
    size_t max_body_bytes;
    unsigned max_connections;
    unsigned max_connections_per_address; /* 0: any */
    uint32_t max_prompt_tokens;           /* 0: a context */
    size_t max_stream_bytes;              /* events that a stream's reader may be behind */
    size_t max_stored_bytes;              /* of responses */
    double idle_seconds;                  /* of a connection without a request; like the next, 0: any */
    double request_seconds;               /* to send a request */
    double send_seconds;                  /* to take what was written */
    double grammar_seconds;               /* to compile a grammar; 0: the library's limit */
    bool with_vllm_metrics;
} server_options;

#endif
