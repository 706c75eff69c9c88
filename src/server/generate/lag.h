/* SPDX-License-Identifier: Apache-2.0
 *
 * Tokens held back until their text is certain. A reply is read by tokens, since its marks are tokens, but
 * stop strings end its text: a token whose characters may belong to one waits.
 */
#ifndef GUMBEL_SERVER_GENERATE_LAG_H
#define GUMBEL_SERVER_GENERATE_LAG_H

#include "gumbel.h"

typedef struct server_lag server_lag;

/* NULL: no memory. */
server_lag *server_lag_create(const gumbel_tokenizer *tokenizer);
void server_lag_destroy(server_lag *lag);

/* Adds a token (-1: none) and the text that has become certain with it, and gives the reply all tokens whose
 * text is certain. */
gumbel_status server_lag_add(server_lag *lag, int32_t token, const char *text, size_t length,
                             gumbel_reply *reply, gumbel_error *error);

/* Ends it. stopped: a stop string has ended the text, so that of the tokens that wait only the certain text
 * is the reply's. */
gumbel_status server_lag_end(server_lag *lag, bool stopped, gumbel_reply *reply, gumbel_error *error);

#endif
