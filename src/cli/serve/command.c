/* SPDX-License-Identifier: Apache-2.0
 *
 * gumbel serve: an HTTP server for programs.
 */
#include "cli/command.h"
#include "cli/base/report.h"
#include "cli/base/units.h"
#include "cli/serve/serve.h"

const cli_option serve_address_table[] = {
    {.names = "--host",
     .argument = "ADDRESS",
     .help = "Where to listen; 127.0.0.1 is the default. An address that others can reach needs --api-key or "
             "--no-auth.",
     .type = CLI_STRING,
     .offset = offsetof(serve_options, host)},
    {.names = "--port",
     .argument = "N",
     .help = "The TCP port; 8080 is the default, 0 chooses a free one.",
     .type = CLI_INTEGER,
     .range = {.low = 0, .high = 65535},
     .offset = offsetof(serve_options, port)},
    {.names = "--unix-socket",
     .argument = "PATH",
     .help = "Listen on a socket file, and on TCP only if --host or --port is given too.",
     .type = CLI_STRING,
     .offset = offsetof(serve_options, unix_socket)},
    {0},
};

const cli_option serve_access_table[] = {
    {.names = "--api-key",
     .argument = "KEY",
     .help = "A key that every request but those to /health needs. May be given many times; "
             "GUMBEL_API_KEY keeps it out of the list of processes.",
     .type = CLI_STRINGS,
     .offset = offsetof(serve_options, keys)},
    {.names = "--api-key-file",
     .argument = "FILE",
     .help = "Keys, one on each line.",
     .type = CLI_STRING,
     .offset = offsetof(serve_options, key_file)},
    {.names = "--open-metrics",
     .help = "Let /metrics, as /health, answer without a key, for what reads metrics and has none to send.",
     .type = CLI_FLAG,
     .offset = offsetof(serve_options, open_metrics)},
    {.names = "--no-auth",
     .help = "Let everybody in who can reach the address.",
     .type = CLI_FLAG,
     .offset = offsetof(serve_options, no_auth)},
    {.names = "--cors-origins",
     .argument = "LIST",
     .help = "Origins whose pages may ask, separated by commas, such as https://app.example or "
             "vscode-file://vscode-app; * is any, and null is a page from a file. Default: the server's own "
             "page alone.",
     .type = CLI_STRING,
     .offset = offsetof(serve_options, cors_origins)},
    {.names = "--ssl-cert-file --ssl-certfile",
     .argument = "FILE",
     .help = "The certificate for TLS, in PEM, with those of its authorities behind it.",
     .type = CLI_STRING,
     .offset = offsetof(serve_options, certificate)},
    {.names = "--ssl-key-file --ssl-keyfile",
     .argument = "FILE",
     .help = "Its private key, in PEM.",
     .type = CLI_STRING,
     .offset = offsetof(serve_options, private_key)},
    {0},
};

