/* SPDX-License-Identifier: Apache-2.0
 *
 * The server's life: keys and certificates, the models, signals.
 */
#include "cli/serve/serve.h"

#include "base/status.h"
#include "cli/base/files.h"
#include "cli/base/report.h"
#include "cli/model/launched.h"
#include "cli/serve/models.h"
#include "server/server.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DEFAULT_PORT = 8080, MOST_KEYS = 1024, MOST_SOCKETS = 8 };

/* What the server is started with, and its texts. */
typedef struct serving {
    const serve_arguments *arguments;
    serve_models models;
    server *server;
    gb_byte_buffer key_file, certificate, private_key;
    const char *keys[MOST_KEYS];
    size_t key_count;
    int sockets[MOST_SOCKETS];
} serving;

/* ---- Files --------------------------------------------------------------------------------------------- */

static gumbel_status read_keys(serving *s, gumbel_error *error) {
    const serve_options *serve = &s->arguments->serve;
    for (size_t i = 0; i < serve->keys.count; i++)
        s->keys[s->key_count++] = serve->keys.list[i];
    if (!serve->key_file)
        return GUMBEL_OK;
    const gumbel_status status = cli_read_file(serve->key_file, &s->key_file, error);
    char *rest = NULL;
    for (char *line = status == GUMBEL_OK ? strtok_r(s->key_file.text, "\r\n", &rest) : NULL;
         line && s->key_count < MOST_KEYS; line = strtok_r(NULL, "\r\n", &rest))
        s->keys[s->key_count++] = line;
    if (status == GUMBEL_OK && s->key_count == 0) {
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "%s: there is no key in it", serve->key_file);
    }
    return status;
}

static gumbel_status read_files(serving *s, gumbel_error *error) {
    const serve_options *serve = &s->arguments->serve;
    gumbel_status status = read_keys(s, error);
    if (status == GUMBEL_OK && serve->certificate)
        status = cli_read_file(serve->certificate, &s->certificate, error);
    if (status == GUMBEL_OK && serve->private_key)
        status = cli_read_file(serve->private_key, &s->private_key, error);
    return status;
}

/* ---- What ends it -------------------------------------------------------------------------------------- */

/* A signal handler takes no arguments, so what it works on stands here. */
static sem_t signals; /* posted for whatever wait_for_end should look at */
static atomic_uint signal_count;

static void on_signal(int number) {
    (void)number;
    atomic_fetch_add(&signal_count, 1);
    sem_post(&signals);
}

static void catch_signals(void) {
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART}, before;
    sem_init(&signals, 0, 0);
    sigemptyset(&action.sa_mask);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    if (sigaction(SIGHUP, NULL, &before) == 0 && before.sa_handler != SIG_IGN) /* nohup */
        sigaction(SIGHUP, &action, NULL);
    signal(SIGPIPE, SIG_IGN);
}

static void wait_for_signal(void) {
    while (sem_wait(&signals) != 0 && errno == EINTR) {
    }
}

enum { FAILED_SECONDS = 5 }; /* to send what is under way once an engine has failed */

/* Set in this order by the first scheduler that tells of a failure. */
static atomic_flag is_claimed = ATOMIC_FLAG_INIT;
static gumbel_error failure;
static atomic_bool has_failed;

void serve_note_failure(void *unused, const gumbel_error *error) {
    (void)unused;
    if (atomic_flag_test_and_set(&is_claimed))
        return;
    failure = *error;
    atomic_store(&has_failed, true);
    sem_post(&signals);
}

static void on_alarm(int number) {
    (void)number;
    _exit(CLI_FAILED);
}

/* A client that reads slowly, another model's answer or the device itself could hold the end up, so that it
 * comes by the clock. */
static void report_failure(server *served) {
    static bool is_reported;
    if (is_reported || !atomic_load(&has_failed))
        return;
    is_reported = true;
    signal(SIGALRM, on_alarm);
    alarm(FAILED_SECONDS);
    cli_fail("the engine has failed, and the server ends: %s", failure.message);
    server_give_up(served);
}

/* ---- Serving ------------------------------------------------------------------------------------------- */

static int64_t value_of(const cli_integer *option, int64_t otherwise) {
    return option->given ? option->value : otherwise;
}

