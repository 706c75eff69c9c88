/* SPDX-License-Identifier: Apache-2.0
 *
 * What schemas do not allow: not, oneOf whose branches overlap, and what stands beside them.
 */
#include "check_schema.h"

#define DRAFT_4 "'$schema':'http://json-schema.org/draft-04/schema#',"
#define DRAFT_7 "'$schema':'http://json-schema.org/draft-07/schema#',"

static void test_not(void **state) {
    (void)state;
    static const schema_case cases[] = {
        {"{'not':{'pattern':'a'}}", {"'b'"}, {"'a'", "1", "[]"}},
        {"{'not':{'multipleOf':2}}", {"3", "0.5"}, {"4", "'b'"}},
        {"{'enum':[1,'a'],'not':{'pattern':'b'}}", {"'a'"}, {"1"}},
        {"{'type':'number','not':{'multipleOf':1}}",
         {"1.5"},
         {"1", "10000000000000000000000000000000000000000", "1.0"}},
        {"{'type':'string','not':{'format':'ipv6'}}", {"'x'", "'1::g'"}, {"'::1'", "'1::1.2.3.4'"}},
        {"{'type':'string','not':{'format':'uuid'}}", {"'1'"}, {"'01234567-89ab-cdef-0123-456789abcdef'"}},
        {"{'not':{'minItems':9223372036854775807}}", {"[]", "[1]"}, {"1", "{}"}},
        {"{'type':'array','not':{'items':{'type':'integer'}},'items':{'type':['integer','null']}}",
         {"[null]", "[1,null,2]"},
         {"[]", "[1]"}},
        {"{'dependentRequired':{'c':['a']},'not':{'additionalProperties':false}}",
         {"{'a':1}", "{'c':1,'a':2}", "{'x':1}"},
         {"{}", "{'c':1}", "1"}},
        {"{'enum':[0.3,0.25,9007199254740993,9007199254740992],'multipleOf':0.1}",
         {"0.3", "9007199254740993"},
         {"0.25"}},
        {"{'enum':[9007199254740993,4],'multipleOf':2}", {"4"}, {"9007199254740993"}},
    };
    CHECK_SCHEMAS(cases, NULL);
}

/* Members that are required and have a schema; branches of which others are a part. */
static void test_required(void **state) {
    (void)state;
    static const schema_case cases[] = {
        {"{'not':{'required':['a'],'properties':{'a':{'type':'integer'}}}}",
         {"{}", "{'a':'x'}", "{'b':1}", "{'a':'x','b':1}"},
         {"1", "{'a':1}", "{'a':1,'b':1}"}},
        {"{'not':{'required':['a','b'],'properties':{'a':{'const':1},'c':{'const':2}}}}",
         {"{}", "{'a':1}", "{'a':2,'b':1}", "{'a':1,'b':1,'c':1}"},
         {"[]", "{'a':1,'b':1}", "{'a':1,'b':1,'c':2}"}},
        {"{'not':{'required':['a'],'properties':{'a':{'const':1}},'dependentRequired':{'a':['b']}}}",
         {"{}", "{'a':1}", "{'a':2,'b':1}"},
         {"{'a':1,'b':1}"}},
        {"{'oneOf':[{'required':['a'],'properties':{'a':{'type':'string'}}},{'required':['b'],'properties':{'"
         "b':"
         "{'type':'string'}}},{'required':['c']}],'type':'object'}",
         {"{'a':''}", "{'a':'','b':1}", "{'c':1}", "{'a':1,'b':''}", "{'a':1,'b':1,'c':1}"},
         {"{}", "{'a':1}", "{'a':'','b':''}", "{'a':'','c':1}", "{'b':'','c':1}"}},
        {"{'type':'object','allOf':[{'anyOf':[{'$ref':'#/$defs/a'},{'$ref':'#/$defs/"
         "b'}]},{'anyOf':[{'$ref':'#/"
         "$defs/b'},{'$ref':'#/$defs/a'}]},{'oneOf':[{'$ref':'#/$defs/a'},{'$ref':'#/$defs/"
         "b'}]}],'$defs':{'a':{"
         "'required':['a']},'b':{'required':['b']}}}",
         {"{'a':1}", "{'b':1}"},
         {"{}", "{'a':1,'b':1}"}},
    };
    CHECK_SCHEMAS(cases, NULL);
}

/* Some have no value, though as read before they had. */
static void test_nothing(void **state) {
    (void)state;
    static const char *const schemas[] = {
        "{" DRAFT_7
        "'definitions':{'a':{'type':'integer'}},'oneOf':[{'$ref':'#/definitions/a','const':1},{'$ref':'"
        "#/definitions/a','const':2}]}",
        "{" DRAFT_4 "'oneOf':[{'const':1},{'const':2}]}",
        "{" DRAFT_4 "'not':{'const':1}}",
        "{'not':{'format':'nosuch'}}",
        "{'not':{'maxItems':9223372036854775807}}",
        "{'$defs':{'a':{'type':'integer'}},'allOf':[{'anyOf':[{'minimum':0},{'minimum':1}]},{'$ref':'#/$defs/"
        "a'},{"
        "'$id':'http://h/1','$defs':{'a':{'type':'string'}},'anyOf':[{'$ref':'#/$defs/"
        "a'},{'type':'boolean'}]}]}",
    };
    for (size_t i = 0; i < sizeof schemas / sizeof schemas[0]; i++) {
        gb_grammar *grammar = NULL;
        gumbel_error error = {0};
        assert_fails(compile_schema(schemas[i], NULL, &grammar, &error), GUMBEL_ERROR_FORMAT, &error,
                     "no value satisfies it");
    }
}

static void test_refused(void **state) {
    (void)state;
    static const struct {
        const char *schema;
        gumbel_status status;
        const char *part;
    } refused[] = {
        {"{'not':{'format':'int32'}}", GUMBEL_ERROR_UNSUPPORTED, "\"format\" cannot be negated"},
        {"{'not':{'format':'regex'}}", GUMBEL_ERROR_UNSUPPORTED, "\"format\" cannot be negated"},
        {"{'not':{'anyOf':5}}", GUMBEL_ERROR_FORMAT, "\"anyOf\" at #/not/anyOf"},
        {"{'not':{'anyOf':[]}}", GUMBEL_ERROR_FORMAT, "at least one"},
        {"{'not':{'enum':5}}", GUMBEL_ERROR_FORMAT, "an array"},
        {"{'not':{'required':[1]}}", GUMBEL_ERROR_FORMAT, "list of strings"},
        {"{'not':{'properties':5}}", GUMBEL_ERROR_FORMAT, "an object"},
        {"{'required':['a\\u0000b']}", GUMBEL_ERROR_FORMAT, "U+0000"},
        {"{'not':{'required':['a\\u0000b']}}", GUMBEL_ERROR_FORMAT, "U+0000"},
        {"{'x-a':{'$id':'http://h/m'},'$defs':{'r':{'$id':'http://h/m'}},'$ref':'http://h/m'}",
         GUMBEL_ERROR_FORMAT, "another schema"},
    };
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        gb_grammar *grammar = NULL;
        gumbel_error error = {0};
        assert_fails(compile_schema(refused[i].schema, NULL, &grammar, &error), refused[i].status, &error,
                     refused[i].part);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_not), cmocka_unit_test(test_required),
                                       cmocka_unit_test(test_nothing), cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
