/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of routes, and what each does.
 */
#ifndef GUMBEL_SERVER_ROUTES_ROUTES_H
#define GUMBEL_SERVER_ROUTES_ROUTES_H

#include "server/models.h"
#include "server/options.h"
#include "server/protocols/protocol.h"

/* Callbacks of server_http_options; user is the server. */
bool server_admit(void *user, server_exchange *exchange);
void server_handle(void *user, server_exchange *exchange);
void server_note_done(void *user, int status);

/* What a route does: it replies. rest is the path behind the route's own. */
typedef void server_handler(server *s, server_exchange *exchange, const char *rest);

/* Answers by the protocol of a route that generates. */
void server_answer_route(server *s, server_exchange *exchange, const server_protocol *protocol);

server_handler server_count_tokens_route, server_models_route, server_tokenize_route, server_detokenize_route,
    server_template_route, server_tokenizer_info_route, server_health_route, server_ready_route,
    server_version_route, server_metrics_route, server_stored_route, server_forget_route, server_page_route;

/* ---- What they share ----------------------------------------------------------------------------------- */

/* A failure as the API of the exchange's path has it. */
void server_reply_failure(server_exchange *exchange, const server_failure *failure);

/* The model of that name (NULL: the first one), loaded if need be; released with the request. */
const server_model *server_find_model_of(void *server, const char *name, server_request *request,
                                         server_failure *failure);

/* Its number; that of models where there is none of the name, with a failure. */
size_t server_number_of(const server *s, const char *name, server_failure *failure);

#endif
