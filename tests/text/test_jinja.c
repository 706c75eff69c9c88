/* SPDX-License-Identifier: Apache-2.0
 *
 * The Jinja interpreter: examples of each feature, whose outputs are jinja2's in the environment of
 * transformers.
 */
#include "text/jinja/jinja.h"

#include "base/memory.h"
#include "support/assertions.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

typedef struct example {
    const char *source, *expected;
} example;

static json_t *variables;

static int load_variables(void **state) {
    (void)state;
    static const char text[] =
        "{\"n\": 7, \"name\": \"Ada\", \"text\": \"  two words\\n\", \"list\": [3, 1, 2], \"flag\": true,"
        " \"nothing\": null, \"real\": 1.5, \"words\": [\"b\", \"A\", \"c\", \"a\"],"
        " \"map\": {\"zeta\": 1, \"Alpha\": [1, {\"q\": null}], \"items\": \"own\"},"
        " \"messages\": [{\"role\": \"system\", \"content\": \"Be brief.\"}, {\"role\": \"user\", "
        "\"content\": \"Hi\"},"
        "  {\"role\": \"assistant\", \"content\": \"Hello\", \"score\": 2}]}";
    variables = json_loads(text, 0, NULL);
    return variables ? 0 : -1;
}

static int free_variables(void **state) {
    (void)state;
    json_decref(variables);
    return 0;
}

static void check(const example *examples, size_t count) {
    for (size_t i = 0; i < count; i++) {
        gumbel_error error;
        gb_jinja_input input = {examples[i].source, strlen(examples[i].source), .variables = variables};
        gb_jinja_output output = {0};
        assert_ok(gb_jinja_render(&input, &output, &error), &error);
        assert_string_equal(output.text, examples[i].expected);
        assert_int_equal(output.length, strlen(output.text));
        gb_jinja_output_free(&output);
    }
}
#define CHECK(examples) check(examples, sizeof(examples) / sizeof *(examples))

static void text_and_comments(void **state) {
    (void)state;
    static const example examples[] = {
        {"plain", "plain"},
        {"a{# comment #}b", "ab"},
        {"a{#- both -#} b", "ab"},
        {"one line end goes\n\n", "one line end goes\n"},
        {"a\r\nb\rc", "a\nb\nc"},
        {"{{ '{{ }} {% %}' }}{# {{ n }} #}", "{{ }} {% %}"},
        {"", ""},
    };
    CHECK(examples);
}

static void white_space(void **state) {
    (void)state;
    static const example examples[] = {
        {"a\n  {% if flag %}\n  b\n  {% endif %}\nc", "a\n  b\nc"},
        {"a  {%- if flag -%}  b  {%- endif -%}  c", "abc"},
        {"  {%+ if flag %}x{% endif +%}\ny", "  x\ny"},
        {"{{ n }}\n  {{ n }}\n", "7\n  7"},
        {"a {{- n -}} b", "a7b"},
        {" {# gone #}\n  {#+ kept +#}\n.", "  \n."},
        {"x {% if flag %} y {% endif %} z", "x  y  z"},
        {"a\n\t {% set x = 1 %}\n {{ x }}", "a\n 1"},
        {"a\xC2\xA0\xE2\x80\x83{{- n }}", "a7"},
    };
    CHECK(examples);
}

static void literals(void **state) {
    (void)state;
    static const example examples[] = {
        {"{{ 'a\\n\\t\\\\\\'\\x41\\u00e9\\U0001F600\\101\\q' }}", "a\n\t\\'Aé😀A\\q"},
        {"{{ \"it's\" }} {{ 'one' ' string' }}", "it's one string"},
        {"{{ 1_000 }} {{ 0x1F }} {{ 1.5e3 }} {{ 1e16 }} {{ 1e-5 }} {{ 0.1 }} {{ -0.0 }} {{ 5e-324 }}",
         "1000 31 1500.0 1e+16 1e-05 0.1 -0.0 5e-324"},
        {"{{ true }} {{ False }} {{ none }} {{ None }}", "True False None None"},
        {"{{ [1, 'a', [none]] }} {{ (1,) }} {{ () }} {{ {'k': 1, 2: \"it's\"} }}",
         "[1, 'a', [None]] (1,) () {'k': 1, 2: \"it's\"}"},
        {"{{ 1, 2 }} {{ ['\\n\\x00\\u200b'] }}", "(1, 2) ['\\n\\x00\\u200b']"},
    };
    CHECK(examples);
}

