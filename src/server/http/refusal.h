/* SPDX-License-Identifier: Apache-2.0
 *
 * Replies to what is no request of libmicrohttpd's: malformed ones, and connections there is no place for.
 */
#ifndef GUMBEL_SERVER_HTTP_REFUSAL_H
#define GUMBEL_SERVER_HTTP_REFUSAL_H

#include "server/base/failure.h"

/* Writes the failure as a whole reply, and that nothing follows. */
void server_send_refusal(int socket, const server_failure *failure);

/* Drops what has arrived: closing a socket with unread bytes resets it, and the client would not see the
 * reply. False: the client has closed its side. */
bool server_drop_input(int socket);

/* The same until the client closes, for a short time at most. */
void server_linger(int socket);

#endif
