/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/chat/message.h"

#include <string.h>

static const char next_prompt[] = ". ", quotes[] = "\"\"\"";
enum { QUOTES = sizeof quotes - 1 };

static bool has_quotes_at(const gb_byte_buffer *text, size_t at) {
    return text->size >= at + QUOTES && memcmp(text->text + at, quotes, QUOTES) == 0;
}

/* The text between, without the newlines that set the quotes apart. */
static void take_off_quotes(gb_byte_buffer *text) {
    size_t begin = QUOTES, end = text->size - QUOTES;
    begin += begin < end && text->text[begin] == '\n';
    end -= begin < end && text->text[end - 1] == '\n';
    memmove(text->text, text->text + begin, end - begin);
    text->text[text->size = end - begin] = '\0';
}

/* Reads lines up to one that ends in quotes that were typed; text begins with those that opened it. */
static cli_line read_quoted(cli_line_reader *reader, gb_byte_buffer *text) {
    gb_byte_buffer line = {0};
    cli_line result = CLI_LINE;
    size_t begin = QUOTES;
    cli_pasted pasted = CLI_TYPED;
    while (result == CLI_LINE && (pasted == CLI_PASTED_WHOLE || text->size < begin + QUOTES ||
                                  !has_quotes_at(text, text->size - QUOTES))) {
        result = cli_read_line(reader, next_prompt, &line, &pasted);
        cli_append_string(text, "\n");
        begin = text->size;
        cli_append(text, line.text, line.size);
    }
    gb_buffer_free(&line);
    if (result == CLI_LINE)
        take_off_quotes(text);
    return result;
}

/* Reads lines as long as each ends in a backslash that was typed, in whose place a newline comes. */
static cli_line read_continued(cli_line_reader *reader, gb_byte_buffer *text) {
    gb_byte_buffer line = {0};
    cli_line result = CLI_LINE;
    cli_pasted pasted = CLI_TYPED;
    while (result == CLI_LINE && pasted != CLI_PASTED_WHOLE && text->size > 0 &&
           text->text[text->size - 1] == '\\') {
        text->text[text->size - 1] = '\n';
        result = cli_read_line(reader, next_prompt, &line, &pasted);
        cli_append(text, line.text, line.size);
    }
    gb_buffer_free(&line);
    return result;
}

/* A message that would be taken for something else when it is recalled gets a blank before it. */
static void remember(cli_line_reader *reader, const cli_chat_message *message) {
    const gb_byte_buffer *text = &message->text;
    if (strspn(text->text, " \t\n") == text->size)
        return;
    gb_byte_buffer entry = {0};
    if (!message->is_command && (text->text[0] == '/' || has_quotes_at(text, 0)))
        cli_append_string(&entry, " ");
    cli_append(&entry, text->text, text->size);
    cli_line_reader_remember(reader, entry.text);
    gb_buffer_free(&entry);
}

cli_line cli_read_message(cli_line_reader *reader, const char *prompt, cli_chat_message *message) {
    gb_byte_buffer *text = &message->text;
    cli_pasted pasted;
    cli_line result = cli_read_line(reader, prompt, text, &pasted);
    if (result != CLI_LINE)
        return result;
    bool is_typed = pasted == CLI_TYPED, is_terminal = cli_line_reader_is_terminal(reader);
    message->is_command = is_typed && text->size > 0 && text->text[0] == '/';
    if (is_terminal && is_typed && has_quotes_at(text, 0))
        result = read_quoted(reader, text);
    else if (pasted != CLI_PASTED_WHOLE)
        result = read_continued(reader, text);
    if (result == CLI_LINE && is_terminal)
        remember(reader, message);
    return result;
}
