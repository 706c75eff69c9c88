/* SPDX-License-Identifier: Apache-2.0 */
#include "server/generate/grammars.h"

#include "base/clock.h"
#include "server/generate/run.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SECOND = 1000000000, LOOK_NANOSECONDS = 20000000 }; /* how often a waiter looks after its client */
/* Left for a second try, since 0 would mean the usual limit. */
static const double SHORTEST_SECONDS = 1e-3;

struct server_grammar {
    gumbel_grammar_options options;
    char *text, *tools, *tool_name; /* owned, those of options; NULL: there is none */
    size_t text_length;             /* of all of them */
    gumbel_grammar *grammar;        /* NULL: it is being compiled, or that has failed */
    gumbel_error error;             /* why */
    bool is_done;
    bool is_kept; /* it is in the list; otherwise it goes with its last user */
    unsigned users;
    uint64_t last_use;
};

struct server_grammars {
    const gumbel_tokenizer *tokenizer;
    gumbel_log_callback log; /* NULL: no notices */
    void *log_user;
    pthread_mutex_t lock;
    pthread_cond_t done;
    server_grammar *kept[SERVER_MOST_GRAMMARS];
    size_t count, bytes; /* of them, and of their texts */
    uint64_t uses;
};

/* ---- The list, with the lock --------------------------------------------------------------------------- */

static bool is_same_text(const char *a, const char *b) {
    return a && b ? strcmp(a, b) == 0 : a == b;
}

static bool is_same(const gumbel_grammar_options *a, const gumbel_grammar_options *b) {
    return a->kind == b->kind && a->in_order == b->in_order && a->compact == b->compact &&
           a->strict == b->strict && a->tool_choice == b->tool_choice && a->single_call == b->single_call &&
           is_same_text(a->text, b->text) && is_same_text(a->tools, b->tools) &&
           is_same_text(a->tool_name, b->tool_name);
}

static server_grammar *find(const server_grammars *grammars, const gumbel_grammar_options *options) {
    for (size_t i = 0; i < grammars->count; i++) {
        if (is_same(&grammars->kept[i]->options, options))
            return grammars->kept[i];
    }
    return NULL;
}

static void destroy_grammar(server_grammar *grammar) {
    gumbel_grammar_destroy(grammar->grammar);
    free(grammar->text);
    free(grammar->tools);
    free(grammar->tool_name);
    free(grammar);
}

static void drop(server_grammars *grammars, size_t index) {
    server_grammar *dropped = grammars->kept[index];
    grammars->kept[index] = grammars->kept[--grammars->count];
    grammars->bytes -= dropped->text_length;
    dropped->is_kept = false;
    if (dropped->users == 0)
        destroy_grammar(dropped);
}

static size_t find_oldest(const server_grammars *grammars) {
    size_t oldest = 0;
    for (size_t i = 1; i < grammars->count; i++)
        if (grammars->kept[i]->last_use < grammars->kept[oldest]->last_use)
            oldest = i;
    return oldest;
}

static void make_room(server_grammars *grammars, size_t bytes) {
    while (grammars->count > 0 &&
           (grammars->count == SERVER_MOST_GRAMMARS || grammars->bytes + bytes > SERVER_MOST_GRAMMAR_BYTES))
        drop(grammars, find_oldest(grammars));
}

/* Has the grammar own a text of its options. */
static bool keep_text(server_grammar *grammar, const char *text, char **kept) {
    *kept = text ? strdup(text) : NULL;
    grammar->text_length += text ? strlen(text) : 0;
    return *kept || !text;
}

/* NULL: there is no memory. */
static server_grammar *add(server_grammars *grammars, const gumbel_grammar_options *options) {
    server_grammar *added = calloc(1, sizeof *added);
    if (!added)
        return NULL;
    if (!keep_text(added, options->text, &added->text) || !keep_text(added, options->tools, &added->tools) ||
        !keep_text(added, options->tool_name, &added->tool_name)) {
        destroy_grammar(added);
        return NULL;
    }
    added->options = *options;
    added->options.text = added->text;
    added->options.tools = added->tools;
    added->options.tool_name = added->tool_name;
    make_room(grammars, added->text_length);
    added->is_kept = true;
    grammars->kept[grammars->count++] = added;
    grammars->bytes += added->text_length;
    return added;
}

