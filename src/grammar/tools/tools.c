/* SPDX-License-Identifier: Apache-2.0 */
#include "grammar/tools/tools.h"

#include "base/memory.h"
#include "text/reply/reply_format.h"
#include "text/reply/tool_types.h"
#include "text/tokenizer/tokenizer.h"

#include <string.h>

/* ---- Reading ------------------------------------------------------------------------------------------- */

/* The field of calls, where the format says how they are written. */
static gumbel_status find_field(const gumbel_tokenizer *tokenizer, const struct gb_reply_field **field,
                                gumbel_error *error) {
    const gb_reply_format *format = tokenizer->reply_format;
    for (int i = 0; format && i < format->field_count; i++) {
        *field = &format->fields[i];
        if ((*field)->type == GUMBEL_PART_TOOL_CALL && (*field)->written.call[0].length > 0)
            return GUMBEL_OK;
    }
    return gb_fail(
        error, GUMBEL_ERROR_UNSUPPORTED,
        "tools: the program's reply format does not say how the model writes calls (\"written\" of "
        "tool_calls); export it again, or load a format that does");
}

static bool is_named(const json_t *tool, const char *name) {
    return strcmp(gb_tool_name(tool), name) == 0;
}

static gumbel_status refuse_same_names(const json_t *tools, gumbel_error *error) {
    json_t *numbers = json_object(); /* of each name */
    gumbel_status status =
        numbers ? GUMBEL_OK : gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for the names of tools");
    for (size_t i = 0; i < json_array_size(tools) && status == GUMBEL_OK; i++) {
        const char *name = gb_tool_name(json_array_get(tools, i));
        const json_t *other = json_object_get(numbers, name);
        if (other)
            status = gb_fail(error, GUMBEL_ERROR_ARGUMENT, "tools: number %zu and %zu are both \"%.80s\"",
                             (size_t)json_integer_value(other), i, name);
        else if (json_object_set_new(numbers, name, json_integer((json_int_t)i)) != 0)
            status = gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for the names of tools");
    }
    json_decref(numbers);
    return status;
}

static gumbel_status check_names(const json_t *tools, const char *wanted, gumbel_error *error) {
    bool is_found = !wanted;
    for (size_t i = 0; i < json_array_size(tools) && !is_found; i++)
        is_found = is_named(json_array_get(tools, i), wanted);
    GB_TRY(refuse_same_names(tools, error));
    if (json_array_size(tools) == 0)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "tools: there are none");
    return is_found ? GUMBEL_OK
                    : gb_fail(error, GUMBEL_ERROR_ARGUMENT, "tools: none of them is \"%.80s\"", wanted);
}

/* ---- Calls --------------------------------------------------------------------------------------------- */

/* A call of any tool that the options allow; 0 on an error. */
static gb_expression express_any_call(const gb_tool_writer *writer, const json_t *tools,
                                      const gumbel_grammar_options *options, bool loosened,
                                      gumbel_error *error) {
    gb_expression *calls = gb_allocate(json_array_size(tools), sizeof *calls);
    size_t count = 0;
    bool is_good = calls != NULL;
    for (size_t i = 0; is_good && i < json_array_size(tools); i++) {
        const json_t *tool = json_array_get(tools, i);
        if (options->tool_name && !is_named(tool, options->tool_name))
            continue;
        calls[count] = gb_express_call(writer, tool, loosened, error);
        is_good = calls[count++] != 0;
    }
    gb_expression call = is_good ? gb_express_choice(writer->expressions, calls, count) : 0;
    if (!calls)
        gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for the grammar of tools");
    gb_free(calls);
    if (!call)
        return 0;
    const gb_expression rule = gb_express_rule(writer->expressions, "tool call");
    gb_define_rule(writer->expressions, rule, call);
    return rule;
}

/* What may stand before a call. */
static gb_expression express_before(const gb_tool_writer *writer) {
    const json_t *texts = writer->field->written.before;
    gb_expression before = gb_express_empty(writer->expressions);
    for (size_t i = 0; i < json_array_size(texts); i++) {
        const json_t *text = json_array_get(texts, i);
        const gb_expression items[] = {
            before, gb_express_marked(writer, json_string_value(text), json_string_length(text))};
        before = gb_express_choice(writer->expressions, items, 2);
    }
    return before;
}

