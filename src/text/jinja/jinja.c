/* SPDX-License-Identifier: Apache-2.0 */
#include "text/jinja/jinja.h"

#include "base/clock.h"
#include "base/memory.h"
#include "text/base/utf8.h"
#include "text/jinja/parse/parser.h"
#include "text/jinja/run/runtime.h"
#include "text/jinja/value/print.h"

#include <string.h>

/* Jinja reads all line ends as \n and drops one at the end of the template. */
static gumbel_status normalize_line_ends(gb_jinja_state *state, gb_jinja_text text, gb_jinja_text *result) {
    gumbel_status status;
    char *bytes = gb_jinja_allocate(state, text.length, 1, &status);
    if (!bytes)
        return status;
    size_t length = 0;
    for (size_t i = 0; i < text.length; i++) {
        bool pair = text.bytes[i] == '\r' && i + 1 < text.length && text.bytes[i + 1] == '\n';
        if (!pair)
            bytes[length++] = text.bytes[i] == '\r' ? '\n' : text.bytes[i];
    }
    if (length > 0 && bytes[length - 1] == '\n')
        length--;
    *result = (gb_jinja_text){.bytes = bytes, .length = length};
    return GUMBEL_OK;
}

static gumbel_status parse(gb_jinja_state *state, gb_jinja_text source,
                           const gb_jinja_statement **statements) {
    const gb_jinja_token *tokens;
    GB_TRY(normalize_line_ends(state, source, &source));
    GB_TRY(gb_jinja_tokenize(state, source, &tokens));
    return gb_jinja_parse(state, tokens, statements);
}

static gumbel_status render(gb_jinja_state *state, gb_jinja_text source, const gb_jinja_input *input,
                            gb_jinja_buffer *output) {
    const gb_jinja_statement *statements;
    gb_jinja_value variables, trusted = {0};
    gb_jinja_scope *scope;
    GB_TRY(parse(state, source, &statements));
    GB_TRY(gb_jinja_from_json(state, input->variables, true, &variables));
    if (input->trusted)
        GB_TRY(gb_jinja_from_json(state, input->trusted, false, &trusted));
    state->variables = variables.as.dict;
    state->trusted = input->trusted ? trusted.as.dict : NULL;
    state->output = output;
    GB_TRY(gb_jinja_new_scope(state, NULL, &scope));
    return gb_jinja_execute(state, scope, statements);
}

static gumbel_status check_source(const char *text, size_t length, gumbel_error *error) {
    if (length > GB_JINJA_MAX_TEMPLATE)
        return gb_fail(error, GUMBEL_ERROR_LIMIT, "the chat template has %zu bytes, at most %zu are allowed",
                       length, GB_JINJA_MAX_TEMPLATE);
    if (!gb_utf8_is_valid(text, length))
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "the chat template is not UTF-8");
    return GUMBEL_OK;
}

/* Copies the text out of the arena. */
static gumbel_status give(const gb_jinja_state *state, const gb_jinja_buffer *buffer, gb_jinja_output *output,
                          gumbel_error *error) {
    gb_jinja_text text = gb_jinja_buffer_text(buffer);
    gb_jinja_output given = {.text = gb_copy_string(text.bytes, text.length), .length = text.length};
    bool failed = !given.text;
    if (text.taint) {
        given.taint = gb_allocate(text.length, 1);
        failed = failed || !given.taint;
        if (given.taint)
            memcpy(given.taint, text.taint, text.length);
    }
    if (failed) {
        gb_jinja_output_free(&given);
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for a rendered chat template");
    }
    given.printed_structure = state->printed_structure;
    *output = given;
    return GUMBEL_OK;
}

static gb_jinja_state new_state(const gb_jinja_limits *limits, gumbel_error *error) {
    return (gb_jinja_state){
        .error = error,
        .line = 1,
        .limits = limits ? *limits : gb_jinja_default_limits,
        .start = gb_seconds(),
    };
}

gumbel_status gb_jinja_render(const gb_jinja_input *input, gb_jinja_output *output, gumbel_error *error) {
    if (!json_is_object(input->variables) || (input->trusted && !json_is_object(input->trusted)))
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "a chat template's variables must be a JSON object");
    GB_TRY(check_source(input->template_text, input->length, error));
    gb_jinja_state state = new_state(input->limits, error);
    state.has_time = input->has_time;
    state.time = input->time;
    gb_jinja_buffer buffer = {0};
    gb_jinja_text source = {.bytes = input->template_text, .length = input->length};
    gumbel_status status = render(&state, source, input, &buffer);
    if (status == GUMBEL_OK)
        status = give(&state, &buffer, output, error);
    gb_jinja_arena_free(&state.arena);
    return status;
}

gumbel_status gb_jinja_check(const char *template_text, size_t length, gumbel_error *error) {
    GB_TRY(check_source(template_text, length, error));
    gb_jinja_state state = new_state(NULL, error);
    const gb_jinja_statement *statements;
    gumbel_status status =
        parse(&state, (gb_jinja_text){.bytes = template_text, .length = length}, &statements);
    gb_jinja_arena_free(&state.arena);
    return status;
}

static gumbel_status write_json(gb_jinja_state *state, const json_t *json, gb_jinja_buffer *buffer) {
    gb_jinja_json_style style = {
        .item_separator = gb_jinja_text_of(", "),
        .key_separator = gb_jinja_text_of(": "),
    };
    gb_jinja_value value;
    GB_TRY(gb_jinja_from_json(state, json, false, &value));
    return gb_jinja_print_json(state, &value, &style, buffer);
}

gumbel_status gb_jinja_write_json(const json_t *json, char **text, gumbel_error *error) {
    gb_jinja_state state = new_state(NULL, error);
    gb_jinja_buffer buffer = {0};
    gumbel_status status = write_json(&state, json, &buffer);
    if (status == GUMBEL_OK) {
        gb_jinja_text written = gb_jinja_buffer_text(&buffer);
        *text = gb_copy_string(written.bytes, written.length);
        if (!*text)
            status = gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory to write JSON");
    }
    gb_jinja_arena_free(&state.arena);
    return status;
}

void gb_jinja_output_free(gb_jinja_output *output) {
    gb_free(output->text);
    gb_free(output->taint);
    *output = (gb_jinja_output){0};
}
