/* SPDX-License-Identifier: Apache-2.0
 *
 * What every command that runs a program begins with: the flags that say which and how, and the program,
 * tokenizer, engine and one session opened from them.
 */
#ifndef GUMBEL_CLI_MODEL_MODEL_H
#define GUMBEL_CLI_MODEL_MODEL_H

#include "cli/model/program.h"
#include "gumbel.h"

typedef struct cli_model_options {
    cli_program_options source;
    const char *backend;
    const char *lock;
    const char *cpu_isa;
    cli_integer threads;
    cli_integers devices;
    cli_integer max_context;
    cli_integer prefill_chunk;
    bool launched;
    bool verbose;
    /* Not flags: a command sets these, all zero otherwise. */
    int slots;               /* sessions that can exist at once; 0: 1, the model's own */
    uint32_t draft_tokens;   /* of one session in a step, at most */
    const char *draft_model; /* a program that guesses, with as many slots; NULL: none */
    bool draft_head;         /* without one the program's draft head guesses, if it has one */
    bool needs_draft_model;  /* one of the two has to be there */
    gumbel_profile_callback profile;
    void *profile_user;
    gumbel_observe_callback observe;
    void *observe_user;
} cli_model_options;

/* But for source, which has a table of its own. --threads stands first: a command that takes several counts
 * has a flag of its own for them and begins after it. */
extern const cli_option cli_model_table[];

typedef struct cli_model {
    gumbel_program *program;
    gumbel_program_info info;
    gumbel_tokenizer *tokenizer;   /* NULL: the program has none */
    gumbel_program *draft_program; /* of draft_model; NULL: none */
    gumbel_engine *draft_engine;   /* of that or of the draft head; NULL: none guesses */
    gumbel_engine *engine;
    gumbel_session *session;
    gumbel_process_group *processes; /* with --launched; the process's, not closed */
    uint32_t max_context;            /* positions of the session */
    uint32_t prefill_chunk;          /* its tokens in one step, at most */
    double load_seconds;
} cli_model;

/* Opens all of it, a checkpoint as cli_open_program says; the engine can take snapshots if with_snapshots is
 * set. On failure nothing stays open. A process of --launched that follows rank 0 does not return. */
gumbel_status cli_model_open(const cli_model_options *options, bool snapshots, cli_model *model,
                             gumbel_error *error);

/* The two halves of it, for a command that settles the slots by what the program is: first the program and
 * its tokenizer, then the engine and its session. On a failure of either nothing stays open. */
gumbel_status cli_model_open_program(const cli_model_options *options, cli_model *model, gumbel_error *error);
gumbel_status cli_model_start(const cli_model_options *options, bool snapshots, cli_model *model,
                              gumbel_error *error);

/* Opens draft_model, which is not NULL. Errors: as cli_open_program. The caller closes the program. */
gumbel_status cli_open_draft_model(const cli_model_options *options, uint32_t max_context,
                                   gumbel_program **program, gumbel_error *error);

/* Refuses drafts by a model where there is none, nor a draft head of the program. Errors: ARGUMENT. */
gumbel_status cli_check_draft_model(const cli_model_options *options, const gumbel_program *program,
                                    gumbel_error *error);

/* Whether it runs on a device with a driver: another backend than the CPU's. */
bool cli_has_device(const cli_model_options *options);

/* Refuses ids given by --tokens that are outside the program's vocabulary. */
gumbel_status cli_check_tokens(const cli_model *model, const cli_tokens *tokens, gumbel_error *error);

/* Allowed on a zeroed or half-open model. */
void cli_model_close(cli_model *model);

#endif
