/* SPDX-License-Identifier: Apache-2.0
 *
 * Text in which no tool is called.
 */
#include "base/memory.h"
#include "grammar/tools/tools.h"
#include "text/reply/reply_format.h"
#include "text/reply/tool_types.h"

#include <string.h>

static const uint32_t NO_TOKEN = UINT32_MAX;

static gb_expression any_bytes(gb_expressions *expressions) {
    static const uint32_t every_byte[8] = {~0u, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u};
    return gb_express_repeat(expressions, gb_express_byte_set(expressions, every_byte), 0, GB_NO_END);
}

static gb_expression any_other_token(gb_expressions *expressions, uint32_t token) {
    return gb_express_repeat(expressions, gb_express_other_token(expressions, token), 0, GB_NO_END);
}

/* ---- Calls that begin anywhere ------------------------------------------------------------------------- */

/* Up to its first line's end, which need not follow. */
static gb_expression first_line(gb_expressions *expressions, gb_form_text text) {
    const char *line = memchr(text.text, '\n', text.length);
    return gb_express_bytes(expressions, text.text,
                            line && line > text.text ? (size_t)(line - text.text) : text.length);
}

/* Bytes alone: special tokens are not among them. */
static gb_expression without_text(gb_expressions *expressions, gb_form_text begin) {
    const gb_expression any = any_bytes(expressions), items[] = {any, first_line(expressions, begin), any};
    return gb_express_except(expressions, any, gb_express_sequence(expressions, items, 3));
}

/* ---- Calls that stand alone ---------------------------------------------------------------------------- */

static bool is_space(char c) {
    return strchr(" \t\r\n", c) != NULL;
}

static gb_expression spaces(gb_expressions *expressions) {
    uint32_t set[8] = {0};
    for (const char *c = " \t\r\n"; *c; c++)
        set[*c / 32] |= UINT32_C(1) << *c % 32;
    return gb_express_repeat(expressions, gb_express_byte_set(expressions, set), 0, GB_NO_END);
}

/* The beginning of a JSON value, with white space wherever there may be some. */
static gb_expression spaced(gb_expressions *expressions, gb_form_text text) {
    gb_expression all = gb_express_empty(expressions);
    bool is_string = false;
    for (size_t i = 0; i < text.length; i++) {
        if (!is_string && is_space(text.text[i]))
            continue;
        const gb_expression before = is_string ? gb_express_empty(expressions) : spaces(expressions);
        const gb_expression byte = gb_express_bytes(expressions, text.text + i, 1);
        all = gb_express_sequence(expressions, (gb_expression[]){all, before, byte}, 3);
        is_string ^= text.text[i] == '"';
    }
    return all;
}

/* Any of the tools' names. 0: no memory. */
static gb_expression names_of(const gb_tool_writer *writer, const json_t *tools) {
    gb_expressions *expressions = writer->expressions;
    const size_t count = json_array_size(tools);
    gb_expression *names = gb_allocate(count + 1, sizeof *names);
    for (size_t i = 0; names && i < count; i++) {
        const char *name = gb_tool_name(json_array_get(tools, i));
        names[i] = gb_express_bytes(expressions, name, strlen(name));
    }
    const gb_expression name =
        names ? gb_express_choice(expressions, names, count)
              : gb_expressions_fail(expressions, GUMBEL_ERROR_MEMORY, "no memory for the names of tools");
    gb_free(names);
    return name;
}

/* Bytes that do not begin as a call: such a text may still be JSON of other names. Where a token ends the
 * name, they are no call's name, and any tokens may follow that one. */
static gb_expression without_beginning(const gb_tool_writer *writer, const json_t *tools) {
    const gb_call_form *form = &writer->field->written;
    gb_expressions *expressions = writer->expressions;
    const gb_form_text behind = form->again.length > 0 ? form->again : form->call[1];
    size_t size;
    const int32_t mark = gb_find_mark(writer->tokenizer, behind.text, behind.length, &size);
    const gb_expression any = any_bytes(expressions), names = names_of(writer, tools);
    const gb_expression call[] = {spaced(expressions, form->call[0]), names,
                                  gb_express_bytes(expressions, behind.text, behind.length > 0 ? 1 : 0), any};
    if (!names)
        return 0;
    const gb_expression text =
        gb_express_except(expressions, any, gb_express_sequence(expressions, call, mark < 0 ? 4 : 2));
    if (mark < 0)
        return text;
    const gb_expression more[] = {gb_express_token(expressions, (uint32_t)mark),
                                  any_other_token(expressions, NO_TOKEN)};
    const gb_expression rest =
        gb_express_repeat(expressions, gb_express_sequence(expressions, more, 2), 0, 1);
    return gb_express_sequence(expressions, (gb_expression[]){text, rest}, 2);
}

/* ---- All ----------------------------------------------------------------------------------------------- */

gb_expression gb_express_free_text(const gb_tool_writer *writer, const json_t *tools) {
    const gb_form_text begin = writer->field->written.call[0];
    size_t size;
    const int32_t mark = gb_find_mark(writer->tokenizer, begin.text, begin.length, &size);
    if (mark >= 0)
        return any_other_token(writer->expressions, (uint32_t)mark);
    return writer->field->written.is_alone ? without_beginning(writer, tools)
                                           : without_text(writer->expressions, begin);
}

gb_expression gb_express_any_tokens(gb_expressions *expressions) {
    return any_other_token(expressions, NO_TOKEN);
}
