/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/terminal/word_wrap.h"

#include <string.h>
#include <utf8proc.h>

enum { TAB = 8, CODE_INDENT = 4 };

/* ---- Characters ---------------------------------------------------------------------------------------- */

static unsigned columns_of(int32_t c) {
    int columns = utf8proc_charwidth(c);
    return columns > 0 ? (unsigned)columns : 0;
}

/* A blank at which a line may end: not one that is there to prevent that. */
static bool is_blank(int32_t c) {
    bool joins = c == 0xA0 || c == 0x2007 || c == 0x202F;
    return c == '\t' || (utf8proc_category(c) == UTF8PROC_CATEGORY_ZS && !joins);
}

static bool is_opening(int32_t c) {
    utf8proc_category_t category = utf8proc_category(c);
    return category == UTF8PROC_CATEGORY_PS || category == UTF8PROC_CATEGORY_PI;
}

/* What must not begin a line: closing brackets, full stops, and the marks that lengthen a sound. */
static bool is_closing(int32_t c) {
    switch (utf8proc_category(c)) {
    case UTF8PROC_CATEGORY_PE:
    case UTF8PROC_CATEGORY_PF:
    case UTF8PROC_CATEGORY_PO:
    case UTF8PROC_CATEGORY_LM:
        return true;
    default:
        return false;
    }
}

/* Whether a line may end between two characters without a blank: beside a wide one. */
static bool can_break(cli_word_wrap *wrap, int32_t next) {
    int32_t last = wrap->last;
    bool is_cluster_end = utf8proc_grapheme_break_stateful(last, next, &wrap->last_break);
    bool is_wide = columns_of(last) == 2 || columns_of(next) == 2;
    return is_cluster_end && is_wide && columns_of(next) > 0 && !is_opening(last) && !is_closing(next);
}

/* ---- Writing ------------------------------------------------------------------------------------------- */

/* The terminal goes on to its next row by itself, with a line that is too long or that it has made narrower.
 */
static void settle_column(cli_word_wrap *wrap) {
    if (wrap->columns > 0 && wrap->column > wrap->columns)
        wrap->column = (wrap->column - 1) % wrap->columns + 1;
}

static void write_through(cli_word_wrap *wrap, const char *text, size_t length, unsigned columns) {
    if (length > 0)
        wrap->write(wrap->user, text, length);
    wrap->column += columns;
    settle_column(wrap);
}

static void drop_blanks(cli_word_wrap *wrap) {
    gb_buffer_clear(&wrap->blanks);
    wrap->blank_columns = 0;
}

static void write_blanks(cli_word_wrap *wrap) {
    write_through(wrap, wrap->blanks.text, wrap->blanks.size, wrap->blank_columns);
    drop_blanks(wrap);
}

static void begin_line(cli_word_wrap *wrap) {
    wrap->write(wrap->user, "\n", 1);
    wrap->column = wrap->indent = 0;
    drop_blanks(wrap);
}

/* ---- Kinds of lines ------------------------------------------------------------------------------------ */

/* "-", "*", "+", "1." or "1)" */
static bool is_list_marker(const char *word) {
    size_t digits = strspn(word, "0123456789");
    if (digits > 0)
        return (word[digits] == '.' || word[digits] == ')') && word[digits + 1] == '\0';
    return strlen(word) == 1 && strchr("-*+", word[0]);
}

/* Three marks or more with nothing but a language after them. */
static bool is_fence(const char *word) {
    size_t marks = strspn(word, word[0] == '~' ? "~" : "`");
    return marks >= 3 && !strchr(word + marks, word[0]);
}

/* Judges a line by its indent and its first word. */
static void settle_line(cli_word_wrap *wrap) {
    const char *word = wrap->word.text;
    bool is_code = wrap->fence || is_fence(word) || (wrap->indent >= CODE_INDENT && !is_list_marker(word));
    wrap->line = is_code || word[0] == '|' ? CLI_WRAP_VERBATIM : CLI_WRAP_PROSE;
    if (is_fence(word) && !wrap->fence)
        wrap->fence = word[0];
    else if (is_fence(word) && wrap->fence == word[0])
        wrap->fence = 0;
}

