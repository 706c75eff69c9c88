/* SPDX-License-Identifier: Apache-2.0 */
#include "server/routes/routes.h"

#include "server/base/clock.h"
#include "server/http/origin.h"
#include "server/protocols/protocol.h"
#include "server/state.h"

#include <stdio.h>
#include <string.h>

typedef struct route {
    const char *method, *path; /* a path that ends in a slash goes on */
    server_handler *handle;
    const server_protocol *protocol; /* of a route that generates; NULL: handle answers */
    bool is_open;                    /* without a key */
} route;

static const route routes[] = {
    {"POST", "/v1/chat/completions", .protocol = &server_chat},
    {"POST", "/v1/completions", .protocol = &server_completions},
    {"POST", "/v1/responses", .protocol = &server_responses_api},
    {"GET", "/v1/responses/", .handle = server_stored_route},
    {"DELETE", "/v1/responses/", .handle = server_forget_route},
    {"POST", "/v1/messages", .protocol = &server_messages_api},
    {"POST", "/v1/messages/count_tokens", .handle = server_count_tokens_route},
    {"GET", "/v1/models", .handle = server_models_route},
    {"GET", "/v1/models/", .handle = server_models_route},
    {"POST", "/tokenize", .handle = server_tokenize_route},
    {"POST", "/detokenize", .handle = server_detokenize_route},
    {"POST", "/apply-template", .handle = server_template_route},
    {"GET", "/tokenizer_info", .handle = server_tokenizer_info_route},
    {"GET", "/health", .handle = server_health_route, .is_open = true},
    {"GET", "/ready", .handle = server_ready_route},
    {"GET", "/version", .handle = server_version_route},
    {"GET", "/metrics", .handle = server_metrics_route},
    {"GET", "/", .handle = server_page_route},
    {"GET", "/page/", .handle = server_page_route},
};
enum { ROUTES = sizeof routes / sizeof *routes };

static bool has_path(const route *r, const char *path) {
    const size_t length = strlen(r->path);
    return r->path[length - 1] == '/' && length > 1 ? strncmp(path, r->path, length) == 0 && path[length]
                                                    : strcmp(path, r->path) == 0;
}

/* ---- Wrong paths: base URLs with /v1 too often or not at all, slashes too many, other servers' names --- */

enum { MOST_PATH = 128 };

static const char *next_segment(const char *path, size_t *length) {
    path += strspn(path, "/");
    *length = strcspn(path, "/");
    return path;
}

static bool is_prefix(const char *segment, size_t length) {
    static const char *const prefixes[] = {"v1", "api", "openai", "anthropic"};
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (strlen(prefixes[i]) == length && strncmp(prefixes[i], segment, length) == 0)
            return true;
    return false;
}

/* What a path says without prefixes and doubled slashes: "chat/completions". */
static void shorten(const char *path, char text[MOST_PATH]) {
    size_t length, used = 0;
    for (path = next_segment(path, &length); length > 0; path = next_segment(path + length, &length)) {
        if (used == 0 && is_prefix(path, length))
            continue;
        if (used + length + 2 > MOST_PATH)
            break;
        if (used > 0)
            text[used++] = '/';
        memcpy(text + used, path, length);
        used += length;
    }
    text[used] = '\0';
}

/* Ollama's and llama.cpp's names. */
static const char *translate(const char *name) {
    static const char *const names[][2] = {{"chat", "chat/completions"},
                                           {"generate", "completions"},
                                           {"completion", "completions"},
                                           {"tags", "models"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i][0], name) == 0)
            return names[i][1];
    return name;
}

/* Whether a request to path is likely to mean another one. */
static bool is_path_meant(const char *path, const char *meant) {
    char given[MOST_PATH], known[MOST_PATH];
    shorten(path, given);
    shorten(meant, known);
    return known[0] && strcmp(translate(given), known) == 0;
}

/* The route that a wrong path is likely to mean; NULL: none. */
static const char *find_meant(const char *path) {
    for (size_t i = 0; i < ROUTES; i++)
        if (is_path_meant(path, routes[i].path))
            return routes[i].path;
    return NULL;
}

