/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether an expression has a text: found on the expression at first, on its automaton where many are tried.
 */
#include "grammar/compile/short_texts.h"
#include "grammar/matcher.h"
#include "grammar/nodes.h"
#include "grammar/schema/string/json_string.h"
#include "grammar/schema/string/pattern.h"

/* Steps of a text without an automaton. */
#define MOST_STEPS 100000

static bool compile(gb_schema_reader *reader, gb_tried *tried) {
    const gb_grammar_limits limits = {.dfa_states = 10000, .work = 5000000};
    gumbel_error error;
    const gumbel_status status =
        gb_grammar_compile(reader->expressions, tried->expression, &limits, &tried->grammar, &error);
    tried->is_compiled = true;
    /* ARGUMENT: it has no text. */
    if (status != GUMBEL_OK && status != GUMBEL_ERROR_ARGUMENT)
        gb_expressions_fail(reader->expressions, status, "%s", error.message);
    return !gb_schema_failed(reader);
}

static gb_tried *tried_of(gb_schema_reader *reader, gb_expression expression) {
    gb_tried *tried = &reader->tried[expression % GB_MAX_TRIED];
    if (tried->expression == expression)
        return tried;
    gb_grammar_destroy(tried->grammar);
    *tried = (gb_tried){.expression = expression};
    return tried;
}

bool gb_expression_is_empty(gb_schema_reader *reader, gb_expression expression) {
    if (gb_schema_failed(reader))
        return true;
    gb_tried *tried = tried_of(reader, expression);
    return (!tried->is_compiled && !compile(reader, tried)) || !tried->grammar;
}

void gb_free_tried(gb_schema_reader *reader) {
    for (size_t i = 0; i < GB_MAX_TRIED; i++)
        gb_grammar_destroy(reader->tried[i].grammar);
}

static bool accepts(gb_schema_reader *reader, gb_matcher *matcher, const gb_byte_buffer *text) {
    gumbel_error error;
    size_t taken = 0;
    while (taken < text->size && gb_matcher_accept_byte(matcher, text->data[taken]))
        taken++;
    const bool has_ended = taken == text->size && gb_matcher_may_end(matcher);
    if (gb_matcher_error(matcher, &error) != GUMBEL_OK)
        gb_expressions_fail(reader->expressions, error.status, "%s", error.message);
    return has_ended && !gb_schema_failed(reader);
}

static bool match(gb_schema_reader *reader, gb_tried *tried, const gb_byte_buffer *text) {
    gb_matcher *matcher = NULL;
    gumbel_error error;
    if (!tried->is_compiled && !compile(reader, tried))
        return false;
    if (!tried->grammar)
        return false;
    const gumbel_status status = gb_matcher_create(tried->grammar, NULL, NULL, &matcher, &error);
    if (status != GUMBEL_OK)
        gb_expressions_fail(reader->expressions, status, "%s", error.message);
    const bool has = status == GUMBEL_OK && accepts(reader, matcher, text);
    gb_matcher_destroy(matcher);
    return has;
}

/* An automaton costs so many steps, and a look at each node. */
static bool is_worth_compiling(const gb_schema_reader *reader, const gb_tried *tried) {
    return tried->walked > 50000 + 8 * (uint64_t)reader->expressions->node_count;
}

static bool has_spelled(gb_schema_reader *reader, gb_expression expression, const gb_byte_buffer *text) {
    gb_tried *tried = tried_of(reader, expression);
    uint64_t steps = MOST_STEPS;
    if (tried->is_compiled || is_worth_compiling(reader, tried))
        return match(reader, tried, text);
    const gb_text_place place =
        gb_try_short_text(reader->expressions, expression, text->data, text->size, &steps);
    tried->walked += steps;
    if (!gb_expressions_go_on(reader->expressions, steps / 4 + 1))
        return false;
    return place == GB_TEXT_IS_UNKNOWN ? match(reader, tried, text) : place == GB_TEXT_IS_IN;
}

bool gb_expression_has(gb_schema_reader *reader, gb_expression expression, const char *text, size_t length) {
    gb_byte_buffer spelled = {0};
    if (gb_schema_failed(reader))
        return false;
    gb_spell(reader, text, length, &spelled);
    if (spelled.failed)
        gb_schema_no_memory(reader);
    const bool has = !spelled.failed && has_spelled(reader, expression, &spelled);
    gb_buffer_free(&spelled);
    return has;
}
