/* SPDX-License-Identifier: Apache-2.0
 *
 * Sockets to listen on.
 */
#ifndef GUMBEL_SERVER_HTTP_SOCKETS_H
#define GUMBEL_SERVER_HTTP_SOCKETS_H

#include "gumbel.h"

/* Binds host:port and listens; port 0 chooses a free one. *is_local: only programs of this machine reach it.
 * Errors: ARGUMENT (no such host), IO. */
gumbel_status server_listen(const char *host, uint16_t port, int *listener, bool *is_local,
                            gumbel_error *error);

/* The same on a socket file, which replaces one that nobody listens on any more. */
gumbel_status server_listen_unix(const char *path, int *listener, gumbel_error *error);

/* The port that a listener is bound to; 0: it is no TCP socket. */
uint16_t server_port_of(int listener);

#endif