static const route *find_route(const server_exchange *exchange, server_failure *failure) {
    const char *method = strcmp(exchange->method, "HEAD") == 0 ? "GET" : exchange->method, *allowed = NULL;
    for (size_t i = 0; i < ROUTES; i++) {
        if (!has_path(&routes[i], exchange->path))
            continue;
        if (strcmp(routes[i].method, method) == 0)
            return &routes[i];
        allowed = routes[i].method;
    }
    const char *meant = allowed ? NULL : find_meant(exchange->path);
    if (allowed)
        server_fail(failure, 405, "%.100s takes %s", exchange->path, allowed);
    else if (meant)
        server_fail(failure, 404, "there is no route %.100s; did you mean %s?", exchange->path, meant);
    else
        server_fail(failure, 404, "there is no route %.100s", exchange->path);
    return NULL;
}

/* Unlike /health's, their origin is checked: without keys a page under a foreign name gets none. */
static bool is_keyless(const server *s, const route *r) {
    return s->options.with_open_metrics && r && r->handle == server_metrics_route;
}

bool server_admit(void *user, server_exchange *exchange) {
    const server *s = user;
    server_failure *failure = &exchange->failure, none;
    const route *r = find_route(exchange, &none);
    if ((r && r->is_open) || server_is_preflight(&s->access, exchange))
        return true;
    /* Who has no key does not learn which routes there are. */
    return (is_keyless(s, r) || server_check_key(&s->access, exchange, failure)) &&
           server_check_origin(&s->access, exchange, failure) && find_route(exchange, failure) != NULL;
}

void server_handle(void *user, server_exchange *exchange) {
    const server *s = user;
    char id[SERVER_ID];
    server_add_header(exchange, "x-request-id", server_make_id("req_", id));
    server_add_origin(&s->access, exchange);
    if (exchange->failure.status == 0 && server_is_preflight(&s->access, exchange)) {
        server_reply_preflight(exchange);
        return;
    }
    const route *r = exchange->failure.status == 0 ? find_route(exchange, &exchange->failure) : NULL;
    if (exchange->failure.status != 0)
        server_reply_failure(exchange, &exchange->failure);
    else if (r->protocol)
        server_answer_route(user, exchange, r->protocol);
    else
        r->handle(user, exchange, exchange->path + strlen(r->path));
}

void server_note_done(void *user, int status) {
    server *s = user;
    atomic_fetch_add(&s->metrics.requests[status / 100 % SERVER_STATUS_CLASSES], 1);
}

/* ---- What they share ----------------------------------------------------------------------------------- */

void server_reply_failure(server_exchange *exchange, const server_failure *failure) {
    static const char messages[] = "/v1/messages";
    const bool is_anthropic = strncmp(exchange->path, messages, sizeof messages - 1) == 0;
    server_add_retry(exchange, failure);
    if (failure->status == 401)
        server_add_header(exchange, "WWW-Authenticate",
                          strcmp(exchange->path, "/") == 0
                              ? "Basic realm=\"gumbel: the API key is the password\""
                              : "Bearer");
    server_reply_json(exchange, failure->status,
                      (is_anthropic ? server_messages_api : server_chat).error(failure));
}

size_t server_number_of(const server *s, const char *name, server_failure *failure) {
    const server_models *models = &s->models;
    size_t number = 0;
    while (name && number < models->count && !server_is_named(models->names(models->user, number), name))
        number++;
    if (number < models->count)
        return number;
    char id[SERVER_MODEL_ID];
    server_fail(failure, 404, "there is no model \"%.80s\"; the first one here is \"%s\"", name,
                server_first_name(models->names(models->user, 0), id));
    failure->code = "model_not_found";
    snprintf(failure->param, sizeof failure->param, "model");
    return number;
}

const server_model *server_find_model_of(void *user, const char *name, server_request *request,
                                         server_failure *failure) {
    const server *s = user;
    const server_models *models = &s->models;
    const size_t number = server_number_of(s, name, failure);
    gumbel_error error;
    if (number == models->count)
        return NULL;
    request->acquired = models->acquire(models->user, number, false, &error);
    request->release = models->release;
    request->release_user = models->user;
    if (!request->acquired)
        server_fail(failure, error.status == GUMBEL_ERROR_MEMORY ? 503 : 500, "%s", error.message);
    return request->acquired;
}
