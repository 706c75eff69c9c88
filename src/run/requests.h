/* SPDX-License-Identifier: Apache-2.0
 *
 * The requests of a step: taken from the caller, whose structures may be of another version, and checked.
 */
#ifndef GUMBEL_RUN_REQUESTS_H
#define GUMBEL_RUN_REQUESTS_H

#include "run/handles.h"

/* Takes the caller's requests, each as long as the first, into engine->requests. Errors: ARGUMENT,
 * UNSUPPORTED. */
gumbel_status gb_read_requests(gumbel_engine *engine, const gumbel_request *requests, size_t count,
                               gumbel_error *error);

/* Checks everything about each of them but its settings. Errors: ARGUMENT, LIMIT, naming the request. */
gumbel_status gb_check_requests(const gumbel_engine *engine, gumbel_error *error);

/* Checks that they fit into one step, once they have been cut. Errors: as above. */
gumbel_status gb_check_step(const gumbel_engine *engine, gumbel_error *error);

/* Tokens that the request has in the batch, its draft among them. */
static inline size_t gb_request_tokens(const gumbel_request *request) {
    return request->token_count + request->draft_count;
}

/* Its result number r, in an array of the caller's version. */
static inline gumbel_result *gb_request_result(const gumbel_request *request, size_t r) {
    return (gumbel_result *)(void *)((char *)request->result + r * request->result->size);
}

/* Whether the request's token i continues an answer: only its first one can, the one after a draw, unless
 * what was run is run again. */
bool gb_request_generated(const gumbel_request *request, uint32_t i);

#endif
