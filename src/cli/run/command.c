/* SPDX-License-Identifier: Apache-2.0
 *
 * gumbel run: one prompt, one answer. On a terminal without a prompt it chats.
 */
#include "cli/command.h"
#include "cli/base/report.h"
#include "cli/base/signals.h"
#include "cli/run/run.h"

#include <unistd.h>

enum { DEFAULT_NEW_TOKENS = 128 };

uint32_t run_token_limit(const run_options *options) {
    int64_t limit = options->max_new_tokens.given ? options->max_new_tokens.value : DEFAULT_NEW_TOKENS;
    return limit > 0 ? (uint32_t)limit : 0;
}

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
    {.names = "--json",
     .help = "Print one line with an object in JSON when the answer is complete, in place of the text: text, "
             "the assistant's message with its reasoning and its calls of tools, tokens, finish reason, "
             "settings and where each came from, seed, program, times; with --logprobs "
             "and --top-logprobs those.",
     .type = CLI_FLAG,
     .offset = offsetof(run_options, json)},
    {.names = "--stats",
     .help = "Report on standard error the settings used, where each came from, why the answer ended, speed "
             "and memory, also what conversations of some lengths take and how many have room.",
     .type = CLI_FLAG,
     .offset = offsetof(run_options, stats)},
    {.names = "-q --quiet",
     .help = "Leave out notes on standard error; warnings and errors stay.",
     .type = CLI_FLAG,
     .offset = offsetof(run_options, quiet)},
    {0},
};

static void report_end(const run_options *options, const cli_model *model, const cli_reply *reply) {
    uint32_t limit = run_token_limit(options);
    if (reply->finish == GUMBEL_FINISH_LENGTH)
        cli_note("stopped at %u token%s (-n)%s", limit, limit == 1 ? "" : "s",
                 options->max_new_tokens.given ? "" : "; -n -1 sets no limit");
    if (reply->finish == GUMBEL_FINISH_CONTEXT)
        cli_note("stopped: the context of %u positions is full (-c)", model->max_context);
}

static gumbel_status settle(const run_arguments *arguments, run_state *state, gumbel_error *error) {
    const gumbel_tokenizer *tokenizer = arguments->run.print_tokens ? NULL : state->model.tokenizer;
    gumbel_status status = cli_settle_sampling(&arguments->sampling, &state->model, &state->sampling, error);
    if (status == GUMBEL_OK)
        status = cli_settle_seed(&arguments->sampling, &state->sampling, error);
    if (status == GUMBEL_OK)
        status = cli_output_open(&state->output, tokenizer, error);
    state->output.logprobs = arguments->run.logprobs || arguments->run.top_logprobs.given;
    state->output.wraps = !arguments->format.no_wrap;
    state->output.record = arguments->run.json ? &state->record : NULL;
    state->output.conversation = state->conversation;
    state->output.reasoning = arguments->format.reasoning;
    cli_read_stops(&arguments->stop, &state->stops);
    if (status == GUMBEL_OK)
        status = cli_read_grammar(&arguments->grammar, state->conversation ? arguments->template.tools : NULL,
                                  &state->model, &state->grammar, error);
    return status;
}

static gumbel_status answer(const run_arguments *arguments, run_state *state, gumbel_error *error) {
    const run_options *run = &arguments->run;
    gumbel_status status = settle(arguments, state, error);
    if (status != GUMBEL_OK)
        return status;
    gumbel_generate_options options = {
        .size = sizeof options,
        .sampling = &state->sampling.values,
        .max_new_tokens = run_token_limit(run),
        .ignore_stop = run->ignore_stop,
        .wants_logprob = state->output.logprobs,
        .top_logprobs = (uint32_t)run->top_logprobs.value,
        .tokenizer = state->model.tokenizer,
        .stop_in_answer = state->conversation != NULL,
        .grammar = state->grammar,
        .reasons = arguments->template.thinking == GUMBEL_THINKING_ON,
        .drafting = cli_drafting(&arguments->draft),
        .predicted_tokens = state->predicted.ids,
        .predicted_count = state->predicted.count,
    };
    options.has_reasoning_budget = cli_has_reasoning_budget(&arguments->reasoning, &options.reasoning_budget);
    status = cli_apply_stops(&state->stops, &options, error);
    if (status != GUMBEL_OK)
        return status;
    state->generator.model = &state->model;
    cli_generator_set_seed(&state->generator, state->sampling.seed);
    cli_report_seed(&state->sampling);
    cli_catch_interrupt();
    cli_sandbox_enter(&arguments->sandbox,
                      &(cli_sandbox_needs){.has_device = cli_has_device(&arguments->model),
                                           .has_processes = arguments->model.launched});
    return cli_generate_reply(&state->generator, state->prompt.ids, state->prompt.count, &options,
                              &state->output, &state->reply, error);
}

