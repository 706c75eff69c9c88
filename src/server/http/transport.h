/* SPDX-License-Identifier: Apache-2.0
 *
 * How a stream reaches its client: the sender writes it to the socket, except over TLS and HTTP/1.0, where
 * libmicrohttpd does. Neither the stream's source nor its handler knows which.
 */
#ifndef GUMBEL_SERVER_HTTP_TRANSPORT_H
#define GUMBEL_SERVER_HTTP_TRANSPORT_H

#include "server/http/sender.h"

struct MHD_Response;

/* A response that sends what source gives. version is the request's, such as "HTTP/1.1". The response frees
 * the source when it goes, and a failure does at once: NULL, no memory. */
struct MHD_Response *server_stream_response(const server_source *source, server_sender *sender,
                                            server_peer *peer, const char *version);

#endif
