/* SPDX-License-Identifier: Apache-2.0 */
#include "server/generate/lag.h"

#include "base/byte_buffer.h"

#include <stdlib.h>

typedef struct waiting_token {
    int32_t token;
    uint64_t end; /* of its characters, among all that tokens have given */
} waiting_token;

struct server_lag {
    gumbel_detokenizer *detokenizer; /* cuts characters as the scheduler's does */
    gb_byte_buffer queue;            /* of waiting_token */
    size_t first;                    /* of those that still wait, in bytes */
    uint64_t given, certain, fed;    /* characters' bytes: of tokens, certain ones, those of the reply */
    gb_byte_buffer text;             /* certain and not fed */
};

server_lag *server_lag_create(const gumbel_tokenizer *tokenizer) {
    server_lag *lag = calloc(1, sizeof *lag);
    if (lag && gumbel_detokenizer_create(tokenizer, false, &lag->detokenizer, NULL) == GUMBEL_OK)
        return lag;
    server_lag_destroy(lag);
    return NULL;
}

void server_lag_destroy(server_lag *lag) {
    if (!lag)
        return;
    gumbel_detokenizer_destroy(lag->detokenizer);
    gb_buffer_free(&lag->queue);
    gb_buffer_free(&lag->text);
    free(lag);
}

static gumbel_status fail(gumbel_error *error) {
    *error = (gumbel_error){GUMBEL_ERROR_MEMORY, "no memory for the answer"};
    return error->status;
}

static waiting_token *first_of(const server_lag *lag) {
    return lag->first < lag->queue.size ? (waiting_token *)(void *)(lag->queue.text + lag->first) : NULL;
}

/* Forgets the certain text of what was fed. */
static void forget(server_lag *lag) {
    if (lag->fed < lag->certain)
        return;
    gb_buffer_clear(&lag->text);
    lag->fed = lag->certain;
}

static gumbel_status feed(server_lag *lag, uint64_t until, gumbel_reply *reply, gumbel_error *error) {
    const waiting_token *next;
    gumbel_status status = GUMBEL_OK;
    while (status == GUMBEL_OK && (next = first_of(lag)) && next->end <= until) {
        status = gumbel_reply_add_token(reply, next->token, error);
        lag->fed = next->end;
        lag->first += sizeof *next;
    }
    if (!first_of(lag)) {
        gb_buffer_clear(&lag->queue);
        lag->first = 0;
    }
    return status;
}

gumbel_status server_lag_add(server_lag *lag, int32_t token, const char *text, size_t length,
                             gumbel_reply *reply, gumbel_error *error) {
    const char *piece;
    size_t size;
    if (token >= 0) {
        if (gumbel_detokenize(lag->detokenizer, token, &piece, &size, error) != GUMBEL_OK)
            return error->status;
        lag->given += size;
        /* With the first bytes of a character it waits for the rest, which may belong to a stop string. */
        const bool is_cut = gumbel_detokenizer_pending(lag->detokenizer) > 0;
        const waiting_token waiting = {token, lag->given + is_cut};
        gb_buffer_append(&lag->queue, (const char *)&waiting, sizeof waiting);
    }
    forget(lag);
    gb_buffer_append(&lag->text, text, length);
    lag->certain += length;
    if (lag->queue.failed || lag->text.failed)
        return fail(error);
    return feed(lag, lag->certain, reply, error);
}

gumbel_status server_lag_end(server_lag *lag, bool stopped, gumbel_reply *reply, gumbel_error *error) {
    if (!stopped)
        return feed(lag, UINT64_MAX, reply, error);
    const uint64_t left = lag->certain > lag->fed ? lag->certain - lag->fed : 0;
    if (left == 0 || left > lag->text.size)
        return GUMBEL_OK;
    return gumbel_reply_add_text(reply, lag->text.text + lag->text.size - left, (size_t)left, error);
}
