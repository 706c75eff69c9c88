/* SPDX-License-Identifier: Apache-2.0
 *
 * gumbel export: checkpoint in, program out.
 */
#include "cli/base/measure.h"
#include "cli/base/report.h"
#include "cli/base/units.h"
#include "cli/command.h"
#include "cli/model/exporter.h"
#include "cli/model/program.h"
#include "cli/programs/calibrate.h"
#include "cli/pull/get.h"

#include <string.h>

typedef struct export_arguments {
    const char *checkpoint, *output, *quantize, *calibrate, *backend, *sampler, *activations, *cache, *size,
        *assistant;
    cli_integer max_context, layers, top_logprobs;
    cli_seed random_weights;
    int pull;
    bool logits, draft_head, quiet, stats, list_recipes;
} export_arguments;

static const cli_option hub_table[] = {
    CLI_PULL_OPTIONS(export_arguments, checkpoint, pull),
    {0},
};

static const cli_option output_table[] = {
    {.names = "-o --output",
     .argument = "PROGRAM",
     .help =
         "The file to write. One that exists is replaced once the new one is complete; one that is read, a "
         "directory or a device is refused.",
     .type = CLI_STRING,
     .offset = offsetof(export_arguments, output)},
    {.names = "--backend",
     .argument = "NAME",
     .help =
         "Lay the weights out for this backend: cpu (the default), cuda or mlx; none: in the order of their "
         "formats. Any program runs on any backend, which rearranges at load what is laid out for another.",
     .type = CLI_CHOICE,
     .choices = "cpu cuda mlx none",
     .offset = offsetof(export_arguments, backend)},
    {.names = "--stats",
     .help =
         "Report on standard error what was read and written and how fast, beside how fast the disk takes "
         "bytes (measured by writing 128 MiB), how much of the time went into writing, and peak memory.",
     .type = CLI_FLAG,
     .offset = offsetof(export_arguments, stats)},
    {.names = "-q --quiet",
     .help = "No progress, no notices, no closing line.",
     .type = CLI_FLAG,
     .offset = offsetof(export_arguments, quiet)},
    {0},
};

static const cli_option quantize_table[] = {
    {.names = "--quantize",
     .argument = "RECIPE",
     .help =
         "How weights are made smaller: none (the default: the checkpoint's own numbers), int8, int4, "
         "int4-g64, sensitive, int8-affine, int4-affine, int4-affine-g32 (--list-recipes), or a file with a "
         "recipe.",
     .type = CLI_STRING,
     .offset = offsetof(export_arguments, quantize)},
    {.names = "--size",
     .argument = "SIZE",
     .help = "Let the program's file become as large as this, such as 17.5GB or 800MiB: matrices whose "
             "products lose most get 8 bits in place of the recipe's fewer. The recipe is one with integer "
             "scales, such as int4.",
     .type = CLI_STRING,
     .offset = offsetof(export_arguments, size)},
    {.names = "--calibrate",
     .argument = "FILE",
     .help =
         "Quantize so that products lose little on this text, not weights: the model is run over it first, "
         "in full precision, which takes minutes, the memory of its weights and, until it is done, the disk "
         "space of the checkpoint. - is standard input, built-in a text that comes with gumbel.",
     .type = CLI_STRING,
     .offset = offsetof(export_arguments, calibrate)},
    {.names = "--activations",
     .argument = "KIND",
     .help = "What products do with their input: int8 rounds it to 8 bits per token or group, as the recipe "
             "says, where weights are quantized, bfloat16 to that where they are bfloat16, none takes it as "
             "it is. The default is the recipe's; without --quantize it is int8 where the checkpoint is "
             "quantized "
             "already, bfloat16 where it is not.",
     .type = CLI_STRING,
     .offset = offsetof(export_arguments, activations)},
    {.names = "--cache",
     .argument = "DTYPE",
     .help = "What attention's caches hold: " CLI_CACHES
             ". The default is the recipe's; without --quantize it is "
             "bfloat16 where the checkpoint is quantized already.",
     .type = CLI_STRING,
     .offset = offsetof(export_arguments, cache)},
    {.names = "--list-recipes",
     .help = "Print the built-in recipes, each as a file for --quantize would have it; needs no checkpoint.",
     .type = CLI_FLAG,
     .offset = offsetof(export_arguments, list_recipes)},
    {0},
};

