/* SPDX-License-Identifier: Apache-2.0
 *
 * What conversations take in an engine as it was opened, for --stats and the server's first lines.
 */
#ifndef GUMBEL_CLI_MODEL_CONVERSATIONS_H
#define GUMBEL_CLI_MODEL_CONVERSATIONS_H

#include "gumbel.h"

#include <stdio.h>

enum { CLI_CONVERSATION_TEXT = 96 };

/* "12.5 MB a conversation, 2560 have room beside the weights"; text has room for CLI_CONVERSATION_TEXT bytes
 * and is returned. */
const char *cli_describe_conversation(const gumbel_conversation_memory *memory, char *text);

/* One line for each length up to the engine's context. */
void cli_print_conversations(const gumbel_engine *engine, FILE *file);

#endif
