/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/chat/commands.h"

#include "base/status.h"
#include "cli/base/report.h"
#include "cli/base/user_paths.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef gumbel_status (*command_function)(cli_chat *chat, const char *argument, gumbel_error *error);

typedef struct chat_command {
    const char *names;    /* "/exit /quit": separated by blanks; help shows the first */
    const char *argument; /* what help calls it; NULL: takes none */
    const char *help;
    command_function function;
} chat_command;

static const cli_option generation_table[] = {
    {.names = "-n --max-new-tokens --predict --n-predict --max-tokens",
     .argument = "N",
     .help =
         "End each reply after N tokens; -1, the default: only at a stop token or the end of the context.",
     .type = CLI_INTEGER,
     .range = {.low = 1, .high = INT32_MAX, .has_also = true, .also_value = -1},
     .offset = offsetof(chat_options, max_new_tokens)},
    {0},
};

const cli_option cli_typing_table[] = {
    {.names = "--no-history",
     .help = "Neither read nor write the history of what was typed, which is kept in "
             "$XDG_STATE_HOME/gumbel/history (~/.local/state/gumbel/history).",
     .type = CLI_FLAG,
     .offset = offsetof(cli_typing_options, no_history)},
    {0},
};

const cli_option_group cli_chat_groups[] = {
    {.title = "Format", .options = cli_format_table, .offset = offsetof(chat_arguments, format)},
    {.title = "Chat template", .options = cli_template_table, .offset = offsetof(chat_arguments, template)},
    {.title = "Reasoning", .options = cli_reasoning_table, .offset = offsetof(chat_arguments, reasoning)},
    {.title = "Sampling", .options = cli_sampling_table, .offset = offsetof(chat_arguments, sampling)},
    {.title = "Stop strings", .options = cli_stop_table, .offset = offsetof(chat_arguments, stop)},
    {.title = "Structured answers",
     .options = cli_grammar_table,
     .offset = offsetof(chat_arguments, grammar)},
    {.title = "Replies", .options = generation_table, .offset = offsetof(chat_arguments, chat)},
    {.title = "Drafts", .options = cli_draft_table, .offset = offsetof(chat_arguments, draft), .fixed = true},
    {.title = "Typing",
     .options = cli_typing_table,
     .offset = offsetof(chat_arguments, typing),
     .fixed = true},
    {.title = "Program",
     .options = cli_program_table,
     .offset = offsetof(chat_arguments, model.source),
     .fixed = true},
    {.title = "Machine",
     .options = cli_model_table,
     .offset = offsetof(chat_arguments, model),
     .fixed = true},
    {0},
};

static gumbel_status apply_template(cli_chat *chat, gumbel_error *error) {
    const cli_template_options *flags = &chat->arguments.template;
    cli_template *settled = &chat->conversation.template;
    if (chat->arguments.format.raw)
        return cli_template_read(flags, chat->conversation.model->tokenizer, settled, error);
    return cli_template_check(flags, chat->conversation.model->tokenizer, settled, error);
}

gumbel_status cli_chat_apply_settings(cli_chat *chat, gumbel_error *error) {
    cli_conversation *conversation = &chat->conversation;
    cli_sampling settled;
    gumbel_status status =
        cli_settle_sampling(&chat->arguments.sampling, conversation->model, &settled, error);
    if (status == GUMBEL_OK)
        status = apply_template(chat, error);
    if (status == GUMBEL_OK)
        status = cli_read_grammar(&chat->arguments.grammar,
                                  chat->arguments.format.raw ? NULL : chat->arguments.template.tools,
                                  conversation->model, &conversation->grammar, error);
    if (status != GUMBEL_OK)
        return status;
    settled.seed = conversation->sampling.seed;
    settled.seed_origin = conversation->sampling.seed_origin;
    conversation->sampling = settled;
    conversation->format = chat->arguments.format;
    conversation->output.wraps = !chat->arguments.format.no_wrap;
    int64_t limit = chat->arguments.chat.max_new_tokens.value;
    conversation->max_new_tokens = limit > 0 ? (uint32_t)limit : 0;
    cli_read_stops(&chat->arguments.stop, &conversation->stops);
    conversation->drafting = cli_drafting(&chat->arguments.draft);
    conversation->reasons = chat->arguments.template.thinking == GUMBEL_THINKING_ON;
    conversation->has_reasoning_budget =
        cli_has_reasoning_budget(&chat->arguments.reasoning, &conversation->reasoning_budget);
    return cli_conversation_apply(conversation, error);
}

