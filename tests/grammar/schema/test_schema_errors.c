/* SPDX-License-Identifier: Apache-2.0
 *
 * What schemas are refused, and what is said of it; schemas that are made to do harm.
 */
#include "check_schema.h"

#include "base/byte_buffer.h"
#include "base/clock.h"
#include "base/memory.h"
#include "support/test_arguments.h"

#include <limits.h>
#include <stdlib.h>

/* Evaluates a member beside another one. */
#define EVALUATING(name) "{'properties':{'" name "':true},'required':['" name "0']}"

typedef struct refusal {
    const char *schema;
    gumbel_status status;
    const char *part, *other; /* of the message */
} refusal;

static void check_refusals(const refusal *refusals, size_t count, const gb_schema_options *options) {
    for (size_t i = 0; i < count; i++) {
        gb_grammar *grammar = NULL;
        gumbel_error error = {0};
        const gumbel_status status = compile_schema(refusals[i].schema, options, &grammar, &error);
        gb_grammar_destroy(grammar);
        char part[300], other[300], message[sizeof error.message];
        unquote(refusals[i].part, part, sizeof part);
        unquote(refusals[i].other, other, sizeof other);
        unquote(error.message, message, sizeof message);
        if (status != refusals[i].status || !strstr(message, part) || !strstr(message, other))
            fail_msg("%s: status %d, '%s'", refusals[i].schema, (int)status, error.message);
    }
}

#define CHECK_REFUSALS(refusals, options)                                                                    \
    check_refusals((refusals), sizeof(refusals) / sizeof((refusals)[0]), (options))

static void test_wrong(void **state) {
    (void)state;
    static const refusal refusals[] = {
        {"{'type':", GUMBEL_ERROR_FORMAT, "schema: line 1", ""},
        {"{'a':1,'a':2}", GUMBEL_ERROR_FORMAT, "duplicate", ""},
        {"7", GUMBEL_ERROR_FORMAT, "at #", "an object or a boolean"},
        {"{'properties':{'a':7}}", GUMBEL_ERROR_FORMAT, "'properties' at #/properties",
         "objects or booleans"},
        {"{'properties':[]}", GUMBEL_ERROR_FORMAT, "'properties' at #/properties", "an object"},
        {"{'type':'text'}", GUMBEL_ERROR_FORMAT, "'type' at #/type", "found text"},
        {"{'type':7}", GUMBEL_ERROR_FORMAT, "'type' at #/type", "expected null, boolean"},
        {"{'type':'string','minLength':-1}", GUMBEL_ERROR_FORMAT, "'minLength' at #/minLength", "0 or more"},
        {"{'type':'string','maxLength':'1'}", GUMBEL_ERROR_FORMAT, "'maxLength'", "a count"},
        {"{'type':'array','maxItems':1.5}", GUMBEL_ERROR_FORMAT, "'maxItems'", "a count"},
        {"{'type':'number','minimum':'1'}", GUMBEL_ERROR_FORMAT, "'minimum'", "a number"},
        {"{'type':'number','exclusiveMinimum':'1'}", GUMBEL_ERROR_FORMAT, "'exclusiveMinimum'", "a number"},
        {"{'type':'number','multipleOf':0}", GUMBEL_ERROR_FORMAT, "'multipleOf'", "above 0"},
        {"{'type':'string','pattern':7}", GUMBEL_ERROR_FORMAT, "'pattern'", "a string"},
        {"{'type':'string','pattern':'a('}", GUMBEL_ERROR_FORMAT, "'pattern' at #/pattern", "("},
        {"{'type':'object','required':'a'}", GUMBEL_ERROR_FORMAT, "'required'", "an array"},
        {"{'type':'object','required':[1]}", GUMBEL_ERROR_FORMAT, "'required'", "a list of strings"},
        {"{'unevaluatedProperties':7}", GUMBEL_ERROR_FORMAT, "'unevaluatedProperties' at #/", "a boolean"},
        {"{'unevaluatedItems':[]}", GUMBEL_ERROR_FORMAT, "'unevaluatedItems' at #/", "a boolean"},
        {"{'unevaluatedItems':false,'anyOf':[{'prefixItems':7}]}", GUMBEL_ERROR_FORMAT,
         "'prefixItems' at #/anyOf/0/prefixItems", "an array"},
        {"{'enum':7}", GUMBEL_ERROR_FORMAT, "'enum'", "an array"},
        {"{'anyOf':{}}", GUMBEL_ERROR_FORMAT, "'anyOf'", "an array"},
        {"{'anyOf':[]}", GUMBEL_ERROR_FORMAT, "'anyOf'", "at least one"},
        {"{'type':'array','prefixItems':[],'items':[]}", GUMBEL_ERROR_FORMAT, "'items'",
         "beside prefixItems"},
        {"{'type':'string','nullable':1}", GUMBEL_ERROR_FORMAT, "'nullable'", "true or false"},
        {"{'$ref':7}", GUMBEL_ERROR_FORMAT, "'$ref' at #/$ref", "a string"},
        {"{'properties':{'a':{'$ref':'#/$defs/none'}}}", GUMBEL_ERROR_FORMAT, "'$ref' at #/properties/a/$ref",
         "nothing is at '#/$defs/none'"},
        {"{'$ref':'#none'}", GUMBEL_ERROR_FORMAT, "nothing is at", "#none"},
        {"{'dependentRequired':7}", GUMBEL_ERROR_FORMAT, "'dependentRequired'", "an object"},
        {"{'not':7}", GUMBEL_ERROR_FORMAT, "'not' at #/not", "an object or a boolean"},
        {"false", GUMBEL_ERROR_FORMAT, "no value satisfies it", ""},
        {"{'type':'integer','minimum':2,'maximum':1}", GUMBEL_ERROR_FORMAT, "no value satisfies it", ""},
        {"{'type':'string','const':1}", GUMBEL_ERROR_FORMAT, "no value satisfies it", ""},
        {"{'type':'object','required':['a'],'properties':{'a':false}}", GUMBEL_ERROR_FORMAT, "no value", ""},
        {"{'type':'array','minItems':1,'items':{'type':'string','minLength':2,'maxLength':1}}",
         GUMBEL_ERROR_FORMAT, "no value", ""},
        /* No text is short enough. */
        {"{'type':'object','properties':{'a':{'$ref':'#'}},'required':['a']}", GUMBEL_ERROR_ARGUMENT,
         "no text", ""},
    };
    CHECK_REFUSALS(refusals, NULL);
}

