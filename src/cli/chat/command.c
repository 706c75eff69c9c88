/* SPDX-License-Identifier: Apache-2.0
 *
 * gumbel chat: a conversation in turns, on a terminal or through a pipe.
 */
#include "cli/command.h"
#include "base/status.h"
#include "cli/base/report.h"
#include "cli/base/signals.h"
#include "cli/chat/commands.h"
#include "cli/chat/message.h"

#include <stdlib.h>
#include <string.h>

static void report_reply(const cli_chat *chat) {
    const cli_conversation *conversation = &chat->conversation;
    if (conversation->reply.finish == GUMBEL_FINISH_CONTEXT)
        cli_note("the context of %u positions is full; /reset begins a new conversation",
                 conversation->model->max_context);
}

static void add_text(void *user, const char *text, size_t length) {
    cli_append(user, text, length);
}

static gumbel_status carry_out(cli_chat *chat, const gb_byte_buffer *line, gumbel_error *error) {
    if (strlen(line->text) == line->size)
        return cli_chat_command(chat, line->text, error);
    return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "a command has no zero bytes");
}

/* Carries out what the user says. Failures are reported; the conversation goes on. */
static bool take_message(cli_chat *chat, const cli_chat_message *message) {
    gumbel_error error;
    gumbel_status status;
    const gb_byte_buffer *text = &message->text;
    cli_clear_interrupt();
    gumbel_reply_part call;
    if (message->is_command)
        status = carry_out(chat, text, &error);
    else if (cli_open_call(&chat->conversation, &call))
        status = cli_answer_call(&chat->conversation, text->text, text->size, &error);
    else
        status = cli_converse(&chat->conversation, text->text, text->size, &error);
    if (status != GUMBEL_OK)
        cli_note("%s", error.message);
    else if (!message->is_command || strncmp(text->text, "/regen", 6) == 0)
        report_reply(chat);
    return status == GUMBEL_OK;
}

/* What is asked for: a message, or the result of a call. */
static cli_line read_next(const cli_chat *chat, cli_line_reader *reader, bool *is_result,
                          cli_chat_message *message) {
    gumbel_reply_part call;
    *is_result = cli_open_call(&chat->conversation, &call);
    if (!*is_result)
        return cli_read_message(reader, "> ", message);
    gb_byte_buffer prompt = {0};
    gumbel_escape(GUMBEL_ESCAPE_LINE, call.name, strlen(call.name), add_text, &prompt);
    cli_append_string(&prompt, " gives> ");
    cli_line line = cli_read_message(reader, prompt.text, message);
    gb_buffer_free(&prompt);
    return line;
}

/* Takes messages until /exit or the end. In a pipe one that fails makes the exit status 1, and Ctrl-C ends
 * the program: nobody is there to go on. */
static int take_messages(cli_chat *chat, cli_line_reader *reader) {
    bool is_terminal = cli_line_reader_is_terminal(reader), was_interrupted = false;
    int status = CLI_OK;
    cli_chat_message message = {0};
    const gb_byte_buffer *text = &message.text;
    while (!chat->ended) {
        bool is_result;
        cli_line line = read_next(chat, reader, &is_result, &message);
        if (line == CLI_LINE_END || (line == CLI_LINE_INTERRUPTED && was_interrupted))
            break;
        was_interrupted = line == CLI_LINE_INTERRUPTED;
        if (was_interrupted && is_terminal)
            cli_note("Ctrl-C again, Ctrl-D or /exit leaves");
        else if (!was_interrupted && (is_result || strspn(text->text, " \t\n") < text->size) &&
                 !take_message(chat, &message) && !is_terminal)
            status = CLI_FAILED;
        if (!is_terminal && cli_interrupted()) {
            status = CLI_INTERRUPTED;
            break;
        }
    }
    gb_buffer_free(&message.text);
    return status;
}

static gumbel_status check_format(const cli_chat *chat, gumbel_error *error) {
    const cli_model *model = chat->conversation.model;
    const cli_format_options *format = &chat->arguments.format;
    if (!model->tokenizer) {
        return gb_fail(error, GUMBEL_ERROR_UNSUPPORTED,
                       "the program has no tokenizer, so it cannot chat; gumbel run --tokens can run it");
    }
    if (cli_has_template(&chat->arguments.template, &model->info) || format->raw)
        return GUMBEL_OK;
    return gb_fail(
        error, GUMBEL_ERROR_UNSUPPORTED,
        "the program has no chat template; give one with --chat-template-file FILE, or continue plain "
        "text with --raw");
}

