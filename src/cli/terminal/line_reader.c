/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/terminal/line_reader.h"

#include "cli/base/report.h"
#include "cli/base/signals.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct cli_line_reader {
    cli_line_editor *editor; /* NULL: standard input is no terminal */
};

cli_line_reader *cli_line_reader_open(bool keeps_history) {
    cli_line_reader *reader = cli_allocate(1, sizeof *reader);
    reader->editor = cli_line_editor_open(keeps_history);
    return reader;
}

void cli_line_reader_close(cli_line_reader *reader) {
    cli_line_editor_close(reader->editor);
    free(reader);
}

bool cli_line_reader_is_terminal(const cli_line_reader *reader) {
    return reader->editor != NULL;
}

cli_line cli_read_line(cli_line_reader *reader, const char *prompt, gb_byte_buffer *line,
                       cli_pasted *pasted) {
    gb_buffer_clear(line);
    *pasted = CLI_TYPED;
    if (reader->editor)
        return cli_edit_line(reader->editor, prompt, line, pasted);
    char *bytes = NULL;
    size_t capacity = 0;
    ssize_t length = getline(&bytes, &capacity, stdin);
    if (length > 0)
        cli_append(line, bytes, bytes[length - 1] == '\n' ? (size_t)length - 1 : (size_t)length);
    free(bytes);
    if (length > 0)
        return CLI_LINE;
    if (cli_interrupted())
        return CLI_LINE_INTERRUPTED;
    if (!feof(stdin))
        exit(cli_fail("standard input: %s", strerror(errno)));
    return CLI_LINE_END;
}

void cli_line_reader_remember(cli_line_reader *reader, const char *text) {
    if (reader->editor)
        cli_line_editor_remember(reader->editor, text);
}
