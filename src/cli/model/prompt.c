/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/model/prompt.h"

const cli_option cli_format_table[] = {
    {.names = "--raw",
     .help = "The text as it is: no chat template, and nothing added around it.",
     .type = CLI_FLAG,
     .offset = offsetof(cli_format_options, raw)},
    {.names = "-sys --system --system-prompt",
     .argument = "TEXT",
     .help = "A system message before the first turn.",
     .type = CLI_STRING,
     .offset = offsetof(cli_format_options, system)},
    {.names = "--reasoning",
     .argument = "WHAT",
     .help = "What to print of replies: thoughts and answers (show, the default on a terminal, where "
             "thoughts are "
             "dimmed), answers (hide, the default elsewhere), or thoughts (only).",
     .type = CLI_CHOICE,
     .choices = "show hide only",
     .offset = offsetof(cli_format_options, reasoning)},
    {.names = "--wrap",
     .help = "Wrap lines at words on a terminal, which is the default; code and tables are left alone. To a "
             "pipe or a file nothing is wrapped.",
     .type = CLI_SET,
     .constant = false,
     .offset = offsetof(cli_format_options, no_wrap)},
    {.names = "--no-wrap",
     .help = "Leave lines as they come.",
     .type = CLI_SET,
     .constant = true,
     .offset = offsetof(cli_format_options, no_wrap)},
    {0},
};

gumbel_status cli_encode_text(const gumbel_tokenizer *tokenizer, const char *text, size_t length,
                              const gumbel_encode_options *options, cli_tokens *tokens, gumbel_error *error) {
    size_t count = 0;
    cli_tokens_reserve(tokens, tokens->count + length + 8); /* seldom more than one id per byte */
    for (;;) {
        size_t room = tokens->capacity - tokens->count;
        gumbel_status status =
            gumbel_encode(tokenizer, text, length, options, tokens->ids + tokens->count, room, &count, error);
        if (status == GUMBEL_OK)
            tokens->count += count;
        if (status != GUMBEL_ERROR_LIMIT || count <= room)
            return status;
        cli_tokens_reserve(tokens, tokens->count + count);
    }
}

gumbel_status cli_encode_messages(const gumbel_tokenizer *tokenizer, const gumbel_message *messages,
                                  size_t message_count, const gumbel_chat_options *options,
                                  cli_tokens *tokens, gumbel_error *error) {
    size_t count = 0;
    cli_tokens_reserve(tokens, tokens->count + 256);
    for (;;) {
        size_t room = tokens->capacity - tokens->count;
        gumbel_status status = gumbel_chat_encode(tokenizer, messages, message_count, options,
                                                  tokens->ids + tokens->count, room, &count, error);
        if (status == GUMBEL_OK)
            tokens->count += count;
        if (status != GUMBEL_ERROR_LIMIT || count <= room)
            return status;
        cli_tokens_reserve(tokens, tokens->count + count);
    }
}
