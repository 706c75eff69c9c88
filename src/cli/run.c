/* SPDX-License-Identifier: Apache-2.0
 *
 * gumbel run: one prompt, one answer.
 */
#include "cli/command.h"
#include "cli/files.h"
#include "cli/model.h"
#include "cli/prompt.h"
#include "cli/reply.h"
#include "cli/report.h"
#include "cli/sampling.h"
#include "cli/signals.h"

#include <string.h>
#include <unistd.h>

enum { DEFAULT_NEW_TOKENS = 128 };

typedef struct run_options {
    const char *prompt, *file;
    cli_tokens tokens;
    cli_integer max_new_tokens;
    cli_integer top_logprobs;
    bool print_tokens, ignore_stop, stats, logprobs;
} run_options;

typedef struct run_arguments {
    cli_model_options model;
    cli_sampling_options sampling;
    cli_format_options format;
    run_options run;
} run_arguments;

static const cli_option prompt_table[] = {
    {.names = "-p --prompt",
     .argument = "TEXT",
     .help = "The prompt; - reads it from standard input, as does a pipe when no prompt is given.",
     .type = CLI_STRING,
     .offset = offsetof(run_options, prompt)},
    {.names = "-f --file",
     .argument = "FILE",
     .help = "The prompt from a file. A newline at its end is dropped, unless with --raw.",
     .type = CLI_STRING,
     .offset = offsetof(run_options, file)},
    {.names = "--tokens",
     .argument = "IDS",
     .help = "The prompt as token ids separated by commas; nothing is added.",
     .type = CLI_TOKENS,
     .offset = offsetof(run_options, tokens)},
    {0},
};

static const cli_option output_table[] = {
    {.names = "-n --max-new-tokens --predict --n-predict --max-tokens",
     .argument = "N",
     .help = "Stop after N new tokens; -1: only at a stop token or the end of the context. Default: 128.",
     .type = CLI_INTEGER,
     .range = {.low = 1, .high = INT32_MAX, .has_also = true, .also_value = -1},
     .offset = offsetof(run_options, max_new_tokens)},
    {.names = "--ignore-eos",
     .help = "Go on after stop tokens.",
     .type = CLI_FLAG,
     .offset = offsetof(run_options, ignore_stop)},
    {.names = "--print-tokens",
     .help = "Print the ids of the generated tokens on one line instead of their text, the stop token "
             "included.",
     .type = CLI_FLAG,
     .offset = offsetof(run_options, print_tokens)},
    {.names = "--logprobs",
     .help = "Print one line for each token instead of the text: its id, its log-probability under the model "
             "(before biases, penalties and temperature), its text in quotes; separated by tabs. With "
             "--print-tokens without the text.",
     .type = CLI_FLAG,
     .offset = offsetof(run_options, logprobs)},
    {.names = "--top-logprobs",
     .argument = "N",
     .help =
         "Like --logprobs, with ID:LOGPROB of the N likeliest tokens at the end of the line; at most what "
         "the program was exported for.",
     .type = CLI_INTEGER,
     .range = {.low = 0, .high = GUMBEL_TOP_LOGPROBS_LIMIT},
     .offset = offsetof(run_options, top_logprobs)},
    {.names = "--stats",
     .help = "Report on standard error the settings used, where each came from, speed and memory.",
     .type = CLI_FLAG,
     .offset = offsetof(run_options, stats)},
    {0},
};

static gumbel_status refuse(gumbel_error *error, gumbel_status status, const char *message) {
    cli_refuse(error, "%s", message);
    return error->status = status;
}

/* The prompt's text from where the flags say. */
static gumbel_status read_text(const run_arguments *arguments, cli_text *text, gumbel_error *error) {
    const char *prompt = arguments->run.prompt;
    if (prompt && strcmp(prompt, "-") != 0) {
        cli_text_add(text, prompt, strlen(prompt));
        return GUMBEL_OK;
    }
    gumbel_status status = cli_read_file(arguments->run.file ? arguments->run.file : "-", text, error);
    if (!arguments->format.raw)
        cli_drop_last_newline(text);
    return status;
}

