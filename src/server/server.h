/* SPDX-License-Identifier: Apache-2.0
 *
 * An HTTP server that speaks OpenAI's and Anthropic's APIs for models that schedulers answer for. It uses
 * gumbel.h and src/base; docs/server.md describes it.
 */
#ifndef GUMBEL_SERVER_SERVER_H
#define GUMBEL_SERVER_SERVER_H

#include "server/models.h"
#include "server/options.h"

/* Starts to serve. Errors: ARGUMENT (an address for others without keys), IO, MEMORY. */
gumbel_status server_create(const server_options *options, const server_models *models, server **created,
                            gumbel_error *error);

/* The port; 0: there is no TCP socket. */
uint16_t server_port(const server *s);

/* Takes no more connections and no more requests to generate; what goes on goes on. */
void server_drain(server *s);

/* The same when an engine has failed for good, which /health says from now on. */
void server_give_up(server *s);

/* Waits for the replies that are under way, which the schedulers must have answered, and ends. NULL allowed.
 */
void server_destroy(server *s);

#endif
