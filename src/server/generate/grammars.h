/* SPDX-License-Identifier: Apache-2.0
 *
 * The grammars of a model's requests: compiled once for equal texts, by the thread of the connection that
 * asks first. Those that were not used for longest give way to new ones.
 */
#ifndef GUMBEL_SERVER_GENERATE_GRAMMARS_H
#define GUMBEL_SERVER_GENERATE_GRAMMARS_H

#include "gumbel.h"
#include "server/metrics.h"

#include <stdatomic.h>

/* How many are kept, and how many bytes of their texts, but for one that is longer. */
enum { SERVER_MOST_GRAMMARS = 64, SERVER_MOST_GRAMMAR_BYTES = 4 << 20 };

typedef struct server_grammars server_grammars;
typedef struct server_grammar server_grammar;

/* The tokenizer must live until they are destroyed. log, which may be NULL and is called from any thread,
 * gets what a grammar that is compiled has to say. Errors: MEMORY. */
gumbel_status server_grammars_create(const gumbel_tokenizer *tokenizer, gumbel_log_callback log,
                                     void *log_user, server_grammars **grammars, gumbel_error *error);

/* NULL is allowed. All must have been released. */
void server_grammars_destroy(server_grammars *grammars);

/* Who waits for a grammar. */
typedef struct server_waiter {
    int socket;                     /* of its client; -1: none */
    const atomic_bool *is_draining; /* the server's */
} server_waiter;

/* The grammar of these options, until it is released; waits where another thread compiles it. Where the
 * members of a schema cannot be had in its order, they may come in any. A waiter (NULL: none) whose client
 * leaves, or whose server drains, waits no longer; what nobody waits for is not compiled to its end. metrics
 * may be NULL. Thread-safe. Errors: those of gumbel_grammar_create; CANCELLED: the waiter waits no longer. */
gumbel_status server_grammars_take(server_grammars *grammars, const gumbel_grammar_options *options,
                                   const server_waiter *waiter, server_metrics *metrics,
                                   server_grammar **grammar, gumbel_error *error);
void server_grammars_release(server_grammars *grammars, server_grammar *grammar);

const gumbel_grammar *server_compiled_grammar(const server_grammar *grammar);

#endif
