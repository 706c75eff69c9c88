/* SPDX-License-Identifier: Apache-2.0
 *
 * What the draft that $schema names changes, and what is said of keywords that are not known.
 */
#include "check_schema.h"

#include "grammar/schema/notice.h"

#define DRAFT_4 "'$schema':'http://json-schema.org/draft-04/schema#',"
#define DRAFT_7 "'$schema':'http://json-schema.org/draft-07/schema#',"
#define DRAFT_2019 "'$schema':'https://json-schema.org/draft/2019-09/schema',"
#define DRAFT_2020 "'$schema':'https://json-schema.org/draft/2020-12/schema',"

static void test_drafts(void **state) {
    (void)state;
    static const schema_case cases[] = {
        /* Nothing counts beside $ref up to draft 7. */
        {"{" DRAFT_7 "'definitions':{'a':{'type':'integer'}},'$ref':'#/definitions/a','maximum':3}",
         {"4"},
         {"''"}},
        {"{" DRAFT_2020 "'$defs':{'a':{'type':'integer'}},'$ref':'#/$defs/a','maximum':3}", {"3"}, {"4"}},
        {"{'$defs':{'a':{'type':'integer'}},'$ref':'#/$defs/a','maximum':3}", {"3"}, {"4"}},
        /* Keywords of later drafts are unknown in earlier ones, where a member may have such a name. */
        {"{" DRAFT_4 "'if':{'type':'integer'},'then':{'maximum':3}}", {"4"}, {""}},
        {"{" DRAFT_7 "'if':{'type':'integer'},'then':{'maximum':3}}", {"3", "'4'"}, {"4"}},
        {"{" DRAFT_4 "'type':'object','properties':{'const':{'const':1},'if':{'type':'null'}}}",
         {"{'const':2}", "{'if':null}"},
         {"{'if':1}"}},
        {"{" DRAFT_7 "'unevaluatedProperties':false,'unevaluatedItems':false}", {"{'a':1}", "[1]"}, {""}},
        {"{" DRAFT_2019 "'unevaluatedProperties':false,'unevaluatedItems':false}",
         {"{}", "[]"},
         {"{'a':1}", "[1]"}},
        {"{" DRAFT_2019 "'unevaluatedItems':false,'contains':{'const':1},'prefixItems':[true]}",
         {"{}"},
         {"[1]"}},
        {"{" DRAFT_2020 "'unevaluatedItems':false,'contains':{'const':1}}", {"[1]"}, {"[1,2]"}},
        {"{" DRAFT_2019 "'unevaluatedItems':{'type':'null'},'items':[true]}", {"[1,null]"}, {"[1,2]"}},
        /* Only draft 4 has id. */
        {"{'properties':{'a':{'id':'x','type':'integer'},'b':{'$ref':'#/properties/a'}}}",
         {"{'b':1}"},
         {"{'b':''}"}},
        {"{" DRAFT_4 "'id':'http://a/b#','properties':{'b':{'$ref':'http://a/b#/definitions/c'}},"
         "'definitions':{'c':{'type':'integer'}}}",
         {"{'b':1}"},
         {"{'b':''}"}},
        /* What is unknown asks nothing, but what $ref finds in it counts. */
        {"{'$ref':'#/parts/a','parts':{'a':{'type':'integer','largest':3}}}", {"4"}, {"''"}},
        {"{'not':{'largest':3,'type':'integer'}}", {"''"}, {"4"}},
        {"{'extends':{'type':'integer'},'type':['integer','string']}", {"''"}, {"null"}},
    };
    CHECK_SCHEMAS(cases, NULL);
}

