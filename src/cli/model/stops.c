/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/model/stops.h"

#include "base/status.h"

#include <stdlib.h>
#include <string.h>

const cli_option cli_stop_table[] = {
    {.names = "-r --stop --reverse-prompt",
     .argument = "TEXT",
     .help =
         "End the answer where TEXT comes up in it, and leave TEXT out. May be given many times; the first "
         "that comes up ends it. In TEXT \\n, \\r, \\t and \\\\ are a newline, a carriage return, "
         "a tab and a backslash. In a chat /set stop TEXT adds one, /set stop alone removes all.",
     .type = CLI_STRINGS,
     .offset = offsetof(cli_stop_options, strings)},
    {.names = "--include-stop",
     .help = "Print the TEXT that ended the answer, too.",
     .type = CLI_FLAG,
     .offset = offsetof(cli_stop_options, included)},
    {0},
};

/* What a backslash and this character stand for, or 0. */
static char escaped(char c) {
    static const char names[] = "nrt\\", values[] = "\n\r\t\\";
    const char *found = c ? strchr(names, c) : NULL;
    return found ? values[found - names] : '\0';
}

static char *unescape(const char *given) {
    char *text = cli_copy_text(given, strlen(given)), *end = text;
    for (const char *c = given; *c; c++) {
        char value = *c == '\\' ? escaped(c[1]) : '\0';
        *end++ = value ? value : *c;
        c += value != '\0';
    }
    *end = '\0';
    return text;
}

void cli_read_stops(const cli_stop_options *options, cli_stops *stops) {
    cli_stops_free(stops);
    stops->included = options->included;
    for (size_t i = 0; i < options->strings.count; i++)
        stops->texts[stops->count++] = unescape(options->strings.list[i]);
}

void cli_stops_free(cli_stops *stops) {
    for (size_t i = 0; i < stops->count; i++)
        free(stops->texts[i]);
    *stops = (cli_stops){0};
}

gumbel_status cli_apply_stops(const cli_stops *stops, gumbel_generate_options *options, gumbel_error *error) {
    if (stops->count > 0 && !options->tokenizer) {
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT,
                       "--stop: the program has no tokenizer to spell its tokens");
    }
    options->stop_strings = (const char *const *)stops->texts;
    options->stop_string_count = stops->count;
    options->include_stop_string = stops->included;
    return GUMBEL_OK;
}
