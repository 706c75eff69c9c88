/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/model/conversations.h"

#include "cli/base/units.h"

#include <inttypes.h>

const char *cli_describe_conversation(const gumbel_conversation_memory *memory, char *text) {
    char bytes[CLI_BYTES_TEXT];
    const size_t capacity = CLI_CONVERSATION_TEXT;
    cli_describe_bytes(memory->bytes, bytes);
    if (memory->sessions == UINT64_MAX)
        snprintf(text, capacity, "%s a conversation", bytes);
    else
        snprintf(text, capacity, "%s a conversation, %" PRIu64 " have room beside the weights", bytes,
                 memory->sessions);
    return text;
}

void cli_print_conversations(const gumbel_engine *engine, FILE *file) {
    gumbel_conversation_memory memory = {.size = sizeof memory};
    char label[32], text[CLI_CONVERSATION_TEXT];
    for (size_t i = 0; gumbel_engine_conversation_memory(engine, i, &memory); i++) {
        snprintf(label, sizeof label, "at %u tokens", memory.tokens);
        fprintf(file, "%-16s %s\n", label, cli_describe_conversation(&memory, text));
    }
}
