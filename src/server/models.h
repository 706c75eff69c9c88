/* SPDX-License-Identifier: Apache-2.0
 *
 * The models that a server has, each with the scheduler that answers for it.
 */
#ifndef GUMBEL_SERVER_MODELS_H
#define GUMBEL_SERVER_MODELS_H

#include "gumbel.h"

/* What the server needs of a scheduler, so that tests can answer in its place. */
typedef struct server_generator {
    void *user;
    gumbel_status (*submit)(void *user, const gumbel_submission *submission, uint64_t *request,
                            gumbel_error *error);
    void (*cancel)(void *user, uint64_t request);
    gumbel_status (*get_stats)(void *user, gumbel_scheduler_stats *stats, gumbel_error *error);
} server_generator;

/* That of a scheduler. */
server_generator server_generator_of(gumbel_scheduler *scheduler);

enum { SERVER_MOST_SETTINGS = 32 };

/* A model that is loaded. Everything is the caller's and lives until the model is released. */
typedef struct server_model {
    const char *names; /* separated by commas; the first one is the model's id */
    const gumbel_program *program;
    const gumbel_tokenizer *tokenizer;
    gumbel_program_info info;
    uint32_t max_context;                      /* positions of a sequence */
    const char *backend;                       /* "cpu" */
    gumbel_sampling sampling;                  /* where a request says nothing */
    const char *origins[SERVER_MOST_SETTINGS]; /* of its settings: "program", "default", "flag" */
    gumbel_chat_options chat;                  /* likewise */
    bool has_reasoning_budget;                 /* likewise */
    uint32_t reasoning_budget;
    bool has_draft_model;             /* another program may guess for its answers */
    gumbel_drafting drafting;         /* where a request says nothing */
    struct server_grammars *grammars; /* of its tokenizer */
    server_generator generator;
} server_model;

/* The models of a server, which may be loaded when they are asked for. All of it is thread-safe. */
typedef struct server_models {
    void *user;
    size_t count;
    const char *(*names)(void *user, size_t index); /* as in server_model; live as long as the server */
    /* The model, loaded if need be (if_loaded: NULL where it is not), until it is released. NULL, with error:
     * it cannot be loaded; MEMORY: not now, others take the room. */
    const server_model *(*acquire)(void *user, size_t index, bool if_loaded, gumbel_error *error);
    void (*release)(void *user, const server_model *model);
} server_models;

/* One model that is always there. */
server_models server_models_of(server_model *model);

/* The model's id: its first name. Returns id. */
enum { SERVER_MODEL_ID = 128 };
const char *server_first_name(const char *names, char id[SERVER_MODEL_ID]);
const char *server_model_id(const server_model *model, char id[SERVER_MODEL_ID]);

/* What an answer depends on besides the request: version, program, kind of device. Returns text. */
enum { SERVER_FINGERPRINT = 96 };
const char *server_model_fingerprint(const server_model *model, char text[SERVER_FINGERPRINT]);

/* Whether name is one of names. */
bool server_is_named(const char *names, const char *name);

#endif