/* A user's message where there is a chat format, otherwise plain text. */
static gumbel_status encode_prompt(const run_arguments *arguments, const cli_model *model, const char *text,
                                   size_t length, cli_tokens *tokens, gumbel_error *error) {
    const cli_format_options *format = &arguments->format;
    bool has_format = format->chat_format || model->info.has_chat_format;
    if (format->raw || !has_format) {
        if (format->system)
            return refuse(error, GUMBEL_ERROR_ARGUMENT,
                          "--system needs a chat format, and plain text has none");
        gumbel_encode_options options = {.size = sizeof options, .add_special = !format->raw};
        return cli_encode_text(model->tokenizer, text, length, &options, tokens, error);
    }
    if (length == 0)
        return refuse(error, GUMBEL_ERROR_ARGUMENT, "the prompt is empty");
    gumbel_message messages[2];
    size_t count = 0;
    if (format->system)
        messages[count++] = (gumbel_message){"system", format->system};
    messages[count++] = (gumbel_message){"user", text};
    gumbel_chat_options options = {.size = sizeof options, .thinking = (gumbel_thinking)format->thinking};
    return cli_encode_messages(model->tokenizer, messages, count, &options, tokens, error);
}

/* The prompt as tokens; those of --tokens as they are. */
static gumbel_status make_prompt(const run_arguments *arguments, const cli_model *model, cli_tokens *tokens,
                                 gumbel_error *error) {
    const run_options *run = &arguments->run;
    for (size_t i = 0; i < run->tokens.count; i++)
        cli_tokens_add(tokens, run->tokens.ids[i]);
    if (!model->tokenizer && !(run->tokens.ids && run->print_tokens))
        return refuse(error, GUMBEL_ERROR_UNSUPPORTED,
                      "the program has no tokenizer: use --tokens and --print-tokens");
    if (run->tokens.ids)
        return cli_check_tokens(model, tokens, error);
    gumbel_status status = GUMBEL_OK;
    if (arguments->format.chat_format)
        status = gumbel_chat_format_load(model->tokenizer, arguments->format.chat_format, error);
    cli_text text = {0};
    if (status == GUMBEL_OK)
        status = read_text(arguments, &text, error);
    if (status == GUMBEL_OK && strlen(text.bytes) != text.length && !arguments->format.raw)
        status =
            refuse(error, GUMBEL_ERROR_ARGUMENT, "the prompt has a zero byte: a message cannot (use --raw)");
    if (status == GUMBEL_OK)
        status = encode_prompt(arguments, model, text.bytes, text.length, tokens, error);
    cli_text_free(&text);
    if (status == GUMBEL_OK && tokens->count == 0)
        status = refuse(error, GUMBEL_ERROR_ARGUMENT, "the prompt is empty");
    return status;
}

static void report_end(const run_arguments *arguments, const cli_model *model, const cli_reply *reply) {
    if (reply->finish == GUMBEL_FINISH_LENGTH && !arguments->run.max_new_tokens.given)
        cli_note("stopped after %d tokens; -n N sets another limit, -n -1 none", DEFAULT_NEW_TOKENS);
    if (reply->finish == GUMBEL_FINISH_CONTEXT)
        cli_note("stopped: the context of %u positions is full", model->max_context);
}

static gumbel_status answer(const run_arguments *arguments, cli_model *model, const cli_tokens *prompt,
                            cli_reply *reply, gumbel_error *error) {
    const run_options *run = &arguments->run;
    cli_sampling sampling;
    gumbel_status status = cli_settle_sampling(&arguments->sampling, model, &sampling, error);
    if (status != GUMBEL_OK)
        return status;
    int64_t limit = run->max_new_tokens.given ? run->max_new_tokens.value : DEFAULT_NEW_TOKENS;
    gumbel_generate_options options = {
        .size = sizeof options,
        .sampling = &sampling.values,
        .max_new_tokens = limit > 0 ? (uint32_t)limit : 0,
        .ignore_stop = run->ignore_stop,
        .wants_logprob = run->logprobs || run->top_logprobs.given,
        .top_logprobs = (uint32_t)run->top_logprobs.value,
    };
    cli_output output;
    status = cli_settle_seed(&arguments->sampling, &sampling, error);
    if (status == GUMBEL_OK)
        status = cli_output_open(&output, run->print_tokens ? NULL : model->tokenizer, error);
    if (status != GUMBEL_OK)
        return status;
    output.logprobs = options.wants_logprob;
    cli_generator generator = {.model = model};
    cli_generator_set_seed(&generator, sampling.seed);
    cli_report_seed(&sampling);
    cli_catch_interrupt();
    status = cli_generate_reply(&generator, prompt->ids, prompt->count, &options, &output, reply, error);
    if (status == GUMBEL_OK)
        report_end(arguments, model, reply);
    if (status == GUMBEL_OK && run->stats)
        cli_print_stats(model, &sampling, reply, stderr);
    cli_generator_free(&generator);
    cli_output_close(&output);
    return status;
}

