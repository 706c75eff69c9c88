/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/model/chat_template.h"

#include "base/input_file.h"
#include "base/status.h"
#include "cli/base/files.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const cli_option cli_template_table[] = {
    {.names = "--think",
     .help = "Let the model think before it answers: enable_thinking is true.",
     .type = CLI_SET,
     .constant = GUMBEL_THINKING_ON,
     .offset = offsetof(cli_template_options, thinking)},
    {.names = "--no-think",
     .help = "Keep it from thinking. Without either flag the model's own default holds.",
     .type = CLI_SET,
     .constant = GUMBEL_THINKING_OFF,
     .offset = offsetof(cli_template_options, thinking)},
    {.names = "--chat-template",
     .argument = "NAME|TEXT",
     .help = "Which of the program's chat templates to use, such as tool_use, or a Jinja template itself.",
     .type = CLI_STRING,
     .offset = offsetof(cli_template_options, text)},
    {.names = "--chat-template-file",
     .argument = "FILE",
     .help = "A Jinja chat template in place of the program's.",
     .type = CLI_STRING,
     .offset = offsetof(cli_template_options, file)},
    {.names = "--chat-template-kwargs --chat-template-config --chat-template-args",
     .argument = "JSON",
     .help = "More variables for the chat template, as in '{\"enable_thinking\": false}'.",
     .type = CLI_STRING,
     .offset = offsetof(cli_template_options, kwargs)},
    {.names = "--tools",
     .argument = "FILE",
     .help = "Tools that the model may call, a JSON array as OpenAI's API has it. Their calls are part of a "
             "reply; gumbel chat asks for the results.",
     .type = CLI_STRING,
     .offset = offsetof(cli_template_options, tools)},
    {0},
};

bool cli_has_template(const cli_template_options *flags, const gumbel_program_info *info) {
    return flags->file || (flags->text && strchr(flags->text, '{')) || info->has_chat_template;
}

/* A regular file, so that nobody waits for a writer. */
static gumbel_status read_regular_file(const char *path, gb_byte_buffer *file, gumbel_error *error) {
    int descriptor;
    struct stat information;
    GB_TRY(gb_open_input(path, &descriptor, &information, error));
    close(descriptor);
    return cli_read_file(path, file, error);
}

static gumbel_status read_file(const char *path, const char *what, gb_byte_buffer *file,
                               gumbel_error *error) {
    gumbel_status status = read_regular_file(path, file, error);
    if (status != GUMBEL_OK || strlen(file->text) == file->size)
        return status;
    return gb_fail(error, GUMBEL_ERROR_FORMAT, "%s: %s no zero bytes", path, what);
}

static void write_nothing(void *user, const char *text, size_t length) {
    (void)user, (void)text, (void)length;
}

/* A template that writes nothing finds what is wrong with the tools alone; the file is named here. */
static gumbel_status read_tools(const char *path, const gumbel_tokenizer *tokenizer, gb_byte_buffer *file,
                                gumbel_error *error) {
    const gumbel_message message = {.size = sizeof message, .role = "user", .content = "0"};
    gumbel_chat_options options = {.size = sizeof options, .template_text = "{# #}"};
    gumbel_error found;
    gumbel_status status = read_file(path, "tools have", file, error);
    if (status != GUMBEL_OK)
        return status;
    options.tools = file->text;
    status = gumbel_chat_render(tokenizer, &message, 1, &options, write_nothing, NULL, &found);
    if (status == GUMBEL_OK)
        return status;
    return gb_fail(error, status, "%s: %s", path, found.message);
}

gumbel_status cli_template_read(const cli_template_options *flags, const gumbel_tokenizer *tokenizer,
                                cli_template *settled, gumbel_error *error) {
    cli_template_free(settled);
    settled->options = (gumbel_chat_options){
        .size = sizeof settled->options,
        .thinking = (gumbel_thinking)flags->thinking,
        .template_kwargs = flags->kwargs,
    };
    if (flags->text && flags->file) {
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT,
                       "there are both --chat-template and --chat-template-file");
    }
    if (flags->text && strchr(flags->text, '{'))
        settled->options.template_text = flags->text;
    else
        settled->options.template_name = flags->text;
    gumbel_status status = GUMBEL_OK;
    if (flags->file)
        status = read_file(flags->file, "a chat template has", &settled->file, error);
    if (flags->file)
        settled->options.template_text = settled->file.text;
    if (status == GUMBEL_OK && flags->tools)
        status = read_tools(flags->tools, tokenizer, &settled->tools, error);
    settled->options.tools = settled->tools.text;
    return status;
}

/* A template may refuse this conversation, which says nothing of others. */
gumbel_status cli_template_check(const cli_template_options *flags, const gumbel_tokenizer *tokenizer,
                                 cli_template *settled, gumbel_error *error) {
    gumbel_message message = {.size = sizeof message, .role = "user", .content = "0"};
    gumbel_status status = cli_template_read(flags, tokenizer, settled, error);
    if (status == GUMBEL_OK)
        status = gumbel_chat_render(tokenizer, &message, 1, &settled->options, write_nothing, NULL, error);
    return status == GUMBEL_ERROR_ARGUMENT && !flags->kwargs && !flags->text && !flags->tools ? GUMBEL_OK
                                                                                              : status;
}

void cli_template_free(cli_template *settled) {
    gb_buffer_free(&settled->file);
    gb_buffer_free(&settled->tools);
    *settled = (cli_template){0};
}