/* One call, or several. */
static gb_expression express_calls(const gb_tool_writer *writer, gb_expression call, bool is_single) {
    const gb_expression items[] = {express_before(writer), call};
    return gb_express_repeat(writer->expressions, gb_express_sequence(writer->expressions, items, 2), 1,
                             is_single ? 1 : GB_NO_END);
}

/* Free text in which calls stand, or in place of which one does. */
static gb_expression express_mixed(const gb_tool_writer *writer, const json_t *tools, gb_expression call,
                                   bool is_single) {
    const gb_expression text = gb_express_free_text(writer, tools), items[] = {call, text};
    if (writer->field->written.is_alone)
        return gb_express_choice(writer->expressions, items, 2);
    const gb_expression more =
        gb_express_repeat(writer->expressions, gb_express_sequence(writer->expressions, items, 2), 0,
                          is_single ? 1 : GB_NO_END);
    return gb_express_sequence(writer->expressions, (gb_expression[]){text, more}, 2);
}

static bool has_strict(const json_t *tools) {
    for (size_t i = 0; i < json_array_size(tools); i++)
        if (gb_is_strict_tool(json_array_get(tools, i)))
            return true;
    return false;
}

/* Calls without marks are not constrained unless a tool is strict: the model may have marks of its own that
 * the format does not know, and a mask would forbid them. */
static bool is_unconstrained(const struct gb_reply_field *field, const json_t *tools,
                             const gumbel_grammar_options *options) {
    return field->written.is_alone && options->tool_choice == GUMBEL_TOOLS_AUTO && !options->tool_name &&
           !has_strict(tools);
}

static gb_expression express_answer(const gb_tool_writer *writer, const json_t *tools,
                                    const gumbel_grammar_options *options, gb_expression answer,
                                    bool loosened, gumbel_error *error) {
    if (options->tool_choice == GUMBEL_TOOLS_NONE)
        return gb_express_free_text(writer, tools);
    if (!answer && is_unconstrained(writer->field, tools, options))
        return gb_express_any_tokens(writer->expressions);
    const gb_expression call = express_any_call(writer, tools, options, loosened, error);
    if (!call)
        return 0;
    if (options->tool_choice == GUMBEL_TOOLS_AUTO && !options->tool_name && !answer)
        return express_mixed(writer, tools, call, options->single_call);
    const bool is_single = options->single_call || options->tool_name || writer->field->written.is_alone;
    const gb_expression calls = express_calls(writer, call, is_single);
    if (options->tool_choice == GUMBEL_TOOLS_REQUIRED || options->tool_name)
        return calls;
    return gb_express_choice(writer->expressions, (gb_expression[]){answer, calls}, 2);
}

gumbel_status gb_find_free_text(const gumbel_tokenizer *tokenizer, const gumbel_grammar_options *options,
                                bool *is_free, gumbel_error *error) {
    const struct gb_reply_field *field = NULL;
    size_t size;
    json_t *tools;
    *is_free = false;
    if (options->kind != GUMBEL_GRAMMAR_TEXT || options->tool_choice != GUMBEL_TOOLS_AUTO ||
        options->tool_name)
        return GUMBEL_OK;
    GB_TRY(find_field(tokenizer, &field, error));
    GB_TRY(gb_read_tools(options->tools, &tools, error));
    const gb_form_text begin = field->written.call[0];
    *is_free = is_unconstrained(field, tools, options) ||
               (!options->single_call && gb_find_mark(tokenizer, begin.text, begin.length, &size) >= 0);
    json_decref(tools);
    return GUMBEL_OK;
}

gb_expression gb_express_tools(gb_expressions *expressions, const gumbel_tokenizer *tokenizer,
                               const gumbel_grammar_options *options, gb_expression answer, bool loosened,
                               gumbel_error *error) {
    gb_tool_writer writer = {.expressions = expressions, .tokenizer = tokenizer};
    json_t *tools;
    gb_expression root = 0;
    if (options->tool_choice == GUMBEL_TOOLS_NONE && answer)
        return answer;
    if (find_field(tokenizer, &writer.field, error) != GUMBEL_OK ||
        gb_read_tools(options->tools, &tools, error) != GUMBEL_OK)
        return 0;
    gb_prepare_writer(&writer);
    if (check_names(tools, options->tool_name, error) == GUMBEL_OK)
        root = express_answer(&writer, tools, options, answer, loosened, error);
    json_decref(tools);
    return root;
}
