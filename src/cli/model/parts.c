/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/model/parts.h"

#include "cli/base/report.h"

#include <stdlib.h>
#include <string.h>

static const char dim[] = "\033[2m", plain[] = "\033[0m";

static bool has_styles(const cli_output *output) {
    const char *no_color = getenv("NO_COLOR"), *terminal = getenv("TERM");
    return output->is_terminal && !output->record && !(no_color && no_color[0]) && terminal &&
           strcmp(terminal, "dumb") != 0;
}

static bool is_shown(const cli_output *output, gumbel_part_type type) {
    const char *what = output->reasoning;
    if (!what)
        what = output->is_terminal && !output->record ? "show" : "hide";
    return strcmp(what, type == GUMBEL_PART_REASONING ? "hide" : "only") != 0;
}

static void end_style(cli_output *output) {
    if (!output->is_styled)
        return;
    cli_terminal_text_end(&output->text);
    fputs(plain, stdout);
    output->is_styled = false;
}

static void begin_part(cli_output *output, gumbel_part_type type) {
    const bool follows = output->has_part;
    if (follows && !output->line_ended)
        cli_output_text(output, "\n", 1);
    end_style(output);
    if (follows && output->part != type)
        cli_output_text(output, "\n", 1);
    if (type == GUMBEL_PART_REASONING && has_styles(output)) {
        fputs(dim, stdout);
        output->is_styled = true;
    }
    output->has_part = true;
    output->part = type;
}

static int add(const char *bytes, size_t length, void *text) {
    cli_append(text, bytes, length);
    return 0;
}

void cli_write_call(const char *name, const char *arguments, size_t length, gb_byte_buffer *text) {
    json_t *object = json_loadb(arguments, length, JSON_ALLOW_NUL, NULL), *value;
    const char *key, *separator = "(";
    cli_append_string(text, name);
    json_object_foreach(object, key, value) {
        cli_append_string(text, separator);
        cli_append_string(text, key);
        cli_append_string(text, ": ");
        json_dump_callback(value, add, text, JSON_ENCODE_ANY);
        separator = ", ";
    }
    if (separator[0] == '(')
        cli_append_string(text, "(");
    cli_append_string(text, ")");
    json_decref(object);
}

static void print_delta(cli_output *output, const gumbel_reply_delta *delta) {
    if (delta->type == GUMBEL_PART_TOOL_CALL) {
        gb_byte_buffer call = {0};
        begin_part(output, delta->type);
        cli_write_call(delta->name, delta->text, delta->text_length, &call);
        cli_output_text(output, call.text, call.size);
        gb_buffer_free(&call);
    } else if (delta->text_length > 0) {
        if (!output->has_part || output->part != delta->type)
            begin_part(output, delta->type);
        cli_output_text(output, delta->text, delta->text_length);
    }
}

void cli_output_parts(cli_output *output) {
    gumbel_reply *reply = gumbel_conversation_reply(output->conversation);
    gumbel_reply_delta delta = {.size = sizeof delta};
    while (gumbel_reply_next(reply, &delta)) {
        if (delta.warning)
            output->warning = delta.warning;
        const bool is_known = delta.type != GUMBEL_PART_OTHER;
        /* A record has calls in its message; its text is what was said. */
        const bool is_said = !output->record || delta.type != GUMBEL_PART_TOOL_CALL;
        if (is_known && is_said && is_shown(output, delta.type))
            print_delta(output, &delta);
        else if (delta.type == GUMBEL_PART_REASONING)
            output->hides_thought = true;
    }
}

void cli_output_end_parts(cli_output *output) {
    end_style(output);
    if (output->warning)
        cli_note("%s", output->warning);
    if (output->hides_thought && !output->has_part)
        cli_note("the reply is a thought alone, which --reasoning show prints");
    output->has_part = output->hides_thought = false;
    output->warning = NULL;
}