static void test_unsupported(void **state) {
    (void)state;
    static const refusal refusals[] = {
        {"{'type':'array','items':{'type':'array','uniqueItems':true}}", GUMBEL_ERROR_UNSUPPORTED,
         "'uniqueItems' at #/items/uniqueItems", "cannot be honoured"},
        {"{'items':{'type':'object'},'uniqueItems':true}", GUMBEL_ERROR_UNSUPPORTED,
         "'uniqueItems' at #/uniqueItems", "cannot be honoured"},
        {"{'items':{'anyOf':[{'enum':[1.5]},{'type':'number'}]},'uniqueItems':true}",
         GUMBEL_ERROR_UNSUPPORTED, "'uniqueItems' at #/uniqueItems", "cannot be honoured"},
        {"{'prefixItems':[{'type':'string'}],'items':{'type':'string'},'uniqueItems':true}",
         GUMBEL_ERROR_UNSUPPORTED, "'uniqueItems' at #/uniqueItems", "cannot be honoured"},
        {"{'contains':{},'minContains':5,'maxItems':9}", GUMBEL_ERROR_UNSUPPORTED, "'contains' at #/contains",
         "4 items"},
        {"{'properties':{'o':{'unevaluatedProperties':false,'anyOf':[" EVALUATING("a") "," EVALUATING("b") "," EVALUATING("c") "," EVALUATING(
             "d") "," EVALUATING("e") "," EVALUATING("f") "," EVALUATING("g") "," EVALUATING("h") "," EVALUATING("i") "]}}}",
         GUMBEL_ERROR_UNSUPPORTED, "'unevaluatedProperties' at #/properties/o/unevaluatedProperties",
         "more than 256 ways"},
        {"{'$recursiveRef':'#'}", GUMBEL_ERROR_UNSUPPORTED, "'$recursiveRef'", ""},
        {"{'$ref':'https://example.com/other.json'}", GUMBEL_ERROR_UNSUPPORTED, "'$ref'",
         "'https://example.com/other.json' is in another document"},
        {"{'$id':'http://a/b.json','$ref':'c.json','$defs':{'a':{'$id':'d.json'}}}", GUMBEL_ERROR_UNSUPPORTED,
         "'$ref'", "'c.json' is in another document"},
        {"{'$dynamicRef':'#a','$defs':{'x':{'$dynamicAnchor':'a'},'y':{'$id':'y','$dynamicAnchor':'a'}}}",
         GUMBEL_ERROR_UNSUPPORTED, "'$dynamicRef'", "several schemas"},
        {"{'oneOf':[{'type':'array'},{'uniqueItems':true}]}", GUMBEL_ERROR_UNSUPPORTED, "'uniqueItems'",
         "at #/oneOf/1"},
        {"{'not':{'uniqueItems':true}}", GUMBEL_ERROR_UNSUPPORTED, "'not' at #/not",
         "'uniqueItems' cannot be negated"},
        {"{'unevaluatedItems':{'uniqueItems':true},'$ref':'#/$defs/a','$defs':{'a':{'uniqueItems':true}}}",
         GUMBEL_ERROR_UNSUPPORTED, "'uniqueItems'", "cannot be honoured"},
        {"{'type':'string','pattern':'(?<=a)b'}", GUMBEL_ERROR_UNSUPPORTED, "'pattern' at #/pattern", ""},
        {"{'type':'string','pattern':'(a)\\\\1'}", GUMBEL_ERROR_UNSUPPORTED, "'pattern' at #/pattern", ""},
        {"{'type':'object','patternProperties':{'(?<!a)':{}}}", GUMBEL_ERROR_UNSUPPORTED,
         "'patternProperties' at #/patternProperties", ""},
        {"{'type':'object','patternProperties':{'a':{},'b':{},'c':{},'d':{},'e':{},'f':{},'g':{},'h':{},'i':{"
         "}}}",
         GUMBEL_ERROR_LIMIT, "'patternProperties'", "more than 256 sets"},
        {"{'type':'object','minProperties':3}", GUMBEL_ERROR_UNSUPPORTED,
         "'minProperties' at #/minProperties", "3 members"},
        {"{'type':'number','multipleOf':100001}", GUMBEL_ERROR_UNSUPPORTED, "'multipleOf'", "at most"},
        {"{'$ref':'#/$defs/a','nullable':true,'$defs':{'a':{}}}", GUMBEL_ERROR_UNSUPPORTED, "'nullable'",
         "anyOf"},
        {"{'type':'number','minimum':1e300}", GUMBEL_ERROR_LIMIT, "'minimum'", "digits"},
    };
    CHECK_REFUSALS(refusals, NULL);
}

