/* SPDX-License-Identifier: Apache-2.0
 *
 * Which texts schemas allow: objects, schemas made of others, white space and order.
 */
#include "check_schema.h"

static const gb_schema_options compact = {.space = GB_SPACE_NONE};

static void test_members(void **state) {
    (void)state;
    static const schema_case cases[] = {
        {"{'type':'object','properties':{'a':{'type':'integer'},'b':{'type':'null'}},'required':['a'],'"
         "additionalProperties':false}",
         {"{'a':1}", "{'b':null,'a':1}", "{'a':1,'b':null}"},
         {"{}", "{'b':null}", "{'a':1,'a':2}", "{'a':1,'c':2}", "{'a':'x'}"}},
        {"{'type':'object','properties':{'a':{'type':'integer'}}}",
         {"{}", "{'x':[],'a':1,'y':{}}"},
         {"{'a':'x'}", "{'\\u0061':'x'}"}},
        {"{'type':'object','properties':{'a':{'type':'integer'}},'additionalProperties':{'type':'null'}}",
         {"{'aa':null,'a':1,'':null}"},
         {"{'b':1}", "{'a':null}"}},
        {"{'type':'object','additionalProperties':{'type':'integer'}}",
         {"{}", "{'\\u0061':1}"},
         {"{'a':null}"}},
        {"{'type':'object','required':['x']}", {"{'x':1}", "{'y':2,'x':[]}"}, {"{}", "{'y':1}"}},
        {"{'type':'object','properties':{'a':false}}", {"{}", "{'b':1}"}, {"{'a':1}"}},
        {"{'type':'object','properties':{'\\\"\\n':{'const':1}},'additionalProperties':false}",
         {"{'\\'\\n':1}"},
         {"{'\\'\\u000a':1}", "{'\\'':1}"}},
        {"{'type':'object','patternProperties':{'^n':{'type':'integer'},'x$':{'maximum':5}},'"
         "additionalProperties':false}",
         {"{'n':9,'ax':'s','nx':5}"},
         {"{'nx':6}", "{'nx':'s'}", "{'b':1}"}},
        {"{'type':'object','properties':{'na':{'minimum':3}},'patternProperties':{'^n':{'type':'integer'}},'"
         "additionalProperties':{'type':'null'}}",
         {"{'na':3,'nb':1,'b':null}"},
         {"{'na':2}", "{'na':'x'}", "{'nb':null}", "{'b':1}"}},
        {"{'type':'object','propertyNames':{'pattern':'^[ab]+$','maxLength':2},'properties':{'abc':true,'ab':"
         "{'const':1}}}",
         {"{'ab':1,'b':2}"},
         {"{'ab':2}", "{'abc':1}", "{'c':1}", "{'bbb':1}"}},
        {"{'type':'object','propertyNames':{'enum':['p','q']},'required':['p']}",
         {"{'p':1,'q':2}"},
         {"{'q':1}", "{'p':1,'r':1}"}},
    };
    CHECK_SCHEMAS(cases, &compact);
}

/* More patterns than have all their sets: most of these are of no key. */
static void test_many_patterns(void **state) {
    (void)state;
    static char schema[4000];
    size_t length =
        (size_t)snprintf(schema, sizeof schema,
                         "{'type':'object','additionalProperties':false,'properties':{'p39':{'const':0}},'"
                         "patternProperties':{'7$':{'minimum':7},'^p.*7$':{'maximum':37}");
    for (int i = 0; i < 40; i++)
        length += (size_t)snprintf(schema + length, sizeof schema - length,
                                   ",'^p%d$':{'type':'integer','maximum':%d}", i, i);
    snprintf(schema + length, sizeof schema - length, "}}");
    const schema_case test = {schema,
                              {"{}", "{'p7':7}", "{'p37':36,'p38':-1,'p39':0}", "{'x7':9}", "{'p57':37}"},
                              {"{'p7':6}", "{'p7':8}", "{'p37':38}", "{'p38':39}", "{'p40':1}", "{'p39':1}",
                               "{'p57':38}", "{'p38':'x'}", "{'p':1}"}};
    check_schema(&test, &compact);
}

static void test_counts(void **state) {
    (void)state;
    static const schema_case cases[] = {
        {"{'type':'object','properties':{'a':true,'b':true,'c':true},'additionalProperties':false,'"
         "minProperties':2}",
         {"{'c':1,'a':2}", "{'a':1,'b':1,'c':1}"},
         {"{}", "{'a':1}"}},
        {"{'type':'object','properties':{'a':true,'b':true,'c':true},'additionalProperties':false,'"
         "maxProperties':1}",
         {"{}", "{'c':1}"},
         {"{'a':1,'b':2}"}},
        {"{'type':'object','additionalProperties':{'type':'null'},'minProperties':1,'maxProperties':2}",
         {"{'x':null}", "{'x':null,'y':null}"},
         {"{}", "{'x':null,'y':null,'z':null}"}},
        {"{'type':'object','required':['a'],'minProperties':2}",
         {"{'a':1,'b':2}", "{'b':1,'a':2}"},
         {"{'a':1}"}},
        {"{'type':'object','maxProperties':0}", {"{}"}, {"{'a':1}"}},
    };
    CHECK_SCHEMAS(cases, &compact);
}

