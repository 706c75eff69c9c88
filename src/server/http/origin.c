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

static bool is_entry(const char *entry, size_t length, const char *word) {
    return strlen(word) == length && strncasecmp(entry, word, length) == 0;
}

/* The next entry of a list, of *length bytes; NULL: there is none. *list is moved behind it. */
static const char *next_entry(const char **list, size_t *length) {
    if (!*list || !**list)
        return NULL;
    const char *entry = *list + strspn(*list, " ");
    const size_t whole = strcspn(entry, ",");
    *list = entry + whole + (entry[whole] == ',');
    *length = trim(entry, whole);
    return entry;
}

bool server_is_origin_listed(const char *list, const char *origin) {
    const char *entry;
    size_t length;
    while ((entry = next_entry(&list, &length)))
        if (is_entry(entry, length, "*") || is_entry(entry, length, origin))
            return true;
    return false;
}

const char *server_find_bad_origin(const char *list, size_t *length) {
    const char *entry;
    while ((entry = next_entry(&list, length))) {
        const char *scheme = strstr(entry, "://");
        const bool is_address = scheme && scheme > entry && (size_t)(scheme - entry) + 3 < *length;
        if (!is_address && !is_entry(entry, *length, "*") && !is_entry(entry, *length, "null"))
            return entry;
    }
    return NULL;
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
    const bool has_room = asked && strlen(asked) < sizeof exchange->headers[0].value;
    if (asked)
        server_add_header(exchange, "Access-Control-Allow-Headers", has_room ? asked : "*, authorization");
    server_add_header(exchange, "Access-Control-Max-Age", "86400");
    if (server_header(exchange, "Access-Control-Request-Private-Network"))
        server_add_header(exchange, "Access-Control-Allow-Private-Network", "true");
    server_reply_constant(exchange, 204, "text/plain", "", 0);
}