static void lookups(void **state) {
    (void)state;
    static const example examples[] = {
        {"{{ name }}|{{ missing }}|{{ nothing }}|{{ flag }}|{{ real }}", "Ada||None|True|1.5"},
        {"{{ map.zeta }} {{ map['Alpha'][1].q }} {{ list.0 }} {{ messages[0].role }}", "1 None 3 system"},
        {"{{ map['items'] }} {{ map.items is callable }}", "own True"},
        {"{{ map.none_such }}|{{ list[9] }}|{{ nothing.x }}|{{ n.x }}", "|||"},
        {"{{ missing is defined }} {{ missing == missing }} {{ 'a' in missing }} {{ missing|length }}",
         "False True False 0"},
    };
    CHECK(examples);
}

static void slices(void **state) {
    (void)state;
    static const example examples[] = {
        {"{{ list[-1] }} {{ list[1:] }} {{ list[::-1] }} {{ list[:-1] }} {{ list[5:] }} {{ list[-9:9] }}",
         "2 [1, 2] [2, 1, 3] [3, 1] [] [3, 1, 2]"},
        {"{{ 'héllo'[1] }} {{ 'héllo'[::-1] }} {{ 'héllo'[-3:] }} {{ 'abcdef'[4:0:-2] }}", "é olléh llo ec"},
        {"{{ (1, 2, 3)[1:] }} {{ list[:0:-1] }} {{ messages[1:][0].content }}", "(2, 3) [2, 1] Hi"},
    };
    CHECK(examples);
}

static void arithmetic(void **state) {
    (void)state;
    static const example examples[] = {
        {"{{ 1 + 2 * 3 - 4 / 2 }} {{ 7 // 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 7 % -3 }} {{ 7.5 // 2 }}",
         "5.0 3 -4 2 -2 3.0"},
        {"{{ 2 ** 10 }} {{ 2 ** 3 ** 2 }} {{ 2 ** -1 }} {{ -2 ** 2 }}", "1024 64 0.5 4"},
        {"{{ 'a' + 'b' }} {{ 'ab' * 3 }} {{ [1] + [2] }} {{ 'a' ~ 1 ~ none ~ missing }}",
         "ab ababab [1, 2] a1None"},
        {"{{ 1 ~ 3 * 4 }} {{ -n }} {{ +n }} {{ (n - 1) / 2 }}", "112 -7 7 3.0"},
    };
    CHECK(examples);
}

static void comparisons(void **state) {
    (void)state;
    static const example examples[] = {
        {"{{ 1 == 1.0 }} {{ 1 == true }} {{ 'a' < 'b' }} {{ 1 < 2 < 3 }} {{ 1 < 3 < 2 }} {{ 2 >= 2 }} {{ 1 "
         "!= 2 }}",
         "True True True True False True True"},
        {"{{ [1, 2] == [1, 2] }} {{ [1] < [1, 2] }} {{ {'a': 1} == {'a': 1.0} }} {{ 'a' == 1 }}",
         "True True True False"},
        {"{{ 'ord' in 'words' }} {{ 2 in list }} {{ 'zeta' in map }} {{ 'x' not in map }} {{ not 1 in list "
         "}}",
         "True True True True False"},
    };
    CHECK(examples);
}

static void logic(void **state) {
    (void)state;
    static const example examples[] = {
        {"{{ n and name }} {{ '' or 'else' }} {{ not flag }} {{ nothing and missing.x }}",
         "Ada else False None"},
        {"{{ 'yes' if flag else 'no' }} [{{ 'yes' if not flag }}] {{ 1 if '' else 2 if [] else 3 }}",
         "yes [] 3"},
        {"{{ flag and not nothing or missing.x }} {{ n > 5 and list|length == 3 }}", "True True"},
    };
    CHECK(examples);
}

