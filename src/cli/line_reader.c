/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/line_reader.h"

#include "cli/signals.h"

#include <errno.h>
#include <histedit.h>
#include <langinfo.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

enum { HISTORY_LINES = 1000 };

struct cli_line_reader {
    EditLine *editor; /* NULL: standard input is no terminal */
    History *history;
    const char *prompt;
    mbstate_t partial; /* of a character whose first bytes were read */
};

static char *show_prompt(EditLine *editor) {
    cli_line_reader *reader;
    el_get(editor, EL_CLIENTDATA, &reader);
    return (char *)(uintptr_t)reader->prompt;
}

/* libedit's own reader tries again after a signal; this one gives up after Ctrl-C. */
static int read_character(EditLine *editor, wchar_t *character) {
    cli_line_reader *reader;
    el_get(editor, EL_CLIENTDATA, &reader);
    for (;;) {
        char byte;
        ssize_t count = read(STDIN_FILENO, &byte, 1);
        if (count < 0 && errno == EINTR && !cli_interrupted())
            continue;
        if (count <= 0)
            return (int)count;
        size_t length = mbrtowc(character, &byte, 1, &reader->partial);
        if (length == (size_t)-2)
            continue;
        if (length == (size_t)-1) { /* not a character of this locale: left out */
            memset(&reader->partial, 0, sizeof reader->partial);
            continue;
        }
        return 1;
    }
}

static void open_editor(cli_line_reader *reader) {
    setlocale(LC_CTYPE, "");
    if (strcmp(nl_langinfo(CODESET), "UTF-8") != 0)
        setlocale(LC_CTYPE, "C.UTF-8"); /* text is UTF-8 whatever the environment says */
    reader->editor = el_init("gumbel", stdin, stdout, stderr);
    reader->history = history_init();
    if (!reader->editor || !reader->history)
        return;
    HistEvent event;
    history(reader->history, &event, H_SETSIZE, HISTORY_LINES);
    el_set(reader->editor, EL_CLIENTDATA, reader);
    el_set(reader->editor, EL_PROMPT, show_prompt);
    el_set(reader->editor, EL_EDITOR, "emacs");
    el_set(reader->editor, EL_HIST, history, reader->history);
    el_set(reader->editor, EL_GETCFN, read_character);
    el_source(reader->editor, NULL); /* the user's ~/.editrc */
}

cli_line_reader *cli_line_reader_open(void) {
    cli_line_reader *reader = cli_allocate(1, sizeof *reader);
    if (isatty(STDIN_FILENO) && isatty(STDOUT_FILENO))
        open_editor(reader);
    return reader;
}

void cli_line_reader_close(cli_line_reader *reader) {
    if (reader->editor)
        el_end(reader->editor);
    if (reader->history)
        history_end(reader->history);
    free(reader);
}

bool cli_line_reader_is_terminal(const cli_line_reader *reader) {
    return reader->editor != NULL;
}

static cli_line edit_line(cli_line_reader *reader, const char *prompt, cli_text *line) {
    reader->prompt = prompt;
    cli_clear_interrupt();
    int length = 0;
    const char *edited = el_gets(reader->editor, &length);
    if (!edited || length <= 0) {
        fputc('\n', stdout);
        return cli_interrupted() ? CLI_LINE_INTERRUPTED : CLI_LINE_END;
    }
    bool is_blank = strspn(edited, " \t\n") == (size_t)length;
    HistEvent event;
    if (!is_blank && reader->history)
        history(reader->history, &event, H_ENTER, edited);
    cli_text_add(line, edited, edited[length - 1] == '\n' ? (size_t)length - 1 : (size_t)length);
    return CLI_LINE;
}

cli_line cli_read_line(cli_line_reader *reader, const char *prompt, cli_text *line) {
    cli_text_clear(line);
    if (reader->editor)
        return edit_line(reader, prompt, line);
    char *bytes = NULL;
    size_t capacity = 0;
    ssize_t length = getline(&bytes, &capacity, stdin);
    if (length > 0)
        cli_text_add(line, bytes, bytes[length - 1] == '\n' ? (size_t)length - 1 : (size_t)length);
    free(bytes);
    if (length > 0)
        return CLI_LINE;
    return cli_interrupted() ? CLI_LINE_INTERRUPTED : CLI_LINE_END;
}
