/* SPDX-License-Identifier: Apache-2.0 */
#include "base/status.h"
#include "cli/base/files.h"
#include "cli/base/report.h"
#include "cli/base/shorten.h"
#include "cli/run/run.h"

#include <string.h>
#include <sys/stat.h>

const cli_option run_prompt_table[] = {
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
    {.names = "--draft-from",
     .argument = "FILE",
     .help =
         "A text that the answer is likely to contain, such as the one that it edits: drafts are taken from "
         "it as well.",
     .type = CLI_STRING,
     .offset = offsetof(run_options, draft_from)},
    {.names = "--plain",
     .help =
         "Continue the prompt as plain text, without a chat template, but with what the model puts around a "
         "text (bos).",
     .type = CLI_FLAG,
     .offset = offsetof(run_options, plain)},
    {.names = "-st --single-turn",
     .help = "Answer once, also on a terminal where --interactive is given.",
     .type = CLI_FLAG,
     .offset = offsetof(run_options, single_turn)},
    {.names = "-i --interactive",
     .help = "Chat, as gumbel chat does. So does run on a terminal when no prompt is given.",
     .type = CLI_FLAG,
     .offset = offsetof(run_options, interactive)},
    {0},
};

int run_prompt_sources(const run_options *options) {
    return (options->prompt != NULL) + (options->file != NULL) + (options->tokens.ids != NULL) +
           (options->words.count > 0);
}

/* The prompt's text from where the flags say. */
static gumbel_status read_text(const run_arguments *arguments, gb_byte_buffer *text, gumbel_error *error) {
    const char *prompt = arguments->run.prompt;
    const cli_words given = {.list = &prompt, .count = prompt ? 1 : 0};
    const cli_words *words = prompt ? &given : &arguments->run.words;
    if (words->count > 1 || (words->count == 1 && strcmp(words->list[0], "-") != 0)) {
        cli_words_join(words, text);
        return GUMBEL_OK;
    }
    gumbel_status status = cli_read_file(arguments->run.file ? arguments->run.file : "-", text, error);
    if (!arguments->format.raw)
        cli_drop_last_newline(text);
    return status;
}

/* A word that names a file may have been meant to be read. */
static void note_file(const run_options *run) {
    struct stat file;
    char name[CLI_SHORTENED];
    const char *word = run->words.count == 1 ? run->words.list[0] : "-";
    if (strcmp(word, "-") != 0 && stat(word, &file) == 0 && S_ISREG(file.st_mode))
        cli_note("the prompt is the text \"%s\"; -f reads the file of that name", cli_shorten(word, name));
}

static gumbel_status encode_plain(const run_arguments *arguments, const cli_model *model, const char *text,
                                  size_t length, cli_tokens *tokens, gumbel_error *error) {
    if (arguments->format.system)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT,
                       "--system needs a chat template, and plain text has none");
    const bool is_raw = arguments->format.raw;
    gumbel_encode_options options = {.size = sizeof options, .add_special = !is_raw, .parse_special = is_raw};
    return cli_encode_text(model->tokenizer, text, length, &options, tokens, error);
}

/* Begins a conversation, and gives its prompt. */
static gumbel_status begin_conversation(run_state *state, const gumbel_message *messages, size_t count,
                                        const gumbel_chat_options *chat, gumbel_error *error) {
    gumbel_turn turn = {.size = sizeof turn};
    gumbel_status status = gumbel_conversation_create(state->model.tokenizer, &state->conversation, error);
    if (status == GUMBEL_OK)
        status = gumbel_conversation_set_chat(state->conversation, chat, error);
    if (status == GUMBEL_OK)
        status = gumbel_conversation_add(state->conversation, messages, count, error);
    if (status == GUMBEL_OK)
        status = gumbel_conversation_prompt(state->conversation, NULL, 0, &turn, error);
    for (size_t i = 0; i < turn.count; i++)
        cli_tokens_add(&state->prompt, turn.tokens[i]);
    return status;
}

static gumbel_status encode_message(const run_arguments *arguments, run_state *state, const char *text,
                                    gumbel_error *error) {
    gumbel_message messages[2];
    size_t count = 0;
    if (arguments->format.system)
        messages[count++] =
            (gumbel_message){.size = sizeof *messages, .role = "system", .content = arguments->format.system};
    messages[count++] = (gumbel_message){.size = sizeof *messages, .role = "user", .content = text};
    cli_template template = {0};
    gumbel_status status = cli_template_read(&arguments->template, state->model.tokenizer, &template, error);
    if (status == GUMBEL_OK)
        status = begin_conversation(state, messages, count, &template.options, error);
    cli_template_free(&template);
    return status;
}

/* A user's message where there is a chat template, otherwise plain text. */
static gumbel_status encode_prompt(const run_arguments *arguments, run_state *state, const char *text,
                                   size_t length, gumbel_error *error) {
    bool has_template = cli_has_template(&arguments->template, &state->model.info);
    if (arguments->format.raw || arguments->run.plain || !has_template)
        return encode_plain(arguments, &state->model, text, length, &state->prompt, error);
    if (length == 0)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "the prompt is empty");
    return encode_message(arguments, state, text, error);
}

gumbel_status run_make_prompt(const run_arguments *arguments, run_state *state, gumbel_error *error) {
    const cli_model *model = &state->model;
    cli_tokens *tokens = &state->prompt;
    const run_options *run = &arguments->run;
    for (size_t i = 0; i < run->tokens.count; i++)
        cli_tokens_add(tokens, run->tokens.ids[i]);
    if (!model->tokenizer && !(run->tokens.ids && run->print_tokens))
        return gb_fail(error, GUMBEL_ERROR_UNSUPPORTED,
                       "the program has no tokenizer: use --tokens and --print-tokens");
    if (run->tokens.ids)
        return cli_check_tokens(model, tokens, error);
    note_file(run);
    gb_byte_buffer text = {0};
    gumbel_status status = read_text(arguments, &text, error);
    if (status == GUMBEL_OK && strlen(text.text) != text.size && !arguments->format.raw)
        status =
            gb_fail(error, GUMBEL_ERROR_ARGUMENT, "the prompt has a zero byte: a message cannot (use --raw)");
    if (status == GUMBEL_OK)
        status = encode_prompt(arguments, state, text.text, text.size, error);
    gb_buffer_free(&text);
    if (status == GUMBEL_OK && tokens->count == 0)
        status = gb_fail(error, GUMBEL_ERROR_ARGUMENT, "the prompt is empty");
    return status;
}

gumbel_status run_read_prediction(const run_options *options, run_state *state, gumbel_error *error) {
    const gumbel_encode_options plain = {.size = sizeof plain};
    gb_byte_buffer text = {0};
    if (!options->draft_from || !state->model.tokenizer)
        return GUMBEL_OK;
    gumbel_status status = cli_read_file(options->draft_from, &text, error);
    if (status == GUMBEL_OK)
        status = cli_encode_text(state->model.tokenizer, gb_buffer_string(&text), text.size, &plain,
                                 &state->predicted, error);
    gb_buffer_free(&text);
    return status;
}
