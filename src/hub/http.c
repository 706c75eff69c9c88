/* SPDX-License-Identifier: Apache-2.0 */
#include "hub/http.h"

#include "base/clock.h"
#include "base/status.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

/* ---- URLs ---------------------------------------------------------------------------------------------- */

/* Appends text with all bytes escaped that are not plain, but for slashes if they are kept. */
static bool add_escaped(char url[HUB_URL], const char *text, bool keep_slashes) {
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
    size_t used = strlen(url);
    for (; *text; text++) {
        bool is_plain = strchr(plain, *text) || (keep_slashes && *text == '/');
        if (used + 4 > HUB_URL)
            return false;
        used +=
            (size_t)snprintf(url + used, HUB_URL - used, is_plain ? "%c" : "%%%02X", (unsigned char)*text);
    }
    return true;
}

bool hub_listing_url(const hub_settings *settings, const hub_name *name, char url[HUB_URL]) {
    static const char query[] = "?blobs=true";
    snprintf(url, HUB_URL, "%s/api/models/%s/revision/", settings->endpoint, name->repository);
    if (!add_escaped(url, name->revision[0] ? name->revision : "main", false) ||
        strlen(url) + sizeof query > HUB_URL)
        return false;
    strcat(url, query);
    return true;
}

bool hub_file_url(const hub_settings *settings, const char *repository, const char *commit, const char *file,
                  char url[HUB_URL]) {
    snprintf(url, HUB_URL, "%s/%s/resolve/%s/", settings->endpoint, repository, commit);
    return add_escaped(url, file, true);
}

/* ---- Headers ------------------------------------------------------------------------------------------- */

struct curl_slist *hub_headers(const hub_settings *settings) {
    char token[sizeof settings->token + 32];
    struct curl_slist *headers = curl_slist_append(NULL, "Accept-Encoding: identity"), *longer = headers;
    if (headers && settings->token[0]) {
        snprintf(token, sizeof token, "Authorization: Bearer %s", settings->token);
        longer = curl_slist_append(headers, token);
    }
    if (!longer)
        curl_slist_free_all(headers);
    return longer;
}

/* The value of a header of that name, without the blanks around it; false for another header. */
static bool is_header(const char *line, size_t length, const char *name, char *value, size_t capacity) {
    size_t begin = strlen(name);
    if (length <= begin || strncasecmp(line, name, begin) != 0 || line[begin] != ':')
        return false;
    for (begin++; begin < length && line[begin] == ' ';)
        begin++;
    while (length > begin &&
           (line[length - 1] == '\r' || line[length - 1] == '\n' || line[length - 1] == ' '))
        length--;
    snprintf(value, capacity, "%.*s", (int)(length - begin), line + begin);
    return true;
}

/* "bytes 0-99/1000" */
static void read_range(const char *value, hub_reply *reply) {
    uint64_t last;
    reply->has_range =
        sscanf(value, "bytes %" SCNu64 "-%" SCNu64 "/%" SCNu64, &reply->first, &last, &reply->total) == 3;
}

/* Without the quotes and the mark of a weak one. */
static void read_etag(const char *value, hub_reply *reply) {
    value += strncmp(value, "W/", 2) == 0 ? 2 : 0;
    value += *value == '"';
    size_t length = strcspn(value, "\"");
    if (length < sizeof reply->etag && !reply->etag[0])
        snprintf(reply->etag, sizeof reply->etag, "%.*s", (int)length, value);
}

/* Each answer of a chain of redirects begins with its status line. */
static void begin_answer(hub_reply *reply) {
    reply->has_range = false;
    reply->code[0] = reply->message[0] = '\0';
}

void hub_read_header(const char *line, size_t length, hub_reply *reply) {
    char value[256];
    if (length > 5 && strncmp(line, "HTTP/", 5) == 0)
        begin_answer(reply);
    else if (is_header(line, length, "Content-Range", value, sizeof value))
        read_range(value, reply);
    else if (is_header(line, length, "X-Linked-Etag", value, sizeof value))
        read_etag(value, reply);
    else if (is_header(line, length, "X-Repo-Commit", value, sizeof value) && !reply->commit[0])
        snprintf(reply->commit, sizeof reply->commit, "%.40s", value);
    else if (is_header(line, length, "X-Error-Code", value, sizeof value))
        snprintf(reply->code, sizeof reply->code, "%.40s", value);
    else if (is_header(line, length, "X-Error-Message", value, sizeof value))
        snprintf(reply->message, sizeof reply->message, "%.190s", value);
}

static size_t on_header(char *line, size_t size, size_t count, void *user) {
    hub_read_header(line, size * count, user);
    return size * count;
}

