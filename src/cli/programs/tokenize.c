/* SPDX-License-Identifier: Apache-2.0
 *
 * gumbel tokenize: what a tokenizer makes of a text or a conversation, and back.
 */
#include "cli/base/files.h"
#include "cli/base/report.h"
#include "cli/chat/messages.h"
#include "cli/checkpoint/checkpoint.h"
#include "cli/command.h"
#include "cli/model/chat_template.h"
#include "cli/model/output.h"
#include "cli/model/prompt.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

typedef struct tokenize_arguments {
    const char *model, *text, *file, *messages;
    cli_tokens decode;
    cli_template_options template;
    bool raw, add_special, parse_special, show, render;
} tokenize_arguments;

static const cli_option input_table[] = {
    {.names = "-p --prompt",
     .argument = "TEXT",
     .help = "The text, in place of the operand.",
     .type = CLI_STRING,
     .offset = offsetof(tokenize_arguments, text)},
    {.names = "-f --file",
     .argument = "FILE",
     .help = "The text from a file, every byte of it; - is standard input.",
     .type = CLI_STRING,
     .offset = offsetof(tokenize_arguments, file)},
    {.names = "--messages",
     .argument = "FILE.json",
     .help =
         "A conversation: an array of {\"role\": ..., \"content\": ...} as OpenAI's API has it, or an object "
         "with it under \"messages\" and tools under \"tools\". It is rendered with the chat template, up "
         "to where the model's answer begins.",
     .type = CLI_STRING,
     .offset = offsetof(tokenize_arguments, messages)},
    {.names = "--decode",
     .argument = "IDS",
     .help = "Print the text of these token ids instead, special tokens included.",
     .type = CLI_TOKENS,
     .offset = offsetof(tokenize_arguments, decode)},
    {.names = "-m --model",
     .argument = "MODEL",
     .help = "The model, in place of the operand.",
     .type = CLI_STRING,
     .offset = offsetof(tokenize_arguments, model)},
    {0},
};

static const cli_option format_table[] = {
    {.names = "--add-special --add-bos",
     .help = "Add what the model expects around a text: its bos token, for one.",
     .type = CLI_FLAG,
     .offset = offsetof(tokenize_arguments, add_special)},
    {.names = "--raw --no-special --no-bos",
     .help = "Add nothing around the text, which is the default.",
     .type = CLI_FLAG,
     .offset = offsetof(tokenize_arguments, raw)},
    {.names = "--parse-special",
     .help = "Read special tokens that are spelled out in the text as what they spell.",
     .type = CLI_FLAG,
     .offset = offsetof(tokenize_arguments, parse_special)},
    {.names = "--show",
     .help = "One token per line: its id and its text.",
     .type = CLI_FLAG,
     .offset = offsetof(tokenize_arguments, show)},
    {.names = "--render",
     .help = "Print the text that the chat template makes of --messages instead of its tokens.",
     .type = CLI_FLAG,
     .offset = offsetof(tokenize_arguments, render)},
    {0},
};

/* Prints each token on a line: its id and what it stands for. */
static gumbel_status show_tokens(gumbel_detokenizer *detokenizer, const cli_tokens *tokens,
                                 gumbel_error *error) {
    for (size_t i = 0; i < tokens->count; i++) {
        const char *text;
        size_t length;
        gumbel_status status = gumbel_detokenize(detokenizer, tokens->ids[i], &text, &length, error);
        if (status != GUMBEL_OK)
            return status;
        printf("%8" PRId32 "  ", tokens->ids[i]);
        cli_print_quoted(text, length);
        putchar('\n');
    }
    return GUMBEL_OK;
}