static void report(const run_arguments *arguments, const run_state *state) {
    if (arguments->run.json)
        run_print_json(arguments, state, stdout);
    report_end(&arguments->run, &state->model, &state->reply);
    if (arguments->run.stats)
        cli_print_stats(&state->model, &state->sampling, &state->reply, stderr);
}

static void free_state(run_state *state) {
    gumbel_conversation_destroy(state->conversation);
    cli_reply_free(&state->reply);
    cli_stops_free(&state->stops);
    gumbel_grammar_destroy(state->grammar);
    cli_record_free(&state->record);
    cli_output_close(&state->output);
    cli_generator_free(&state->generator);
    cli_tokens_free(&state->prompt);
    cli_tokens_free(&state->predicted);
    cli_model_close(&state->model);
}

static int answer_once(const run_arguments *arguments) {
    run_state state = {0};
    gumbel_error error;
    cli_model_options model = arguments->model;
    cli_use_drafts(&arguments->draft, &model);
    gumbel_status status = cli_model_open(&model, false, &state.model, &error);
    if (status == GUMBEL_OK)
        status = run_make_prompt(arguments, &state, &error);
    if (status == GUMBEL_OK)
        status = run_read_prediction(&arguments->run, &state, &error);
    if (status == GUMBEL_OK)
        status = answer(arguments, &state, &error);
    if (status == GUMBEL_OK)
        report(arguments, &state);
    bool interrupted = state.reply.interrupted || cli_interrupted();
    free_state(&state);
    if (status != GUMBEL_OK)
        return cli_fail_with(&error);
    return interrupted ? CLI_INTERRUPTED : CLI_OK;
}

/* A flag of run that a chat has no use for, or NULL. */
static const char *flag_of_answers(const run_options *run) {
    return run->json                 ? "--json"
           : run->print_tokens       ? "--print-tokens"
           : run->logprobs           ? "--logprobs"
           : run->top_logprobs.given ? "--top-logprobs"
           : run->stats              ? "--stats"
           : run->ignore_stop        ? "--ignore-eos"
           : run->draft_from         ? "--draft-from"
           : run->plain              ? "--plain"
                                     : NULL;
}

static int converse(const run_arguments *arguments) {
    const char *flag = flag_of_answers(&arguments->run);
    if (flag)
        return cli_fail_usage("run needs a prompt for %s: PROMPT, -p TEXT, -f FILE, --tokens IDS, or text "
                              "from a pipe",
                              flag);
    chat_arguments chat = {.model = arguments->model,
                           .sampling = arguments->sampling,
                           .format = arguments->format,
                           .template = arguments->template,
                           .reasoning = arguments->reasoning,
                           .stop = arguments->stop,
                           .grammar = arguments->grammar,
                           .draft = arguments->draft,
                           .typing = arguments->typing,
                           .chat.max_new_tokens = arguments->run.max_new_tokens};
    cli_set_quiet(false); /* what a chat answers to commands are notes */
    return cli_command_chat.run(&chat);
}

