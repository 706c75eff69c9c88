/* SPDX-License-Identifier: Apache-2.0
 *
 * gumbel pull: models from the Hugging Face hub into its cache.
 */
#include "cli/command.h"
#include "cli/base/json.h"
#include "cli/base/report.h"
#include "cli/base/units.h"
#include "cli/pull/pull.h"

#include <string.h>

typedef struct pull_arguments {
    const char *model;
    cli_integer connections;
    bool json, dry_run, quiet;
} pull_arguments;

enum { USUAL_CONNECTIONS = 4, MOST_CONNECTIONS = 16 };

static const cli_option download_table[] = {
    {.names = "-j --connections --max-workers",
     .argument = "N",
     .help = "Download over up to N connections at once, whose bytes may be of one file; the default is 4.",
     .type = CLI_INTEGER,
     .range = {.low = 1, .high = MOST_CONNECTIONS},
     .offset = offsetof(pull_arguments, connections)},
    {.names = "--dry-run",
     .help = "Download nothing: print the files that would be, and their sizes.",
     .type = CLI_FLAG,
     .offset = offsetof(pull_arguments, dry_run)},
    {0},
};

static const cli_option output_table[] = {
    {.names = "--json",
     .help = "Print an object with the commit, the path and the files in place of the path.",
     .type = CLI_FLAG,
     .offset = offsetof(pull_arguments, json)},
    {.names = "-q --quiet",
     .help = "No progress and no notes.",
     .type = CLI_FLAG,
     .offset = offsetof(pull_arguments, quiet)},
    {0},
};

static json_t *file_json(const hub_file *file) {
    return json_pack("{s:o, s:I, s:s, s:b}", "name", cli_json_text(file->name, strlen(file->name)), "bytes",
                     (json_int_t)file->size, strlen(file->hash) == HUB_SHA256 ? "sha256" : "git_sha1",
                     file->hash, "is_there", file->is_here);
}

static void print_json(const hub_plan *plan) {
    json_t *files = json_array();
    for (size_t i = 0; i < plan->listing.count; i++)
        json_array_append_new(files, file_json(&plan->listing.files[i]));
    json_t *whole = json_pack("{s:s, s:s, s:o, s:I, s:o}", "repository", plan->name.repository, "commit",
                              plan->listing.commit, "path", cli_json_text(plan->path, strlen(plan->path)),
                              "bytes", (json_int_t)plan->bytes, "files", files);
    cli_json_print(whole, JSON_INDENT(2), stdout);
    putchar('\n');
    json_decref(whole);
}

static void print_files(const hub_plan *plan) {
    char bytes[CLI_BYTES_TEXT];
    for (size_t i = 0; i < plan->listing.count; i++) {
        const hub_file *file = &plan->listing.files[i];
        printf("%10s  %-7s  ", cli_describe_bytes(file->size, bytes), file->is_here ? "there" : "missing");
        cli_print_escaped(stdout, file->name);
        putchar('\n');
    }
    printf("%10s  to download\n", cli_describe_bytes(plan->missing_bytes, bytes));
}

static void print(const pull_arguments *arguments, const hub_plan *plan) {
    if (arguments->json)
        print_json(plan);
    else if (arguments->dry_run)
        print_files(plan);
    else
        printf("%s\n", plan->path);
}

static int run_pull(void *given) {
    const pull_arguments *arguments = given;
    const unsigned connections =
        arguments->connections.given ? (unsigned)arguments->connections.value : USUAL_CONNECTIONS;
    gumbel_error error;
    hub_name name;
    hub_plan plan;
    if (!hub_parse_name(arguments->model, &name))
        return cli_fail_usage("pull %.200s: expected ORG/NAME[:QUANT][/FILE][@REVISION], such as "
                              "google/gemma-4-31B-it",
                              arguments->model);
    gumbel_status status = arguments->dry_run ? cli_pull_plan(&name, &plan, &error)
                                              : cli_pull(&name, connections, &plan, &error);
    if (status == GUMBEL_OK)
        print(arguments, &plan);
    hub_plan_free(&plan);
    return status == GUMBEL_OK ? CLI_OK : cli_fail_with(&error);
}

const cli_command cli_command_pull = {
    .name = "pull",
    .summary = "download a model from the Hugging Face hub",
    .synopsis = "ORG/NAME[:QUANT][/FILE][@REVISION] [options]",
    .description =
        "Downloads the files that a model needs into the cache of Hugging Face's own tools, and prints where "
        "it "
        "lies: the safetensors with their configuration, tokenizer and chat templates; or, where QUANT is "
        "given "
        "or there are no safetensors, one GGUF with all its parts. Without QUANT that is Q4_K_M, or the only "
        "one "
        "there is. What is there is not downloaded again.\n"
        "A download that is interrupted goes on where it ended when the same command is given again. A file "
        "is "
        "put in its place when it has the size and the hash that the hub has announced.\n"
        "HF_TOKEN, or the token that hf auth login has stored, opens private models and those with terms to "
        "accept; HF_ENDPOINT names another hub; HF_HUB_CACHE or HF_HOME the cache; HF_HUB_OFFLINE=1 forbids "
        "downloads; https_proxy names a proxy.\n"
        "Commands that are given a model's name take it from the cache without asking the hub. Where it is "
        "not "
        "there, they download it if standard input and standard error are terminals, or with --pull or -hf.",
    .operands =
        (const cli_operand[]){{"MODEL", offsetof(pull_arguments, model), true,
                               "The model's name on the hub; QUANT names a GGUF, such as Q8_0, FILE one "
                               "file, REVISION a branch, tag or commit in place of main."},
                              {0}},
    .groups = (const cli_option_group[]){{.title = "Download", .options = download_table},
                                         {.title = "Output", .options = output_table},
                                         {0}},
    .examples = (const cli_example[]){{"gumbel pull google/gemma-4-31B-it",
                                       "A checkpoint, for gumbel export or run."},
                                      {"gumbel pull org/name-GGUF:Q8_0", "The GGUF of that quantization."},
                                      {"gumbel run org/name-GGUF \"Why is the sky blue?\"",
                                       "At a terminal it is downloaded when it is first used."},
                                      {0}},
    .arguments_size = sizeof(pull_arguments),
    .run = run_pull,
};