/* Prints what the tokens stand for as running text, and a newline. */
static gumbel_status print_text(gumbel_detokenizer *detokenizer, const cli_tokens *tokens,
                                gumbel_error *error) {
    cli_output output;
    gumbel_status status = cli_output_open(&output, NULL, error);
    gb_byte_buffer whole = {0};
    const char *text;
    size_t length;
    for (size_t i = 0; i < tokens->count && status == GUMBEL_OK; i++) {
        status = gumbel_detokenize(detokenizer, tokens->ids[i], &text, &length, error);
        if (status == GUMBEL_OK)
            cli_append(&whole, text, length);
    }
    gumbel_detokenize_end(detokenizer, &text, &length);
    cli_append(&whole, text, length);
    cli_append_string(&whole, "\n");
    if (status == GUMBEL_OK) {
        cli_output_text(&output, whole.text, whole.size);
        cli_output_end(&output);
    }
    cli_output_close(&output);
    gb_buffer_free(&whole);
    return status;
}

static gumbel_status print_pieces(const gumbel_tokenizer *tokenizer, const cli_tokens *tokens, bool show,
                                  gumbel_error *error) {
    gumbel_detokenizer *detokenizer;
    gumbel_status status = gumbel_detokenizer_create(tokenizer, true, &detokenizer, error);
    if (status != GUMBEL_OK)
        return status;
    status = (show ? show_tokens : print_text)(detokenizer, tokens, error);
    gumbel_detokenizer_destroy(detokenizer);
    return status;
}

static void print_rendered(void *user, const char *text, size_t length) {
    cli_append(user, text, length);
}

static gumbel_status render_messages(const gumbel_tokenizer *tokenizer, const gumbel_chat_options *options,
                                     gumbel_error *error) {
    gb_byte_buffer text = {0};
    cli_output output;
    gumbel_status status = gumbel_chat_render(tokenizer, NULL, 0, options, print_rendered, &text, error);
    if (status == GUMBEL_OK)
        status = cli_output_open(&output, NULL, error);
    if (status == GUMBEL_OK) {
        cli_output_text(&output, text.text, text.size);
        cli_output_end(&output);
        cli_output_close(&output);
    }
    gb_buffer_free(&text);
    return status;
}

static gumbel_status use_messages(const tokenize_arguments *arguments, const gumbel_tokenizer *tokenizer,
                                  const cli_messages *messages, cli_tokens *tokens, gumbel_error *error) {
    cli_template template = {0};
    gumbel_status status = cli_template_read(&arguments->template, tokenizer, &template, error);
    template.options.messages_json = messages->messages;
    template.options.tools = messages->tools;
    if (status == GUMBEL_OK)
        status = arguments->render
                     ? render_messages(tokenizer, &template.options, error)
                     : cli_encode_messages(tokenizer, NULL, 0, &template.options, tokens, error);
    cli_template_free(&template);
    return status;
}

static gumbel_status encode_conversation(const tokenize_arguments *arguments,
                                         const gumbel_tokenizer *tokenizer, const gb_byte_buffer *text,
                                         cli_tokens *tokens, gumbel_error *error) {
    cli_messages messages;
    gumbel_status status = cli_messages_parse(arguments->messages, text->text, text->size, &messages, error);
    if (status == GUMBEL_OK)
        status = use_messages(arguments, tokenizer, &messages, tokens, error);
    cli_messages_free(&messages);
    return status;
}

static gumbel_status encode_input(const tokenize_arguments *arguments, const gumbel_tokenizer *tokenizer,
                                  cli_tokens *tokens, gumbel_error *error) {
    gb_byte_buffer text = {0};
    gumbel_status status = GUMBEL_OK;
    const char *path = arguments->messages ? arguments->messages : arguments->file;
    bool is_stdin = !path && (!arguments->text || strcmp(arguments->text, "-") == 0);
    if (path || is_stdin)
        status = cli_read_file(path ? path : "-", &text, error);
    else
        cli_append_string(&text, arguments->text);
    gumbel_encode_options options = {.size = sizeof options,
                                     .parse_special = arguments->parse_special,
                                     .add_special = arguments->add_special && !arguments->raw};
    if (status == GUMBEL_OK)
        status = arguments->messages
                     ? encode_conversation(arguments, tokenizer, &text, tokens, error)
                     : cli_encode_text(tokenizer, text.text, text.size, &options, tokens, error);
    gb_buffer_free(&text);
    return status;
}

