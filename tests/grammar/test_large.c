/* SPDX-License-Identifier: Apache-2.0
 *
 * Large schemas and lists: compiled, ended by a limit, ended by who no longer waits.
 */
#include "base/byte_buffer.h"
#include "grammar/compile/grammar.h"
#include "grammar/schema/schema.h"
#include "matching.h"
#include "support/paths.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { MANY = 10000, MORE = 100000 };

static void append(gb_byte_buffer *text, const char *more) {
    gb_buffer_append(text, more, strlen(more));
}

/* before, count times the item with commas between them, and behind; # is the number of the item, ' is ". */
static gb_byte_buffer listed(const char *before, const char *item, unsigned count, const char *behind) {
    gb_byte_buffer text = {0};
    append(&text, before);
    for (unsigned i = 0; i < count; i++) {
        char number[12];
        snprintf(number, sizeof number, "%u", i);
        append(&text, i ? "," : "");
        for (const char *at = item; *at; at++)
            gb_buffer_append(&text, *at == '#' ? number : at, *at == '#' ? strlen(number) : 1);
    }
    append(&text, behind);
    gb_buffer_append(&text, "", 1);
    for (size_t i = 0; i < text.size; i++)
        text.data[i] = text.data[i] == '\'' ? '"' : text.data[i];
    return text;
}

/* ---- Schemas ------------------------------------------------------------------------------------------- */

typedef struct large {
    const char *before, *item, *behind;
    const char *accepted[4], *refused[4]; /* up to NULL */
} large;

static const large schemas[] = {
    {"{'enum': [",
     "'value #'",
     "]}",
     {"'value 0'", "'value 9999'"},
     {"'value'", "'value 10000'", "'value 99"}},
    {"{'enum': [0, ",
     "'#'",
     ", 0.0, [1, 'a'], {'b': 2}]}",
     {"'77'", "0", "[1,'a']", "{'b':2}"},
     {"77", "[1]"}},
    {"{'enum': [", "'value #'", "], 'pattern': '7$'}", {"'value 7'", "'value 9997'"}, {"'value 8'", "'7'"}},
    {"{'type': 'string', 'not': {'enum': [",
     "'value #'",
     "]}}",
     {"'value'", "'value 10000'"},
     {"'value 77'"}},
    {"{'type': 'integer', 'enum': [1.5, 10000, ",
     "#",
     "], 'not': {'enum': [7, 9999]}}",
     {"10000", "9998"},
     {"7", "1.5"}},
    {"{'anyOf': [", "{'const': 'value #'}", "]}", {"'value 0'", "'value 9999'"}, {"'value 10000'"}},
    {"{'const': [", "#", "]}", {NULL}, {"[0,1]"}},
    {"{'type': 'object', 'properties': {",
     "'p#': {'type': 'integer'}",
     "}, 'additionalProperties': {'type': 'null'}}",
     {"{'p9999':1,'p7':2}", "{'p10000':null,'p1':3}", "{}"},
     {"{'p7':null}", "{'p10000':1}"}},
    {"{'type': 'object', 'properties': {",
     "'p#': {'type': 'object'}",
     "}, 'propertyNames': {'pattern': '^p'}}",
     {"{'p9999':{}}"},
     {"{'p7':1}"}},
    {"{'type': 'object', 'properties': {",
     "'p#': {'type': 'integer'}",
     "}, 'patternProperties': {'7$': {'minimum': 3}}}",
     {"{'p7':3,'p8':1}"},
     {"{'p9997':1}"}}};

static gb_grammar *compile(const gb_byte_buffer *schema, bool in_order) {
    const gb_schema_options options = {.in_order = in_order};
    gb_expressions *expressions = gb_expressions_create();
    gumbel_error error;
    const gb_expression root =
        gb_schema_express_text(expressions, (const char *)schema->data, schema->size - 1, &options, &error);
    if (!root)
        fail_msg("%.60s...: %s", (const char *)schema->data, error.message);
    return compile_and_free(expressions, root);
}

static void check_text(const gb_grammar *grammar, const char *quoted, bool expected) {
    gb_byte_buffer text = listed(quoted, "", 0, "");
    if (accepts_bytes(grammar, (const char *)text.data, text.size - 1) != expected)
        fail_msg("%s is %s", quoted, expected ? "refused" : "accepted");
    gb_buffer_free(&text);
}

static void test_schemas(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof schemas / sizeof *schemas; i++) {
        gb_byte_buffer schema = listed(schemas[i].before, schemas[i].item, MANY, schemas[i].behind);
        gb_grammar *grammar = compile(&schema, false);
        for (size_t k = 0; k < 4 && schemas[i].accepted[k]; k++)
            check_text(grammar, schemas[i].accepted[k], true);
        for (size_t k = 0; k < 4 && schemas[i].refused[k]; k++)
            check_text(grammar, schemas[i].refused[k], false);
        gb_grammar_destroy(grammar);
        gb_buffer_free(&schema);
    }
}