/* 1 and 1.0 are one value. Where items cannot be equal, uniqueItems asks nothing. */
static void test_unique(void **state) {
    (void)state;
    static const schema_case cases[] = {
        {"{'type':'array','items':{'enum':['a','b',1,1.0,[2]]},'uniqueItems':true}",
         {"[]", "['a']", "['b',1,[2],'a']"},
         {"['a','a']", "[1,'b',1]", "[1,1.0]", "['c']", "[[2],[2]]", "['a','b',1,[2],'a']", "['a',]"}},
        {"{'type':'array','items':{'anyOf':[{'$ref':'#/$defs/b'},{'const':'x'}]},'uniqueItems':true,'"
         "minItems':2,'maxItems':3,'$defs':{'b':{'type':['boolean','null']}}}",
         {"[true,false]", "[null,'x',true]"},
         {"[]", "[true]", "[true,true]", "[true,false,null,'x']"}},
        {"{'type':'array','items':{'type':'string'},'uniqueItems':true,'maxItems':1}",
         {"[]", "['a']"},
         {"['a','a']"}},
        {"{'type':'array','prefixItems':[{'type':'string'},{'type':'integer'}],'items':false,'uniqueItems':"
         "true}",
         {"[]", "['a',1]"},
         {"['a','a']", "['a',1,2]"}},
        {"{'enum':[[1,2],[1,1.0],[]],'uniqueItems':true}", {"[1,2]", "[]"}, {"[1,1.0]"}},
        {"{'type':'array','items':{'enum':[1,1.0]},'uniqueItems':true,'maxItems':2}",
         {"[1]"},
         {"[1,1.0]", "[1,1]"}},
        {"{'type':'array','items':{'type':'string'},'uniqueItems':false}", {"['a','a']"}, {"[1]"}},
    };
    CHECK_SCHEMAS(cases, &compact);
}

/* Items of one spelling each, so that equal ones have equal texts. */
static void test_unique_texts(void **state) {
    (void)state;
    static const schema_case cases[] = {
        {"{'type':'array','items':{'type':'string'},'uniqueItems':true}",
         {"[]", "['a']", "['','a','ab','abc','b']", "['ab','a','']", "['\\n','\\\\n','\u00e9']"},
         {"['a','a']", "['','x','']", "['a','ab','a']", "['\\u0061']", "['\\/']", "['\u00e9','\u00e9']",
          "['a',]", "[1]"}},
        {"{'type':'array','items':{'type':'string','pattern':'^[ab]{1,2}$'},'uniqueItems':true,'minItems':6}",
         {"['a','b','aa','ab','ba','bb']"},
         {"['a','b','aa','ab','ba']", "['a','b','aa','ab','ba','ab']"}},
        {"{'type':'array','items':{'type':'string','maxLength':3},'uniqueItems':true,'minItems':1,'maxItems':"
         "2}",
         {"['abc']", "['a','abc']"},
         {"[]", "['abcd']", "['a','a']", "['a','b','c']"}},
        {"{'type':'array','items':{'type':'integer'},'uniqueItems':true}",
         {"[0,1,-1,10,11,100]", "[12345678901234567890,1234567890123456789]"},
         {"[1,1]", "[0,-0]", "[1e0]", "[1.0]", "[10,1,10]"}},
        {"{'type':'array','items':{'type':'integer','minimum':1,'maximum':3},'uniqueItems':true,'minItems':"
         "3}",
         {"[1,2,3]", "[3,1,2]"},
         {"[1,2]", "[1,2,1]", "[1,2,3,1]"}},
        {"{'type':'array','items':{'type':'number'},'uniqueItems':true}",
         {"[0.5,5,-0.5,0.25,1.05]", "[0.000000001,123456.5]"},
         {"[0.5,0.5]", "[0.50]", "[-0]", "[0.0]", "[-0.0]", "[5e-1]", "[1.0]", "[0.0000000001]",
          "[1234567.5]"}},
        {"{'type':'array','items':{'type':['string','null','boolean','integer']},'uniqueItems':true}",
         {"[null,true,false,'true','null',1,'1']"},
         {"[null,1,null]", "[true,true]", "['1',1,'1']"}},
        {"{'type':'array','items':{'anyOf':[{'enum':['a',1,null]},{'type':'string'}]},'uniqueItems':true}",
         {"['a',1,'b',null]"},
         {"['a','b','a']", "[1,1]", "[2]"}},
        {"{'type':'object','properties':{'a':{'type':'array','items':{'type':'string','pattern':'^[ab]$'},'"
         "uniqueItems':true,'minItems':3},'b':{}},'additionalProperties':false}",
         {"{}", "{'b':1}"},
         {"{'a':['a']", "{'a':[", "{'a':['a','b']}"}},
        {"{'type':'object','additionalProperties':{'type':'array','items':{'type':'string'},'uniqueItems':"
         "true}}",
         {"{'a':['x','y'],'b':['x','y']}"},
         {"{'a':['x','x']}", "{'a':[],'b':['x','y','x']}"}},
        {"{'type':'array','items':{'type':'array','items':{'type':'string'},'uniqueItems':true}}",
         {"[['a','b'],['a','b'],[]]"},
         {"[['a','a']]", "[['a'],['b','c','b']]"}},
        {"{'type':'array','items':{'type':'string','enum':[]},'uniqueItems':true}", {"[]"}, {"['a']"}},
    };
    CHECK_SCHEMAS(cases, &compact);
    static const schema_case spaced[] = {{"{'type':'array','items':{'type':'integer'},'uniqueItems':true}",
                                          {"[ 1 , 2,12 ]", "[]", "[ ]"},
                                          {"[1 , 1]", "[1 ,2,\n1 ]", "[1 2]"}}};
    CHECK_SCHEMAS(spaced, NULL);
}