static int run(void *given) {
    const run_arguments *arguments = given;
    const run_options *options = &arguments->run;
    int sources = run_prompt_sources(options);
    bool is_chat = options->interactive && !options->single_turn;
    if (sources > 1)
        return cli_fail_usage("run takes one of PROMPT, --prompt, --file and --tokens");
    if (sources == 1 && is_chat)
        return cli_fail_usage("run takes a prompt or --interactive (-cnv), not both; --system TEXT gives a "
                              "system message");
    if (sources == 0 && options->single_turn && isatty(STDIN_FILENO))
        return cli_fail_usage("run needs a prompt: PROMPT, -p TEXT, -f FILE, --tokens IDS, or text from a "
                              "pipe");
    bool has_prompt = sources == 1 || !isatty(STDIN_FILENO);
    return is_chat || !has_prompt ? converse(arguments) : answer_once(arguments);
}

const cli_command cli_command_run = {
    .name = "run",
    .summary = "continue a prompt or answer a message",
    .synopsis = "PROGRAM [PROMPT ... | -p TEXT | -f FILE | --tokens IDS] [options]",
    .description =
        "Runs a program on one prompt and prints what it generates as it comes. Where the program "
        "has a chat template the prompt is a user's message; otherwise, and with --plain or --raw, it is "
        "text "
        "to be continued. Settings that no flag gives are those the program recommends, then the "
        "built-in ones.\nWithout a prompt, standard input is the prompt; on a terminal it is a chat, as with "
        "gumbel chat.\nCtrl-C ends the answer where it is.",
    .operands =
        (const cli_operand[]){{"PROGRAM", offsetof(run_arguments, model.source.path), true, CLI_PROGRAM_HELP},
                              {0}},
    .rest = &(const cli_operand){"PROMPT", offsetof(run_arguments, run.words), false,
                                 "The prompt: all further words, with a blank between them; - reads it from "
                                 "standard input."},
    .groups =
        (const cli_option_group[]){
            {.title = "Prompt", .options = run_prompt_table, .offset = offsetof(run_arguments, run)},
            {.title = "Format", .options = cli_format_table, .offset = offsetof(run_arguments, format)},
            {.title = "Chat template",
             .options = cli_template_table,
             .offset = offsetof(run_arguments, template)},
            {.title = "Reasoning",
             .options = cli_reasoning_table,
             .offset = offsetof(run_arguments, reasoning)},
            {.title = "Sampling", .options = cli_sampling_table, .offset = offsetof(run_arguments, sampling)},
            {.title = "Stop strings", .options = cli_stop_table, .offset = offsetof(run_arguments, stop)},
            {.title = "Structured answers",
             .options = cli_grammar_table,
             .offset = offsetof(run_arguments, grammar)},
            {.title = "Drafts", .options = cli_draft_table, .offset = offsetof(run_arguments, draft)},
            {.title = "Output", .options = output_table, .offset = offsetof(run_arguments, run)},
            {.title = "Typing", .options = cli_typing_table, .offset = offsetof(run_arguments, typing)},
            {.title = "Program",
             .options = cli_program_table,
             .offset = offsetof(run_arguments, model.source)},
            {.title = "Machine", .options = cli_model_table, .offset = offsetof(run_arguments, model)},
            {.title = "Sandbox", .options = cli_sandbox_table, .offset = offsetof(run_arguments, sandbox)},
            {0}},
    .examples =
        (const cli_example[]){
            {"gumbel run model.gumbel \"Why is the sky blue?\"", "Asks a question."},
            {"gumbel run model.gumbel --raw -f story.txt -n 300 --seed 7", "Continues a text, repeatably."},
            {"gumbel run model.gumbel --raw -f questions.txt --stop \"\\nQ:\"",
             "Answers the last question, and ends where the next one would begin."},
            {"gumbel run model.gumbel --json-schema person.json \"Invent a person.\"",
             "Answers with JSON that a schema allows."},
            {"gumbel run model.gumbel --tokens 2,17,99 --print-tokens -n 12 --temperature 0",
             "Ids in, one line of ids out."},
            {0}},
    .arguments_size = sizeof(run_arguments),
    .run = run,
};