static void conditions(void **state) {
    (void)state;
    static const example examples[] = {
        {"{% if n > 5 %}a{% elif n > 3 %}b{% else %}c{% endif %}", "a"},
        {"{% if not n %}a{% elif n == 7 %}b{% else %}c{% endif %}", "b"},
        {"{% if missing %}a{% endif %}{% if {} %}b{% else %}c{% endif %}", "c"},
        {"{% if flag %}{% set inside = 1 %}{% endif %}{{ inside }}", "1"},
    };
    CHECK(examples);
}

static void loops(void **state) {
    (void)state;
    static const example examples[] = {
        {"{% for x in list %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.first }}{{ "
         "loop.last }}{{ loop.length }} {% endfor %}",
         "103TrueFalse3 212FalseFalse3 321FalseTrue3 "},
        {"{% for x in list %}[{{ loop.previtem }}<{{ x }}<{{ loop.nextitem }}]{% endfor %}",
         "[<3<1][3<1<2][1<2<]"},
        {"{% for k, v in map.items() %}{{ k }}={{ v }};{% endfor %}",
         "zeta=1;Alpha=[1, {'q': None}];items=own;"},
        {"{% for a, (b, c) in [(1, (2, 3))] %}{{ a }}{{ b }}{{ c }}{% endfor %}", "123"},
        {"{% for x in [] %}a{% else %}empty{% endfor %}{% for x in missing %}a{% else %}none{% endfor %}",
         "emptynone"},
        {"{% for m in messages if m.role != 'system' %}{{ loop.index }}{{ m.content }}{% endfor %}",
         "1Hi2Hello"},
        {"{% for c in 'aé' %}[{{ c }}]{% endfor %}{% for k in map %}{{ k }} {% endfor %}",
         "[a][é]zeta Alpha items "},
        {"{% for x in list %}{% for y in [1, 2] %}{{ loop.index }}{% endfor %}{{ loop.index }}{% endfor %}{{ "
         "loop }}",
         "121122123"},
        {"{% for i in range(9) %}{% if i == 2 %}{% continue %}{% endif %}{% if i == 5 %}{% break %}{% endif "
         "%}{{ i }}{% endfor %}",
         "0134"},
    };
    CHECK(examples);
}

static void assignments(void **state) {
    (void)state;
    static const example examples[] = {
        {"{% set x = 1 %}{% for i in list %}{% set x = i %}{{ x }}{% endfor %}{{ x }}", "3121"},
        {"{% set ns = namespace(total=0) %}{% for i in list %}{% set ns.total = ns.total + i %}{% endfor "
         "%}{{ ns.total }}{{ ns.other }}",
         "6"},
        {"{% set a, b = 1, 'two' %}{{ a }}{{ b }}", "1two"},
        {"{% set x %}block {{ n }}{% set y = 1 %}{% endset %}[{{ x }}{{ y }}]", "[block 7]"},
        {"{% set x | trim | upper %} block {% endset %}[{{ x }}]", "[BLOCK]"},
        {"{% filter upper %}filtered {{ name }}{% endfilter %}", "FILTERED ADA"},
        {"{% generation %}kept {{ n }}{% endgeneration %}", "kept 7"},
    };
    CHECK(examples);
}

static void macros(void **state) {
    (void)state;
    static const example examples[] = {
        {"{% macro m(a, b=2, c='x') %}{{ a }}-{{ b }}-{{ c }}{% endmacro %}{{ m(1) }} {{ m(1, c=5) }} {{ m() "
         "}} {{ m(b=none, a=0) }}",
         "1-2-x 1-2-5 -2-x 0-None-x"},
        {"{% macro down(k) %}{{ k }}{% if k %}{{ down(k - 1) }}{% endif %}{% endmacro %}{{ down(3) }}",
         "3210"},
        {"{% set x = 1 %}{% macro m() %}{{ x }}{% set x = 5 %}{% endmacro %}{% set x = 2 %}{{ m() }}{{ x }}",
         "22"},
        {"{% macro a() %}{{ b() }}{% endmacro %}{% macro b() %}late{% endmacro %}{{ a()|upper ~ '!' }}",
         "LATE!"},
    };
    CHECK(examples);
}