static void test_contains(void **state) {
    (void)state;
    static const schema_case cases[] = {
        {"{'type':'array','contains':{'const':1}}", {"[1]", "[0,1,2,1]", "['a',1]"}, {"[]", "[0]", "[[1]]"}},
        {"{'type':'array','items':{'type':'integer'},'contains':{'maximum':5},'minContains':2,'minItems':3,'"
         "maxItems':4}",
         {"[1,2,9]", "[9,1,9,2]", "[1,2,3]"},
         {"[1,2]", "[1,9,9]", "[1,2,3,4,5]", "[1,2,'x']"}},
        {"{'type':'array','items':{'type':'integer'},'contains':{'maximum':5},'minContains':1,'maxContains':"
         "2}",
         {"[1]", "[9,1,9,2]"},
         {"[]", "[9]", "[1,2,3]", "[1,9,2,9,3]"}},
        {"{'type':'array','items':{'type':'integer'},'contains':{'maximum':5},'minContains':0,'maxContains':"
         "1}",
         {"[]", "[9]", "[9,1]"},
         {"[1,2]"}},
        {"{'type':'array','items':{'type':'integer'},'contains':{'const':1},'minContains':9}",
         {"[1,1,1,1,1,1,1,1,1]", "[2,1,1,1,1,1,0,1,1,1,1,3,1]"},
         {"[1,1,1,1,1,1,1,1]", "[2,1,1,1,1,1,1,0,1,1]"}},
        {"{'type':'array','items':{'const':1},'contains':{'const':1},'minContains':2,'maxContains':3}",
         {"[1,1]", "[1,1,1]"},
         {"[1]", "[1,1,1,1]"}},
        {"{'type':'array','contains':{'const':1},'minContains':0}", {"[]", "[2]"}, {"1"}},
        {"{'type':'array','minContains':3,'maxContains':4}", {"[]", "[2]"}, {"1"}},
        {"{'type':'array','prefixItems':[{'type':'integer'},{'type':'string'}],'items':{'type':'integer'},'"
         "contains':{'enum':[1,'a']},'maxItems':3}",
         {"[1]", "[0,'a']", "[0,'b',1]", "[1,'b',0]", "[1,'a',1]"},
         {"[]", "[0]", "[0,'b']", "[0,'b',0]", "['a']", "[0,'b',0,1]"}},
        {"{'type':'array','items':{'type':'integer'},'allOf':[{'contains':{'maximum':2}},{'contains':{'"
         "minimum':2}}]}",
         {"[2]", "[3,1]", "[1,0,3]"},
         {"[]", "[1]", "[3,4]"}},
        {"{'enum':[[1,2],[2],[1,1]],'contains':{'const':1},'maxContains':1}", {"[1,2]"}, {"[2]", "[1,1]"}},
        {"{'type':['array','null'],'items':{'type':'string'},'contains':{'type':'integer'}}",
         {"null"},
         {"[]", "['a']"}},
    };
    CHECK_SCHEMAS(cases, &compact);
}

static void test_combined(void **state) {
    (void)state;
    static const schema_case cases[] = {
        {"{'anyOf':[{'type':'string','maxLength':1},{'const':7}]}", {"'a'", "7"}, {"'ab'", "8"}},
        {"{'type':'integer','anyOf':[{'minimum':10},{'maximum':3}]}", {"10", "3"}, {"5", "'x'"}},
        {"{'oneOf':[{'type':'integer','maximum':4},{'type':'integer','minimum':5},{'type':'null'}]}",
         {"4", "5", "null"},
         {"''"}},
        {"{'oneOf':[{'properties':{'k':{'const':'a'},'v':{'type':'integer'}},'required':['k']},{'properties':"
         "{'k':{'const':'b'},'v':{'type':'null'}},'required':['k']}],'type':'object'}",
         {"{'k':'a','v':1}", "{'v':null,'k':'b'}"},
         {"{'k':'a','v':null}", "{'k':'c'}", "{}"}},
        {"{'allOf':[{'minimum':3},{'maximum':5},{'type':'integer'}],'not':{'const':4}}",
         {"3", "5"},
         {"2", "4", "6"}},
        {"{'allOf':[{'properties':{'a':{'minimum':1}}},{'properties':{'a':{'maximum':2}},'required':['a']}],'"
         "type':'object','properties':{'a':{'type':'integer'}},'additionalProperties':false}",
         {"{'a':1}", "{'a':2}"},
         {"{'a':3}", "{}"}},
        {"{'$ref':'#/definitions/a','maximum':3,'definitions':{'a':{'type':'integer'}}}",
         {"3"},
         {"4", "'x'"}},
        {"{'if':{'type':'string'},'then':{'minLength':2},'else':{'type':'integer'}}",
         {"'ab'", "1"},
         {"'a'", "null"}},
        {"{'type':'object','properties':{'k':{'enum':['x','y']},'a':true,'b':true},'additionalProperties':"
         "false,'if':{'properties':{'k':{'const':'x'}},'required':['k']},'then':{'required':['a']},'else':{'"
         "required':['b']}}",
         {"{'k':'x','a':1}", "{'a':1,'k':'x','b':2}", "{'b':1}", "{'b':1,'k':'y'}"},
         {"{'k':'x','b':1}", "{'k':'y','a':1}", "{}"}},
        {"{'type':'object','properties':{'a':true,'b':true},'additionalProperties':false,'dependentRequired':"
         "{'a':['b']}}",
         {"{}", "{'b':1}", "{'b':1,'a':1}"},
         {"{'a':1}"}},
        {"{'type':'object','properties':{'a':true,'b':true},'additionalProperties':false,'dependentSchemas':{"
         "'a':{'properties':{'b':{'const':1}}}}}",
         {"{'a':0,'b':1}", "{'b':2}", "{'a':0}"},
         {"{'a':0,'b':2}"}},
        {"{'type':'object','properties':{'a':true,'b':true},'additionalProperties':false,'dependencies':{'a':"
         "['b'],'b':{'maxProperties':1}}}",
         {"{'b':1}", "{}"},
         {"{'a':1}", "{'a':1,'b':1}"}},
        {"{'type':'object','not':{'required':['a']}}", {"{}", "{'b':1}"}, {"{'a':1}"}},
        {"{'not':{'anyOf':[{'type':'string'},{'type':'object'}]}}", {"1", "[{}]"}, {"''", "{}"}},
        {"{'not':{'not':{'type':'null'}}}", {"null"}, {"1"}},
    };
    CHECK_SCHEMAS(cases, &compact);
}

