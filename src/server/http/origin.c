/* SPDX-License-Identifier: Apache-2.0 */
#include "server/http/origin.h"

#include <string.h>
#include <strings.h>

#define EXPOSED "x-request-id, Retry-After, X-Gumbel-Warning"

/* Browsers send origins without a path; one may be written with the slash of an address. */
static size_t trim(const char *entry, size_t length) {
    while (length > 0 && (entry[length - 1] == ' ' || entry[length - 1] == '/'))
        length--;
    return length;
}

bool server_is_origin_listed(const char *list, const char *origin) {
    size_t length;
    for (const char *at = list; at && *at; at += length + (at[length] == ',')) {
        at += strspn(at, " ");
        length = strcspn(at, ",");
        const size_t named = trim(at, length);
        if ((named == 1 && *at == '*') || (strlen(origin) == named && strncasecmp(at, origin, named) == 0))
            return true;
    }
    return false;
}

bool server_has_listed_origin(const server_access *access, const server_exchange *exchange) {
    const char *origin = server_header(exchange, "Origin");
    return origin && server_is_origin_listed(access->origins, origin);
}

bool server_is_preflight(const server_access *access, const server_exchange *exchange) {
    return strcmp(exchange->method, "OPTIONS") == 0 &&
           server_header(exchange, "Access-Control-Request-Method") &&
           server_has_listed_origin(access, exchange);
}

void server_add_origin(const server_access *access, server_exchange *exchange) {
    if (!access->origins)
        return;
    server_add_header(exchange, "Vary", "Origin");
    if (!server_has_listed_origin(access, exchange))
        return;
    server_add_header(exchange, "Access-Control-Allow-Origin", server_header(exchange, "Origin"));
    server_add_header(exchange, "Access-Control-Expose-Headers", EXPOSED);
}

void server_reply_preflight(server_exchange *exchange) {
    const char *asked = server_header(exchange, "Access-Control-Request-Headers");
    server_add_header(exchange, "Access-Control-Allow-Methods", "GET, POST, DELETE, OPTIONS");
    if (asked)
        server_add_header(exchange, "Access-Control-Allow-Headers", asked);
    server_add_header(exchange, "Access-Control-Max-Age", "86400");
    if (server_header(exchange, "Access-Control-Request-Private-Network"))
        server_add_header(exchange, "Access-Control-Allow-Private-Network", "true");
    server_reply_constant(exchange, 204, "text/plain", "", 0);
}
