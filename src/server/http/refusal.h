/* SPDX-License-Identifier: Apache-2.0
 *
 * Replies to what is no request of libmicrohttpd's: malformed ones, and connections there is no place for.
 */
#ifndef GUMBEL_SERVER_HTTP_REFUSAL_H
#define GUMBEL_SERVER_HTTP_REFUSAL_H

#include "server/http/peers.h"

#include <stdarg.h>

/* Writes the failure as a whole reply, and that nothing follows. */
void server_send_refusal(int socket, const server_failure *failure);

/* Drops what has arrived: closing a socket with unread bytes resets it, and the client would not see the
 * reply. False: the client has closed its side. */
bool server_drop_input(int socket);

/* The same until the client closes, for a short time at most. */
void server_linger(int socket);

/* libmicrohttpd answers malformed requests itself, in HTML, and some of them twice; it has no callback for
 * that, but writes a line to its log before, in the connection's thread. There the reply is sent by us, and
 * what it would send itself meets a socket that is closed for writing. */

/* This thread is that connection's; NULL: no one's. Over TLS libmicrohttpd's own replies stay. */
void server_set_thread_peer(server_peer *peer);

/* Takes a line of the log. The status that was replied with, or 0. */
int server_reply_to_parser_error(const char *format, va_list values);

#endif
