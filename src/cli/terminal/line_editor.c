/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/terminal/line_editor.h"

#include "cli/base/signals.h"
#include "cli/base/user_paths.h"
#include "cli/terminal/history_file.h"
#include "cli/terminal/keys.h"
#include "cli/terminal/terminal.h"

#include <histedit.h>
#include <langinfo.h>
#include <locale.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <utf8proc.h>
#include <wchar.h>

/* So much of a paste's beginning must still begin the line for that to count as pasted. */
enum { PASTED_BEGINNING = 4 };

struct cli_line_editor {
    EditLine *lines;
    History *history;
    gb_byte_buffer history_path; /* empty: no file */
    const char *prompt;
    cli_terminal_keys keys;
    bool begins_pasted; /* the line was empty when text was pasted into it */
};

static cli_line_editor *editor_of(EditLine *lines) {
    cli_line_editor *editor;
    el_get(lines, EL_CLIENTDATA, &editor);
    return editor;
}

/* ---- What libedit calls -------------------------------------------------------------------------------- */

static char *show_prompt(EditLine *lines) {
    return (char *)(uintptr_t)editor_of(lines)->prompt;
}

static int read_key(EditLine *lines, wchar_t *key) {
    cli_line_editor *editor = editor_of(lines);
    const LineInfoW *line = el_wline(lines);
    if (line->lastchar == line->buffer)
        editor->begins_pasted = false;
    return cli_next_key(&editor->keys, key);
}

/* Text as wide characters, without bytes that are none. Free with free(). */
static wchar_t *widen(const gb_byte_buffer *text) {
    wchar_t *wide = cli_allocate(text->size + 1, sizeof *wide);
    mbstate_t state = {0};
    size_t count = 0;
    for (size_t at = 0, size; at < text->size; at += size) {
        size = mbrtowc(&wide[count], text->text + at, text->size - at, &state);
        bool is_character = size > 0 && size <= text->size - at;
        if (!is_character) {
            memset(&state, 0, sizeof state);
            size = 1;
        }
        count += is_character;
    }
    wide[count] = L'\0';
    return wide;
}

static unsigned char insert_paste(EditLine *lines, int key) {
    (void)key;
    cli_line_editor *editor = editor_of(lines);
    const LineInfoW *line = el_wline(lines);
    if (line->lastchar == line->buffer)
        editor->begins_pasted = true;
    wchar_t *wide = widen(&editor->keys.paste);
    int refused = el_winsertstr(lines, wide);
    free(wide);
    return refused ? CC_NORM : CC_REFRESH;
}

/* The row of the cursor below that of the prompt, in a terminal that has wrapped the line anew. */
static unsigned cursor_row(const cli_line_editor *editor, unsigned columns) {
    const LineInfoW *line = el_wline(editor->lines);
    unsigned row = 0, column = (unsigned)strlen(editor->prompt);
    for (const wchar_t *c = line->buffer; c < line->cursor; c++) {
        unsigned taken = *c < L' ' ? 2 : (unsigned)utf8proc_charwidth((utf8proc_int32_t)*c); /* ^X, x */
        if (*c == L'\n' || column + taken > columns) {
            row++;
            column = 0;
        }
        column += *c == L'\n' ? 0 : taken;
    }
    return row;
}

static unsigned char redraw(EditLine *lines, int key) {
    (void)key;
    unsigned columns = cli_terminal_columns(), row = columns > 0 ? cursor_row(editor_of(lines), columns) : 0;
    if (row > 0)
        printf("\033[%uA", row);
    fputs("\r\033[J", stdout);
    el_resize(lines);
    el_set(lines, EL_REFRESH);
    return CC_NORM;
}

/* ---- Opening ------------------------------------------------------------------------------------------- */

static void add_to_history(void *user, const char *entry) {
    HistEvent event;
    history(((cli_line_editor *)user)->history, &event, H_ENTER, entry);
}

static void open_history(cli_line_editor *editor, bool keeps_history) {
    HistEvent event;
    history(editor->history, &event, H_SETSIZE, CLI_HISTORY_ENTRIES);
    el_set(editor->lines, EL_HIST, history, editor->history);
    if (keeps_history && cli_state_path("history", &editor->history_path))
        cli_history_read(editor->history_path.text, add_to_history, editor);
}