void hub_prepare(CURL *request, const hub_settings *settings, const struct curl_slist *headers,
                 const char *url, hub_reply *reply) {
    enum { CONNECT_SECONDS = 20, STALL_SECONDS = 60, MOST_REDIRECTS = 10 };
    bool is_plain = strncmp(settings->endpoint, "http://", 7) == 0;
    *reply = (hub_reply){0};
    curl_easy_reset(request);
    curl_easy_setopt(request, CURLOPT_URL, url);
    curl_easy_setopt(request, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(request, CURLOPT_USERAGENT, "gumbel");
    curl_easy_setopt(request, CURLOPT_PROTOCOLS_STR, is_plain ? "http" : "https");
    curl_easy_setopt(request, CURLOPT_REDIR_PROTOCOLS_STR, is_plain ? "http,https" : "https");
    if (settings->certificates)
        curl_easy_setopt(request, CURLOPT_CAINFO, settings->certificates);
    curl_easy_setopt(request, CURLOPT_FOLLOWLOCATION, 1L);
    curl_easy_setopt(request, CURLOPT_MAXREDIRS, (long)MOST_REDIRECTS);
    curl_easy_setopt(request, CURLOPT_CONNECTTIMEOUT, (long)CONNECT_SECONDS);
    curl_easy_setopt(request, CURLOPT_LOW_SPEED_LIMIT, 1L);
    curl_easy_setopt(request, CURLOPT_LOW_SPEED_TIME, (long)STALL_SECONDS);
    curl_easy_setopt(request, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(request, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(request, CURLOPT_HEADERDATA, reply);
}

/* ---- Failures ------------------------------------------------------------------------------------------ */

bool hub_may_pass(CURLcode result, const hub_reply *reply) {
    if (reply->status == 408 || reply->status == 429 || reply->status >= 500)
        return true;
    switch (result) {
    case CURLE_COULDNT_CONNECT:
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_PARTIAL_FILE:
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM:
        return true;
    default:
        return false;
    }
}

double hub_delay(CURL *request, unsigned failures) {
    const double longest_backoff = 30, longest_wait = 600;
    curl_off_t asked = 0;
    double delay = 0.25;
    for (unsigned i = 1; i < failures && delay < longest_backoff; i++)
        delay *= 2;
    if (curl_easy_getinfo(request, CURLINFO_RETRY_AFTER, &asked) != CURLE_OK || asked <= 0)
        return delay;
    return (double)asked < longest_wait ? (double)asked : longest_wait;
}

static gumbel_status refuse_access(const hub_reply *reply, const hub_settings *settings,
                                   const char *repository, const char *what, gumbel_error *error) {
    bool has_token = settings->token[0] != '\0';
    if (strcmp(reply->code, "GatedRepo") == 0)
        return gb_fail(
            error, GUMBEL_ERROR_ARGUMENT,
            "%s: the hub gives it to those who have accepted its terms (status %ld): accept them at "
            "%s/%s and %s",
            what, reply->status, settings->endpoint, repository,
            has_token ? "check that the token of HF_TOKEN is of the same account"
                      : "set HF_TOKEN to a token of your account");
    return gb_fail(
        error, GUMBEL_ERROR_ARGUMENT, "%s: the hub refuses it (status %ld): %s", what, reply->status,
        has_token ? "there is no such repository, or the token of HF_TOKEN may not read it"
                  : "there is no such repository, or it is private: set HF_TOKEN to a token that may "
                    "read it");
}

static gumbel_status refuse_status(const hub_reply *reply, const hub_settings *settings,
                                   const char *repository, const char *what, gumbel_error *error) {
    if (reply->status == 401 || reply->status == 403)
        return refuse_access(reply, settings, repository, what, error);
    if (reply->status == 404)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "%s: the hub has no such %s (status 404)", what,
                       strcmp(reply->code, "RevisionNotFound") == 0 ? "revision"
                       : strcmp(what, repository) == 0              ? "repository"
                                                                    : "file");
    const char *advice = reply->status == 429 ? "; try again later, or set HF_TOKEN" : "";
    return gb_fail(error, GUMBEL_ERROR_IO, "%s: %s answers with status %ld%s%s%s", what, settings->endpoint,
                   reply->status, reply->message[0] ? ": " : "", reply->message, advice);
}

gumbel_status hub_refuse(CURLcode result, const hub_reply *reply, const hub_settings *settings,
                         const char *repository, const char *what, gumbel_error *error) {
    if (reply->status >= 400 || result == CURLE_OK)
        return refuse_status(reply, settings, repository, what, error);
    const char *kept = "; what was downloaded is kept, and the same command goes on with it";
    return gb_fail(error, GUMBEL_ERROR_IO, "%s: %s: %s%s", what, settings->endpoint,
                   curl_easy_strerror(result), strcmp(what, repository) == 0 ? "" : kept);
}

bool hub_sleep(double seconds, const hub_callbacks *callbacks) {
    double end = gb_seconds() + seconds;
    while (gb_seconds() < end) {
        if (callbacks->progress && !callbacks->progress(callbacks->user, "waiting", 0, 0))
            return false;
        nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    }
    return true;
}

/* ---- Into memory --------------------------------------------------------------------------------------- */

typedef struct body_sink {
    gb_byte_buffer *body;
    size_t limit;
    bool is_over;
} body_sink;

static size_t on_body(char *bytes, size_t size, size_t count, void *user) {
    body_sink *sink = user;
    sink->is_over = sink->body->size + count > sink->limit;
    if (!sink->is_over)
        gb_buffer_append(sink->body, bytes, count);
    return sink->is_over || sink->body->failed ? 0 : size * count;
}

static int on_progress(void *user, curl_off_t total, curl_off_t done, curl_off_t up_total, curl_off_t up) {
    const hub_callbacks *callbacks = user;
    (void)total, (void)done, (void)up_total, (void)up;
    return callbacks->progress && !callbacks->progress(callbacks->user, "asking", 0, 0);
}

static gumbel_status refuse_body(const body_sink *sink, const char *repository, gumbel_error *error) {
    if (sink->body->failed)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "%s: no memory for the hub's answer", repository);
    return gb_fail(error, GUMBEL_ERROR_LIMIT, "%s: the hub's answer has more than %zu bytes", repository,
                   sink->limit);
}

static void say_wait(const hub_callbacks *callbacks, const hub_reply *reply, double delay) {
    char line[96];
    snprintf(line, sizeof line, "the hub answers with status %ld; trying again in %.0f s", reply->status,
             delay);
    if (callbacks->note && delay >= 2)
        callbacks->note(callbacks->user, line);
}

/* One request after the other until one succeeds or fails for good. */
static gumbel_status get(CURL *request, const hub_settings *settings, struct curl_slist *headers,
                         const char *url, const char *repository, body_sink *sink,
                         const hub_callbacks *callbacks, gumbel_error *error) {
    hub_reply reply;
    for (unsigned failures = 1;; failures++) {
        hub_prepare(request, settings, headers, url, &reply);
        curl_easy_setopt(request, CURLOPT_WRITEFUNCTION, on_body);
        curl_easy_setopt(request, CURLOPT_WRITEDATA, sink);
        curl_easy_setopt(request, CURLOPT_NOPROGRESS, 0L);
        curl_easy_setopt(request, CURLOPT_XFERINFOFUNCTION, on_progress);
        curl_easy_setopt(request, CURLOPT_XFERINFODATA, callbacks);
        sink->body->size = 0;
        CURLcode result = curl_easy_perform(request);
        curl_easy_getinfo(request, CURLINFO_RESPONSE_CODE, &reply.status);
        if (result == CURLE_OK && reply.status == 200)
            return GUMBEL_OK;
        if (sink->is_over || sink->body->failed)
            return refuse_body(sink, repository, error);
        double delay = hub_delay(request, failures);
        bool is_final = failures == (reply.status ? HUB_MOST_FAILURES : HUB_MOST_SILENCES) ||
                        !hub_may_pass(result, &reply);
        if (is_final && result != CURLE_ABORTED_BY_CALLBACK)
            return hub_refuse(result, &reply, settings, repository, repository, error);
        if (!is_final)
            say_wait(callbacks, &reply, delay);
        if (is_final || !hub_sleep(delay, callbacks))
            return gb_fail(error, GUMBEL_ERROR_CANCELLED, "%s: cancelled", repository);
    }
}

gumbel_status hub_get(const hub_settings *settings, const char *url, const char *repository, size_t limit,
                      const hub_callbacks *callbacks, gb_byte_buffer *body, gumbel_error *error) {
    body_sink sink = {.body = body, .limit = limit};
    CURL *request = curl_easy_init();
    struct curl_slist *headers = hub_headers(settings);
    gumbel_status status =
        request && headers ? get(request, settings, headers, url, repository, &sink, callbacks, error)
                           : gb_fail(error, GUMBEL_ERROR_MEMORY, "%s: no memory for a request", repository);
    curl_slist_free_all(headers);
    curl_easy_cleanup(request);
    return status;
}
