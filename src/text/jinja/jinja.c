/* SPDX-License-Identifier: Apache-2.0 */
#include "text/jinja/jinja.h"

#include "base/memory.h"
#include "text/base/utf8.h"
#include "text/jinja/parse/parser.h"
#include "text/jinja/run/runtime.h"
#include "text/jinja/value/print.h"

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
    *result = (gb_jinja_text){bytes, length};
    return GUMBEL_OK;
}

static gumbel_status render(gb_jinja_state *state, gb_jinja_text source, const json_t *context,
                            gb_jinja_buffer *output) {
    const gb_jinja_token *tokens;
    const gb_jinja_statement *statements;
    gb_jinja_value variables;
    gb_jinja_scope *scope;
    GB_TRY(normalize_line_ends(state, source, &source));
    GB_TRY(gb_jinja_tokenize(state, source, &tokens));
    GB_TRY(gb_jinja_parse(state, tokens, &statements));
    GB_TRY(gb_jinja_from_json(state, context, &variables));
    state->variables = variables.as.dict;
    state->output = output;
    GB_TRY(gb_jinja_new_scope(state, NULL, &scope));
    return gb_jinja_execute(state, scope, statements);
}

gumbel_status gb_jinja_render(const char *template_text, size_t length, const json_t *context,
                              char **rendered, size_t *rendered_length, gumbel_error *error) {
    if (!json_is_object(context))
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "a chat template's variables must be a JSON object");
    if (length > GB_JINJA_MAX_TEMPLATE)
        return gb_fail(error, GUMBEL_ERROR_LIMIT, "the chat template has %zu bytes, at most %zu are allowed",
                       length, GB_JINJA_MAX_TEMPLATE);
    if (!gb_utf8_is_valid(template_text, length))
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "the chat template is not UTF-8");
    gb_jinja_state state = {.error = error, .line = 1};
    gb_jinja_buffer output = {0};
    gumbel_status status = render(&state, (gb_jinja_text){template_text, length}, context, &output);
    if (status == GUMBEL_OK) {
        gb_jinja_text text = gb_jinja_buffer_text(&output);
        char *copy = gb_copy_string(text.bytes, text.length);
        if (!copy) {
            status = gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for a rendered chat template");
        } else {
            *rendered = copy;
            if (rendered_length)
                *rendered_length = text.length;
        }
    }
    gb_jinja_arena_free(&state.arena);
    return status;
}