/* Keys that libedit is to know in whatever map the user's ~/.editrc chose: a paste is one of them, so that
 * nothing in it can act as a key. Those that send signals are keys as well, see cli_next_key. */
static void bind_keys(EditLine *lines) {
    el_wset(lines, EL_ADDFN, L"gumbel-paste", L"Inserts what was pasted", insert_paste);
    el_wset(lines, EL_ADDFN, L"gumbel-redraw", L"Draws the line again", redraw);
    static const char *const keys[][2] = {{"\\200", "gumbel-paste"}, {"\\201", "gumbel-redraw"}};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        el_set(lines, EL_BIND, keys[i][0], keys[i][1], NULL);
        el_set(lines, EL_BIND, "-a", keys[i][0], keys[i][1], NULL);
    }
    el_set(lines, EL_SETTY, "-d", "-isig", NULL);
}

static void set_up(cli_line_editor *editor, bool keeps_history) {
    EditLine *lines = editor->lines;
    el_set(lines, EL_CLIENTDATA, editor);
    el_set(lines, EL_PROMPT, show_prompt);
    el_set(lines, EL_EDITOR, "emacs");
    el_set(lines, EL_GETCFN, read_key);
    el_source(lines, NULL); /* the user's ~/.editrc */
    bind_keys(lines);
    open_history(editor, keeps_history);
    int edits = 0;
    if (el_get(lines, EL_EDITMODE, &edits) == 0 && edits)
        cli_terminal_take();
}

cli_line_editor *cli_line_editor_open(bool keeps_history) {
    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
        return NULL;
    setlocale(LC_CTYPE, "");
    if (strcmp(nl_langinfo(CODESET), "UTF-8") != 0)
        setlocale(LC_CTYPE, "C.UTF-8"); /* text is UTF-8 whatever the environment says */
    cli_line_editor *editor = cli_allocate(1, sizeof *editor);
    editor->keys.file = STDIN_FILENO;
    editor->lines = el_init("gumbel", stdin, stdout, stderr);
    editor->history = history_init();
    if (editor->lines && editor->history) {
        set_up(editor, keeps_history);
        return editor;
    }
    cli_line_editor_close(editor);
    return NULL;
}

void cli_line_editor_close(cli_line_editor *editor) {
    if (!editor)
        return;
    cli_terminal_release();
    if (editor->lines)
        el_end(editor->lines);
    if (editor->history)
        history_end(editor->history);
    cli_terminal_keys_free(&editor->keys);
    gb_buffer_free(&editor->history_path);
    free(editor);
}

/* ---- Lines --------------------------------------------------------------------------------------------- */

static cli_pasted pasted_of(const cli_line_editor *editor, const char *line, size_t length) {
    const gb_byte_buffer *paste = &editor->keys.paste;
    size_t beginning = paste->size < PASTED_BEGINNING ? paste->size : PASTED_BEGINNING;
    if (!editor->begins_pasted || length < beginning || memcmp(line, paste->text, beginning) != 0)
        return CLI_TYPED;
    bool is_whole = length == paste->size && memcmp(line, paste->text, length) == 0;
    return is_whole ? CLI_PASTED_WHOLE : CLI_PASTED;
}

cli_line cli_edit_line(cli_line_editor *editor, const char *prompt, gb_byte_buffer *line,
                       cli_pasted *pasted) {
    editor->prompt = prompt;
    editor->begins_pasted = false;
    cli_clear_interrupt();
    cli_terminal_changed();                 /* the prompt is drawn now */
    el_set(editor->lines, EL_PREP_TERM, 1); /* before the prompt: from there on keys are no signals */
    int length = 0;
    const char *edited = el_gets(editor->lines, &length);
    cli_terminal_hush();
    if (!edited || length <= 0) {
        fputc('\n', stdout);
        return cli_interrupted() ? CLI_LINE_INTERRUPTED : CLI_LINE_END;
    }
    size_t kept = edited[length - 1] == '\n' ? (size_t)length - 1 : (size_t)length;
    *pasted = pasted_of(editor, edited, kept);
    cli_append(line, edited, kept);
    return CLI_LINE;
}

void cli_line_editor_remember(cli_line_editor *editor, const char *text) {
    HistEvent last;
    if (history(editor->history, &last, H_FIRST) != -1 && strcmp(last.str, text) == 0)
        return;
    add_to_history(editor, text);
    if (editor->history_path.size > 0)
        cli_history_append(editor->history_path.text, text);
}
