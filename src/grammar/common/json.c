/* SPDX-License-Identifier: Apache-2.0
 *
 * Any JSON, in GBNF: there it is shortest, and its rules have names of their own.
 */
#include "grammar/common/common.h"
#include "grammar/gbnf/gbnf.h"

#include <string.h>

static const char rules[] =
    "json-value ::= json-object | json-array | json-string | json-number | \"true\" | \"false\" | \"null\"\n"
    "json-object ::= \"{\" json-space (json-member (json-space \",\" json-space json-member)* json-space)? "
    "\"}\"\n"
    "json-member ::= json-string json-space \":\" json-space json-value\n"
    "json-array ::= \"[\" json-space (json-value (json-space \",\" json-space json-value)* json-space)? "
    "\"]\"\n"
    "json-string ::= \"\\\"\" json-character* \"\\\"\"\n"
    "json-character ::= [^\"\\\\\\x00-\\x1F] | \"\\\\\" ([\"\\\\/bfnrt] | \"u\" json-code)\n"
    "json-code ::= ([0-9A-CE-Fa-ce-f] json-hex | [Dd] [0-7]) json-hex json-hex | [Dd] [89ABab] json-hex "
    "json-hex json-low\n"
    "json-low ::= \"\\\\u\" [Dd] [C-Fc-f] json-hex json-hex\n"
    "json-hex ::= [0-9A-Fa-f]\n"
    "json-number ::= \"-\"? (\"0\" | [1-9] [0-9]*) (\".\" [0-9]+)? ([eE] [-+]? [0-9]+)?\n"
    "json-space ::= (\" \" | \"\\n\" [ \\t]{0,20})?\n";

static gb_expression rule_named(gb_expressions *expressions, const char *name) {
    gb_expression rule = gb_express_rule(expressions, name), root;
    if (!rule || gb_rule_is_defined(expressions, rule))
        return rule;
    const gb_gbnf_options options = {.root = name};
    gumbel_error error;
    if (gb_read_gbnf(expressions, rules, strlen(rules), &options, &root, &error) != GUMBEL_OK)
        return gb_expressions_fail(expressions, error.status, "%s", error.message);
    return rule;
}

gb_expression gb_express_any_json(gb_expressions *expressions) {
    return rule_named(expressions, "json-value");
}

gb_expression gb_express_any_json_object(gb_expressions *expressions) {
    return rule_named(expressions, "json-object");
}

gb_expression gb_express_json_character(gb_expressions *expressions) {
    return rule_named(expressions, "json-character");
}