static void test_strict(void **state) {
    (void)state;
    static const refusal refusals[] = {
        {"{'$defs':{'a~/':{'maxLenght':3}},'$ref':'#/$defs/a~0~1'}", GUMBEL_ERROR_UNSUPPORTED,
         "'maxLenght' at #/$defs/a~0~1/maxLenght", "x-"},
        {"{'type':'string','format':'phone'}", GUMBEL_ERROR_UNSUPPORTED, "'format' at #/format", "'phone'"},
    };
    const gb_schema_options strict = {.strict = true};
    CHECK_REFUSALS(refusals, &strict);
}

/* What options allow. */
static void test_options(void **state) {
    (void)state;
    const gb_schema_options one_of = {.one_of_as_any_of = true};
    const gb_schema_options in_order = {.in_order = true};
    static const schema_case overlapping = {
        "{'oneOf':[{'type':'string'},{'type':'string','maxLength':3}]}", {"'a'", "'abcd'"}, {"1"}};
    static const schema_case marked = {"{'type':'integer','ui:widget':'updown'}", {"1"}, {"''"}};
    static const schema_case formed = {"{'type':'string','format':'phone'}", {"''", "'1'"}, {"1"}};
    gb_grammar *grammar = NULL;
    gumbel_error error;
    check_schema(&overlapping, &one_of);
    check_schema(&marked, NULL);
    check_schema(&formed, NULL);
    assert_fails(compile_schema("{'type':'object','properties':{'a':{},'b':{}},'maxProperties':1}", &in_order,
                                &grammar, &error),
                 GUMBEL_ERROR_UNSUPPORTED, &error, "\"maxProperties\"");
    assert_fails(
        compile_schema("{'type':'object','properties':{'a':{},'b':{}},'required':['a'],'minProperties':2}",
                       &in_order, &grammar, &error),
        GUMBEL_ERROR_UNSUPPORTED, &error, "\"minProperties\"");
}

/* ---- Bombs --------------------------------------------------------------------------------------------- */

static gumbel_status express(const gb_byte_buffer *text, gumbel_error *error) {
    gb_expressions *expressions = gb_expressions_create();
    gb_grammar *grammar = NULL;
    const double begin = gb_seconds();
    const gb_expression root =
        gb_schema_express_text(expressions, (const char *)text->data, text->size, NULL, error);
    const gumbel_status status =
        root ? gb_grammar_compile(expressions, root, NULL, &grammar, error) : error->status;
    gb_grammar_destroy(grammar);
    gb_expressions_destroy(expressions);
    assert_true(gb_seconds() - begin < 60);
    return status;
}

