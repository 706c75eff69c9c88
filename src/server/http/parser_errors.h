/* SPDX-License-Identifier: Apache-2.0
 *
 * libmicrohttpd answers malformed requests itself, in HTML, and some of them twice; it has no callback for
 * that, but writes a line to its log before, in the connection's thread. There the reply is sent by us, and
 * what it would send itself meets a socket that is closed for writing.
 */
#ifndef GUMBEL_SERVER_HTTP_PARSER_ERRORS_H
#define GUMBEL_SERVER_HTTP_PARSER_ERRORS_H

#include "server/http/peers.h"

#include <stdarg.h>

/* This thread is that connection's; NULL: no one's. Over TLS libmicrohttpd's own replies stay. */
void server_set_thread_peer(server_peer *peer);

/* Takes a line of the log. The status that was replied with, or 0. */
int server_reply_to_parser_error(const char *format, va_list values);

#endif
