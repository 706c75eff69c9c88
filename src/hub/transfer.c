/* SPDX-License-Identifier: Apache-2.0 */
#include "hub/transfer.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/status.h"
#include "hub/http.h"
#include "hub/partial.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A request is for a segment: at least LEAST_SEGMENT chunks, and of a large file the SEGMENTS-th part, so
 * that a download asks the hub rarely and its connections end a file together. */
enum {
    LEAST_SEGMENT = 256,
    SEGMENTS = 16,
    HASHED_AT_ONCE = 16,
    POLL_MILLISECONDS = 100,
    MOST_CONNECTIONS = 16
};

typedef struct transfer transfer;

/* What one connection is doing. */
typedef struct lane {
    transfer *transfer;
    CURL *request;
    hub_partial *partial; /* NULL: nothing */
    hub_range range;
    uint64_t claimed; /* where its range began */
    uint64_t begin;   /* where the request began, which may be the second one of the range */
    hub_reply reply;
    bool is_checked;   /* the answer's header fits the request */
    bool is_wrong;     /* error says why the answer is refused for good */
    bool is_in_multi;  /* a request is under way */
    double not_before; /* seconds; after a failure */
    gumbel_error error;
} lane;

struct transfer {
    const hub_plan *plan;
    const hub_callbacks *callbacks;
    const char *blobs;
    CURLM *multi;
    struct curl_slist *headers;
    lane lanes[MOST_CONNECTIONS];
    hub_partial open[MOST_CONNECTIONS]; /* files that have begun; file NULL: free */
    size_t lane_count, next_file;
    uint64_t done; /* bytes of files that are complete */
    uint64_t total;
    unsigned failures; /* in a row, of all connections: bytes that arrive end it */
};

/* ---- Answers ------------------------------------------------------------------------------------------- */

static bool wrong(lane *l, const char *what, uint64_t found, uint64_t expected) {
    gb_fail(&l->error, GUMBEL_ERROR_FORMAT, "%s: the hub sends %s %" PRIu64 ", expected %" PRIu64,
            l->partial->file->name, what, found, expected);
    l->is_wrong = true;
    return false;
}

static bool check_identity(lane *l) {
    const hub_reply *reply = &l->reply;
    const hub_plan *plan = l->transfer->plan;
    const char *hash = l->partial->file->hash;
    bool is_other_commit = reply->commit[0] && strcmp(reply->commit, plan->listing.commit) != 0;
    bool is_other_file = reply->etag[0] && strlen(hash) == HUB_SHA256 && strcmp(reply->etag, hash) != 0;
    if (!is_other_commit && !is_other_file)
        return true;
    gb_fail(&l->error, GUMBEL_ERROR_FORMAT, "%s: the hub sends %s %s, expected %s; try again",
            l->partial->file->name, is_other_commit ? "commit" : "a file with the hash",
            is_other_commit ? reply->commit : reply->etag, is_other_commit ? plan->listing.commit : hash);
    l->is_wrong = true;
    return false;
}