static gumbel_status prepare(cli_chat *chat, gumbel_error *error) {
    cli_conversation *conversation = &chat->conversation;
    gumbel_status status = check_format(chat, error);
    if (status == GUMBEL_OK)
        status = cli_settle_seed(&chat->arguments.sampling, &conversation->sampling, error);
    if (status == GUMBEL_OK)
        status = cli_output_open(&conversation->output, conversation->model->tokenizer, error);
    if (status == GUMBEL_OK)
        status = cli_chat_apply_settings(chat, error);
    if (status == GUMBEL_OK)
        cli_generator_set_seed(&conversation->generator, conversation->sampling.seed);
    return status;
}

static void greet(const cli_model *model) {
    cli_print_escaped(stderr, model->info.name[0] ? model->info.name : model->info.architecture);
    fprintf(stderr, ", %u positions, %s. /help lists the commands.\n", model->max_context,
            gumbel_engine_description(model->engine));
}

static void free_chat(cli_chat *chat) {
    cli_conversation_free(&chat->conversation);
    for (size_t i = 0; i < chat->kept_count; i++)
        free(chat->kept[i]);
    free(chat->kept);
}

static int hold(cli_chat *chat, cli_line_reader *reader) {
    gumbel_error error;
    if (prepare(chat, &error) != GUMBEL_OK)
        return cli_fail_with(&error);
    if (cli_line_reader_is_terminal(reader))
        greet(chat->conversation.model);
    cli_report_seed(&chat->conversation.sampling);
    cli_catch_interrupt();
    return take_messages(chat, reader);
}

static int open_and_hold(const chat_arguments *arguments, cli_line_reader *reader) {
    cli_model model;
    gumbel_error error;
    cli_model_options options = arguments->model;
    cli_use_drafts(&arguments->draft, &options);
    if (cli_model_open(&options, true, &model, &error) != GUMBEL_OK)
        return cli_fail_with(&error);
    cli_chat chat = {.arguments = *arguments};
    chat.conversation.model = chat.conversation.generator.model = &model;
    int result = hold(&chat, reader);
    free_chat(&chat);
    cli_model_close(&model);
    return result;
}

static int chat(void *given) {
    const chat_arguments *arguments = given;
    /* First, so that what is pasted while the model is loaded is known as such. */
    cli_line_reader *reader = cli_line_reader_open(!arguments->typing.no_history);
    int result = open_and_hold(arguments, reader);
    cli_line_reader_close(reader);
    return result;
}

const cli_command cli_command_chat = {
    .name = "chat",
    .summary = "talk with a model",
    .synopsis = "PROGRAM [options]",
    .description =
        "A conversation: each line is a message, each reply is printed as it comes. The session is "
        "kept, so that a turn runs only what is new. On a terminal lines can be edited and there is "
        "a history, what is pasted is one message, and replies are wrapped at words; from a pipe each "
        "line is a turn, and only the replies are printed.\n"
        "Where the model calls a tool of --tools, the next message is the call's result.\n"
        "Lines that begin with a slash are commands: /reset, /regen, /seed N, /set NAME VALUE, /system TEXT, "
        "/tools FILE, "
        "/stats, /save FILE, /load FILE, /help, /exit. /set takes the names of the options below "
        "without their dashes, such as /set temperature 0.7.\n"
        "On a terminal a text between \"\"\" and \"\"\" may have many lines; anywhere a backslash at a "
        "line's "
        "end continues the message on the next.\n"
        "Ctrl-C ends a reply where it is; at the prompt it clears the line.",
    .operands =
        (const cli_operand[]){
            {"PROGRAM", offsetof(chat_arguments, model.source.path), true, CLI_PROGRAM_HELP}, {0}},
    .groups = cli_chat_groups,
    .examples = (const cli_example[]){{"gumbel chat model.gumbel --system \"Answer in one sentence.\"",
                                       "Talks with a model that was told how to answer."},
                                      {0}},
    .arguments_size = sizeof(chat_arguments),
    .run = chat,
};