const cli_option serve_limit_table[] = {
    {.names = "--max-queued",
     .argument = "N",
     .help = "Answers that wait for a slot, at most; others are refused with 429. Default: 1024.",
     .type = CLI_INTEGER,
     .range = {.low = 1, .high = 1 << 20},
     .offset = offsetof(serve_options, max_queued)},
    {.names = "--max-connections",
     .argument = "N",
     .help =
         "Connections at once; each has a thread. When there are as many, the one that has been idle "
         "longest is closed for a new one, and where none is idle that is refused with 503. Default: 512.",
     .type = CLI_INTEGER,
     .range = {.low = 1, .high = 65536},
     .offset = offsetof(serve_options, max_connections)},
    {.names = "--max-connections-per-address",
     .argument = "N",
     .help = "The same for the connections of one address, or of one IPv6 network (/64), with 429. 0 is no "
             "limit, as behind a proxy that has many clients. Default: half of --max-connections.",
     .type = CLI_INTEGER,
     .range = {.low = 0, .high = 65536},
     .offset = offsetof(serve_options, max_per_address)},
    {.names = "--max-body",
     .argument = "BYTES",
     .help = "The largest body of a request; a larger one is refused with 413. Default: 16 MiB.",
     .type = CLI_INTEGER,
     .range = {.low = 1024, .high = (double)(1u << 30)},
     .offset = offsetof(serve_options, max_body)},
    {.names = "--max-prompt",
     .argument = "N",
     .help = "Tokens of a prompt, at most; a longer one is refused with 400. Default: those of a context.",
     .type = CLI_INTEGER,
     .range = {.low = 1, .high = INT32_MAX},
     .offset = offsetof(serve_options, max_prompt)},
    {.names = "--max-stream-buffer",
     .argument = "BYTES",
     .help = "What a stream's reader may be behind before its answer is cancelled. Default: 1 MiB.",
     .type = CLI_INTEGER,
     .range = {.low = 1024, .high = (double)(1u << 30)},
     .offset = offsetof(serve_options, max_stream)},
    {.names = "--max-stored",
     .argument = "BYTES",
     .help = "Memory for responses that previous_response_id may name. Default: 64 MiB.",
     .type = CLI_INTEGER,
     .range = {.low = 0, .high = INT32_MAX},
     .offset = offsetof(serve_options, max_stored)},
    {.names = "--request-timeout",
     .argument = "SECONDS",
     .help = "Time to send a request. Default: 30.",
     .type = CLI_INTEGER,
     .range = {.low = 1, .high = 86400},
     .offset = offsetof(serve_options, request_seconds)},
    {.names = "--idle-timeout",
     .argument = "SECONDS",
     .help = "Time that a connection may stay without a request. Default: 75.",
     .type = CLI_INTEGER,
     .range = {.low = 1, .high = 86400},
     .offset = offsetof(serve_options, idle_seconds)},
    {.names = "--send-timeout",
     .argument = "SECONDS",
     .help = "Time that a client may take none of what was written for it. Default: 30.",
     .type = CLI_INTEGER,
     .range = {.low = 1, .high = 86400},
     .offset = offsetof(serve_options, send_seconds)},
    {.names = "--grammar-timeout",
     .argument = "SECONDS",
     .help = "Time that a schema or grammar may take to be compiled. Default: 10.",
     .type = CLI_INTEGER,
     .range = {.low = 1, .high = 86400},
     .offset = offsetof(serve_options, grammar_seconds)},
    {0},
};

const cli_option serve_model_table[] = {
    {.names = "--alias -a --served-model-name",
     .argument = "NAME",
     .help =
         "What requests call the model; several names are separated by commas. With several programs, the "
         "first --alias is of the first one, and so on.",
     .type = CLI_STRINGS,
     .offset = offsetof(serve_options, aliases)},
    {.names = "--models-max",
     .argument = "N",
     .help = "With several programs, how many are loaded at once. The others are loaded when a request names "
             "them, in place of the least recently used one. Default: all.",
     .type = CLI_INTEGER,
     .range = {.low = 1, .high = 1024},
     .offset = offsetof(serve_options, models_max)},
    {.names = "--models-memory",
     .argument = "SIZE",
     .help =
         "With several programs, the memory that those loaded at once may take, weights and states of all "
         "slots: 40GB, 512MiB. One that is not loaded takes the place of the least recently used. "
         "Default: any.",
     .type = CLI_STRING,
     .offset = offsetof(serve_options, models_memory)},
    {.names = "--parallel -np --max-num-seqs",
     .argument = "N",
     .help = "Answers that are computed at once; each has a slot, which takes the memory of one context. "
             "Default: 4.",
     .type = CLI_INTEGER,
     .range = {.low = 1, .high = 1024},
     .offset = offsetof(serve_options, slots)},
    {.names = "--cache-ram",
     .argument = "MIB",
     .help = "Host memory for states that are kept for later prompts, of each model. Default: 8192, but no "
             "more than "
             "a quarter of the machine's, which several models share.",
     .type = CLI_INTEGER,
     .range = {.low = 1, .high = 1 << 20},
     .offset = offsetof(serve_options, cache_mebibytes)},
    {.names = "--no-prefix-cache",
     .help = "Run every prompt from its beginning.",
     .type = CLI_FLAG,
     .offset = offsetof(serve_options, no_prefix_cache)},
    {.names = "--vllm-metrics",
     .help = "Let /metrics have vLLM's names beside our own, for dashboards and routers that know them.",
     .type = CLI_FLAG,
     .offset = offsetof(serve_options, vllm_metrics)},
    {.names = "-q --quiet",
     .help = "Leave out notes on standard error; warnings and errors stay.",
     .type = CLI_FLAG,
     .offset = offsetof(serve_options, quiet)},
    {0},
};

