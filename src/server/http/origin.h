/* SPDX-License-Identifier: Apache-2.0
 *
 * Cross-origin requests: which other sites' pages may ask, and the headers that tell browsers so.
 */
#ifndef GUMBEL_SERVER_HTTP_ORIGIN_H
#define GUMBEL_SERVER_HTTP_ORIGIN_H

#include "server/http/access.h"

/* Whether it is in the list: origins separated by commas, "*" for any. A NULL list has none. */
bool server_is_origin_listed(const char *list, const char *origin);

/* The first entry that no browser can send, being neither "*", "null" nor an address with its scheme; NULL:
 * all are good. *length is its length. */
const char *server_find_bad_origin(const char *list, size_t *length);

/* Whether the request comes from a page that may ask. */
bool server_has_listed_origin(const server_access *access, const server_exchange *exchange);

/* Whether a browser asks, before such a page's request, if it may send it. */
bool server_is_preflight(const server_access *access, const server_exchange *exchange);

/* Adds what lets a page that may ask read the reply to come. */
void server_add_origin(const server_access *access, server_exchange *exchange);

void server_reply_preflight(server_exchange *exchange);

#endif
