/* SPDX-License-Identifier: Apache-2.0
 *
 * The routes that generate, one for each protocol.
 */
#include "server/fields/tools.h"
#include "server/protocols/convert.h"
#include "server/protocols/protocol.h"
#include "server/routes/routes.h"
#include "server/state.h"

#include <stdlib.h>

/* Reads the exchange's body for a protocol, messages and tools as OpenAI's chats have them. */
static bool read_request(server *s, const server_exchange *exchange, const server_protocol *protocol,
                         server_generation *generation, server_failure *failure) {
    json_t *body = server_parse_body(&exchange->body, failure);
    if (!body)
        return false;
    server_request *request = &generation->request;
    const bool is_good = server_read_request(protocol->route, body, server_find_model_of, s, request,
                                             &generation->model, failure) &&
                         (!protocol->prepare || protocol->prepare(request, &s->responses, failure));
    if (is_good)
        server_settle_tools(request, generation->model);
    return is_good;
}

static bool start(server *s, const server_exchange *exchange, const server_protocol *protocol,
                  server_generation *generation, server_failure *failure) {
    const server_limits limits = {s->options.max_prompt_tokens, s->options.max_stream_bytes,
                                  s->options.grammar_seconds};
    if (atomic_load(&s->is_draining))
        return server_fail(failure, 503, "the server is shutting down");
    if (!read_request(s, exchange, protocol, generation, failure))
        return false;
    if (protocol == &server_messages_api && generation->request.max_new_tokens == 0)
        return server_refuse(failure, "max_tokens", "max_tokens: missing");
    generation->metrics = &s->metrics;
    generation->waiter = (server_waiter){server_exchange_socket(exchange), &s->is_draining};
    return server_generation_start(generation, protocol->id_prefix, &limits, failure);
}

static void warn_of_tools(server_exchange *exchange, const server_request *request) {
    gb_byte_buffer text = {0};
    if (request->leaves_tools_out)
        server_add_header(exchange, "X-Gumbel-Warning",
                          "tools left out: the chat template has no place for them");
    if (request->leaves_tools_out || !request->left_out[0])
        return;
    gb_buffer_append_string(&text, "tools left out: ");
    for (const char *at = request->left_out; *at; at++)
        gb_buffer_append(&text, *at == ' ' ? ", " : at, *at == ' ' ? 2 : 1);
    server_add_header(exchange, "X-Gumbel-Warning", gb_buffer_string(&text));
    gb_buffer_free(&text);
}

void server_answer_route(server *s, server_exchange *exchange, const server_protocol *protocol) {
    server_failure failure = {0};
    server_generation *generation = calloc(1, sizeof *generation);
    if (!generation) {
        server_fail(&failure, 503, "no memory for another request");
        server_reply_failure(exchange, &failure);
        return;
    }
    const bool is_started = start(s, exchange, protocol, generation, &failure);
    warn_of_tools(exchange, &generation->request);
    if (is_started) {
        server_send_answer(exchange, protocol, generation, &s->responses);
        return;
    }
    server_generation_free(generation);
    free(generation);
    if (failure.status != 0)
        server_reply_failure(exchange, &failure);
    else
        atomic_fetch_add(&s->metrics.disconnects, 1); /* without a reply the connection ends */
}

void server_count_tokens_route(server *s, server_exchange *exchange, const char *rest) {
    (void)rest;
    server_failure failure = {0};
    server_generation generation = {0};
    server_prompt prompt = {0};
    const bool is_read = read_request(s, exchange, &server_messages_api, &generation, &failure);
    warn_of_tools(exchange, &generation.request);
    if (is_read && server_encode_messages(&generation.request, generation.model, &prompt, &failure))
        server_reply_json(exchange, 200, json_pack("{s:I}", "input_tokens", (json_int_t)prompt.count));
    else
        server_reply_failure(exchange, &failure);
    free(prompt.tokens);
    server_generation_free(&generation);
}

void server_stored_route(server *s, server_exchange *exchange, const char *rest) {
    json_t *response;
    server_failure failure;
    if (server_responses_find(&s->responses, rest, NULL, &response)) {
        server_reply_json(exchange, 200, response);
        return;
    }
    server_fail(&failure, 404, "there is no response \"%.60s\"", rest);
    server_reply_failure(exchange, &failure);
}

void server_forget_route(server *s, server_exchange *exchange, const char *rest) {
    server_failure failure;
    if (server_responses_remove(&s->responses, rest)) {
        server_reply_json(exchange, 200,
                          json_pack("{s:s, s:s, s:b}", "id", rest, "object", "response", "deleted", 1));
        return;
    }
    server_fail(&failure, 404, "there is no response \"%.60s\"", rest);
    server_reply_failure(exchange, &failure);
}