static void value_filters(void **state) {
    (void)state;
    static const example examples[] = {
        {"{{ missing|default('d') }} {{ ''|default('d') }} {{ ''|default('d', true) }} {{ nothing|d('d', "
         "boolean=true) }}",
         "d  d d"},
        {"{{ '42'|int }} {{ '4.9'|int }} {{ 'x'|int(5) }} {{ 'ff'|int(base=16) }} {{ -4.9|int }} {{ "
         "nothing|int }}",
         "42 4 5 255 -4 0"},
        {"{{ '1.5'|float }} {{ 'x'|float }} {{ -3|abs }} {{ 2.5|round }} {{ 2.675|round(2) }} {{ "
         "1.11|round(1, 'ceil') }} {{ 5|string ~ 1 }}",
         "1.5 0.0 3 2.0 2.67 1.2 51"},
        {"{{ list|length }} {{ 'hé'|length }} {{ map|count }}", "3 2 3"},
        {"{{ '<b>'|safe + '<&>' }} {{ '<b>' + '<i>' }}", "<b>&lt;&amp;&gt; <b><i>"},
    };
    CHECK(examples);
}

static void json(void **state) {
    (void)state;
    static const example examples[] = {
        {"{{ map|tojson }}", "{\"zeta\": 1, \"Alpha\": [1, {\"q\": null}], \"items\": \"own\"}"},
        {"{{ map|tojson(indent=2) }}", "{\n"
                                       "  \"zeta\": 1,\n"
                                       "  \"Alpha\": [\n"
                                       "    1,\n"
                                       "    {\n"
                                       "      \"q\": null\n"
                                       "    }\n"
                                       "  ],\n"
                                       "  \"items\": \"own\"\n"
                                       "}"},
        {"{{ [[], {}, [1, 'a']]|tojson(indent=1) }}", "[\n"
                                                      " [],\n"
                                                      " {},\n"
                                                      " [\n"
                                                      "  1,\n"
                                                      "  \"a\"\n"
                                                      " ]\n"
                                                      "]"},
        {"{{ '<\\\"\\\\\\n\\x01é/>'|tojson }} {{ 'é\\U0001F600'|tojson(ensure_ascii=true) }}",
         "\"<\\\"\\\\\\n\\u0001é/>\" \"\\u00e9\\ud83d\\ude00\""},
        {"{{ map|tojson(sort_keys=true, separators=(',', ':')) }}",
         "{\"Alpha\":[1,{\"q\":null}],\"items\":\"own\",\"zeta\":1}"},
        {"{{ [1.0, true, none, (1, 2), {1: 2}]|tojson }}", "[1.0, true, null, [1, 2], {\"1\": 2}]"},
    };
    CHECK(examples);
}

static void text_filters(void **state) {
    (void)state;
    static const example examples[] = {
        {"[{{ text|trim }}] {{ 'xxaxx'|trim('x') }} {{ name|upper }} {{ name|lower }} {{ 'two-part NAME "
         "(x'|title }} {{ 'hELLO'|capitalize }}",
         "[two words] a ADA ada Two-Part Name (X Hello"},
        {"{{ 'a.b.c'|replace('.', '-') }} {{ 'a.b.c'|replace('.', '-', 1) }} {{ 'ab'|replace('', '-') }}",
         "a-b-c a-b.c -a-b-"},
        {"{{ 'a\\nb\\n\\nc'|indent }}|{{ 'a\\nb'|indent(2, true) }}|{{ 'a\\n\\nb'|indent('> ', blank=true) "
         "}}",
         "a\n"
         "    b\n"
         "\n"
         "    c|  a\n"
         "  b|a\n"
         "> \n"
         "> b"},
        {"{{ 'straße'|upper }} {{ 'ЖÉ'|lower }} {{ none|upper }}", "STRASSE жé NONE"},
    };
    CHECK(examples);
}

