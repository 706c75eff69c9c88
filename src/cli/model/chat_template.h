/* SPDX-License-Identifier: Apache-2.0
 *
 * How conversations are rendered: the flags that `run`, `chat` and `tokenize` share.
 */
#ifndef GUMBEL_CLI_MODEL_CHAT_TEMPLATE_H
#define GUMBEL_CLI_MODEL_CHAT_TEMPLATE_H

#include "cli/base/storage.h"
#include "cli/options/options.h"
#include "gumbel.h"

typedef struct cli_template_options {
    const char *text; /* a name or a template */
    const char *file;
    const char *kwargs;
    const char *tools; /* a file */
    int thinking;      /* gumbel_thinking */
} cli_template_options;

extern const cli_option cli_template_table[];

/* Starts zeroed. */
typedef struct cli_template {
    gumbel_chat_options options; /* points into the rest and into the flags' texts */
    gb_byte_buffer file, tools;
} cli_template;

/* Puts the flags to work; reads --chat-template-file and --tools, and names the file where the tools are not
 * such. The template is not looked into. Errors: ARGUMENT, IO, FORMAT. */
gumbel_status cli_template_read(const cli_template_options *flags, const gumbel_tokenizer *tokenizer,
                                cli_template *settled, gumbel_error *error);

/* The same, and finds what is wrong with template and variables before a message is rendered with them. */
gumbel_status cli_template_check(const cli_template_options *flags, const gumbel_tokenizer *tokenizer,
                                 cli_template *settled, gumbel_error *error);

void cli_template_free(cli_template *settled);

/* Whether messages can be rendered: by the program's templates, or one that was given. */
bool cli_has_template(const cli_template_options *flags, const gumbel_program_info *info);

#endif