static gumbel_status use_seed(cli_chat *chat, gumbel_error *error) {
    cli_conversation *conversation = &chat->conversation;
    GB_TRY(cli_settle_seed(&chat->arguments.sampling, &conversation->sampling, error));
    cli_generator_set_seed(&conversation->generator, conversation->sampling.seed);
    cli_report_seed(&conversation->sampling);
    return GUMBEL_OK;
}

/* A copy that lives as long as the chat. */
static const char *keep(cli_chat *chat, const char *text) {
    char **larger = cli_allocate(chat->kept_count + 1, sizeof *larger);
    if (chat->kept_count > 0)
        memcpy(larger, chat->kept, chat->kept_count * sizeof *larger);
    free(chat->kept);
    chat->kept = larger;
    return chat->kept[chat->kept_count++] = cli_copy_text(text, strlen(text));
}

static gumbel_status change_setting(cli_chat *chat, const char *name, const char *value,
                                    gumbel_error *error) {
    chat_arguments before = chat->arguments;
    bool was_greedy = chat->conversation.sampling.values.temperature == 0;
    gumbel_status status = GUMBEL_ERROR_ARGUMENT;
    if (cli_set_option(cli_chat_groups, &chat->arguments, name, value, error))
        status = cli_chat_apply_settings(chat, error);
    if (status != GUMBEL_OK) {
        gumbel_error ignored; /* what was in force before is good */
        chat->arguments = before;
        cli_chat_apply_settings(chat, &ignored);
        return status;
    }
    if (strcmp(name, "seed") == 0)
        return use_seed(chat, error);
    if (was_greedy)
        cli_report_seed(&chat->conversation.sampling);
    return GUMBEL_OK;
}

static gumbel_status set(cli_chat *chat, const char *argument, gumbel_error *error) {
    char name[48];
    size_t length = strcspn(argument, " ");
    snprintf(name, sizeof name, "%.*s", (int)length, argument);
    const char *value = argument + length + strspn(argument + length, " ");
    return change_setting(chat, name, *value ? keep(chat, value) : NULL, error);
}

static gumbel_status seed(cli_chat *chat, const char *argument, gumbel_error *error) {
    return change_setting(chat, "seed", argument, error);
}

static gumbel_status system_message(cli_chat *chat, const char *argument, gumbel_error *error) {
    return change_setting(chat, "system", keep(chat, argument), error);
}

static gumbel_status tools(cli_chat *chat, const char *argument, gumbel_error *error) {
    if (strcmp(argument, "none") != 0)
        return change_setting(chat, "tools", keep(chat, argument), error);
    chat->arguments.template.tools = NULL;
    return cli_chat_apply_settings(chat, error);
}

static gumbel_status reset(cli_chat *chat, const char *argument, gumbel_error *error) {
    (void)argument, (void)error;
    cli_conversation_reset(&chat->conversation);
    return GUMBEL_OK;
}

static gumbel_status regenerate(cli_chat *chat, const char *argument, gumbel_error *error) {
    (void)argument;
    return cli_regenerate(&chat->conversation, error);
}

static gumbel_status stats(cli_chat *chat, const char *argument, gumbel_error *error) {
    (void)argument, (void)error;
    const cli_conversation *conversation = &chat->conversation;
    cli_print_stats(conversation->model, &conversation->sampling, &conversation->reply, stderr);
    if (conversation->sampling.values.temperature > 0)
        fprintf(stderr, "next seed        %" PRIu64 "\n", cli_generator_seed(&conversation->generator));
    return GUMBEL_OK;
}