static void item_filters(void **state) {
    (void)state;
    static const example examples[] = {
        {"{{ list|join(', ') }} {{ list|join }} {{ messages|join(' ', attribute='role') }}",
         "3, 1, 2 312 system user assistant"},
        {"{{ list|first }} {{ list|last }} {{ []|first }}| {{ 'ab'|list }} {{ map|list }} {{ "
         "list|reverse|list }} {{ 'ab'|reverse }}",
         "3 2 | ['a', 'b'] ['zeta', 'Alpha', 'items'] [2, 1, 3] ba"},
        {"{{ map|dictsort }} {{ map|dictsort(true) }} {{ {'a': 2, 'b': 1}|dictsort(by='value', reverse=true) "
         "}}",
         "[('Alpha', [1, {'q': None}]), ('items', 'own'), ('zeta', 1)] [('Alpha', [1, {'q': None}]), "
         "('items', 'own'), ('zeta', 1)] [('a', 2), ('b', 1)]"},
        {"{{ map|items|list }} {{ missing|items|list }}",
         "[('zeta', 1), ('Alpha', [1, {'q': None}]), ('items', 'own')] []"},
        {"{{ words|sort }} {{ words|sort(true) }} {{ words|sort(case_sensitive=true) }} {{ "
         "messages|sort(attribute='role')|map(attribute='content')|list }}",
         "['A', 'a', 'b', 'c'] ['c', 'b', 'A', 'a'] ['A', 'a', 'b', 'c'] ['Hello', 'Be brief.', 'Hi']"},
        {"{{ words|unique|list }} {{ list|min }} {{ list|max }} {{ list|sum }} {{ words|min }}",
         "['b', 'A', 'c'] 1 3 6 A"},
    };
    CHECK(examples);
}

static void selection(void **state) {
    (void)state;
    static const example examples[] = {
        {"{{ messages|selectattr('role', 'equalto', 'user')|list|length }} {{ messages|rejectattr('role', "
         "'in', ['user'])|map(attribute='role')|list }}",
         "1 ['system', 'assistant']"},
        {"{{ messages|selectattr('score')|list|length }} {{ messages|selectattr('score', "
         "'defined')|map(attribute='score')|list }}",
         "1 [2]"},
        {"{{ list|select('odd')|list }} {{ list|reject('gt', 1)|list }} {{ [0, 'a', '']|select|list }} {{ "
         "nothing|select|list }}",
         "[3, 1] [1] ['a'] []"},
        {"{{ words|map('upper')|join }} {{ ['a-b']|map('replace', '-', '+')|list }} {{ "
         "messages|map(attribute='score', default=0)|list }}",
         "BACA ['a+b'] [0, 0, 2]"},
        {"{% set twice = list|map('string') %}{{ twice|join }}{{ twice|join }}", "312"},
    };
    CHECK(examples);
}

static void test_names(void **state) {
    (void)state;
    static const example examples[] = {
        {"{{ n is defined }} {{ missing is undefined }} {{ nothing is none }} {{ n is not none }}",
         "True True True True"},
        {"{{ name is string }} {{ map is mapping }} {{ list is sequence }} {{ map is sequence }} {{ n is "
         "sequence }} {{ map.items() is sequence }}",
         "True True True True False False"},
        {"{{ list is iterable }} {{ name is iterable }} {{ n is iterable }} {{ missing is iterable }} {{ "
         "range is callable }} {{ n is callable }}",
         "True True False True True False"},
        {"{{ n is number }} {{ flag is number }} {{ n is integer }} {{ flag is integer }} {{ real is float "
         "}} {{ flag is boolean }} {{ flag is true }} {{ flag is false }}",
         "True True True False True True True False"},
        {"{{ n is odd }} {{ n is even }} {{ n is divisibleby 7 }} {{ n is equalto 7 }} {{ n is eq(7) }} {{ n "
         "is gt 3 }} {{ n is in [7] }} {{ n is ne 7 }}",
         "True False True True True True True False"},
    };
    CHECK(examples);
}