/* Names that require others, which may require more; what is not named is named then. */
static void test_dependencies(void **state) {
    (void)state;
    static const schema_case cases[] = {
        {"{'type':'object','dependentRequired':{'a':['b'],'b':['c'],'x':[]}}",
         {"{}", "{'c':1}", "{'b':1,'c':2}", "{'c':1,'a':1,'q':2,'b':1}", "{'x':1}"},
         {"{'a':1}", "{'b':1}", "{'a':1,'b':1}", "{'a':1,'c':1}", "{'a':1,'b':1,'c':1,'b':1}"}},
        {"{'type':'object','additionalProperties':{'type':'null'},'dependencies':{'a':['b'],'b':'a'}}",
         {"{}", "{'a':null,'b':null}"},
         {"{'a':null}", "{'a':1,'b':null}"}},
        {"{'type':'object','properties':{'a':true,'b':true,'c':true},'additionalProperties':false,'"
         "maxProperties':2,'"
         "dependentRequired':{'a':['b'],'b':['c']}}",
         {"{}", "{'c':1}", "{'c':1,'b':1}"},
         {"{'b':1}", "{'a':1", "{'c':1,'a':1"}},
        {"{'type':'object','properties':{'b':false},'dependentRequired':{'a':['b'],'c':['a']}}",
         {"{}", "{'x':1}"},
         {"{'a':1}", "{'c':1}"}},
        {"{'type':'object','required':['a'],'minProperties':2,'dependentRequired':{'a':['b']},'properties':{'"
         "b':{'const':1}}}",
         {"{'a':0,'b':1}"},
         {"{'a':0}", "{'a':0,'c':1}", "{'b':1}"}},
        {"{'enum':[{'a':1},{'a':1,'b':2},{'b':1}],'dependencies':{'a':['b']}}",
         {"{'a':1,'b':2}", "{'b':1}"},
         {"{'a':1}"}},
        {"{'type':['object','null'],'required':['a'],'properties':{'b':false},'dependencies':{'a':['b']}}",
         {"null"},
         {"{'a':1}"}},
    };
    CHECK_SCHEMAS(cases, &compact);
}

/* Each list is a set of a few bits, not twice as many ways to read the answer. */
static void test_many_dependencies(void **state) {
    (void)state;
    char schema[2000], text[2000];
    size_t length = (size_t)snprintf(schema, sizeof schema, "{'type':'object','dependencies':{"), written = 1;
    strcpy(text, "{");
    for (int i = 0; i < 40; i++) {
        length += (size_t)snprintf(schema + length, sizeof schema - length, "%s'k%d':['k%d']", i ? "," : "",
                                   i, i + 1);
        written += (size_t)snprintf(text + written, sizeof text - written, "%s'k%d':1", i ? "," : "", i);
    }
    snprintf(schema + length, sizeof schema - length, "}}");
    snprintf(text + written, sizeof text - written, ",'k40':1}");
    const schema_case test = {
        schema, {"{}", "{'k40':1}", "{'k40':1,'k39':1}", text}, {"{'k39':1}", "{'k0':1}"}};
    check_schema(&test, &compact);
}