static int serve(void *given) {
    const serve_arguments *arguments = given;
    const char *memory = arguments->serve.models_memory;
    uint64_t bytes;
    if (memory && (!cli_parse_bytes(memory, &bytes) || bytes == 0))
        return cli_fail_usage("--models-memory %.40s: expected a size such as 20GB or 512MiB", memory);
    if (arguments->sampling.seed.given)
        return cli_fail_usage(
            "serve takes no --seed: each request has its own, or one is drawn and reported");
    if (cli_draft_model(&arguments->draft) && arguments->serve.more.count > 0)
        return cli_fail_usage("--draft %s: it guesses for one program, and several are given",
                              arguments->draft.who);
    if (arguments->model.launched && arguments->serve.more.count > 0)
        return cli_fail_usage("--launched runs one program, and several are given");
    if (!arguments->serve.certificate != !arguments->serve.private_key)
        return cli_fail_usage("--ssl-cert-file and --ssl-key-file go together");
    if (arguments->serve.aliases.count > 1 + arguments->serve.more.count)
        return cli_fail_usage(
            "there are more --alias than programs; several names of one are separated by commas");
    return serve_run(arguments);
}

const cli_command cli_command_serve = {
    .name = "serve",
    .summary = "answer requests over HTTP",
    .synopsis = "PROGRAM [PROGRAM ...] [options]",
    .description =
        "A server for OpenAI's API (/v1/chat/completions, /v1/completions, /v1/responses, /v1/models) and "
        "Anthropic's (/v1/messages), with /tokenize, /detokenize, /apply-template, /health, /ready, /version "
        "and "
        "/metrics. Requests are answered together, and an answer does not depend on who is served beside it: "
        "the "
        "same program, request and seed give the same text.\n"
        "With several programs the request's model chooses; without one the first is meant. Settings below "
        "hold "
        "where a request says nothing.\n"
        "SIGTERM or Ctrl-C refuses new requests and ends when those under way are answered; a second one "
        "ends at "
        "once. Sockets of systemd are taken over, and it is told when the server is ready.",
    .operands =
        (const cli_operand[]){
            {"PROGRAM", offsetof(serve_arguments, model.source.path), true, CLI_PROGRAM_HELP}, {0}},
    .rest = &(const cli_operand){"PROGRAM", offsetof(serve_arguments, serve.more), false, "More programs."},
    .groups =
        (const cli_option_group[]){
            {.title = "Address", .options = serve_address_table, .offset = offsetof(serve_arguments, serve)},
            {.title = "Access", .options = serve_access_table, .offset = offsetof(serve_arguments, serve)},
            {.title = "Models", .options = serve_model_table, .offset = offsetof(serve_arguments, serve)},
            {.title = "Limits", .options = serve_limit_table, .offset = offsetof(serve_arguments, serve)},
            {.title = "Sampling",
             .options = cli_sampling_table,
             .offset = offsetof(serve_arguments, sampling)},
            {.title = "Chat template",
             .options = cli_template_table,
             .offset = offsetof(serve_arguments, template)},
            {.title = "Reasoning",
             .options = cli_reasoning_table,
             .offset = offsetof(serve_arguments, reasoning)},
            {.title = "Drafts", .options = cli_draft_table, .offset = offsetof(serve_arguments, draft)},
            {.title = "Program",
             .options = cli_program_table,
             .offset = offsetof(serve_arguments, model.source)},
            {.title = "Machine", .options = cli_model_table, .offset = offsetof(serve_arguments, model)},
            {.title = "Sandbox", .options = cli_sandbox_table, .offset = offsetof(serve_arguments, sandbox)},
            {0}},
    .examples =
        (const cli_example[]){
            {"gumbel serve model.gumbel", "Serves on http://127.0.0.1:8080, this machine alone."},
            {"gumbel serve model.gumbel --host 0.0.0.0 --api-key \"$KEY\"", "For others, with a key."},
            {"gumbel serve small.gumbel large.gumbel --alias small --alias large", "Two models by name."},
            {0}},
    .arguments_size = sizeof(serve_arguments),
    .run = serve,
};