static void release(server_grammar *grammar) {
    if (--grammar->users == 0 && !grammar->is_kept)
        destroy_grammar(grammar);
}

/* ---- Waiting ------------------------------------------------------------------------------------------- */

static bool is_draining(const server_waiter *waiter) {
    return waiter && waiter->is_draining && atomic_load(waiter->is_draining);
}

static bool waits_no_longer(const server_waiter *waiter) {
    return is_draining(waiter) || (waiter && server_has_left(waiter->socket));
}

/* False: the waiter waits no longer. */
static bool wait_for(server_grammars *grammars, const server_grammar *grammar, const server_waiter *waiter) {
    bool goes_on = true;
    pthread_mutex_lock(&grammars->lock);
    while (!grammar->is_done && goes_on) {
        struct timespec end;
        clock_gettime(CLOCK_MONOTONIC, &end);
        end.tv_nsec += LOOK_NANOSECONDS;
        end.tv_sec += end.tv_nsec / SECOND;
        end.tv_nsec %= SECOND;
        pthread_cond_timedwait(&grammars->done, &grammars->lock, &end);
        goes_on = grammar->is_done || !waits_no_longer(waiter);
    }
    pthread_mutex_unlock(&grammars->lock);
    return goes_on;
}

/* ---- Compiling ----------------------------------------------------------------------------------------- */

static gumbel_status compile(const server_grammars *grammars, gumbel_grammar_options options,
                             gumbel_grammar **grammar, gumbel_error *error) {
    const gumbel_tokenizer *tokenizer = grammars->tokenizer;
    options.log = grammars->log;
    options.log_user = grammars->log_user;
    const double end = gb_seconds() + options.max_seconds;
    const gumbel_status status = gumbel_grammar_create(tokenizer, &options, grammar, error);
    if (status != GUMBEL_ERROR_UNSUPPORTED || !options.in_order)
        return status;
    /* Some counts of members cannot be had in order. */
    options.in_order = false;
    options.max_seconds = options.max_seconds > 0 ? fmax(end - gb_seconds(), SHORTEST_SECONDS) : 0;
    return gumbel_grammar_create(tokenizer, &options, grammar, error);
}

/* One that this moment is to blame for is not kept; another one would fail again. An agent sends the same
 * tools in each turn. */
static void finish(server_grammars *grammars, server_grammar *grammar, gumbel_grammar *compiled,
                   const gumbel_error *error) {
    pthread_mutex_lock(&grammars->lock);
    grammar->grammar = compiled;
    grammar->error = *error;
    grammar->is_done = true;
    const bool is_momentary = error->status == GUMBEL_ERROR_CANCELLED || error->status == GUMBEL_ERROR_MEMORY;
    for (size_t i = 0; !compiled && is_momentary && i < grammars->count; i++)
        if (grammars->kept[i] == grammar)
            drop(grammars, i);
    pthread_cond_broadcast(&grammars->done);
    pthread_mutex_unlock(&grammars->lock);
}

/* A grammar that is being compiled, and for whom first. */
typedef struct compilation {
    server_grammars *grammars;
    const server_grammar *grammar;
    const server_waiter *waiter;
} compilation;

/* Whether nobody waits for it: it goes on for others where the client that asked first has left. */
static bool is_unwanted(void *user) {
    const compilation *at = user;
    if (!waits_no_longer(at->waiter))
        return false;
    pthread_mutex_lock(&at->grammars->lock);
    const bool is_alone = at->grammar->users == 1;
    pthread_mutex_unlock(&at->grammars->lock);
    return is_alone || is_draining(at->waiter);
}