static const cli_option program_table[] = {
    {.names = "-c --max-context --ctx-size",
     .argument = "N",
     .help = "Positions a session can hold; 0, the default: the model's own limit, at most 8192.",
     .type = CLI_INTEGER,
     .range = {.low = 0, .high = INT32_MAX},
     .offset = offsetof(export_arguments, max_context)},
    {.names = "--logits",
     .help = "End in the logits instead of the sampler, for programs that sample themselves.",
     .type = CLI_FLAG,
     .offset = offsetof(export_arguments, logits)},
    {.names = "--draft-head",
     .help = "With the checkpoint's own draft head, which guesses further tokens from what the model has "
             "computed: mtp.* of Qwen3.5.",
     .type = CLI_FLAG,
     .offset = offsetof(export_arguments, draft_head)},
    {.names = "--assistant",
     .argument = "CHECKPOINT",
     .help =
         "With this assistant of the model as its draft head: a small checkpoint released beside it, such "
         "as gemma-4-31B-it-assistant, a directory that is not quantized or a GGUF; with --random-weights "
         "its "
         "config.json.",
     .type = CLI_STRING,
     .offset = offsetof(export_arguments, assistant)},
    {.names = "--sampler",
     .argument = "KIND",
     .help = "full, the default: with min-p, penalties, biases and log-probabilities; minimal: temperature, "
             "top-k and top-p.",
     .type = CLI_CHOICE,
     .choices = "full minimal",
     .offset = offsetof(export_arguments, sampler)},
    {.names = "--top-logprobs-max",
     .argument = "N",
     .help = "The program can give the log-probabilities of up to N likeliest tokens. Default: 20.",
     .type = CLI_INTEGER,
     .range = {.low = 0, .high = GUMBEL_TOP_LOGPROBS_LIMIT},
     .offset = offsetof(export_arguments, top_logprobs)},
    {.names = "--random-weights",
     .argument = "SEED",
     .help = "Draw the weights; CHECKPOINT is then a config.json. For benchmarks and tests.",
     .type = CLI_SEED,
     .offset = offsetof(export_arguments, random_weights)},
    {.names = "--layers",
     .argument = "N",
     .help = "Keep the first N layers only.",
     .type = CLI_INTEGER,
     .range = {.low = 1, .high = 100000},
     .offset = offsetof(export_arguments, layers)},
    {0},
};

/* Bytes as MB with their rate. */
static void print_bytes(const char *name, double bytes, double seconds) {
    fprintf(stderr, "%-16s %.1f MB, %.1f MB/s\n", name, bytes / 1e6, seconds > 0 ? bytes / seconds / 1e6 : 0);
}

static void print_stats(const gumbel_export_stats *stats, const char *path) {
    double peak = cli_peak_megabytes(), written = (double)stats->bytes_written;
    double share = stats->seconds > 0 ? 100 * stats->write_seconds / stats->seconds : 0;
    print_bytes("read", (double)stats->bytes_read, stats->seconds);
    print_bytes("written", written, stats->seconds);
    fprintf(stderr, "%-16s %.2f s: %.0f %% writing, the rest reading and computing on %u threads\n", "time",
            stats->seconds, share, (unsigned)stats->threads);
    double rate = cli_disk_write_rate(path);
    if (rate > 0)
        fprintf(stderr, "%-16s takes %.1f MB/s; while writing it took %.1f MB/s\n", "disk", rate / 1e6,
                stats->write_seconds > 0 ? written / stats->write_seconds / 1e6 : 0);
    else
        fprintf(stderr, "%-16s cannot be measured\n", "disk");
    fprintf(stderr, "%-16s %.1f MB\n", "peak memory", peak);
}

static gumbel_status export_calibrated(const export_arguments *arguments, const char *checkpoint,
                                       gumbel_export_options options, gumbel_error *error) {
    const cli_calibrate_options calibrate = {.checkpoint = checkpoint,
                                             .output = arguments->output,
                                             .file = arguments->calibrate,
                                             .export = options,
                                             .quiet = arguments->quiet};
    gumbel_status status = GUMBEL_OK;
    if (arguments->calibrate)
        status = cli_calibrate(&calibrate, &options.calibration, error);
    if (status == GUMBEL_OK)
        status = cli_export(checkpoint, arguments->output, options, arguments->quiet, error);
    gumbel_calibration_destroy(options.calibration);
    return status;
}

/* Exports what the user has named as the checkpoint; a path that is none is left to the library to refuse. */
static gumbel_status export_found(const export_arguments *arguments, gumbel_export_options options,
                                  gumbel_error *error) {
    cli_checkpoint checkpoint;
    gumbel_status status = cli_checkpoint_get(arguments->checkpoint, arguments->pull, &checkpoint, error);
    const char *path = checkpoint.path ? checkpoint.path : arguments->checkpoint;
    options.name = checkpoint.repository;
    if (status == GUMBEL_OK)
        status = export_calibrated(arguments, path, options, error);
    if (status != GUMBEL_OK)
        cli_checkpoint_explain(&checkpoint, error);
    cli_checkpoint_free(&checkpoint);
    return status;
}

