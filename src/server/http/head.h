/* SPDX-License-Identifier: Apache-2.0
 *
 * The head of a connection's first request, before libmicrohttpd sees it: what that would drop without an
 * answer, answer in HTML, or read in part.
 */
#ifndef GUMBEL_SERVER_HTTP_HEAD_H
#define GUMBEL_SERVER_HTTP_HEAD_H

#include "server/base/failure.h"

#include <stddef.h>

enum { SERVER_HEAD_BYTES = 32 * 1024 }; /* of a request line and its headers, at most */

typedef enum server_head {
    SERVER_HEAD_PART, /* good so far */
    SERVER_HEAD_WHOLE,
    SERVER_HEAD_BAD, /* with the failure */
} server_head;

/* Looks at the first size bytes that a client has sent. */
server_head server_check_head(const char *bytes, size_t size, server_failure *failure);

#endif