static void make(server_grammars *grammars, server_grammar *grammar, const server_waiter *waiter,
                 server_metrics *metrics) {
    const double begin = gb_seconds();
    compilation at = {grammars, grammar, waiter};
    gumbel_grammar *compiled = NULL;
    gumbel_grammar_options options = grammar->options;
    gumbel_error error = {.status = GUMBEL_OK};
    options.is_cancelled = is_unwanted;
    options.user = &at;
    compile(grammars, options, &compiled, &error);
    if (metrics)
        server_observe(&metrics->grammar_compile, gb_seconds() - begin);
    finish(grammars, grammar, compiled, &error);
}

/* ---- For requests -------------------------------------------------------------------------------------- */

/* The grammar with one more user, known or new; NULL: there is no memory. */
static server_grammar *join(server_grammars *grammars, const gumbel_grammar_options *options,
                            bool *is_known) {
    pthread_mutex_lock(&grammars->lock);
    server_grammar *joined = find(grammars, options);
    *is_known = joined != NULL;
    if (!joined)
        joined = add(grammars, options);
    if (joined) {
        joined->users++;
        joined->last_use = ++grammars->uses;
    }
    pthread_mutex_unlock(&grammars->lock);
    return joined;
}

static gumbel_status take(server_grammars *grammars, const gumbel_grammar_options *options,
                          const server_waiter *waiter, server_metrics *metrics, server_grammar **grammar,
                          gumbel_error *error) {
    bool is_known, is_done = true;
    server_grammar *taken = join(grammars, options, &is_known);
    if (!taken)
        *error = (gumbel_error){GUMBEL_ERROR_MEMORY, "no memory for another grammar"};
    else if (is_known)
        is_done = wait_for(grammars, taken, waiter);
    else
        make(grammars, taken, waiter, metrics);
    if (!taken)
        return error->status;
    if (is_done && taken->grammar) {
        if (is_known && metrics)
            atomic_fetch_add(&metrics->grammar_hits, 1);
        *grammar = taken;
        return GUMBEL_OK;
    }
    *error = is_done ? taken->error : (gumbel_error){GUMBEL_ERROR_CANCELLED, "nobody waits for the grammar"};
    server_grammars_release(grammars, taken);
    return error->status;
}

/* One may be cancelled for its client just when another client joins. */
gumbel_status server_grammars_take(server_grammars *grammars, const gumbel_grammar_options *options,
                                   const server_waiter *waiter, server_metrics *metrics,
                                   server_grammar **grammar, gumbel_error *error) {
    gumbel_status status;
    *grammar = NULL;
    do
        status = take(grammars, options, waiter, metrics, grammar, error);
    while (status == GUMBEL_ERROR_CANCELLED && !waits_no_longer(waiter));
    return status;
}

void server_grammars_release(server_grammars *grammars, server_grammar *grammar) {
    pthread_mutex_lock(&grammars->lock);
    release(grammar);
    pthread_mutex_unlock(&grammars->lock);
}

const gumbel_grammar *server_compiled_grammar(const server_grammar *grammar) {
    return grammar->grammar;
}

/* ---- Making -------------------------------------------------------------------------------------------- */

gumbel_status server_grammars_create(const gumbel_tokenizer *tokenizer, gumbel_log_callback log,
                                     void *log_user, server_grammars **grammars, gumbel_error *error) {
    *grammars = calloc(1, sizeof **grammars);
    if (!*grammars) {
        *error = (gumbel_error){GUMBEL_ERROR_MEMORY, "no memory for grammars"};
        return error->status;
    }
    (*grammars)->tokenizer = tokenizer;
    (*grammars)->log = log;
    (*grammars)->log_user = log_user;
    pthread_mutex_init(&(*grammars)->lock, NULL);
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&(*grammars)->done, &attributes);
    pthread_condattr_destroy(&attributes);
    return GUMBEL_OK;
}

void server_grammars_destroy(server_grammars *grammars) {
    if (!grammars)
        return;
    while (grammars->count > 0)
        drop(grammars, grammars->count - 1);
    pthread_cond_destroy(&grammars->done);
    pthread_mutex_destroy(&grammars->lock);
    free(grammars);
}