/* What a member of an object may be that no schema of the object evaluates. */
static void test_unevaluated_members(void **state) {
    (void)state;
    static const schema_case cases[] = {
        {"{'unevaluatedProperties':false}", {"{}", "1", "[2]"}, {"{'a':1}"}},
        {"{'unevaluatedProperties':{'type':'integer'}}", {"{'a':1}"}, {"{'a':'x'}"}},
        {"{'properties':{'a':true},'patternProperties':{'^x':{'type':'null'}},'unevaluatedProperties':{'type'"
         ":"
         "'integer'}}",
         {"{'a':'','x':null,'b':1}"},
         {"{'x':1}", "{'b':''}"}},
        {"{'unevaluatedProperties':false,'additionalProperties':{'type':'null'}}",
         {"{'a':null}"},
         {"{'a':1}"}},
        /* Schemas of the same value evaluate, however deep. */
        {"{'type':'object','unevaluatedProperties':false,'allOf':[{'properties':{'a':{'type':'integer'}},"
         "'allOf':[{'$ref':'#/$defs/b'}]}],'$defs':{'b':{'patternProperties':{'^b':true}}}}",
         {"{}", "{'a':1,'b':'','bb':2}"},
         {"{'a':''}", "{'c':1}", "1"}},
        {"{'$ref':'#/$defs/"
         "a','properties':{'b':true},'unevaluatedProperties':false,'$defs':{'a':{'properties':{"
         "'a':true}}}}",
         {"{'a':1,'b':2}"},
         {"{'c':3}"}},
        {"{'unevaluatedProperties':false,'allOf':[{'additionalProperties':{'type':'integer'}}]}",
         {"{'a':1}"},
         {"{'a':''}"}},
        {"{'unevaluatedProperties':false,'allOf':[{'unevaluatedProperties':true}]}", {"{'a':1}"}, {""}},
        {"{'unevaluatedProperties':true,'allOf':[{'unevaluatedProperties':false,'properties':{'a':true}}]}",
         {"{'a':1}"},
         {"{'b':1}"}},
        /* Those beside it, of other values and under not do not. */
        {"{'allOf':[{'properties':{'a':true}},{'unevaluatedProperties':false}]}", {"{}"}, {"{'a':1}"}},
        {"{'properties':{'a':true},'allOf':[{'unevaluatedProperties':false}]}", {"{}"}, {"{'a':1}"}},
        {"{'properties':{'a':{'properties':{'b':true}}},'unevaluatedProperties':false}",
         {"{'a':{'b':1,'c':2}}"},
         {"{'b':1}", "{'c':1}"}},
        {"{'unevaluatedProperties':false,'not':{'not':{'properties':{'a':{'type':'null'}}}}}",
         {"{}"},
         {"{'a':null}", "{'a':1}"}},
        {"{'unevaluatedProperties':false,'propertyNames':{'enum':['a']},'required':['a']}",
         {"1"},
         {"{'a':1}", "{}"}},
        /* A schema within itself. */
        {"{'type':'object','properties':{'a':{'$ref':'#'}},'allOf':[{'properties':{'b':{'$ref':'#'}}}],"
         "'unevaluatedProperties':false}",
         {"{'a':{'b':{}},'b':{}}"},
         {"{'a':{'c':{}}}", "{'a':{'b':{'c':1}}}"}},
    };
    CHECK_SCHEMAS(cases, &compact);
}

/* A branch that evaluates the same member as others. */
#define SAME(value) "{'properties':{'x':{'const':'" value "'}},'required':['x']}"