/* References are seen from the nearest schema with an $id. */
static void test_resources(void **state) {
    (void)state;
    static const schema_case cases[] = {
        {"{'$ref':'#/$defs/a','$defs':{'a':{'$id':'x','$ref':'#/$defs/b','$defs':{'b':{'type':'null'}}},"
         "'b':{'type':'integer'}}}",
         {"null"},
         {"1"}},
        {"{'$ref':'#/$defs/c','$defs':{'a':{'$id':'x','type':'null'},'c':{'type':'integer'}}}",
         {"1"},
         {"null"}},
        {"{'$id':'http://h/d/e.json','prefixItems':[{'$ref':'f.json#/$defs/g'},{'$ref':'/"
         "k#m'},{'$ref':'e.json#/"
         "$defs/n'}],'minItems':3,'items':false,'$defs':{'f':{'$id':'f.json','$defs':{'g':{'const':1}}},"
         "'k':{'$id':'http://h/k','$defs':{'l':{'$anchor':'m','const':2}}},'n':{'const':3}}}",
         {"[1,2,3]"},
         {"[2,2,3]", "[1,1,3]", "[1,2,2]"}},
        {"{'$id':'http://h/d/','$ref':'e/f','$defs':{'e':{'$id':'e/','$defs':{'f':{'$id':'f','$ref':'../g'},"
         "'h':{'$id':'http://h/d/e/../g','const':5}}}}}",
         {"5"},
         {"4"}},
        {"{'$ref':'x#m','$defs':{'a':{'$id':'x','allOf':[{'$id':'y','$anchor':'m','type':'null'},{'$anchor':'"
         "m',"
         "'type':'integer'}]}}}",
         {"1"},
         {"null"}},
        /* What enum has is no schema. */
        {"{'enum':[{'$id':'x'}],'$defs':{'a':{'type':'object'}},'$ref':'#/$defs/a'}",
         {"{'$id':'x'}"},
         {"{}"}},
    };
    CHECK_SCHEMAS(cases, NULL);
}

static void test_draft_refusals(void **state) {
    (void)state;
    gb_grammar *grammar = NULL;
    gumbel_error error;
    const gb_schema_options strict = {.strict = true};
    assert_fails(compile_schema("{'$schema':'http://json-schema.org/draft-03/schema#','extends':{}}", NULL,
                                &grammar, &error),
                 GUMBEL_ERROR_UNSUPPORTED, &error, "\"extends\"");
    assert_fails(compile_schema("{" DRAFT_4 "'properties':{'a':{'const':1}}}", &strict, &grammar, &error),
                 GUMBEL_ERROR_UNSUPPORTED, &error, "\"const\" at #/properties/a/const");
}

static void test_listed(void **state) {
    (void)state;
    gb_grammar *grammar = NULL;
    gumbel_error error;
    json_t *unknown = json_object();
    const gb_schema_options options = {.unknown = unknown};
    assert_ok(compile_schema("{'title':'t','x-own':1,'colour':1,'items':{'format':'phone'},'maxItmes':2,"
                             "'prefixItems':[{'colour':2},{'format':'date'}]}",
                             &options, &grammar, &error),
              &error);
    gb_grammar_destroy(grammar);
    char *text = json_dumps(unknown, JSON_COMPACT | JSON_SORT_KEYS);
    assert_string_equal(text, "{\"\\\"colour\\\"\":true,\"\\\"maxItmes\\\"\":true,\"format 'phone'\":true}");
    free(text);
    json_decref(unknown);
}

static void keep_line(void *user, gumbel_log_level level, const char *line) {
    assert_int_equal(level, GUMBEL_LOG_INFO);
    snprintf(user, 200, "%s", line);
}

static void test_notice(void **state) {
    (void)state;
    char line[200] = "";
    json_t *unknown = json_object();
    gb_note_unknown(NULL, keep_line, line);
    gb_note_unknown(unknown, keep_line, line);
    assert_string_equal(line, "");
    json_object_set_new(unknown, "\"a\n\"", json_true());
    json_object_set_new(unknown, "format 'b'", json_true());
    gb_note_unknown(unknown, keep_line, line);
    assert_string_equal(line, "schema: not known, and so taken as annotations: \"a\\n\", format 'b'");
    json_decref(unknown);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_drafts), cmocka_unit_test(test_resources),
                                       cmocka_unit_test(test_draft_refusals), cmocka_unit_test(test_listed),
                                       cmocka_unit_test(test_notice)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