static gumbel_status open_tokenizer(const char *model, gumbel_program **program, gumbel_tokenizer **tokenizer,
                                    gumbel_error *error) {
    cli_checkpoint checkpoint;
    gumbel_status status = cli_checkpoint_find(model, &checkpoint, error);
    if (status == GUMBEL_OK && checkpoint.path) {
        status = gumbel_export_tokenizer(checkpoint.path, tokenizer, error);
        if (status != GUMBEL_OK)
            cli_checkpoint_explain(&checkpoint, error);
    } else if (status == GUMBEL_OK) {
        cli_clear_folder_of(model);
        status = gumbel_program_open(model, program, error);
        if (status == GUMBEL_OK)
            status = gumbel_tokenizer_create(*program, tokenizer, error);
    }
    cli_checkpoint_free(&checkpoint);
    return status;
}

static gumbel_status convert(const tokenize_arguments *arguments, gumbel_tokenizer *tokenizer,
                             gumbel_error *error) {
    if (arguments->decode.ids)
        return print_pieces(tokenizer, &arguments->decode, arguments->show, error);
    cli_tokens tokens = {0};
    gumbel_status status = encode_input(arguments, tokenizer, &tokens, error);
    if (arguments->render) {
        cli_tokens_free(&tokens);
        return status;
    }
    if (status == GUMBEL_OK && arguments->show)
        status = print_pieces(tokenizer, &tokens, true, error);
    else if (status == GUMBEL_OK)
        cli_print_ids(tokens.ids, tokens.count);
    cli_tokens_free(&tokens);
    return status;
}

static int tokenize(void *given) {
    const tokenize_arguments *arguments = given;
    int inputs = (arguments->text != NULL) + (arguments->file != NULL) + (arguments->messages != NULL) +
                 (arguments->decode.ids != NULL);
    if (inputs > 1)
        return cli_fail_usage("tokenize takes one of TEXT, --file, --messages and --decode");
    if (arguments->render && !arguments->messages)
        return cli_fail_usage("--render needs --messages FILE.json");
    if (inputs == 0 && isatty(STDIN_FILENO))
        return cli_fail_usage("tokenize needs TEXT, -f FILE, --messages FILE.json, or text from a pipe");
    gumbel_program *program = NULL;
    gumbel_tokenizer *tokenizer = NULL;
    gumbel_error error;
    gumbel_status status = open_tokenizer(arguments->model, &program, &tokenizer, &error);
    if (status == GUMBEL_OK)
        status = convert(arguments, tokenizer, &error);
    gumbel_tokenizer_destroy(tokenizer);
    gumbel_program_close(program);
    return status == GUMBEL_OK ? CLI_OK : cli_fail_with(&error);
}

const cli_command cli_command_tokenize = {
    .name = "tokenize",
    .summary = "turn text or a conversation into token ids",
    .synopsis = "MODEL [TEXT | -f FILE | --messages FILE.json | --decode IDS] [options]",
    .description =
        "Prints the token ids of a text as one line, separated by commas. Nothing is added to a text "
        "unless --add-special is given. A pipe is read when there is no other input.",
    .operands = (const cli_operand[]){{"MODEL", offsetof(tokenize_arguments, model), true,
                                       "A program, the directory of a checkpoint, a GGUF, which may be a "
                                       "vocabulary alone, or ORG/NAME[:QUANT][/FILE][@REVISION], a model "
                                       "that gumbel pull has downloaded."},
                                      {"TEXT", offsetof(tokenize_arguments, text), false, "The text."},
                                      {0}},
    .groups = (const cli_option_group[]){{.title = "Input", .options = input_table},
                                         {.title = "Format", .options = format_table},
                                         {.title = "Chat template",
                                          .options = cli_template_table,
                                          .offset = offsetof(tokenize_arguments, template)},
                                         {0}},
    .examples = (const cli_example[]){{"gumbel tokenize model.gumbel \"The cat sat.\" --show",
                                       "Each token on its line."},
                                      {"gumbel tokenize model.gumbel --messages chat.json",
                                       "What the model is given for a conversation."},
                                      {0}},
    .arguments_size = sizeof(tokenize_arguments),
    .run = tokenize,
};