/* Where schemas may or may not hold, those that do evaluate. */
static void test_unevaluated_choices(void **state) {
    (void)state;
    static const schema_case cases[] = {
        {"{'unevaluatedProperties':false,'anyOf':[{'properties':{'a':{'const':1}},'required':['a']},{'"
         "properties'"
         ":{'b':{'const':2}},'required':['b']},{'properties':{'c':{'const':3}},'required':['c']}]}",
         {"{'a':1}", "{'b':2}", "{'a':1,'b':2}", "{'c':3,'a':1}", "{'b':2,'c':3,'a':1}"},
         {"{}", "{'a':2}", "{'a':1,'b':3}", "{'a':1,'c':4,'b':2}", "{'a':1,'b':2,'c':3,'d':4}"}},
        {"{'unevaluatedProperties':false,'anyOf':[{'required':['a']},{'properties':{'a':true,'b':{'type':'"
         "null'}"
         "}}],'properties':{'x':true}}",
         {"{'x':1}", "{'a':1,'b':null}", "{'b':null,'x':2}"},
         {"{'b':1}", "{'a':1,'b':1}", "{'a':1,'c':1}"}},
        {"{'unevaluatedProperties':{'const':1},'anyOf':[{'required':['a'],'properties':{'a':true}},{'if':{"
         "'required':['b']},'else':{'properties':{'c':true}}}]}",
         {"{'b':1,'d':1}", "{'c':2}", "{'a':2}", "{'b':1,'a':2}", "{'a':2,'c':2}"},
         {"{'b':1,'c':2}", "{'b':2}", "{'d':2}", "{'a':2,'b':1,'c':2}"}},
        /* Ways that evaluate no more than others do count once. */
        {"{'unevaluatedProperties':false,'anyOf':[" SAME("a") "," SAME("b") "," SAME("c") "," SAME(
             "d") "," SAME("e") "," SAME("f") "," SAME("g") "," SAME("h") "," SAME("i") "," SAME("j") "]}",
         {"{'x':'a'}", "{'x':'j'}"},
         {"{}", "{'x':'k'}", "{'x':'a','y':1}"}},
        {"{'unevaluatedProperties':false,'anyOf':[true,{'properties':{'a':true}}]}",
         {"{'a':1}"},
         {"{'b':1}"}},
        {"{'unevaluatedProperties':false,'allOf':[{'anyOf':[{'properties':{'a':{'const':1}},'required':['a']}"
         ","
         "{'properties':{'b':{'const':1}},'anyOf':[{'patternProperties':{'^c':{'const':1}}},{'type':'null'}]}"
         "]}]"
         "}",
         {"{}", "{'a':1}", "{'b':1,'c':1}", "{'a':1,'b':1,'cc':1}", "null"},
         {"{'a':2}", "{'c':2}", "{'a':1,'b':2}", "{'d':1}", "{'a':1,'b':2,'c':1}"}},
        {"{'unevaluatedProperties':false,'oneOf':[{'properties':{'a':{'const':1}},'required':['a']},{'"
         "properties'"
         ":{'b':{'const':2}},'required':['b']}]}",
         {"{'a':1}", "{'b':2}"},
         {"{}", "{'a':1,'b':2}", "{'a':1,'b':3}", "{'a':1,'c':1}"}},
        {"{'unevaluatedProperties':false,'oneOf':[{'type':'object','required':['a']},{'properties':{'b':true}"
         ","
         "'required':['b']},{'type':'null'}],'properties':{'a':true}}",
         {"{'a':1}", "{'b':1}", "1"},
         {"{'a':1,'b':1}", "{'b':1,'c':1}", "null"}},
        {"{'unevaluatedProperties':false,'if':{'properties':{'a':{'const':1}},'required':['a']},'then':{"
         "'properties':{'b':true}},'else':{'properties':{'c':true}}}",
         {"{}", "{'a':1}", "{'a':1,'b':2}", "{'c':3}"},
         {"{'a':2}", "{'a':1,'c':2}", "{'b':1}", "{'b':1,'c':1}"}},
        {"{'unevaluatedProperties':false,'if':{'properties':{'a':{'const':1}},'required':['a']},'then':{"
         "'properties':{'b':true}}}",
         {"{}", "{'a':1,'b':2}"},
         {"{'a':2}", "{'b':1}"}},
        {"{'unevaluatedProperties':false,'if':{'required':['a']},'else':{'properties':{'b':true}}}",
         {"{}", "{'b':1}"},
         {"{'a':1}", "{'a':1,'b':1}"}},
        {"{'unevaluatedProperties':false,'if':{'patternProperties':{'^a':{'type':'null'}}}}",
         {"{}", "{'a':null}"},
         {"{'a':1}", "{'b':null}"}},
        {"{'unevaluatedProperties':false,'properties':{'a':true},'dependentSchemas':{'a':{'properties':{'b':"
         "true}"
         "}}}",
         {"{}", "{'a':1}", "{'b':2,'a':1}"},
         {"{'b':2}", "{'a':1,'c':1}"}},
        /* The opposite. */
        {"{'not':{'type':'object','unevaluatedProperties':false,'allOf':[{'properties':{'a':true}}]}}",
         {"1", "{'b':1}", "{'a':1,'b':2}"},
         {"{}", "{'a':1}"}},
        {"{'not':{'anyOf':[true,{'properties':{'a':true}}],'unevaluatedProperties':false}}",
         {"{'b':1}", "{'a':1,'b':1}"},
         {"{'a':1}", "{}", "1"}},
        {"{'oneOf':[{'$ref':'#/$defs/"
         "a'},{'properties':{'b':true},'unevaluatedProperties':false}],'$defs':{'a':{"
         "'type':'object','properties':{'a':true},'unevaluatedProperties':false}}}",
         {"{'a':1}", "{'b':1}", "1"},
         {"{}", "{'a':1,'b':1}", "{'c':1}"}},
    };
    CHECK_SCHEMAS(cases, &compact);
    const gb_schema_options in_order = {.space = GB_SPACE_NONE, .in_order = true};
    const schema_case ordered = {
        "{'unevaluatedProperties':false,'properties':{'a':true},'anyOf':[{'properties':{'b':{'const':1}},"
        "'required':['b']},{'properties':{'c':true}}]}",
        {"{'a':1,'b':1}", "{'a':1,'b':1,'c':2}", "{'a':1,'c':2}"},
        {"{'b':1,'a':1}", "{'d':1}", "{'b':2,'d':1}"}};
    check_schema(&ordered, &in_order);
}