/* As the library has it, where 0 is the default. */
static int32_t top_logprobs_of(const cli_integer *option) {
    return option->given && option->value == 0 ? -1 : (int32_t)option->value;
}

static int export_program(void *given) {
    const export_arguments *arguments = given;
    if (arguments->list_recipes) {
        gumbel_describe_recipes(cli_write, stdout);
        return CLI_OK;
    }
    if (!arguments->checkpoint)
        return cli_fail_usage("export needs a CHECKPOINT (see gumbel help export)");
    if (!arguments->output)
        return cli_fail_usage("export needs -o PROGRAM, the file to write");
    if (arguments->random_weights.draw)
        return cli_fail_usage("--random-weights -1: expected an integer in [0, 18446744073709551615]");
    if (arguments->calibrate && (!arguments->quantize || strcmp(arguments->quantize, "none") == 0))
        return cli_fail_usage("--calibrate needs --quantize RECIPE, which says what the matrices become");
    if (arguments->size && !arguments->quantize)
        return cli_fail_usage("--size needs --quantize RECIPE, which says what the matrices are at least");
    uint64_t size = 0;
    if (arguments->size && (!cli_parse_bytes(arguments->size, &size) || size == 0))
        return cli_fail_usage("--size %.40s: expected a size such as 17.5GB or 800MiB", arguments->size);
    gumbel_export_stats stats = {.size = sizeof stats};
    gumbel_export_options options = {
        .stats = &stats,
        .quantize = arguments->quantize,
        .max_context = (uint32_t)arguments->max_context.value,
        .logits = arguments->logits,
        .backend = arguments->backend,
        .random_weights = arguments->random_weights.given,
        .random_seed = arguments->random_weights.value,
        .layers = (uint32_t)arguments->layers.value,
        .sampler = arguments->sampler,
        .max_top_logprobs = top_logprobs_of(&arguments->top_logprobs),
        .activations = arguments->activations,
        .cache = arguments->cache,
        .size_target = size,
        .draft_head = arguments->draft_head,
        .assistant = arguments->assistant,
    };
    gumbel_error error;
    gumbel_status status = export_found(arguments, options, &error);
    if (status != GUMBEL_OK)
        return cli_fail_with(&error);
    if (arguments->stats)
        print_stats(&stats, arguments->output);
    return CLI_OK;
}

const cli_command cli_command_export = {
    .name = "export",
    .summary = "make a program from a checkpoint",
    .synopsis = "CHECKPOINT -o PROGRAM [options]\n"
                "CONFIG.json --random-weights SEED -o PROGRAM [options]\n"
                "--list-recipes",
    .description =
        "Reads a Hugging Face checkpoint or a GGUF and writes a program: one file with the "
        "model's graph, its weights, tokenizer, chat templates and recommended settings. The file is "
        "written under a temporary name until it is complete, so that an interrupt leaves no half "
        "of it.",
    .operands =
        (const cli_operand[]){{"CHECKPOINT", offsetof(export_arguments, checkpoint), false,
                               "A directory with config.json, the safetensors files and "
                               "tokenizer.json; a .gguf file, of a split model the first part, or the "
                               "folder it lies in; " CLI_HUB_HELP
                               "; with --random-weights just a config.json."},
                              {0}},
    .groups = (const cli_option_group[]){{.title = "Output", .options = output_table},
                                         {.title = "Quantization", .options = quantize_table},
                                         {.title = "Program", .options = program_table},
                                         {.title = "Hub", .options = hub_table},
                                         {0}},
    .examples =
        (const cli_example[]){{"gumbel export gemma-4-31b-it -o gemma.gumbel --max-context 4096",
                               "Exports a checkpoint for conversations of up to 4096 tokens."},
                              {"gumbel export gemma-4-31b-it -o gemma.gumbel --quantize int4",
                               "Exports it with about 4.5 bits a weight."},
                              {"gumbel export gemma-4-31b-it -o gemma.gumbel --quantize int4 --size 22GB",
                               "The same, with 8 bits where they are worth most, up to 22 GB."},
                              {"gumbel export config.json --random-weights 1 --layers 4 -o bench.gumbel",
                               "A program of the right shape without a download."},
                              {0}},
    .arguments_size = sizeof(export_arguments),
    .run = export_program,
};
