/* SPDX-License-Identifier: Apache-2.0
 *
 * Who may ask: API keys, and what a page of another site in somebody's browser may not do.
 */
#ifndef GUMBEL_SERVER_HTTP_ACCESS_H
#define GUMBEL_SERVER_HTTP_ACCESS_H

#include "server/http/exchange.h"

typedef struct server_access {
    const char *const *keys;
    size_t key_count;    /* 0: no key is required */
    bool is_public;      /* and the server may have any name */
    const char *origins; /* of other sites whose pages may ask, separated by commas; NULL: none */
} server_access;

/* Whether the request has one of the keys, as Authorization: Bearer KEY or x-api-key: KEY, or as the password
 * that a browser asks for. Takes as long whatever the keys have in common with what was given. */
bool server_check_key(const server_access *access, const server_exchange *exchange, server_failure *failure);

/* Refuses requests that a browser sends for another site's page, also under a name that was made to point
 * here. A client that sends a key by itself, as browsers send passwords, is believed. */
bool server_check_origin(const server_access *access, const server_exchange *exchange,
                         server_failure *failure);

/* Whether both are the same; the time depends on the length of given alone. */
bool server_is_same_key(const char *key, const char *given);

#endif
