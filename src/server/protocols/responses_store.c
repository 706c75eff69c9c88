/* SPDX-License-Identifier: Apache-2.0 */
#include "server/protocols/responses_store.h"

#include "base/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void server_responses_init(server_responses *responses, size_t max_bytes) {
    *responses = (server_responses){.max_bytes = max_bytes};
    pthread_mutex_init(&responses->lock, NULL);
}

static void drop(server_responses *responses, size_t index) {
    server_stored *stored = &responses->list[index];
    responses->bytes -= stored->bytes;
    json_decref(stored->messages);
    json_decref(stored->response);
    responses->count--;
    memmove(stored, stored + 1, (responses->count - index) * sizeof *stored);
}

void server_responses_free(server_responses *responses) {
    while (responses->count > 0)
        drop(responses, responses->count - 1);
    free(responses->list);
    pthread_mutex_destroy(&responses->lock);
}

static size_t size_of(const json_t *messages, const json_t *response) {
    return json_dumpb(messages, NULL, 0, JSON_COMPACT) + json_dumpb(response, NULL, 0, JSON_COMPACT);
}

void server_responses_add(server_responses *responses, const char *id, json_t *messages, json_t *response) {
    server_stored stored = {.bytes = size_of(messages, response), .messages = messages, .response = response};
    snprintf(stored.id, sizeof stored.id, "%s", id);
    pthread_mutex_lock(&responses->lock);
    while (responses->count > 0 && responses->bytes + stored.bytes > responses->max_bytes)
        drop(responses, 0);
    const bool is_kept =
        stored.bytes <= responses->max_bytes && gb_grow((void **)&responses->list, &responses->capacity,
                                                        responses->count + 1, sizeof *responses->list);
    if (is_kept) {
        responses->list[responses->count++] = stored;
        responses->bytes += stored.bytes;
    }
    pthread_mutex_unlock(&responses->lock);
    if (!is_kept) {
        json_decref(messages);
        json_decref(response);
    }
}

/* Its index; the count where there is none. */
static size_t find(const server_responses *responses, const char *id) {
    size_t i = responses->count;
    while (i > 0 && strcmp(responses->list[i - 1].id, id) != 0)
        i--;
    return i > 0 ? i - 1 : responses->count;
}

bool server_responses_find(server_responses *responses, const char *id, json_t **messages,
                           json_t **response) {
    pthread_mutex_lock(&responses->lock);
    const size_t i = find(responses, id);
    const bool is_found = i < responses->count;
    if (is_found && messages)
        *messages = json_deep_copy(responses->list[i].messages);
    if (is_found && response)
        *response = json_deep_copy(responses->list[i].response);
    pthread_mutex_unlock(&responses->lock);
    return is_found;
}

bool server_responses_remove(server_responses *responses, const char *id) {
    pthread_mutex_lock(&responses->lock);
    const size_t i = find(responses, id);
    const bool is_found = i < responses->count;
    if (is_found)
        drop(responses, i);
    pthread_mutex_unlock(&responses->lock);
    return is_found;
}
