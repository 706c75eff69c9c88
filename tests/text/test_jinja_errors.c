/* SPDX-License-Identifier: Apache-2.0
 *
 * The Jinja interpreter's errors and limits, and what damaged templates and failing allocations do to it.
 */
#include "text/jinja/jinja.h"

#include "base/memory.h"
#include "support/assertions.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static json_t *variables;

static int load_variables(void **state) {
    (void)state;
    static const char text[] = "{\"n\": 7, \"name\": \"Ada\", \"list\": [3, 1, 2], \"nothing\": null, "
                               "\"map\": {\"zeta\": 1, \"Alpha\": [2]},"
                               " \"messages\": [{\"role\": \"user\", \"content\": \"Hi\"}, {\"role\": "
                               "\"assistant\", \"score\": 2}]}";
    variables = json_loads(text, 0, NULL);
    return variables ? 0 : -1;
}

static int free_variables(void **state) {
    (void)state;
    json_decref(variables);
    return 0;
}

/* The template fails with the status and a message that contains part. */
static void refuse(const char *source, gumbel_status expected, const char *part) {
    gumbel_error error = {0};
    gb_jinja_input input = {source, strlen(source), .variables = variables};
    gb_jinja_output output = {0};
    assert_fails(gb_jinja_render(&input, &output, &error), expected, &error, part);
    assert_null(output.text);
}

static void unknown_things_are_named(void **state) {
    (void)state;
    refuse("{{ n|no_filter }}", GUMBEL_ERROR_UNSUPPORTED, "line 1: the filter \"no_filter\" is not known");
    refuse("a\n{{ n is no_test }}", GUMBEL_ERROR_UNSUPPORTED, "line 2: the test \"no_test\" is not known");
    refuse("{% include 'x' %}", GUMBEL_ERROR_UNSUPPORTED, "the statement \"include\" is not known");
    refuse("{{ list|map('nope')|list }}", GUMBEL_ERROR_UNSUPPORTED, "\"nope\"");
    refuse("{{ list|tojson(nope=1) }}", GUMBEL_ERROR_UNSUPPORTED, "has no argument \"nope\"");
    refuse("{{ 99999999999999999999 }}", GUMBEL_ERROR_UNSUPPORTED, "64 bits");
    refuse("{{ 9223372036854775807 + 1 }}", GUMBEL_ERROR_UNSUPPORTED, "64 bits");
}

static void syntax_errors_name_the_line(void **state) {
    (void)state;
    refuse("a\n\n{% if n %}\nb", GUMBEL_ERROR_FORMAT,
           "line 4: expected endif, found \"the end of the template\"");
    refuse("{% endif %}", GUMBEL_ERROR_FORMAT, "\"endif\" ends no open statement");
    refuse("\n{{ 'abc }}", GUMBEL_ERROR_FORMAT, "line 2: a string has no end");
    refuse("{{ n", GUMBEL_ERROR_FORMAT, "ends within a tag");
    refuse("{# n", GUMBEL_ERROR_FORMAT, "a comment has no end");
    refuse("{{ (n }}", GUMBEL_ERROR_FORMAT, "unexpected '}'");
    refuse("{{ n $ 1 }}", GUMBEL_ERROR_FORMAT, "unexpected character '$'");
    refuse("{{ n n }}", GUMBEL_ERROR_FORMAT, "expected }}, found \"n\"");
    refuse("{{ }}", GUMBEL_ERROR_FORMAT, "expected an expression");
    refuse("{% break %}", GUMBEL_ERROR_FORMAT, "outside of a loop");
    refuse("{{ '\\ud800' }}", GUMBEL_ERROR_FORMAT, "is not a character");
    refuse("\xFF", GUMBEL_ERROR_FORMAT, "not UTF-8");
}

