/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of `gumbel serve`: its flags, the models that are opened, systemd.
 */
#ifndef GUMBEL_CLI_SERVE_SERVE_H
#define GUMBEL_CLI_SERVE_SERVE_H

#include "cli/model/chat_template.h"
#include "cli/model/drafts.h"
#include "cli/model/model.h"
#include "cli/model/reasoning.h"
#include "cli/model/sampling.h"
#include "cli/sandbox/sandbox.h"

typedef struct serve_options {
    const char *host, *unix_socket, *key_file, *certificate, *private_key, *cors_origins;
    cli_words more; /* programs after the first one */
    cli_integer port, slots, max_queued, max_connections, max_per_address, max_body, max_prompt, max_stream,
        max_stored;
    cli_integer cache_mebibytes, models_max;
    const char *models_memory; /* a number of bytes */
    cli_integer idle_seconds, request_seconds, send_seconds, grammar_seconds;
    cli_strings keys, aliases;
    bool no_auth, open_metrics, no_prefix_cache, vllm_metrics, quiet;
} serve_options;

typedef struct serve_arguments {
    cli_model_options model;
    cli_sampling_options sampling;
    cli_template_options template;
    cli_reasoning_options reasoning;
    cli_draft_options draft;
    cli_sandbox_options sandbox;
    serve_options serve;
} serve_arguments;

extern const cli_option serve_address_table[], serve_access_table[], serve_limit_table[], serve_model_table[];

/* Serves until a signal ends it; the exit status. Where this build has no server it says so. */
int serve_run(const serve_arguments *arguments);

/* on_failure of a scheduler, and of processes: the server ends, with CLI_FAILED. */
void serve_note_failure(void *unused, const gumbel_error *error);

/* ---- systemd ------------------------------------------------------------------------------------------- */

/* How many sockets systemd has opened for this process; *first is the first one's descriptor. */
size_t serve_inherited_sockets(int *first);

/* Connects to systemd where it wants to be told states: before the sandbox, which connects to nobody. */
void serve_connect_systemd(void);

/* Tells systemd a state, such as "READY=1", where it wants to know. */
void serve_notify(const char *state);

#endif