/* Whether the answer is what was requested, before its first byte is written. */
static bool check_answer(lane *l) {
    const hub_file *file = l->partial->file;
    curl_off_t length = -1;
    curl_easy_getinfo(l->request, CURLINFO_RESPONSE_CODE, &l->reply.status);
    curl_easy_getinfo(l->request, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
    if (!check_identity(l))
        return false;
    if (l->reply.status == 206) {
        if (!l->reply.has_range || l->reply.first != l->begin)
            return wrong(l, "bytes from", l->reply.first, l->begin);
        return l->reply.total == file->size || wrong(l, "a file of size", l->reply.total, file->size);
    }
    if (length >= 0 && (uint64_t)length != file->size)
        return wrong(l, "a file of size", (uint64_t)length, file->size);
    /* It sends everything: one connection takes it from the beginning. */
    bool is_range = l->range.end - l->begin != file->size;
    if (is_range)
        l->partial->is_whole = true;
    return !is_range;
}

static size_t on_bytes(char *bytes, size_t size, size_t count, void *user) {
    lane *l = user;
    long status = 0;
    curl_easy_getinfo(l->request, CURLINFO_RESPONSE_CODE, &status);
    if (status != 200 && status != 206)
        return size * count; /* what an error says is not kept */
    l->is_checked = l->is_checked || check_answer(l);
    if (!l->is_checked)
        return 0;
    if (count > l->range.end - l->range.offset) {
        wrong(l, "more bytes than", l->range.end - l->begin + 1, l->range.end - l->begin);
        return 0;
    }
    l->is_wrong = hub_partial_write(l->partial, &l->range, bytes, count, &l->error) != GUMBEL_OK;
    if (!l->partial->is_whole) /* that begins again each time */
        l->transfer->failures = 0;
    return l->is_wrong ? 0 : size * count;
}

/* ---- Requests ------------------------------------------------------------------------------------------ */

/* The next file that is missing, opened; NULL: there is none, or as many are open as there are connections.
 */
static gumbel_status open_next(transfer *t, hub_partial **opened, gumbel_error *error) {
    const hub_listing *listing = &t->plan->listing;
    *opened = NULL;
    while (t->next_file < listing->count && listing->files[t->next_file].is_here)
        t->next_file++;
    for (size_t i = 0; i < t->lane_count && t->next_file < listing->count; i++)
        if (!t->open[i].file) {
            *opened = &t->open[i];
            return hub_partial_open(t->blobs, &listing->files[t->next_file++], *opened, error);
        }
    return GUMBEL_OK;
}

static bool take(lane *l, hub_partial *partial) {
    size_t part = partial->chunks / SEGMENTS, segment = part > LEAST_SEGMENT ? part : LEAST_SEGMENT;
    if (!partial->file || !hub_partial_claim(partial, segment, &l->range))
        return false;
    l->partial = partial;
    l->claimed = l->range.offset;
    return true;
}

/* Bytes for an idle connection: of a file that has begun, else of the next one. */
static gumbel_status claim(transfer *t, lane *l, gumbel_error *error) {
    for (size_t i = 0; i < t->lane_count; i++)
        if (take(l, &t->open[i]))
            return GUMBEL_OK;
    hub_partial *opened;
    GB_TRY(open_next(t, &opened, error));
    if (opened)
        take(l, opened);
    return GUMBEL_OK;
}

static void release(lane *l) {
    hub_partial_release(l->partial, l->claimed, &l->range);
    l->partial = NULL;
}

static gumbel_status begin_request(transfer *t, lane *l, gumbel_error *error) {
    char url[HUB_URL], range[64];
    const hub_plan *plan = t->plan;
    const hub_file *file = l->partial->file;
    if (!hub_file_url(&plan->settings, plan->name.repository, plan->listing.commit, file->name, url))
        return gb_fail(error, GUMBEL_ERROR_LIMIT, "%s: its URL is too long", file->name);
    l->begin = l->range.offset;
    l->is_checked = l->is_wrong = false;
    hub_prepare(l->request, &plan->settings, t->headers, url, &l->reply);
    snprintf(range, sizeof range, "%" PRIu64 "-%" PRIu64, l->range.offset, l->range.end - 1);
    if (l->range.end - l->range.offset != file->size)
        curl_easy_setopt(l->request, CURLOPT_RANGE, range);
    curl_easy_setopt(l->request, CURLOPT_WRITEFUNCTION, on_bytes);
    curl_easy_setopt(l->request, CURLOPT_WRITEDATA, l);
    curl_easy_setopt(l->request, CURLOPT_PRIVATE, l);
    l->is_in_multi = curl_multi_add_handle(t->multi, l->request) == CURLM_OK;
    return l->is_in_multi ? GUMBEL_OK
                          : gb_fail(error, GUMBEL_ERROR_MEMORY, "%s: no memory to ask", file->name);
}

static gumbel_status begin_requests(transfer *t, gumbel_error *error) {
    double now = gb_seconds();
    for (size_t i = 0; i < t->lane_count; i++) {
        lane *l = &t->lanes[i];
        if (l->is_in_multi || now < l->not_before)
            continue;
        if (!l->partial)
            GB_TRY(claim(t, l, error));
        if (l->partial)
            GB_TRY(begin_request(t, l, error));
    }
    return GUMBEL_OK;
}

static void say_wait(const transfer *t, const hub_reply *reply, double delay) {
    char line[128];
    if (!t->callbacks->note || delay < 2)
        return;
    if (reply->status >= 400)
        snprintf(line, sizeof line, "the hub answers with status %ld; trying again in %.0f s", reply->status,
                 delay);
    else
        snprintf(line, sizeof line, "the connection to the hub broke; trying again in %.0f s", delay);
    t->callbacks->note(t->callbacks->user, line);
}

/* A request that ended early: the lane waits and goes on in its range, or the transfer fails. */
static gumbel_status retry(transfer *t, lane *l, CURLcode result, gumbel_error *error) {
    const hub_plan *plan = t->plan;
    if (l->is_wrong) {
        *error = l->error;
        return error->status;
    }
    if (result == CURLE_WRITE_ERROR && l->partial->is_whole) {
        release(l);
        return GUMBEL_OK;
    }
    t->failures++;
    if (t->failures > HUB_MOST_FAILURES * t->lane_count || !hub_may_pass(result, &l->reply))
        return hub_refuse(result, &l->reply, &plan->settings, plan->name.repository, l->partial->file->name,
                          error);
    double delay =
        hub_delay(l->request, (t->failures + (unsigned)t->lane_count - 1) / (unsigned)t->lane_count);
    l->not_before = gb_seconds() + delay;
    say_wait(t, &l->reply, delay);
    return GUMBEL_OK;
}

static gumbel_status end_request(transfer *t, lane *l, CURLcode result, gumbel_error *error) {
    curl_easy_getinfo(l->request, CURLINFO_RESPONSE_CODE, &l->reply.status);
    curl_multi_remove_handle(t->multi, l->request);
    l->is_in_multi = false;
    if (l->range.offset == l->range.end && !l->is_wrong) {
        release(l);
        return GUMBEL_OK;
    }
    /* A body that is shorter than it was said to be counts as a connection that broke. */
    if (result == CURLE_OK && l->reply.status < 300)
        result = CURLE_PARTIAL_FILE;
    return retry(t, l, result, error);
}

static gumbel_status end_requests(transfer *t, gumbel_error *error) {
    int left;
    for (CURLMsg *message; (message = curl_multi_info_read(t->multi, &left));) {
        lane *l;
        if (message->msg != CURLMSG_DONE)
            continue;
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&l);
        GB_TRY(end_request(t, l, message->data.result, error));
    }
    return GUMBEL_OK;
}

