/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests whose length two servers could read differently (request smuggling). A proxy in front of this
 * server may go by one header and libmicrohttpd by the other, so such requests are refused.
 */
#ifndef GUMBEL_SERVER_HTTP_FRAMING_H
#define GUMBEL_SERVER_HTTP_FRAMING_H

#include "server/base/failure.h"

struct MHD_Connection;

/* Looks at the headers. False: the connection has to end with this request. */
bool server_check_framing(struct MHD_Connection *connection, const char *version, server_failure *failure);

/* The Content-Length; 0 where there is none. */
uint64_t server_content_length(struct MHD_Connection *connection);

#endif