static void test_unevaluated_items(void **state) {
    (void)state;
    static const schema_case cases[] = {
        {"{'unevaluatedItems':false}", {"[]", "1", "{'a':1}"}, {"[1]"}},
        {"{'unevaluatedItems':false,'dependentSchemas':{'a':{'items':true}}}", {"[]", "{'a':1}"}, {"[1]"}},
        {"{'unevaluatedItems':false,'dependentSchemas':{'a':{'prefixItems':[true]}}}", {"[]"}, {"[1]"}},
        {"{'unevaluatedItems':{'type':'null'},'prefixItems':[true]}",
         {"[]", "[1]", "[1,null,null]"},
         {"[1,2]"}},
        {"{'unevaluatedItems':false,'prefixItems':[true],'allOf':[{'prefixItems':[true,{'type':'null'}]},{'$"
         "ref':"
         "'#/$defs/a'}],'$defs':{'a':{'prefixItems':[{'type':'integer'}]}}}",
         {"[]", "[1]", "[1,null]"},
         {"['']", "[1,2]", "[1,null,null]"}},
        {"{'unevaluatedItems':false,'allOf':[{'items':{'type':'null'}}]}", {"[null,null]"}, {"[1]"}},
        {"{'unevaluatedItems':false,'allOf':[{'unevaluatedItems':{'type':'null'}}]}", {"[null]"}, {"[1]"}},
        {"{'unevaluatedItems':false,'allOf':[{'items':[true]}]}", {"[1]"}, {"[1,2]"}},
        {"{'unevaluatedItems':false,'items':[true],'additionalItems':{'type':'null'}}",
         {"[1,null,null]"},
         {"[1,2]"}},
        {"{'unevaluatedItems':false,'allOf':[{'prefixItems':[true],'additionalItems':true}]}",
         {"[1]"},
         {"[1,2]"}},
        {"{'allOf':[{'prefixItems':[true]},{'unevaluatedItems':false}]}", {"[]"}, {"[1]"}},
        {"{'unevaluatedItems':false,'anyOf':[{'prefixItems':[{'const':1}]},{'prefixItems':[true,{'const':2}]}"
         "]}",
         {"[]", "[1]", "[1,2]", "[3,2]"},
         {"[1,3]", "[1,2,3]"}},
        {"{'unevaluatedItems':false,'if':{'prefixItems':[{'const':1}]},'then':{'prefixItems':[true,true]}}",
         {"[]", "[1]", "[1,2]"},
         {"[2]", "[1,2,3]"}},
        /* From 2020-12 on the items that contains counts are evaluated. */
        {"{'unevaluatedItems':{'type':'null'},'prefixItems':[true],'contains':{'type':'string'}}",
         {"[1,'']", "['']", "['',null]", "[1,null,'',null]"},
         {"[]", "[1]", "[1,2,'']", "[1,null]"}},
        {"{'unevaluatedItems':false,'anyOf':[{'contains':{'const':1}},{'contains':{'const':2}}]}",
         {"[1]", "[2,2]", "[1,2,1]"},
         {"[]", "[3]", "[1,3]"}},
        {"{'unevaluatedItems':false,'minContains':0,'contains':{'const':1}}", {"[]", "[1,1]"}, {"[2]"}},
    };
    CHECK_SCHEMAS(cases, &compact);
}

static void test_references(void **state) {
    (void)state;
    static const schema_case cases[] = {
        {"{'type':'object','properties':{'v':{'type':'integer'},'next':{'anyOf':[{'$ref':'#'},{'type':'null'}"
         "]}},'required':['v','next'],'additionalProperties':false}",
         {"{'v':1,'next':{'next':null,'v':2}}"},
         {"{'v':1,'next':{'v':2}}"}},
        {"{'$ref':'#/$defs/a~1b%20c','$defs':{'a/b c':{'type':'null'}}}", {"null"}, {"1"}},
        {"{'$ref':'#here','$defs':{'x':{'$anchor':'here','const':1}}}", {"1"}, {"2"}},
        {"{'$dynamicRef':'#n','$defs':{'x':{'$dynamicAnchor':'n','const':1}}}", {"1"}, {"2"}},
        {"{'$id':'https://example.com/s.json','$ref':'https://example.com/s.json#/$defs/"
         "a','$defs':{'a':{'const':1}}}",
         {"1"},
         {"2"}},
        {"{'properties':{'a':{'const':1},'b':{'$ref':'#/properties/a'}},'type':'object','required':['b']}",
         {"{'b':1}"},
         {"{'b':2}"}},
        {"{'$ref':'#/prefixItems/1','prefixItems':[{},{'const':3}]}", {"3"}, {"4"}},
        {"{'$ref':'#/$defs/a','$defs':{'a':{'$ref':'#/$defs/b','minimum':2},'b':{'$ref':'#/$defs/"
         "a','type':'integer'}}}",
         {"2"},
         {"1", "'x'"}},
        {"{'$defs':{'e':{'anyOf':[{'type':'integer'},{'type':'array','items':{'$ref':'#/$defs/"
         "e'}}]}},'$ref':'#/$defs/e'}",
         {"1", "[[],[1,[2]]]"},
         {"[null]"}},
    };
    CHECK_SCHEMAS(cases, &compact);
}

#define TWO                                                                                                  \
    "{'type':'object','properties':{'b':{'type':'array','items':{'const':1}},'a':{'const':2},'c':{'const':"  \
    "3}},"

static void test_space(void **state) {
    (void)state;
    const gb_schema_options flexible = {0}, single = {.space = GB_SPACE_SINGLE}, two = {.longest_space = 2};
    static const schema_case cases[] = {{TWO "'additionalProperties':false}",
                                         {"{'a':2,'b':[1,1]}", "{\n  'a' : 2 ,\t'b':[ 1\r\n, 1 ] }", "{ }",
                                          "{'b':[ ]}", "{                    }"},
                                         {" {}", "{} ", "{                     }", "{'a': 2,}"}}};
    static const schema_case singles[] = {{TWO "'additionalProperties':false}",
                                           {"{'a': 2, 'b': [1, 1]}", "{}", "{'b': []}"},
                                           {"{'a':2}", "{ }", "{'b': [1,1]}", "{'a':  2}"}}};
    static const schema_case twos[] = {{"{'type':'array'}", {"[  ]", "[1  ,  2]"}, {"[   ]"}}};
    CHECK_SCHEMAS(cases, &flexible);
    CHECK_SCHEMAS(singles, &single);
    CHECK_SCHEMAS(twos, &two);
    const gb_schema_options lines = {.space = GB_SPACE_LINES};
    static const schema_case in_lines[] = {
        {TWO "'additionalProperties':false}",
         {"{'a':2,'b':[1,1]}", "{\n  'a': 2,\n  'b': [\n    1, 1 ]\n}", "{ }", "{'b':[ ]}"},
         {"{'a' : 2}", "{\n\n}", "{  }", "{'a':\n2}", " {}"}}};
    CHECK_SCHEMAS(in_lines, &lines);
}

