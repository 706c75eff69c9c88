/* SPDX-License-Identifier: Apache-2.0
 *
 * One HTTP request and its reply, on a thread of its own.
 */
#ifndef GUMBEL_SERVER_HTTP_EXCHANGE_H
#define GUMBEL_SERVER_HTTP_EXCHANGE_H

#include "base/byte_buffer.h"
#include "server/base/failure.h"
#include "server/base/json.h"
#include "server/http/sender.h"

struct MHD_Connection;

enum { SERVER_HEADERS = 12 };

typedef struct server_exchange {
    struct MHD_Connection *connection;
    server_peer *peer;
    server_sender *sender;
    const char *method, *path, *version;
    gb_byte_buffer body;
    server_failure failure; /* status not 0: the request is refused before its handler looks at it */
    bool has_headers, has_reply, is_answered; /* the last: the handler has it */
    bool is_ambiguous;                        /* where its body ends: the connection must not go on */
    int status;                               /* of the reply */
    double begin;                             /* seconds */
    struct {
        const char *name;
        char value[512];
    } headers[SERVER_HEADERS]; /* of the reply */
    size_t header_count;
} server_exchange;

/* A request's header, or NULL. */
const char *server_header(const server_exchange *exchange, const char *name);

/* Adds a header to the reply to come. name is not copied. */
void server_add_header(server_exchange *exchange, const char *name, const char *value);

/* Adds when to try again, where the failure says so. */
void server_add_retry(server_exchange *exchange, const server_failure *failure);

/* Replies with a text of that media type. The text is taken over. */
void server_reply(server_exchange *exchange, int status, const char *type, gb_byte_buffer *text);

/* The same with bytes that live as long as the program. */
void server_reply_constant(server_exchange *exchange, int status, const char *type, const char *bytes,
                           size_t length);

/* The same with a value on a line, which is taken over. */
void server_reply_json(server_exchange *exchange, int status, json_t *value);

/* Replies with status 200 and server-sent events. source is freed in any case. */
void server_reply_stream(server_exchange *exchange, const server_source *source);

/* The socket, to see the client leave. */
int server_exchange_socket(const server_exchange *exchange);

#endif