/* ---- Words --------------------------------------------------------------------------------------------- */

/* Whether blanks and a word of so many columns have room in the present line. */
static bool has_room(const cli_word_wrap *wrap, unsigned columns) {
    return wrap->columns == 0 || wrap->column + wrap->blank_columns + columns <= wrap->columns;
}

/* Writes the held word where it belongs. */
static void place_word(cli_word_wrap *wrap) {
    if (wrap->line == CLI_WRAP_UNKNOWN)
        settle_line(wrap);
    bool can_move = wrap->line == CLI_WRAP_PROSE && wrap->column > wrap->indent && !wrap->is_long;
    if (can_move && !has_room(wrap, wrap->word_columns))
        begin_line(wrap);
    write_blanks(wrap);
    write_through(wrap, wrap->word.text, wrap->word.size, wrap->word_columns);
    gb_buffer_clear(&wrap->word);
    wrap->word_columns = 0;
}

static void end_word(cli_word_wrap *wrap) {
    if (wrap->word.size > 0)
        place_word(wrap);
    wrap->is_long = false;
}

static void put_newline(cli_word_wrap *wrap) {
    end_word(wrap);
    if (has_room(wrap, 0))
        write_blanks(wrap);
    begin_line(wrap);
    wrap->line = CLI_WRAP_UNKNOWN;
}

static void put_blank(cli_word_wrap *wrap, int32_t c, const char *text, size_t size) {
    end_word(wrap);
    unsigned at = wrap->column + wrap->blank_columns;
    cli_append(&wrap->blanks, text, size);
    wrap->blank_columns += c == '\t' ? TAB - at % TAB : columns_of(c);
    if (wrap->line == CLI_WRAP_UNKNOWN)
        wrap->indent = wrap->blank_columns;
}

/* Whether what is held is to be written before it is complete: it has no room in any line, or needs none. */
static bool flows(const cli_word_wrap *wrap) {
    return wrap->is_long || wrap->line == CLI_WRAP_VERBATIM || wrap->columns == 0 ||
           wrap->word_columns > wrap->columns;
}

static void put_character(cli_word_wrap *wrap, int32_t c, const char *text, size_t size) {
    bool begins_word = wrap->word.size == 0 && !wrap->is_long;
    if (begins_word)
        wrap->last_break = 0;
    else if (can_break(wrap, c))
        end_word(wrap);
    wrap->last = c;
    cli_append(&wrap->word, text, size);
    wrap->word_columns += columns_of(c);
    if (!flows(wrap))
        return;
    place_word(wrap);
    wrap->is_long = true;
}

void cli_word_wrap_put(cli_word_wrap *wrap, const char *text, size_t length) {
    settle_column(wrap);
    for (size_t at = 0; at < length;) {
        utf8proc_int32_t c;
        utf8proc_ssize_t size =
            utf8proc_iterate((const uint8_t *)text + at, (utf8proc_ssize_t)(length - at), &c);
        if (size <= 0) {
            c = 0xFFFD;
            size = 1;
        }
        if (c == '\n')
            put_newline(wrap);
        else if (is_blank(c))
            put_blank(wrap, c, text + at, (size_t)size);
        else
            put_character(wrap, c, text + at, (size_t)size);
        at += (size_t)size;
    }
}

void cli_word_wrap_end(cli_word_wrap *wrap) {
    end_word(wrap);
    if (has_room(wrap, 0))
        write_blanks(wrap);
    drop_blanks(wrap);
    wrap->column = wrap->indent = 0;
    wrap->line = CLI_WRAP_UNKNOWN;
    wrap->fence = 0;
}

void cli_word_wrap_free(cli_word_wrap *wrap) {
    gb_buffer_free(&wrap->blanks);
    gb_buffer_free(&wrap->word);
}