static void failures_of_values_are_told(void **state) {
    (void)state;
    refuse("{{ missing.x }}", GUMBEL_ERROR_FORMAT, "\"missing\" is undefined");
    refuse("{{ missing['x'] }}", GUMBEL_ERROR_FORMAT, "\"missing\" is undefined");
    refuse("{{ missing() }}", GUMBEL_ERROR_FORMAT, "\"missing\" is undefined");
    refuse("{{ 'a' + missing }}", GUMBEL_ERROR_FORMAT, "\"missing\" is undefined");
    refuse("{{ 'a' + 1 }}", GUMBEL_ERROR_FORMAT, "+ does not take values of type str and int");
    refuse("{{ 'a' < 1 }}", GUMBEL_ERROR_FORMAT, "cannot be ordered");
    refuse("{{ 1 // 0 }}", GUMBEL_ERROR_FORMAT, "division by zero");
    refuse("{{ 1 in 'a' }}", GUMBEL_ERROR_FORMAT, "in does not take");
    refuse("{% for x in n %}{% endfor %}", GUMBEL_ERROR_FORMAT, "type int cannot be iterated");
    refuse("{% for a, b in [[1]] %}{% endfor %}", GUMBEL_ERROR_FORMAT, "2 names cannot be set from 1 values");
    refuse("{% set map.x = 1 %}", GUMBEL_ERROR_FORMAT, "only a namespace");
    refuse("{{ list.append(4) }}", GUMBEL_ERROR_FORMAT, "\"append\" is undefined");
    refuse("{{ nothing|length }}", GUMBEL_ERROR_FORMAT, "type none has no length");
    refuse("{{ missing|tojson }}", GUMBEL_ERROR_FORMAT, "cannot be written as JSON");
    refuse("{{ 'a'.split('') }}", GUMBEL_ERROR_FORMAT, "empty separator");
    refuse("{% macro m(a) %}{% endmacro %}{{ m(1, 2) }}", GUMBEL_ERROR_FORMAT,
           "the macro \"m\" does not take");
    refuse("{{ raise_exception('Not\nso') }}", GUMBEL_ERROR_ARGUMENT, "Not so");
}

static void context_must_be_an_object(void **state) {
    (void)state;
    gumbel_error error;
    gb_jinja_output output = {0};
    json_t *array = json_array();
    gb_jinja_input listed = {"a", 1, .variables = array}, broken = {"{{", 2, .variables = variables};
    assert_fails(gb_jinja_render(&listed, &output, &error), GUMBEL_ERROR_ARGUMENT, &error, "a JSON object");
    assert_int_equal(gb_jinja_render(&broken, &output, NULL), GUMBEL_ERROR_FORMAT);
    json_decref(array);
}

/* prefix, then part many times over, then suffix. */
static void refuse_repeated(const char *prefix, const char *part, int count, const char *suffix) {
    size_t size = strlen(prefix) + strlen(part) * (size_t)count + strlen(suffix) + 1;
    char *source = malloc(size);
    assert_non_null(source);
    strcpy(source, prefix);
    for (int i = 0; i < count; i++)
        strcpy(source + strlen(prefix) + strlen(part) * (size_t)i, part);
    strcat(source, suffix);
    refuse(source, GUMBEL_ERROR_LIMIT, "");
    free(source);
}

static void nesting_is_limited(void **state) {
    (void)state;
    refuse_repeated("{{ ", "(", 2000, "");
    refuse_repeated("{{ ", "not ", 2000, "1 }}");
    refuse_repeated("{{ ", "-", 2000, "1 }}");
    refuse_repeated("{{ ", "1 + ", 2000, "1 }}");
    refuse_repeated("{{ 1", " if 1 else 1", 2000, " }}");
    refuse_repeated("{{ n", "|string", 2000, " }}");
    refuse_repeated("", "{% if n %}", 2000, "");
    refuse("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", GUMBEL_ERROR_LIMIT, "nested");
    refuse("{% set ns = namespace(x=1) %}{% for i in range(9999) %}{% set ns.x = [ns.x] %}{% endfor %}{{ "
           "ns.x }}",
           GUMBEL_ERROR_LIMIT, "nested");
}

static void work_and_size_are_limited(void **state) {
    (void)state;
    refuse_repeated("", "a long template", 80000, "");
    refuse("{{ 'ab' * 9000000 }}", GUMBEL_ERROR_LIMIT, "16 MiB");
    refuse("{% for i in range(100) %}{{ 'ab' * 100000 }}{% endfor %}", GUMBEL_ERROR_LIMIT, "16 MiB");
    refuse("{{ [1] * 99999999 }}", GUMBEL_ERROR_LIMIT, "256 MiB");
    refuse("{{ range(100001) }}", GUMBEL_ERROR_LIMIT, "100000");
    refuse("{% set l = range(100000) %}{% for i in l %}{% if l == l %}{% endif %}{% endfor %}",
           GUMBEL_ERROR_LIMIT, "steps");
    refuse("{% set a = 'a' * 9000000 %}{% set b = 'a' * 4000000 ~ 'b' %}{{ b in a }}", GUMBEL_ERROR_LIMIT,
           "steps");
}