static void test_in_order(void **state) {
    (void)state;
    const gb_schema_options in_order = {.space = GB_SPACE_NONE, .in_order = true};
    static const schema_case cases[] = {
        {TWO "'additionalProperties':false}",
         {"{}", "{'b':[],'a':2,'c':3}", "{'a':2}", "{'b':[],'c':3}"},
         {"{'a':2,'b':[]}", "{'c':3,'a':2}", "{'a':2,'a':2}", "{,'a':2}"}},
        {TWO "'required':['a']}",
         {"{'a':2}", "{'b':[],'a':2,'x':1,'y':2}", "{'a':2,'c':3,'x':1}"},
         {"{}", "{'b':[]}", "{'x':1,'a':2}", "{'a':2,'x':1,'c':3}"}},
        {"{'type':'object','additionalProperties':{'const':1},'minProperties':1,'maxProperties':2}",
         {"{'x':1}", "{'x':1,'y':1}"},
         {"{}", "{'x':1,'y':1,'z':1}"}},
        {TWO "'additionalProperties':false,'minProperties':1}", {"{'c':3}", "{'b':[],'a':2}"}, {"{}"}},
        {"{'type':'object','properties':{'a':{'const':1}},'required':['a','z'],'minProperties':3}",
         {"{'a':1,'z':2,'x':3}"},
         {"{'a':1,'z':2}", "{'z':2,'a':1,'x':3}"}},
    };
    CHECK_SCHEMAS(cases, &in_order);
}

/* A schema that may begin and end as a tree does, of more members than a word has bits. */
static void test_many_members(void **state) {
    (void)state;
    static char schema[4000], text[2000];
    size_t length =
        (size_t)snprintf(schema, sizeof schema,
                         "{'type':'object','additionalProperties':false,'required':['m99'],'properties':{");
    for (int i = 0; i < 100; i++)
        length += (size_t)snprintf(schema + length, sizeof schema - length, "%s'm%d':{'const':%d}",
                                   i ? "," : "", i, i);
    snprintf(schema + length, sizeof schema - length, "}}");
    length = (size_t)snprintf(text, sizeof text, "{");
    for (int i = 99; i >= 0; i--)
        length +=
            (size_t)snprintf(text + length, sizeof text - length, "%s'm%d':%d", i < 99 ? "," : "", i, i);
    snprintf(text + length, sizeof text - length, "}");
    const schema_case test = {schema, {text, "{'m99':99}", "{'m3':3,'m99':99}"}, {"{}", "{'m99':99,'m3':4}"}};
    const schema_case ordered = {
        schema, {"{'m99':99}", "{'m3':3,'m5':5,'m99':99}"}, {"{}", "{'m99':99,'m3':3}", text}};
    const gb_schema_options in_order = {.space = GB_SPACE_NONE, .in_order = true};
    check_schema(&test, &compact);
    check_schema(&ordered, &in_order);
}

/* Two schemas in one grammar have rules of their own; a schema that is read already is taken as well. */
static void test_two(void **state) {
    (void)state;
    gb_expressions *expressions = gb_expressions_create();
    gb_grammar *grammar;
    gumbel_error error;
    json_t *array = json_pack("{s:s, s:{s:s}}", "type", "array", "items", "type", "integer");
    json_t *list = json_pack("{s:[{s:s}, {s:s, s:{s:s}}]}", "anyOf", "type", "null", "type", "array", "items",
                             "$ref", "#");
    const gb_expression both[] = {gb_schema_express(expressions, array, &compact, &error),
                                  gb_schema_express(expressions, list, &compact, &error)};
    json_decref(array);
    json_decref(list);
    const gb_expression root = gb_express_sequence(expressions, both, 2);
    assert_ok(gb_grammar_compile(expressions, root, NULL, &grammar, &error), &error);
    assert_true(accepts_text(grammar, "[1][null,[]]"));
    assert_false(accepts_text(grammar, "[null][null]"));
    assert_false(accepts_text(grammar, "[1][1]"));
    gb_grammar_destroy(grammar);
    gb_expressions_destroy(expressions);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_members),
                                       cmocka_unit_test(test_counts),
                                       cmocka_unit_test(test_many_patterns),
                                       cmocka_unit_test(test_unique),
                                       cmocka_unit_test(test_unique_texts),
                                       cmocka_unit_test(test_contains),
                                       cmocka_unit_test(test_combined),
                                       cmocka_unit_test(test_dependencies),
                                       cmocka_unit_test(test_many_dependencies),
                                       cmocka_unit_test(test_unevaluated_members),
                                       cmocka_unit_test(test_unevaluated_choices),
                                       cmocka_unit_test(test_unevaluated_items),
                                       cmocka_unit_test(test_references),
                                       cmocka_unit_test(test_space),
                                       cmocka_unit_test(test_in_order),
                                       cmocka_unit_test(test_many_members),
                                       cmocka_unit_test(test_two)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
