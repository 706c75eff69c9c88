/* SPDX-License-Identifier: Apache-2.0
 *
 * What a user can say to `gumbel chat` itself: lines that begin with a slash.
 */
#ifndef GUMBEL_CLI_CHAT_COMMANDS_H
#define GUMBEL_CLI_CHAT_COMMANDS_H

#include "cli/chat/conversation.h"
#include "cli/model/drafts.h"
#include "cli/model/reasoning.h"

typedef struct chat_options {
    cli_integer max_new_tokens;
} chat_options;

/* How messages are typed. */
typedef struct cli_typing_options {
    bool no_history;
} cli_typing_options;

extern const cli_option cli_typing_table[];

typedef struct chat_arguments {
    cli_model_options model;
    cli_sampling_options sampling;
    cli_format_options format;
    cli_template_options template;
    cli_reasoning_options reasoning;
    cli_typing_options typing;
    cli_stop_options stop;
    cli_grammar_options grammar;
    cli_draft_options draft;
    chat_options chat;
} chat_arguments;

typedef struct cli_chat {
    cli_conversation conversation;
    chat_arguments arguments; /* as the flags left them, then as /set changed them */
    char **kept;              /* texts that arguments points into */
    size_t kept_count;
    bool ended; /* /exit was given */
} cli_chat;

/* The flags of gumbel chat; /set changes those that are not fixed. Offsets are within chat_arguments. */
extern const cli_option_group cli_chat_groups[];

/* Carries out a line that begins with a slash. Errors: ARGUMENT for an unknown command or a bad value, and
 * those of what it does. */
gumbel_status cli_chat_command(cli_chat *chat, const char *line, gumbel_error *error);

/* Puts the arguments' settings to work in the conversation, but for the seed. */
gumbel_status cli_chat_apply_settings(cli_chat *chat, gumbel_error *error);

#endif