/* ---- Files --------------------------------------------------------------------------------------------- */

/* What an earlier process has left may be damaged, by a system that went down: it is downloaded once more. */
static gumbel_status finish_file(transfer *t, hub_partial *partial, gumbel_error *error) {
    hub_file *file = (hub_file *)(uintptr_t)partial->file;
    bool was_resumed = partial->is_resumed;
    gumbel_status status = hub_partial_finish(partial, error);
    hub_partial_close(partial);
    if (status == GUMBEL_ERROR_FORMAT && was_resumed)
        return hub_partial_open(t->blobs, file, partial, error);
    if (status != GUMBEL_OK)
        return status;
    file->is_here = true;
    t->done += file->size;
    char line[HUB_FILE + 16];
    snprintf(line, sizeof line, "%s is complete", file->name);
    if (t->callbacks->note)
        t->callbacks->note(t->callbacks->user, line);
    return GUMBEL_OK;
}

static bool is_in_use(const transfer *t, const hub_partial *partial) {
    for (size_t i = 0; i < t->lane_count; i++)
        if (t->lanes[i].partial == partial)
            return true;
    return false;
}

/* Hashes behind the bytes that arrive. *is_busy: there may be more to hash at once. */
static gumbel_status hash_files(transfer *t, bool *is_busy, gumbel_error *error) {
    *is_busy = false;
    for (size_t i = 0; i < t->lane_count; i++) {
        hub_partial *partial = &t->open[i];
        bool is_done = false;
        if (!partial->file)
            continue;
        size_t before = partial->hashed;
        GB_TRY(hub_partial_hash(partial, HASHED_AT_ONCE, &is_done, error));
        *is_busy = *is_busy || partial->hashed > before;
        if (is_done && !is_in_use(t, partial))
            GB_TRY(finish_file(t, partial, error));
    }
    return GUMBEL_OK;
}

