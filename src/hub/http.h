/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests to the hub with libcurl: how each is set up, what an answer's header says, which failures pass,
 * and what is said of the others. The token goes to the endpoint's host alone, never along a redirect.
 */
#ifndef GUMBEL_HUB_HTTP_H
#define GUMBEL_HUB_HTTP_H

#include "base/byte_buffer.h"
#include "gumbel.h"
#include "hub/pull.h"
#include "hub/settings.h"

#include <curl/curl.h>

/* Failures in a row after which a request is given up; fewer where there is no answer at all. */
enum { HUB_URL = 8192, HUB_MOST_FAILURES = 6, HUB_MOST_SILENCES = 3 };

/* What the header of an answer says; of redirects the first one's commit and etag are kept. */
typedef struct hub_reply {
    long status; /* of HTTP; 0: there was no answer */
    char commit[HUB_COMMIT];
    char etag[HUB_HASH];   /* the hub's hash of a large file */
    char code[48];         /* the hub's word for what is wrong: "GatedRepo" */
    char message[200];     /* its sentence */
    uint64_t first, total; /* of "Content-Range: bytes FIRST-LAST/TOTAL" */
    bool has_range;
} hub_reply;

/* The headers of every request: the token. NULL where there is no memory. Free with curl_slist_free_all. */
struct curl_slist *hub_headers(const hub_settings *settings);

/* URLs of a revision's list of files, and of a file at a commit. False where they are too long. */
bool hub_listing_url(const hub_settings *settings, const hub_name *name, char url[HUB_URL]);
bool hub_file_url(const hub_settings *settings, const char *repository, const char *commit, const char *file,
                  char url[HUB_URL]);

/* Sets a handle up for one request; settings, headers and reply must outlive it. */
void hub_prepare(CURL *request, const hub_settings *settings, const struct curl_slist *headers,
                 const char *url, hub_reply *reply);

/* Reads one line of an answer's header, length bytes without a zero behind them. */
void hub_read_header(const char *line, size_t length, hub_reply *reply);

/* Whether a failure may pass when it is tried again. */
bool hub_may_pass(CURLcode result, const hub_reply *reply);

/* Seconds to wait after so many failures in a row, longer where the hub says so. */
double hub_delay(CURL *request, unsigned failures);

/* The error of a request that failed for good. what: "ORG/NAME" or a file of it. */
gumbel_status hub_refuse(CURLcode result, const hub_reply *reply, const hub_settings *settings,
                         const char *repository, const char *what, gumbel_error *error);

/* Sleeps in small steps while the callback agrees; false: cancelled. */
bool hub_sleep(double seconds, const hub_callbacks *callbacks);

/* GETs a URL into memory, at most limit bytes, with retries. Errors as hub_refuse's; LIMIT, MEMORY,
 * CANCELLED. */
gumbel_status hub_get(const hub_settings *settings, const char *url, const char *repository, size_t limit,
                      const hub_callbacks *callbacks, gb_byte_buffer *body, gumbel_error *error);

#endif
