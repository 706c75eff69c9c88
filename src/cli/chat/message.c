/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/chat/message.h"

#include <string.h>

static const char next_prompt[] = ". ", quotes[] = "\"\"\"";
enum { QUOTES = sizeof quotes - 1 };

static bool has_quotes_at(const cli_text *text, size_t at) {
    return text->length >= at + QUOTES && memcmp(text->bytes + at, quotes, QUOTES) == 0;
}

/* The text between, without the newlines that set the quotes apart. */
static void take_off_quotes(cli_text *text) {
    size_t begin = QUOTES, end = text->length - QUOTES;
    begin += begin < end && text->bytes[begin] == '\n';
    end -= begin < end && text->bytes[end - 1] == '\n';
    memmove(text->bytes, text->bytes + begin, end - begin);
    text->bytes[text->length = end - begin] = '\0';
}

/* Reads lines up to one that ends in quotes that were typed; text begins with those that opened it. */
static cli_line read_quoted(cli_line_reader *reader, cli_text *text) {
    cli_text line = {0};
    cli_line result = CLI_LINE;
    size_t begin = QUOTES;
    cli_pasted pasted = CLI_TYPED;
    while (result == CLI_LINE && (pasted == CLI_PASTED_WHOLE || text->length < begin + QUOTES ||
                                  !has_quotes_at(text, text->length - QUOTES))) {
        result = cli_read_line(reader, next_prompt, &line, &pasted);
        cli_text_add(text, "\n", 1);
        begin = text->length;
        cli_text_add(text, line.bytes, line.length);
    }
    cli_text_free(&line);
    if (result == CLI_LINE)
        take_off_quotes(text);
    return result;
}

/* Reads lines as long as each ends in a backslash that was typed, in whose place a newline comes. */
static cli_line read_continued(cli_line_reader *reader, cli_text *text) {
    cli_text line = {0};
    cli_line result = CLI_LINE;
    cli_pasted pasted = CLI_TYPED;
    while (result == CLI_LINE && pasted != CLI_PASTED_WHOLE && text->length > 0 &&
           text->bytes[text->length - 1] == '\\') {
        text->bytes[text->length - 1] = '\n';
        result = cli_read_line(reader, next_prompt, &line, &pasted);
        cli_text_add(text, line.bytes, line.length);
    }
    cli_text_free(&line);
    return result;
}

/* A message that would be taken for something else when it is recalled gets a blank before it. */
static void remember(cli_line_reader *reader, const cli_chat_message *message) {
    const cli_text *text = &message->text;
    if (strspn(text->bytes, " \t\n") == text->length)
        return;
    cli_text entry = {0};
    if (!message->is_command && (text->bytes[0] == '/' || has_quotes_at(text, 0)))
        cli_text_add(&entry, " ", 1);
    cli_text_add(&entry, text->bytes, text->length);
    cli_line_reader_remember(reader, entry.bytes);
    cli_text_free(&entry);
}

cli_line cli_read_message(cli_line_reader *reader, const char *prompt, cli_chat_message *message) {
    cli_text *text = &message->text;
    cli_pasted pasted;
    cli_line result = cli_read_line(reader, prompt, text, &pasted);
    if (result != CLI_LINE)
        return result;
    bool is_typed = pasted == CLI_TYPED, is_terminal = cli_line_reader_is_terminal(reader);
    message->is_command = is_typed && text->length > 0 && text->bytes[0] == '/';
    if (is_terminal && is_typed && has_quotes_at(text, 0))
        result = read_quoted(reader, text);
    else if (pasted != CLI_PASTED_WHOLE)
        result = read_continued(reader, text);
    if (result == CLI_LINE && is_terminal)
        remember(reader, message);
    return result;
}