static void string_methods(void **state) {
    (void)state;
    static const example examples[] = {
        {"[{{ text.strip() }}] {{ 'xxa'.lstrip('x') }} [{{ 'a\\n\\n'.rstrip('\\n') }}]", "[two words] a [a]"},
        {"{{ 'a,b,c'.split(',') }} {{ ' a  b '.split() }} {{ ' a b  c '.split(none, 1) }} {{ "
         "'a,b,c'.split(',', 1)[-1] }} {{ 'a,b,c'.rsplit(',', 1) }} {{ ''.split(',') }}",
         "['a', 'b', 'c'] ['a', 'b'] ['a', 'b  c '] b,c ['a,b', 'c'] ['']"},
        {"{{ name.startswith('A') }} {{ name.endswith(('x', 'da')) }} {{ 'aB'.upper() }} {{ 'aB'.lower() }} "
         "{{ \"they're\".title() }} {{ 'aB'.capitalize() }}",
         "True True AB ab They'Re Ab"},
        {"{{ 'a.b'.replace('.', '') }} {{ '-'.join(['a', 'b']) }} {{ 'héx'.find('x') }} {{ 'a'.find('x') }} "
         "{{ 'abab'.rfind('ab') }} {{ 'abab'.count('ab') }}",
         "ab a-b 2 -1 2 2"},
        {"{{ '{}-{}{{}}'.format(1, 'x') }} {{ '{1}{a}'.format(1, 2, a='k') }} {{ 'a\\nb'.splitlines() }}",
         "1-x{} 2k ['a', 'b']"},
    };
    CHECK(examples);
}

static void dict_methods(void **state) {
    (void)state;
    static const example examples[] = {
        {"{{ map.get('zeta') }} {{ map.get('x') }} {{ map.get('x', 5) }}", "1 None 5"},
        {"{{ map.keys()|list }} {{ map.values()|list|length }} {{ map.items()|list|first }} {{ map.update is "
         "defined }}",
         "['zeta', 'Alpha', 'items'] 3 ('zeta', 1) False"},
    };
    CHECK(examples);
}

static void globals(void **state) {
    (void)state;
    static const example examples[] = {
        {"{{ range(3)|list }} {{ range(1, 4)|list }} {{ range(5, 0, -2)|list }} {{ range(-1)|list }}",
         "[0, 1, 2] [1, 2, 3] [5, 3, 1] []"},
        {"{{ dict(a=1, b='x') }} {{ namespace(a=1).a }} {{ strftime_now('%d')|length }} {{ "
         "strftime_now('at') }}",
         "{'a': 1, 'b': 'x'} 1 2 at"},
    };
    CHECK(examples);
}

static void conversation(void **state) {
    (void)state;
    static const example examples[] = {
        {"{{- bos_token -}}\n"
         "{%- if messages[0]['role'] == 'system' -%}\n"
         "    {%- set first = messages[0]['content'] -%}\n"
         "    {%- set rest = messages[1:] -%}\n"
         "{%- endif -%}\n"
         "{%- for message in rest %}\n"
         "    {%- if (message.role == 'user') != (loop.index0 % 2 == 0) %}\n"
         "        {{- raise_exception('Roles must alternate') }}\n"
         "    {%- endif %}\n"
         "    {{- '<turn>' + ('model' if message.role == 'assistant' else message.role) + '\\n' }}\n"
         "    {{- (first ~ '\\n\\n' if loop.first and first is defined) ~ message.content | trim }}\n"
         "    {{- '</turn>\\n' }}\n"
         "{%- endfor %}\n"
         "{%- if not add_generation_prompt is defined or add_generation_prompt %}\n"
         "    {{- '<turn>model\\n' }}\n"
         "{%- endif %}\n",
         "<turn>user\n"
         "Be brief.\n"
         "\n"
         "Hi</turn>\n"
         "<turn>model\n"
         "Hello</turn>\n"
         "<turn>model\n"},
    };
    CHECK(examples);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_and_comments),
        cmocka_unit_test(white_space),
        cmocka_unit_test(literals),
        cmocka_unit_test(lookups),
        cmocka_unit_test(slices),
        cmocka_unit_test(arithmetic),
        cmocka_unit_test(comparisons),
        cmocka_unit_test(logic),
        cmocka_unit_test(conditions),
        cmocka_unit_test(loops),
        cmocka_unit_test(assignments),
        cmocka_unit_test(macros),
        cmocka_unit_test(value_filters),
        cmocka_unit_test(json),
        cmocka_unit_test(text_filters),
        cmocka_unit_test(item_filters),
        cmocka_unit_test(selection),
        cmocka_unit_test(test_names),
        cmocka_unit_test(string_methods),
        cmocka_unit_test(dict_methods),
        cmocka_unit_test(globals),
        cmocka_unit_test(conversation),
    };
    return cmocka_run_group_tests(tests, load_variables, free_variables);
}