static void test_members_in_order(void **state) {
    (void)state;
    gb_byte_buffer schema =
        listed("{'type': 'object', 'properties': {", "'p#': {'type': 'integer'}", 3000, "}}");
    gb_grammar *grammar = compile(&schema, true);
    check_text(grammar, "{'p0':1,'p2999':2}", true);
    check_text(grammar, "{'p7':1,'p3':2}", false);
    gb_grammar_destroy(grammar);
    gb_buffer_free(&schema);
}

/* Each array stands in the one around it several times, and its states once. */
static void test_nested_arrays(void **state) {
    (void)state;
    enum { DEPTH = 12 };
    gb_byte_buffer schema = {0};
    for (int i = 0; i < DEPTH; i++)
        append(&schema, "{\"type\": \"array\", \"maxItems\": 3, \"items\": ");
    append(&schema, "{\"type\": \"integer\"}");
    for (int i = 0; i < DEPTH; i++)
        append(&schema, "}");
    gb_buffer_append(&schema, "", 1);
    gb_grammar *grammar = compile(&schema, false);
    check_text(grammar, "[[[[[[[[[[[[1,2,3]]]]]]]]]]],[],[[]]]", true);
    check_text(grammar, "[[[[[[[[[[[[1,2,3,4]]]]]]]]]]],[],[[]]]", false);
    assert_true(grammar->automaton.state_count < 3000);
    gb_grammar_destroy(grammar);
    gb_buffer_free(&schema);
}

/* ---- Ends ---------------------------------------------------------------------------------------------- */

static gumbel_tokenizer *tokenizer;

static int set_up_group(void **state) {
    (void)state;
    return gumbel_export_tokenizer(bundled_model("gemma4-tiny"), &tokenizer, NULL) == GUMBEL_OK ? 0 : -1;
}

static int tear_down_group(void **state) {
    (void)state;
    gumbel_tokenizer_destroy(tokenizer);
    return 0;
}

static void check_fails(gumbel_grammar_options options, gumbel_status status, const char *message) {
    gumbel_grammar *grammar;
    gumbel_error error;
    options.size = sizeof options;
    assert_fails(gumbel_grammar_create(tokenizer, &options, &grammar, &error), status, &error, message);
    assert_null(grammar);
}

static bool count_and_cancel(void *user) {
    return ++*(unsigned *)user == 2;
}

static void test_cancelled(void **state) {
    (void)state;
    gb_byte_buffer texts[] = {listed("{'enum': [", "'value #'", MORE, "]}"),
                              listed("[", "'value #'", MORE, "]")};
    const gumbel_grammar_kind kinds[] = {GUMBEL_GRAMMAR_JSON_SCHEMA, GUMBEL_GRAMMAR_CHOICES};
    for (size_t i = 0; i < 2; i++) {
        unsigned asked = 0;
        const gumbel_grammar_options options = {.kind = kinds[i],
                                                .text = (const char *)texts[i].data,
                                                .is_cancelled = count_and_cancel,
                                                .user = &asked};
        check_fails(options, GUMBEL_ERROR_CANCELLED, "compiling was cancelled");
        assert_int_equal(asked, 2);
        gb_buffer_free(&texts[i]);
    }
}

static void test_time(void **state) {
    (void)state;
    gb_byte_buffer text = listed("[", "'value #'", MANY, "]");
    gumbel_grammar_options options = {
        .kind = GUMBEL_GRAMMAR_CHOICES, .text = (const char *)text.data, .max_seconds = 1e-6};
    check_fails(options, GUMBEL_ERROR_LIMIT, "compiling takes longer than 1e-06 seconds; make it smaller");
    options.max_seconds = -1;
    check_fails(options, GUMBEL_ERROR_ARGUMENT, "max_seconds is -1");
    options.max_seconds = NAN;
    check_fails(options, GUMBEL_ERROR_ARGUMENT, "max_seconds is");
    gb_buffer_free(&text);
}

/* Digits of a hash end in too many different ways. */
static void test_states(void **state) {
    (void)state;
    gb_byte_buffer text = {0};
    append(&text, "[\"\"");
    for (unsigned i = 0; i < MORE; i++) {
        char item[40];
        snprintf(item, sizeof item, ",\"%08x%08x%08x\"", i * 2654435761u, (i + 77) * 3266489917u,
                 i * 668265263u);
        append(&text, item);
    }
    append(&text, "]");
    gb_buffer_append(&text, "", 1);
    const gumbel_grammar_options options = {.kind = GUMBEL_GRAMMAR_CHOICES, .text = (const char *)text.data};
    check_fails(options, GUMBEL_ERROR_LIMIT, "more than 1000000 states; make it smaller");
    gb_buffer_free(&text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_schemas),       cmocka_unit_test(test_members_in_order),
        cmocka_unit_test(test_nested_arrays), cmocka_unit_test(test_cancelled),
        cmocka_unit_test(test_time),          cmocka_unit_test(test_states)};
    return cmocka_run_group_tests(tests, set_up_group, tear_down_group);
}