/* Statements and expressions of every kind, for the tests that damage it. */
static const char everything[] =
    "{%- macro m(a, b=[1, 'x']) -%}{{ a ~ b|join(', ') }}{%- endmacro -%}\n"
    "{% set ns = namespace(found=false, text='') %}{# comment #}\n"
    "{% for key, value in map|dictsort if key != 'zeta' -%}\n"
    "  {% if loop.first and value is iterable %}{{ m(key, b=value|map('string')|list) }}\n"
    "  {% elif value is none or not value %}{% continue %}{% else %}{{ value|tojson(indent=2) }}{% endif %}\n"
    "  {% set ns.text = ns.text + key[::-1].upper() %}\n"
    "{% else %}none{% endfor %}\n"
    "{% set block | trim %} {{ ns.text.split('A', 1)[0] }} {{ 1.5e1 // 2 ** 2 % 5 }} {% endset %}\n"
    "{{ block }}{{ messages|selectattr('role', 'equalto', 'user')|map(attribute='content')|first }}\n"
    "{{ 'a\\u00e9' if messages[1:][-1]['score'] >= 2 else (1, 2) }}{{ {'k': [list|sort, -n]}|string }}\n"
    "{% generation %}{% filter upper %}{{ '{}'.format(name) }}{% endfilter %}{% endgeneration %}";

/* Renders a copy that ends at the end of its block, so that the sanitizers see a byte read too far. */
static gumbel_status render_copy(const char *source, size_t length) {
    gumbel_error error = {0};
    gb_jinja_output output = {0};
    char *copy = malloc(length ? length : 1);
    assert_non_null(copy);
    memcpy(copy, source, length);
    gb_jinja_input input = {copy, length, .variables = variables};
    gumbel_status status = gb_jinja_render(&input, &output, &error);
    free(copy);
    gb_jinja_output_free(&output);
    assert_true(status == GUMBEL_OK || (error.status == status && error.message[0] != 0));
    return status;
}

static void truncated_templates_do_no_harm(void **state) {
    (void)state;
    size_t failures = 0;
    for (size_t length = 0; length < sizeof everything; length++)
        failures += render_copy(everything, length) != GUMBEL_OK;
    assert_true(failures > sizeof everything / 2);
    assert_int_equal(render_copy(everything, strlen(everything)), GUMBEL_OK);
}

static void flipped_bits_do_no_harm(void **state) {
    (void)state;
    char damaged[sizeof everything];
    size_t failures = 0;
    for (size_t bit = 0; bit < 8 * strlen(everything); bit++) {
        memcpy(damaged, everything, sizeof everything);
        damaged[bit / 8] = (char)(damaged[bit / 8] ^ (1 << bit % 8));
        failures += render_copy(damaged, strlen(everything)) != GUMBEL_OK;
    }
    assert_true(failures > strlen(everything));
}

static bool fail_at_zero(void *user, size_t bytes) {
    (void)bytes;
    return (*(int *)user)-- != 0;
}

static void failing_allocations_are_reported(void **state) {
    (void)state;
    static const char source[] = "{% for i in range(3000) %}{% set x = [i, i ~ 'x'] %}{{ x }}{% endfor %}";
    int tried = 0;
    for (gumbel_status status = GUMBEL_ERROR_MEMORY; status != GUMBEL_OK; tried++) {
        int remaining = tried;
        gb_set_allocation_hook(fail_at_zero, &remaining);
        status = render_copy(source, sizeof source - 1);
        gb_set_allocation_hook(NULL, NULL);
        assert_true(status == GUMBEL_OK || status == GUMBEL_ERROR_MEMORY);
    }
    assert_true(tried > 5);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unknown_things_are_named),
        cmocka_unit_test(syntax_errors_name_the_line),
        cmocka_unit_test(failures_of_values_are_told),
        cmocka_unit_test(context_must_be_an_object),
        cmocka_unit_test(nesting_is_limited),
        cmocka_unit_test(work_and_size_are_limited),
        cmocka_unit_test(truncated_templates_do_no_harm),
        cmocka_unit_test(flipped_bits_do_no_harm),
        cmocka_unit_test(failing_allocations_are_reported),
    };
    return cmocka_run_group_tests(tests, load_variables, free_variables);
}
