/* SPDX-License-Identifier: Apache-2.0 */
#include "server/http/access.h"

#include "server/http/origin.h"

#include <arpa/inet.h>
#include <microhttpd.h>
#include <string.h>
#include <strings.h>

bool server_is_same_key(const char *key, const char *given) {
    const size_t length = strlen(key), given_length = strlen(given);
    volatile unsigned different = length != given_length;
    for (size_t i = 0; i < given_length; i++)
        different |= (unsigned char)given[i] ^ (unsigned char)(length > 0 ? key[i % length] : 0);
    return different == 0;
}

static bool has_password(const server_exchange *exchange) {
    const char *authorization = server_header(exchange, "Authorization");
    return authorization && strncasecmp(authorization, "Basic ", 6) == 0;
}

static bool is_any_key(const server_access *access, const char *given) {
    bool is_good = false;
    for (size_t i = 0; i < access->key_count; i++)
        is_good |= server_is_same_key(access->keys[i], given); /* all of them, whichever it is */
    return is_good;
}

static bool check_password(const server_access *access, const server_exchange *exchange) {
    char *password = NULL;
    char *user = MHD_basic_auth_get_username_password(exchange->connection, &password);
    const bool is_good = password && is_any_key(access, password);
    MHD_free(user);
    MHD_free(password);
    return is_good;
}

static const char *given_key(const server_exchange *exchange) {
    static const char scheme[] = "Bearer ";
    const char *authorization = server_header(exchange, "Authorization");
    if (authorization && strncasecmp(authorization, scheme, sizeof scheme - 1) == 0)
        return authorization + sizeof scheme - 1;
    return server_header(exchange, "x-api-key");
}

bool server_check_key(const server_access *access, const server_exchange *exchange, server_failure *failure) {
    if (access->key_count == 0)
        return true;
    const char *given = given_key(exchange);
    if (has_password(exchange) ? check_password(access, exchange) : given && is_any_key(access, given))
        return true;
    return server_fail(failure, 401, "%s; send Authorization: Bearer KEY or x-api-key: KEY",
                       given ? "the API key is wrong" : "an API key is needed");
}

/* The length of the host's name within host[:port]. */
static size_t name_length(const char *host) {
    const char *bracket = host[0] == '[' ? strchr(host, ']') : NULL;
    return bracket ? (size_t)(bracket - host) + 1 : strcspn(host, ":");
}

/* A name that nobody else's DNS decides on: an address, localhost, a single word. */
static bool is_local_name(const char *host) {
    char name[64];
    const size_t length = name_length(host);
    struct in_addr address;
    if (length == 0 || length >= sizeof name)
        return length == 0;
    memcpy(name, host, length);
    name[length] = '\0';
    const char *end = strrchr(name, '.');
    return name[0] == '[' || !end || strcasecmp(end, ".localhost") == 0 ||
           inet_pton(AF_INET, name, &address) == 1;
}

bool server_check_origin(const server_access *access, const server_exchange *exchange,
                         server_failure *failure) {
    if (access->key_count > 0 && !has_password(exchange))
        return true;
    const char *host = server_header(exchange, "Host"), *origin = server_header(exchange, "Origin");
    if (host && access->key_count == 0 && !access->is_public && !is_local_name(host))
        return server_fail(failure, 403,
                           "Host: %.100s: without an API key or --no-auth the server answers to addresses, "
                           "localhost and names without a dot",
                           host);
    if (!origin || server_has_listed_origin(access, exchange))
        return true;
    const char *name = strstr(origin, "://");
    if (name && host && strcasecmp(name + 3, host) == 0)
        return true;
    return server_fail(
        failure, 403,
        "Origin: %.100s: requests of other sites' pages are refused; --cors-origins names those that may ask",
        origin);
}
