/* SPDX-License-Identifier: Apache-2.0
 *
 * Fields of what an answer is held to: OpenAI's and Anthropic's formats, and vLLM's and llama.cpp's own.
 */
#include "server/fields/fields.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* field must live as long as the request. text is taken over; NULL: there was no memory, or none is needed.
 */
static bool set_text(const char *field, gumbel_grammar_kind kind, char *text, server_request *request,
                     server_failure *failure) {
    if (!text && kind != GUMBEL_GRAMMAR_JSON)
        return server_fail(failure, 503, "no memory for %s", field);
    if (request->grammar.kind != 0) {
        free(text);
        return server_refuse(failure, field, "%s and %s both constrain the answer; give one of them",
                             request->grammar_field, field);
    }
    request->grammar_field = field;
    request->grammar_text = text;
    request->grammar = (gumbel_grammar_options){
        .size = sizeof request->grammar, .kind = kind, .text = text, .in_order = true};
    return true;
}

static bool set_any_json(const char *field, server_request *request, server_failure *failure) {
    return set_text(field, GUMBEL_GRAMMAR_JSON, NULL, request, failure);
}

static bool set_string(const char *field, gumbel_grammar_kind kind, const json_t *value,
                       server_request *request, server_failure *failure) {
    const char *text;
    return server_read_string(field, value, &text, failure) &&
           set_text(field, kind, strdup(text), request, failure);
}

/* A schema is an object, or its text, as vLLM has it. */
static bool set_schema(const char *field, const json_t *value, server_request *request,
                       server_failure *failure) {
    if (json_is_string(value))
        return set_string(field, GUMBEL_GRAMMAR_JSON_SCHEMA, value, request, failure);
    return server_read_object(field, value, failure) &&
           set_text(field, GUMBEL_GRAMMAR_JSON_SCHEMA, json_dumps(value, JSON_COMPACT), request, failure);
}

static bool set_choices(const char *field, const json_t *value, server_request *request,
                        server_failure *failure) {
    return server_read_array(field, value, failure) &&
           set_text(field, GUMBEL_GRAMMAR_CHOICES, json_dumps(value, JSON_COMPACT), request, failure);
}

/* ---- OpenAI's and Anthropic's formats ------------------------------------------------------------------ */

#define SCHEMA_MEMBERS "name description schema strict"

/* holder has the schema and what OpenAI says of it. Answers keep to it, strict or not; where it is strict,
 * keywords that are not known are errors. */
static bool set_named_schema(const char *field, const json_t *holder, server_request *request,
                             server_failure *failure) {
    bool is_strict;
    const json_t *strict = json_object_get(holder, "strict"), *schema = json_object_get(holder, "schema");
    if (strict && !json_is_null(strict) && !server_read_bool(field, strict, &is_strict, failure))
        return false;
    if (!json_is_object(schema))
        return server_refuse(failure, field, "%s: schema: expected a JSON Schema, an object", field);
    if (!set_schema(field, schema, request, failure))
        return false;
    request->grammar.strict = json_is_true(strict);
    return true;
}

/* The schema stands in json_schema, or, as in responses, in the format itself. */
bool server_take_format(const char *name, json_t *value, server_request *request, server_failure *failure) {
    const char *type;
    const json_t *holder = json_object_get(value, "json_schema");
    if (!server_check_members(name, value, "type json_schema " SCHEMA_MEMBERS, failure) ||
        !server_read_choice(name, json_object_get(value, "type"), "text json_object json_schema", &type,
                            failure) ||
        (holder && !server_check_members(name, holder, SCHEMA_MEMBERS, failure)))
        return false;
    if (strcmp(type, "text") == 0)
        return true;
    if (strcmp(type, "json_object") == 0 && !json_object_get(value, "schema"))
        return set_any_json(name, request, failure);
    return set_named_schema(name, holder ? holder : value, request, failure);
}

/* ---- vLLM's and llama.cpp's ---------------------------------------------------------------------------- */

bool server_take_schema(const char *name, json_t *value, server_request *request, server_failure *failure) {
    return set_schema(name, value, request, failure);
}

bool server_take_grammar(const char *name, json_t *value, server_request *request, server_failure *failure) {
    return set_string(name, GUMBEL_GRAMMAR_GBNF, value, request, failure);
}

bool server_take_regex(const char *name, json_t *value, server_request *request, server_failure *failure) {
    return set_string(name, GUMBEL_GRAMMAR_REGEX, value, request, failure);
}

bool server_take_choice(const char *name, json_t *value, server_request *request, server_failure *failure) {
    return set_choices(name, value, request, failure);
}

static bool take_json_object(const char *name, json_t *value, server_request *request,
                             server_failure *failure) {
    bool is_wanted;
    return server_read_bool(name, value, &is_wanted, failure) &&
           (!is_wanted || set_any_json(name, request, failure));
}

bool server_take_structured(const char *name, json_t *value, server_request *request,
                            server_failure *failure) {
    static const struct {
        const char *member, *field;
        server_take *take;
    } kinds[] = {
        {"json", "structured_outputs.json", server_take_schema},
        {"regex", "structured_outputs.regex", server_take_regex},
        {"choice", "structured_outputs.choice", server_take_choice},
        {"grammar", "structured_outputs.grammar", server_take_grammar},
        {"json_object", "structured_outputs.json_object", take_json_object},
    };
    bool is_compact = false;
    const json_t *compact = json_object_get(value, "disable_any_whitespace");
    if (!server_check_members(name, value, "json regex choice grammar json_object disable_any_whitespace",
                              failure) ||
        (compact && !json_is_null(compact) && !server_read_bool(name, compact, &is_compact, failure)))
        return false;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        json_t *member = json_object_get(value, kinds[i].member);
        if (member && !json_is_null(member) && !kinds[i].take(kinds[i].field, member, request, failure))
            return false;
    }
    request->grammar.compact = is_compact;
    return true;
}