static void append(gb_byte_buffer *text, const char *format, int number) {
    char part[400], unquoted[400];
    snprintf(part, sizeof part, format, number, number + 1, number + 1);
    gb_buffer_append(text, unquoted, unquote(part, unquoted, sizeof unquoted));
}

static gb_byte_buffer repeated(const char *before, const char *part, int count, const char *after) {
    gb_byte_buffer text = {0};
    append(&text, before, 0);
    for (int i = 0; i < count; i++)
        append(&text, part, i);
    append(&text, after, 0);
    return text;
}

static void check_bomb(gb_byte_buffer text, gumbel_status status, const char *part) {
    gumbel_error error = {0};
    assert_fails(express(&text, &error), status, &error, part);
    gb_buffer_free(&text);
}

/* What lists of 60 definitions, or of 24, end in. */
static const char *last_of_lists(void) {
    return is_short_run() ? "'d24':{'type':'integer'}}}" : "'d60':{'type':'integer'}}}";
}

static void test_bombs(void **state) {
    (void)state;
    check_bomb(repeated("", "{'items':", 300, ""), GUMBEL_ERROR_FORMAT, "schema: line");
    gb_byte_buffer deep = repeated("", "{'not':", 300, "{}");
    for (int i = 0; i < 300; i++)
        gb_buffer_append(&deep, "}", 1);
    check_bomb(deep, GUMBEL_ERROR_LIMIT, "nested deeper than 256");
    /* 2^n alternatives of one value. */
    check_bomb(repeated("{'type':'object','allOf':[",
                        "{'anyOf':[{'required':['a%d']},{'required':['b%d']}]},", 40, "true]}"),
               GUMBEL_ERROR_LIMIT, "alternatives");
    /* Lists of schemas of lists of schemas. */
    check_bomb(
        repeated(
            "{'$ref':'#/$defs/d0','$defs':{",
            "'d%d':{'anyOf':[{'$ref':'#/$defs/d%d','multipleOf':2},{'$ref':'#/$defs/d%d','minimum':1}]},",
            is_short_run() ? 24 : 60, last_of_lists()),
        GUMBEL_ERROR_LIMIT, "");
    check_bomb(repeated("{'type':'string','pattern':'^x.{1,", "1000000", 1, "}$'}"), GUMBEL_ERROR_LIMIT, "");
}

/* What a condition evaluates depends on the condition, for a value and for its names. */
static void test_depends_on_itself(void **state) {
    (void)state;
    static const char *const schemas[] = {
        "{'$ref':'#/$defs/u','$defs':{'u':{'if':{'$ref':'#/$defs/u','unevaluatedProperties':false},"
        "'then':{'properties':{'a':true}}}}}",
        "{'$ref':'#/$defs/u','$defs':{'u':{'if':{'propertyNames':{'$ref':'#/$defs/u',"
        "'unevaluatedProperties':false}},'then':{'properties':{'a':true}}}}}",
        "{'$ref':'#/$defs/u','$defs':{'u':{'if':{'$ref':'#/$defs/u','unevaluatedItems':false},"
        "'then':{'prefixItems':[true]},'else':{'not':{'$ref':'#/$defs/u'}}}}}"};
    for (size_t i = 0; i < sizeof schemas / sizeof *schemas; i++) {
        gb_grammar *grammar = NULL;
        gumbel_error error = {0};
        const gumbel_status status = compile_schema(schemas[i], NULL, &grammar, &error);
        assert_true(status == GUMBEL_OK || error.message[0]);
        gb_grammar_destroy(grammar);
    }
}

static void check_small(gb_byte_buffer text) {
    gumbel_error error = {0};
    if (express(&text, &error) != GUMBEL_OK)
        fail_msg("%s", error.message);
    gb_buffer_free(&text);
}

/* Schemas with as many alternatives, nearly all of which have nothing that others do not have. */
static void test_small(void **state) {
    (void)state;
    check_small(repeated("{'$ref':'#/$defs/d0','$defs':{",
                         "'d%d':{'anyOf':[{'$ref':'#/$defs/d%d'},{'$ref':'#/$defs/d%d','minimum':1}]},", 60,
                         "'d60':{'type':'integer'}}}"));
    check_small(repeated("{'type':'object','allOf':[",
                         "{'anyOf':[{'required':['b']},{'required':['a%d']},{'required':['c']}]},", 40,
                         "{'anyOf':[{'required':['b']},{'required':['c']}]}]}"));
    check_small(repeated("{'required':['a'],'properties':{'a':{'type':'integer'}},'allOf':[",
                         "{'if':{'properties':{'a':{'const':%d}},'required':['a']},"
                         "'then':{'anyOf':[{'required':['x']},{'required':['y']}]}},",
                         12, "true]}"));
}

