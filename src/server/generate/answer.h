/* SPDX-License-Identifier: Apache-2.0
 *
 * One answer as its events are read: its text taken apart, why it ended, what it took.
 */
#ifndef GUMBEL_SERVER_GENERATE_ANSWER_H
#define GUMBEL_SERVER_GENERATE_ANSWER_H

#include "server/fields/request.h"
#include "server/generate/prompt.h"
#include "server/generate/run.h"

typedef struct server_answer {
    uint32_t index;         /* among all of the request's */
    gumbel_reply *reply;    /* takes a chat's answer apart; NULL: it is plain text */
    struct server_lag *lag; /* NULL: there are no stop strings to wait for */
    bool has_begun, has_ended;
    uint64_t seed; /* of its first token */
    uint32_t tokens, reasoning_tokens, calls;
    uint32_t pending_tokens; /* since the last delta: they belong to the part of the next one */
    double last_time;        /* of its last token */
    gumbel_finish finish;
    int32_t stop_string;
    gumbel_status status;               /* not OK: it has failed, */
    char message[GUMBEL_MESSAGE_BYTES]; /* for this reason */
    gumbel_usage usage;
    /* For the protocol that sends it: */
    gb_byte_buffer text; /* of completions */
    size_t text_offset;  /* of its next token */
    bool has_echoed;     /* log-probabilities of the prompt were added */
    json_t *logprobs;    /* those that were not sent yet; NULL: none */
} server_answer;

/* What becomes of an answer's events. Texts are valid during the call. */
typedef struct server_sink {
    void *user;
    /* Each one may be NULL. */
    void (*token)(void *user, server_answer *answer, const server_event *event);
    void (*delta)(void *user, server_answer *answer, const gumbel_reply_delta *delta);
    void (*finish)(void *user, server_answer *answer); /* it is whole, or has failed */
} server_sink;

/* Begins an answer of a chat to the prompt. */
bool server_answer_begin_reply(server_answer *answer, const server_request *request,
                               const server_model *model, const server_prompt *prompt,
                               server_failure *failure);

/* Tells sink what an event of the answer brings. */
void server_answer_add(server_answer *answer, const server_event *event, const server_sink *sink);

/* "stop", "length", "tool_calls". */
const char *server_answer_finish(const server_answer *answer);

void server_answer_free(server_answer *answer);

#endif