typedef gumbel_status (*file_function)(cli_conversation *conversation, const char *path, gumbel_error *error);

/* Does something with the file of a path that may begin with ~. */
static gumbel_status with_file(cli_chat *chat, const char *argument, file_function function,
                               gumbel_error *error) {
    gb_byte_buffer path = {0};
    cli_add_user_path(&path, argument);
    gumbel_status status = function(&chat->conversation, path.text, error);
    gb_buffer_free(&path);
    return status;
}

static gumbel_status save(cli_chat *chat, const char *argument, gumbel_error *error) {
    return with_file(chat, argument, cli_conversation_save, error);
}

static gumbel_status load(cli_chat *chat, const char *argument, gumbel_error *error) {
    return with_file(chat, argument, cli_conversation_load, error);
}

static gumbel_status leave(cli_chat *chat, const char *argument, gumbel_error *error) {
    (void)argument, (void)error;
    chat->ended = true;
    return GUMBEL_OK;
}

static gumbel_status help(cli_chat *chat, const char *argument, gumbel_error *error);

static const chat_command commands[] = {
    {"/reset /clear", NULL, "begin a new conversation", reset},
    {"/regen", NULL, "another reply to the last message", regenerate},
    {"/seed", "N", "draw the next tokens with seed N, N + 1, ...; -1 draws a seed", seed},
    {"/system", "TEXT", "the system message, from the next message on", system_message},
    {"/tools", "FILE", "the tools that the model may call; none: no tools", tools},
    {"/set", "NAME VALUE", "change a setting: temperature, top-k, stop, think, no-think, ...", set},
    {"/stats", NULL, "settings, speed and memory of the last reply", stats},
    {"/save", "FILE", "write the conversation to a file", save},
    {"/load", "FILE", "go on with a conversation from a file", load},
    {"/help /?", NULL, "this list", help},
    {"/exit /quit /bye", NULL, "leave (Ctrl-D does, too)", leave},
};

static gumbel_status help(cli_chat *chat, const char *argument, gumbel_error *error) {
    (void)chat, (void)argument, (void)error;
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        int length = (int)strcspn(commands[i].names, " ");
        const char *operand = commands[i].argument ? commands[i].argument : "";
        fprintf(stderr, "  %-8.*s %-12s %s\n", length, commands[i].names, operand, commands[i].help);
    }
    fprintf(stderr, "A text between \"\"\" and \"\"\" may have many lines; so may one that is pasted.\n"
                    "A backslash at a line's end continues the message on the next line.\n"
                    "A line that is pasted or begins with a blank is never a command.\n"
                    "Ctrl-C ends a reply.\n");
    return GUMBEL_OK;
}

static const chat_command *find_command(const char *name) {
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (cli_is_choice(name, commands[i].names))
            return &commands[i];
    return NULL;
}

static gumbel_status refuse_unknown(const char *name, gumbel_error *error) {
    char names[256] = "", found[32];
    size_t used = 0;
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        used += (size_t)snprintf(names + used, sizeof names - used, "%s ", commands[i].names);
    if (strlen(name) > 2 && cli_suggest(name, names, found, sizeof found))
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "there is no command %s; did you mean %s?", name, found);
    return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "there is no command %s; /help lists them", name);
}

gumbel_status cli_chat_command(cli_chat *chat, const char *line, gumbel_error *error) {
    char name[32];
    size_t length = strcspn(line, " ");
    snprintf(name, sizeof name, "%.*s", (int)length, line);
    const char *argument = line + length + strspn(line + length, " ");
    const chat_command *command = find_command(name);
    if (!command)
        return refuse_unknown(name, error);
    if (command->argument && *argument == '\0')
        cli_refuse(error, "%s needs %s", name, command->argument);
    else if (!command->argument && *argument != '\0')
        cli_refuse(error, "%s takes nothing after it", name);
    else
        return command->function(chat, argument, error);
    return error->status;
}