static server_options options_of(serving *s) {
    const serve_options *serve = &s->arguments->serve;
    int first;
    const size_t inherited = serve_inherited_sockets(&first);
    for (size_t i = 0; i < inherited && i < MOST_SOCKETS; i++)
        s->sockets[i] = first + (int)i;
    const unsigned connections = (unsigned)value_of(&serve->max_connections, 512);
    const bool has_other = serve->unix_socket || inherited > 0;
    const bool has_host = serve->host || serve->port.given || !has_other;
    return (server_options){
        .host = !has_host     ? NULL
                : serve->host ? serve->host
                              : "127.0.0.1",
        .port = (uint16_t)value_of(&serve->port, DEFAULT_PORT),
        .unix_path = serve->unix_socket,
        .listeners = s->sockets,
        .listener_count = inherited < MOST_SOCKETS ? inherited : MOST_SOCKETS,
        .keys = s->keys,
        .key_count = s->key_count,
        .with_open_metrics = serve->open_metrics,
        .no_auth = serve->no_auth,
        .cors_origins = serve->cors_origins,
        .certificate = s->certificate.text,
        .private_key = s->private_key.text,
        .max_body_bytes = (size_t)value_of(&serve->max_body, 16 << 20),
        .max_connections = connections,
        .max_connections_per_address = (unsigned)value_of(&serve->max_per_address, connections / 2),
        .max_prompt_tokens = (uint32_t)serve->max_prompt.value,
        .max_stream_bytes = (size_t)value_of(&serve->max_stream, 1 << 20),
        .max_stored_bytes = (size_t)value_of(&serve->max_stored, 64 << 20),
        .idle_seconds = (double)value_of(&serve->idle_seconds, 75),
        .request_seconds = (double)value_of(&serve->request_seconds, 30),
        .grammar_seconds = (double)value_of(&serve->grammar_seconds, 10),
        .send_seconds = (double)value_of(&serve->send_seconds, 30),
        .with_vllm_metrics = serve->vllm_metrics,
    };
}

static void greet(const serving *s, const server_options *options) {
    const char *scheme = options->certificate ? "https" : "http", *host = options->host;
    if (host)
        cli_note("listening on %s://%s%s%s:%u", scheme, strchr(host, ':') ? "[" : "", host,
                 strchr(host, ':') ? "]" : "", server_port(s->server));
    if (options->unix_path)
        cli_note("listening on %s", options->unix_path);
}

/* Set before the semaphore that tells of it. */
static atomic_bool is_drained;

static void *drain(void *user) {
    serve_drain_models(&((serving *)user)->models);
    atomic_store(&is_drained, true);
    sem_post(&signals);
    return NULL;
}

/* A signal drains, or an engine that has failed; a second signal before that is done ends the process. */
static void wait_for_end(serving *s, const server_options *options) {
    pthread_t drainer;
    wait_for_signal();
    report_failure(s->server);
    serve_notify("STOPPING=1");
    server_drain(s->server);
    cli_note("refusing new requests; a second signal ends at once");
    if (pthread_create(&drainer, NULL, drain, s) != 0)
        return;
    while (!atomic_load(&is_drained) && atomic_load(&signal_count) < 2) {
        wait_for_signal();
        report_failure(s->server);
    }
    if (!atomic_load(&is_drained)) {
        if (options->unix_path)
            unlink(options->unix_path);
        _exit(CLI_INTERRUPTED);
    }
    pthread_join(drainer, NULL);
}

/* One that is lost ends the server, also while nobody asks it for anything. */
static void watch_processes(const serve_arguments *arguments) {
    gumbel_process_group *group = NULL;
    if (arguments->model.launched && cli_join_processes(&group, NULL) == GUMBEL_OK)
        gumbel_process_group_on_failure(group, serve_note_failure, NULL);
}

static gumbel_status serve(serving *s, gumbel_error *error) {
    gumbel_status status = read_files(s, error);
    if (status == GUMBEL_OK)
        status = serve_open_models(s->arguments, &s->models, error);
    if (status != GUMBEL_OK)
        return status;
    catch_signals();
    watch_processes(s->arguments);
    const server_options options = options_of(s);
    const server_models models = serve_models_of(&s->models);
    status = server_create(&options, &models, &s->server, error);
    if (status != GUMBEL_OK)
        return status;
    const cli_sandbox_needs needs = {.accepts = true,
                                     .has_device = cli_has_device(&s->arguments->model),
                                     .loads_models = serve_loads_later(&s->models),
                                     .removes_socket = options.unix_path != NULL,
                                     .has_processes = s->arguments->model.launched};
    serve_connect_systemd();
    cli_sandbox_enter(&s->arguments->sandbox, &needs);
    greet(s, &options);
    serve_notify("READY=1");
    wait_for_end(s, &options);
    server_destroy(s->server);
    return GUMBEL_OK;
}

int serve_run(const serve_arguments *arguments) {
    static serving s;
    gumbel_error error;
    s.arguments = arguments;
    const gumbel_status status = serve(&s, &error);
    serve_close_models(&s.models);
    gb_buffer_free(&s.key_file);
    gb_buffer_free(&s.certificate);
    gb_buffer_free(&s.private_key);
    if (status != GUMBEL_OK)
        return cli_fail_with(&error);
    return atomic_load(&has_failed) ? CLI_FAILED : CLI_OK;
}