static int check_arguments(const run_arguments *arguments) {
    const run_options *run = &arguments->run;
    int sources = (run->prompt != NULL) + (run->file != NULL) + (run->tokens.ids != NULL);
    if (sources > 1)
        return cli_fail_usage("run takes one of --prompt, --file and --tokens");
    if (sources == 0 && isatty(STDIN_FILENO))
        return cli_fail_usage("run needs a prompt: -p TEXT, -f FILE, --tokens IDS, or text from a pipe");
    return CLI_OK;
}

static int run(void *given) {
    const run_arguments *arguments = given;
    int refused = check_arguments(arguments);
    if (refused)
        return refused;
    cli_model model;
    cli_tokens prompt = {0};
    cli_reply reply = {0};
    gumbel_error error;
    gumbel_status status = cli_model_open(&arguments->model, false, &model, &error);
    if (status == GUMBEL_OK)
        status = make_prompt(arguments, &model, &prompt, &error);
    if (status == GUMBEL_OK)
        status = answer(arguments, &model, &prompt, &reply, &error);
    bool interrupted = reply.interrupted || cli_interrupted();
    cli_reply_free(&reply);
    cli_tokens_free(&prompt);
    cli_model_close(&model);
    if (status != GUMBEL_OK)
        return cli_fail_with(&error);
    return interrupted ? CLI_INTERRUPTED : CLI_OK;
}

const cli_command cli_command_run = {
    .name = "run",
    .summary = "continue a prompt or answer a message",
    .synopsis = "PROGRAM [-p TEXT | -f FILE | --tokens IDS] [options]",
    .description =
        "Runs a program on one prompt and prints what it generates as it comes. Where the program "
        "has a chat format the prompt is a user's message; otherwise, and with --raw, it is text to "
        "be continued. Settings that no flag gives are those the program recommends, then the "
        "built-in ones.\nCtrl-C ends the answer where it is.",
    .operands =
        (const cli_operand[]){{"PROGRAM", offsetof(run_arguments, model.source.path), true, CLI_PROGRAM_HELP},
                              {0}},
    .groups =
        (const cli_option_group[]){
            {.title = "Prompt", .options = prompt_table, .offset = offsetof(run_arguments, run)},
            {.title = "Format", .options = cli_format_table, .offset = offsetof(run_arguments, format)},
            {.title = "Sampling", .options = cli_sampling_table, .offset = offsetof(run_arguments, sampling)},
            {.title = "Output", .options = output_table, .offset = offsetof(run_arguments, run)},
            {.title = "Program",
             .options = cli_program_table,
             .offset = offsetof(run_arguments, model.source)},
            {.title = "Machine", .options = cli_model_table, .offset = offsetof(run_arguments, model)},
            {0}},
    .examples =
        (const cli_example[]){
            {"gumbel run model.gumbel -p \"Why is the sky blue?\"", "Asks a question."},
            {"gumbel run model.gumbel --raw -f story.txt -n 300 --seed 7", "Continues a text, repeatably."},
            {"gumbel run model.gumbel --tokens 2,17,99 --print-tokens -n 12 --temperature 0",
             "Ids in, one line of ids out."},
            {0}},
    .arguments_size = sizeof(run_arguments),
    .run = run,
};