/* ---- Memory -------------------------------------------------------------------------------------------- */

static int left;        /* allocations until one fails */
static bool fails_once; /* those after it succeed */
static bool has_failed;

static bool allow_allocation(void *user, size_t bytes) {
    (void)user;
    (void)bytes;
    const int before = left--;
    has_failed |= before <= 0;
    return before > 0 || (fails_once && before < 0);
}

static void *allocate_json(size_t size) {
    return allow_allocation(NULL, size) ? malloc(size) : NULL;
}

static gb_expression express_with_failure(gb_expressions *expressions, const json_t *schema, int count,
                                          gumbel_error *error) {
    left = count;
    gb_set_allocation_hook(allow_allocation, NULL);
    const gb_expression root = gb_schema_express(expressions, schema, NULL, error);
    gb_set_allocation_hook(NULL, NULL);
    left = INT_MAX;
    return root;
}

/* True while an allocation failed. That is the error then, and nothing is left; the sanitizer sees what is.
 */
static bool express_without_memory(const json_t *schema, int count) {
    gumbel_error error = {0};
    gb_expressions *expressions = gb_expressions_create();
    has_failed = false;
    const gb_expression root = express_with_failure(expressions, schema, count, &error);
    gb_expressions_destroy(expressions);
    if (root ? has_failed : error.status != GUMBEL_ERROR_MEMORY)
        fail_msg("allocation %d: %s", count, root ? "its failure was lost" : error.message);
    return has_failed;
}

static void check_no_memory(const char *quoted) {
    char text[2000];
    unquote(quoted, text, sizeof text);
    left = INT_MAX;
    json_set_alloc_funcs(allocate_json, free);
    json_t *given = json_loads(text, 0, NULL);
    assert_non_null(given);
    for (int mode = 0; mode < 2; mode++) {
        int count = 0;
        fails_once = mode;
        while (express_without_memory(given, count))
            count++;
        assert_true(count > 100);
    }
    fails_once = false;
    json_decref(given);
    json_set_alloc_funcs(malloc, free);
}

/* Whichever allocation fails, jansson's too, that alone or all after it. */
static void test_no_memory(void **state) {
    (void)state;
    check_no_memory(
        "{'type':'object','properties':{'a':{'enum':['x','y'],'pattern':'^x'},'b':{'not':{'minimum':3}},"
        "'c':{'oneOf':[{'type':'null'},{'$ref':'#'}]},'f':{'items':{'enum':['x',1]},'uniqueItems':true},"
        "'g':{'contains':{'const':1},'maxContains':2,'maxItems':4}},'patternProperties':{'^d':{'multipleOf':"
        "7}},"
        "'propertyNames':{'maxLength':3},'if':{'required':['a']},'then':{'required':['b']},"
        "'dependentRequired':{'b':['a']},'not':{'properties':{'a':{'const':'x'},'e':{'minLength':1}}}}");
    check_no_memory("{'$id':'h','$defs':{'a':{'$id':'i','own':1,'anyOf':[{'items':{'type':'integer'}},{'$ref'"
                    ":'i#/b'}],'b':{'"
                    "minimum':2}}},'oneOf':[{'$ref':'i'},{'required':['k'],'additionalProperties':{'"
                    "maxLength':2}},{'not':{'"
                    "enum':[[1],{'j':2}]}}],'type':['object','array'],'properties':{'k':{'type':'string'}},'"
                    "maxItems':2}");
}

/* What is large is read. */
static void test_large(void **state) {
    (void)state;
    gumbel_error error = {0};
    gb_byte_buffer text = repeated("{'type':'object','properties':{",
                                   "'p%d':{'type':'object','properties':{'q':{'$ref':'#/properties/p%d'}}},",
                                   500, "'p500':{}}}");
    assert_ok(express(&text, &error), &error);
    gb_buffer_free(&text);
    text = repeated("{'enum':[", "'value %d',", 5000, "0]}");
    assert_ok(express(&text, &error), &error);
    gb_buffer_free(&text);
    text = repeated("{'oneOf':[",
                    "{'type':'object','properties':{'k':{'const':%d},'v':{'$ref':'#'}},'required':['k']},",
                    99, "{'type':'null'}]}");
    assert_ok(express(&text, &error), &error);
    gb_buffer_free(&text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wrong),  cmocka_unit_test(test_unsupported),
        cmocka_unit_test(test_strict), cmocka_unit_test(test_options),
        cmocka_unit_test(test_bombs),  cmocka_unit_test(test_depends_on_itself),
        cmocka_unit_test(test_small),  cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_large)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
