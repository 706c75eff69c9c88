/* SPDX-License-Identifier: Apache-2.0
 *
 * Which bytes of a rendering come from the caller, through what templates do with texts; and limits that are
 * given.
 */
#include "text/jinja/jinja.h"

#include "support/assertions.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* Shows each tainted byte of the rendering as it is, and the others as dots. */
static void check_taint(const char *source, const char *expected) {
    static const char text[] =
        "{\"x\": \"ab c\", \"list\": [\"p\", \"q\"], \"map\": {\"k\": \"v\"}, \"role\": \"user\","
        " \"messages\": [{\"role\": \"assistant\", \"content\": \"user\"}, {\"role\": \"<r>\"}]}";
    json_t *tainted = json_loads(text, 0, NULL), *trusted = json_pack("{s:s}", "bos_token", "<s>");
    gb_jinja_input input = {source, strlen(source), .variables = tainted, .trusted = trusted};
    gb_jinja_output output = {0};
    gumbel_error error;
    assert_ok(gb_jinja_render(&input, &output, &error), &error);
    for (size_t i = 0; i < output.length; i++)
        if (!output.taint || !output.taint[i])
            output.text[i] = '.';
    assert_string_equal(output.text, expected);
    gb_jinja_output_free(&output);
    json_decref(tainted);
    json_decref(trusted);
}

static void taint_follows_values(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        {"ab{{ 'c' }}{{ bos_token }}", "......"},
        {"<{{ x }}>", ".ab c."},
        {"{{ '<' + x + '>' }}{{ '<' ~ x }}{{ x * 2 }}", ".ab c..ab cab cab c"},
        {"{{ x[1:] }}{{ x[::-1] }}{{ x[0] }}{{ x | first }}{{ x | last }}", "b cc baaac"},
        {"{{ x | upper }}{{ x | title }}{{ x.capitalize() }}{{ x | trim }}", "AB CAb CAb cab c"},
        {"{{ x.split(' ') | join('-') }}{{ x.replace('b', '<>') }}{{ '<b>'.replace('b', x) }}",
         "ab.ca.. c.ab c."},
        {"{{ list }}{{ list | tojson }}{{ map }}{{ map | tojson }}",
         "..p....q....p....q....k....v....k....v.."},
        {"{% set y %}<{{ x }}>{% endset %}{{ y }}{{ y | length }}", ".ab c.."},
        {"{% macro m(a) %}<{{ a }}>{% endmacro %}{{ m(x) }}{{ m('x') }}", ".ab c...."},
        {"{{ '{}<{a}>'.format(x, a='b') }}{{ '<' | safe + x }}", "ab c....ab c"},
        {"{% for c in x %}.{{ c }}{% endfor %}{{ x | list | join }}", ".a.b. .cab c"},
        {"{% set ns = namespace(t='') %}{% for p in list %}{% set ns.t = ns.t + p + '|' %}{% endfor %}{{ "
         "ns.t }}",
         "p.q."},
        {"{{ map.items() | list }}{% for k in map %}{{ k }}{% endfor %}", "...k....v...k"},
        {"{{ x | indent(1, true) }}{{ x.splitlines()[0] }}{{ x | string | reverse }}", ".ab cab cc ba"},
        {"<|{{ messages[0].role }}|>{{ messages[0].content }}{{ messages[1].role }}", ".............user<r>"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_taint(cases[i][0], cases[i][1]);
}

/* A render under limits of the caller ends with the limit that it meets first. */
static void given_limits_hold(void **state) {
    (void)state;
    static const struct {
        const char *source, *part;
        gb_jinja_limits limits;
    } cases[] = {
        {"{% for i in range(1000) %}{{ i }}{% endfor %}", "more than 100 steps", {100, 1 << 20, 1 << 20, 5}},
        {"{{ 'a' * 5000000 }}", "longer than 1 MiB", {10000000, 1 << 20, 64 << 20, 5}},
        {"{% for i in range(90000) %}{% endfor %}",
         "more than 1 MiB of memory",
         {10000000, 1 << 20, 1 << 20, 5}},
        {"{% for i in range(90000) %}{% endfor %}", "more than 0 seconds", {10000000, 1 << 20, 256 << 20, 0}},
    };
    json_t *variables = json_object();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        gb_jinja_input input = {cases[i].source, strlen(cases[i].source), .variables = variables,
                                .limits = &cases[i].limits};
        gb_jinja_output output = {0};
        gumbel_error error;
        assert_fails(gb_jinja_render(&input, &output, &error), GUMBEL_ERROR_LIMIT, &error, cases[i].part);
    }
    json_decref(variables);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(taint_follows_values),
        cmocka_unit_test(given_limits_hold),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
