/* SPDX-License-Identifier: Apache-2.0
 *
 * How an answer is sent: one description for each API that the server speaks, and the stream of server-sent
 * events that they share.
 */
#ifndef GUMBEL_SERVER_PROTOCOLS_PROTOCOL_H
#define GUMBEL_SERVER_PROTOCOLS_PROTOCOL_H

#include "server/generate/generation.h"
#include "server/http/exchange.h"
#include "server/protocols/responses_store.h"

typedef struct server_stream server_stream;

typedef struct server_protocol {
    server_route route;
    const char *id_prefix; /* of what is answered: "chatcmpl-" */
    const char *ping;      /* what keeps a waiting stream open */
    /* Turns the request's messages and tools into those of OpenAI's chats. NULL: they are. */
    bool (*prepare)(server_request *request, server_responses *responses, server_failure *failure);
    /* An answer as one object. The sink collects what it needs. */
    server_sink collect;
    json_t *(*whole)(server_generation *generation, server_responses *responses);
    /* An answer as events; the sink's user is the stream. */
    void (*begin)(server_stream *stream);
    server_sink emit;
    void (*end)(server_stream *stream);
    void (*fail)(server_stream *stream, const server_failure *failure);
    /* The object of a failure. */
    json_t *(*error)(const server_failure *failure);
} server_protocol;

extern const server_protocol server_completions, server_chat, server_responses_api, server_messages_api;

struct server_stream {
    server_generation *generation; /* owned */
    const server_protocol *protocol;
    server_responses *responses;
    bool has_begun, has_ended;
    gb_byte_buffer head; /* of OpenAI's chunks */
    gb_byte_buffer output;
    bool is_unread;     /* what output has */
    double last_output; /* when there was some, in seconds */
    /* For timings in each chunk: those of the first one with tokens */
    uint64_t first_tokens;
    double first_time;
    /* For protocols whose events are about blocks, one for each part of the reply: */
    uint64_t sequence;          /* of the next event */
    bool is_open;               /* a block is */
    size_t block, part;         /* its number, and the part that it is for */
    gumbel_part_type part_type; /* what it has */
    char block_id[SERVER_ID];
    gb_byte_buffer block_text; /* its text so far */
    json_t *blocks;            /* whole ones */
};

/* Replies to the exchange with the generation's answer, or failure, as the request wants it. The generation,
 * which was allocated, is taken over. */
void server_send_answer(server_exchange *exchange, const server_protocol *protocol,
                        server_generation *generation, server_responses *responses);

/* Appends an event: "event: name" (NULL: none) and its data, which is taken over. */
void server_send_event(server_stream *stream, const char *name, json_t *data);

/* The name of the model that answers, as the request called it. */
json_t *server_answering_model(const server_generation *generation);

/* ---- Log-probabilities --------------------------------------------------------------------------------- */

/* Adds those of a token to the answer's: as chats have them, or completions. */
void server_add_chat_logprobs(server_generation *generation, server_answer *answer,
                              const server_event *event);
void server_add_text_logprobs(server_generation *generation, server_answer *answer,
                              const server_event *event);

/* Adds those of the prompt, once, where completions echo it. */
void server_add_echo_logprobs(server_generation *generation, server_answer *answer);

/* Adds prompt_logprobs, as vLLM has it, to the object where they are wanted. */
void server_add_prompt_logprobs(server_generation *generation, size_t prompt, json_t *object);

/* Takes what was added; null: none are wanted. */
json_t *server_unsent_logprobs(server_answer *answer);

#endif