static gumbel_status report(transfer *t, gumbel_error *error) {
    uint64_t done = t->done;
    const char *name = t->plan->name.repository;
    for (size_t i = 0; i < t->lane_count; i++) {
        const lane *l = &t->lanes[i];
        if (t->open[i].file) {
            done += t->open[i].bytes;
            name = t->open[i].file->name;
        }
        if (l->partial && l->range.offset < l->range.end)
            done += l->range.offset % HUB_CHUNK;
    }
    if (!t->callbacks->progress || t->callbacks->progress(t->callbacks->user, name, done, t->total))
        return GUMBEL_OK;
    return gb_fail(error, GUMBEL_ERROR_CANCELLED,
                   "%s: cancelled; what was downloaded is kept, and the same command goes on with it",
                   t->plan->name.repository);
}

static bool is_finished(const transfer *t) {
    const hub_listing *listing = &t->plan->listing;
    for (size_t i = 0; i < listing->count; i++)
        if (!listing->files[i].is_here)
            return false;
    return true;
}

static gumbel_status run(transfer *t, gumbel_error *error) {
    while (!is_finished(t)) {
        int running;
        bool is_busy;
        GB_TRY(begin_requests(t, error));
        curl_multi_perform(t->multi, &running);
        GB_TRY(end_requests(t, error));
        GB_TRY(hash_files(t, &is_busy, error));
        GB_TRY(report(t, error));
        curl_multi_poll(t->multi, NULL, 0, is_busy ? 0 : POLL_MILLISECONDS, NULL);
    }
    return GUMBEL_OK;
}

/* ---- All of it ----------------------------------------------------------------------------------------- */

static bool open_lanes(transfer *t) {
    t->multi = curl_multi_init();
    if (t->multi) /* each request has a connection of its own: streams of one share its rate */
        curl_multi_setopt(t->multi, CURLMOPT_PIPELINING, (long)CURLPIPE_NOTHING);
    t->headers = hub_headers(&t->plan->settings);
    for (size_t i = 0; i < t->lane_count; i++) {
        t->lanes[i] = (lane){.transfer = t, .request = curl_easy_init()};
        t->open[i] = (hub_partial){.descriptor = -1};
        if (!t->lanes[i].request)
            return false;
    }
    return t->multi && t->headers;
}

static void close_lanes(transfer *t) {
    for (size_t i = 0; i < t->lane_count; i++) {
        if (t->lanes[i].is_in_multi)
            curl_multi_remove_handle(t->multi, t->lanes[i].request);
        curl_easy_cleanup(t->lanes[i].request);
        hub_partial_close(&t->open[i]);
    }
    curl_multi_cleanup(t->multi);
    curl_slist_free_all(t->headers);
}

gumbel_status hub_transfer(hub_plan *plan, const char *blobs, unsigned connections,
                           const hub_callbacks *callbacks, gumbel_error *error) {
    transfer *t = gb_allocate(1, sizeof *t);
    if (!t)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "%s: no memory to download it", plan->name.repository);
    *t = (transfer){.plan = plan, .callbacks = callbacks, .blobs = blobs, .total = plan->bytes};
    t->lane_count = connections < 1 ? 1 : connections < MOST_CONNECTIONS ? connections : MOST_CONNECTIONS;
    for (size_t i = 0; i < plan->listing.count; i++)
        t->done += plan->listing.files[i].is_here ? plan->listing.files[i].size : 0;
    gumbel_status status = open_lanes(t) ? run(t, error)
                                         : gb_fail(error, GUMBEL_ERROR_MEMORY, "%s: no memory to download it",
                                                   plan->name.repository);
    close_lanes(t);
    gb_free(t);
    return status;
}
