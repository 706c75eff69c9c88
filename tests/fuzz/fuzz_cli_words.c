/* SPDX-License-Identifier: Apache-2.0
 *
 * Any words as a command line, one a line, of the command that the first byte chooses: its own flags, other
 * programs' flags, values, operands. Refused with a reason, or read.
 */
#include "base/memory.h"
#include "cli/command.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST_WORDS = 32 };

static int split(char *text, char **words) {
    int count = 0;
    for (char *word = text; word && count < MOST_WORDS;) {
        char *end = strchr(word, '\n');
        if (end)
            *end = '\0';
        words[count++] = word;
        word = end ? end + 1 : NULL;
    }
    return count;
}

static const cli_command *choose(uint8_t byte) {
    size_t count = 0;
    while (cli_commands[count])
        count++;
    return cli_commands[byte % count];
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 1)
        return 0;
    const cli_command *command = choose(data[0]);
    char *text = gb_copy_string((const char *)data + 1, size - 1), *words[MOST_WORDS];
    void *arguments = calloc(1, command->arguments_size);
    if (text && arguments) {
        gb_byte_buffer notes = {0};
        gumbel_error error = {.status = GUMBEL_OK};
        const int count = split(text, words);
        if (cli_parse(command, count, words, arguments, &notes, &error) == CLI_WRONG && !error.message[0])
            abort();
        cli_free_arguments(command, arguments);
        gb_buffer_free(&notes);
    }
    free(arguments);
    gb_free(text);
    return 0;
}
