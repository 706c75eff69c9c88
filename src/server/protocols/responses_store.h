/* SPDX-License-Identifier: Apache-2.0
 *
 * Responses that later requests may go on from (previous_response_id), in memory: the conversation up to
 * each. The oldest are dropped where there is no room.
 */
#ifndef GUMBEL_SERVER_PROTOCOLS_RESPONSES_STORE_H
#define GUMBEL_SERVER_PROTOCOLS_RESPONSES_STORE_H

#include <jansson.h>
#include <pthread.h>
#include <stdbool.h>

typedef struct server_stored {
    char id[48];
    size_t bytes;
    json_t *messages; /* of OpenAI's chats, the answer included; without instructions */
    json_t *response; /* the object that was answered */
} server_stored;

typedef struct server_responses {
    pthread_mutex_t lock;
    server_stored *list; /* the oldest first */
    size_t count, capacity, bytes, max_bytes;
} server_responses;

void server_responses_init(server_responses *responses, size_t max_bytes);
void server_responses_free(server_responses *responses);

/* Keeps a response; takes over both values. */
void server_responses_add(server_responses *responses, const char *id, json_t *messages, json_t *response);

/* Copies of what was kept (NULL: not wanted); false: there is none of that id. */
bool server_responses_find(server_responses *responses, const char *id, json_t **messages, json_t **response);

/* Whether there was one. */
bool server_responses_remove(server_responses *responses, const char *id);

#endif
