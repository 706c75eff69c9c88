/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls of tools as both families write them: which texts a grammar takes, and that the reply format makes of
 * each text it takes calls with arguments of their types.
 */
#include "export/text/reply_formats.h"
#include "gumbel.h"
#include "support/assertions.h"
#include "support/paths.h"
#include "text/reply/use_format.h"

#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST_TOKENS = 1024, MOST_WORDS = 256, WALKS = 400 };

static gumbel_error error;
static gumbel_tokenizer *gemma, *qwen, *qwen3, *llama3, *muse, *plain; /* the last four: qwen with others */

static const char tools[] =
    "[{\"type\": \"function\", \"function\": {\"name\": \"weather\", \"parameters\": {\"type\": \"object\","
    " \"properties\": {\"town\": {\"type\": \"string\", \"maxLength\": 8}, \"days\": {\"type\": \"integer\","
    " \"minimum\": 1, \"maximum\": 12}, \"kind\": {\"enum\": [\"wind\", \"rain\"]}, \"sure\": {\"type\":"
    " \"boolean\"}, \"near\": {\"type\": \"array\", \"items\": {\"type\": \"string\", \"maxLength\": 3},"
    " \"maxItems\": 2}, \"note\": {\"type\": [\"string\", \"null\", \"integer\"], \"maxLength\": 5, "
    "\"minimum\":"
    " 100, \"maximum\": 200}}, \"required\": [\"town\", \"days\"]}}},"
    " {\"name\": \"clock\", \"input_schema\": {}}]";

static gumbel_tokenizer *with_format(const char *name) {
    gumbel_tokenizer *tokenizer;
    const char *format = gb_known_reply_format(name);
    assert_ok(gumbel_export_tokenizer(bundled_model("qwen3_5-moe-tiny"), &tokenizer, &error), &error);
    assert_ok(gb_tokenizer_use_reply_format(tokenizer, format, strlen(format), name, &error), &error);
    return tokenizer;
}

static int set_up(void **state) {
    (void)state;
    assert_ok(gumbel_export_tokenizer(bundled_model("gemma4-tiny"), &gemma, &error), &error);
    assert_ok(gumbel_export_tokenizer(bundled_model("qwen3_5-moe-tiny"), &qwen, &error), &error);
    qwen3 = with_format("qwen3");
    llama3 = with_format("llama3");
    muse = with_format("muse_glimmer");
    plain = with_format("plain");
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    gumbel_tokenizer_destroy(gemma);
    gumbel_tokenizer_destroy(qwen);
    gumbel_tokenizer_destroy(qwen3);
    gumbel_tokenizer_destroy(llama3);
    gumbel_tokenizer_destroy(muse);
    gumbel_tokenizer_destroy(plain);
    return 0;
}

static gumbel_grammar *compile(const gumbel_tokenizer *tokenizer, gumbel_grammar_options options) {
    gumbel_grammar *grammar;
    options.size = sizeof options;
    options.kind = options.kind ? options.kind : GUMBEL_GRAMMAR_TEXT;
    options.tools = options.tools ? options.tools : tools;
    assert_ok(gumbel_grammar_create(tokenizer, &options, &grammar, &error), &error);
    return grammar;
}

static bool takes(const gumbel_tokenizer *tokenizer, const gumbel_grammar *grammar, const char *text) {
    const gumbel_encode_options encode = {.size = sizeof encode, .parse_special = true};
    int32_t tokens[MOST_TOKENS];
    size_t count, taken = 0;
    gumbel_matcher *matcher;
    assert_ok(gumbel_encode(tokenizer, text, strlen(text), &encode, tokens, MOST_TOKENS, &count, &error),
              &error);
    assert_ok(gumbel_matcher_create(grammar, NULL, 0, &matcher, &error), &error);
    while (taken < count && gumbel_matcher_accept(matcher, tokens[taken], NULL) == GUMBEL_OK)
        taken++;
    const bool is_whole = taken == count && gumbel_matcher_may_end(matcher);
    gumbel_matcher_destroy(matcher);
    return is_whole;
}

typedef struct text_case {
    const char *text;
    bool is_call, is_mixed; /* taken where calls are required; where the model chooses */
} text_case;

static void check_texts_with(const gumbel_tokenizer *tokenizer, const char *given, const text_case *cases,
                             size_t count) {
    gumbel_grammar *required =
        compile(tokenizer, (gumbel_grammar_options){.tools = given, .tool_choice = GUMBEL_TOOLS_REQUIRED});
    gumbel_grammar *mixed = compile(tokenizer, (gumbel_grammar_options){.tools = given});
    for (size_t i = 0; i < count; i++)
        if (takes(tokenizer, required, cases[i].text) != cases[i].is_call ||
            takes(tokenizer, mixed, cases[i].text) != cases[i].is_mixed)
            fail_msg("%s: taken as calls: %d, as a text: %d", cases[i].text, !cases[i].is_call,
                     takes(tokenizer, mixed, cases[i].text));
    gumbel_grammar_destroy(required);
    gumbel_grammar_destroy(mixed);
}

static void check_texts(const gumbel_tokenizer *tokenizer, const text_case *cases, size_t count) {
    check_texts_with(tokenizer, tools, cases, count);
}

#define STRING "<|\"|>"
#define GEMMA(inner) "<|tool_call>call:" inner "<tool_call|>"

static void gemmas_calls(void **state) {
    (void)state;
    static const text_case cases[] = {
        {GEMMA("clock{}"), true, true},
        {GEMMA("weather{town:" STRING "Rome" STRING ",days:3}"), true, true},
        {GEMMA("weather{days:12,sure:true,town:" STRING "a\n\"{}," STRING ",kind:" STRING "rain" STRING "}"),
         true, true},
        {GEMMA("weather{days:1,town:" STRING STRING ",near:[" STRING "a" STRING "," STRING "b" STRING "]}"),
         true, true},
        {GEMMA("weather{days:1,town:" STRING STRING ",note:null}"), true, true},
        {GEMMA("weather{days:1,town:" STRING STRING ",note:150}"), true, true},
        {GEMMA("weather{days:1,town:" STRING STRING ",note:" STRING "5" STRING "}"), true, true},
        {GEMMA("clock{}") GEMMA("clock{}"), true, true},
        {"It is late. " GEMMA("clock{}") "So it is.", false, true},
        {"Nobody calls.", false, true},
        {"", false, true},
        {"call:clock{}", false, true},
        {GEMMA("weather{days:3}"), false, false},
        {GEMMA("weather{town:" STRING "Rome" STRING ",days:13}"), false, false},
        {GEMMA("weather{town:" STRING "Wanne-Eickel" STRING ",days:3}"), false, false},
        {GEMMA("weather{town:" STRING "Rome" STRING ",days:3,days:4}"), false, false},
        {GEMMA("weather{town:\"Rome\",days:3}"), false, false},
        {GEMMA("weather{town:" STRING "Rome" STRING ",days:3,wind:1}"), false, false},
        {GEMMA("weather{town:" STRING "Rome" STRING ",days:3,note:5}"), false, false},
        {GEMMA("clocks{}"), false, false},
        {GEMMA("clock{}") "<|tool_call>", false, false},
        {"<|tool_call>call:clock{}", false, false},
    };
    check_texts(gemma, cases, sizeof cases / sizeof cases[0]);
}

#define QWEN(name, inner) "<tool_call>\n<function=" name ">\n" inner "</function>\n</tool_call>"
#define ARGUMENT(name, value) "<parameter=" name ">\n" value "\n</parameter>\n"
#define TOWN ARGUMENT("town", "Rome") ARGUMENT("days", "3")

static void qwens_calls(void **state) {
    (void)state;
    static const text_case cases[] = {
        {QWEN("clock", ""), true, true},
        {"\n\n" QWEN("weather", TOWN), true, true},
        {QWEN("weather", ARGUMENT("days", "12") ARGUMENT("town", "a\n\"<b\\") ARGUMENT("kind", "rain")), true,
         true},
        {QWEN("weather", TOWN ARGUMENT("near", "[\"a\", \"<\\n\"]") ARGUMENT("sure", "false")), true, true},
        {QWEN("weather", TOWN ARGUMENT("note", "null")), true, true},
        {QWEN("weather", TOWN ARGUMENT("note", "150")), true, true},
        {QWEN("weather", TOWN ARGUMENT("note", "5 km")), true, true},
        {QWEN("clock", "") "\n" QWEN("clock", ""), true, true},
        {"It is late.\n" QWEN("clock", ""), false, true},
        {"Nobody calls.", false, true},
        {"", false, true},
        {QWEN("weather", ARGUMENT("days", "3")), false, false},
        {QWEN("weather", TOWN ARGUMENT("days", "4")), false, false},
        {QWEN("weather", ARGUMENT("town", "Rome") ARGUMENT("days", "13")), false, false},
        {QWEN("weather", ARGUMENT("town", "Wanne-Eickel") ARGUMENT("days", "3")), false, false},
        {QWEN("weather", TOWN ARGUMENT("kind", "\"rain\"")), false, false},
        {QWEN("weather", TOWN ARGUMENT("wind", "1")), false, false},
        {QWEN("weather", TOWN ARGUMENT("note", "5")), false, false},
        {QWEN("weather", TOWN ARGUMENT("near", "a")), false, false},
        {QWEN("clocks", ""), false, false},
        {QWEN("clock", "\n"), false, false},
        {"<tool_call>\n<function=clock>\n</function>\n", false, false},
    };
    check_texts(qwen, cases, sizeof cases / sizeof cases[0]);
}

#define QWEN3(name, arguments)                                                                               \
    "<tool_call>\n{\"name\": \"" name "\", \"arguments\": {" arguments "}}\n</tool_call>"

static void qwen3s_calls(void **state) {
    (void)state;
    static const text_case cases[] = {
        {QWEN3("clock", ""), true, true},
        {QWEN3("weather", "\"town\": \"Rome\", \"days\": 3"), true, true},
        {QWEN3("clock", "") "\n" QWEN3("clock", ""), true, true},
        {"It is late.\n" QWEN3("clock", ""), false, true},
        {"Nobody calls.", false, true},
        {QWEN3("weather", "\"days\": 3"), false, false},
        {QWEN3("weather", "\"town\": \"Rome\", \"days\": 13"), false, false},
        {QWEN3("clocks", ""), false, false},
        {"<tool_call>\n{\"name\": \"clock\", \"arguments\": {}}\n", false, false},
    };
    check_texts(qwen3, cases, sizeof cases / sizeof cases[0]);
}

#define ALONE(name, key, arguments) "{\"name\": \"" name "\", \"" key "\": {" arguments "}}"

/* A call is the whole reply where it has no marks, so that an answer may speak of one, or be JSON. */
static void calls_that_stand_alone(void **state) {
    (void)state;
    static const char strict[] = "[{\"name\": \"clock\", \"input_schema\": {}}, {\"name\": \"weather\", "
                                 "\"strict\": true, \"parameters\":"
                                 " {\"properties\": {\"town\": {\"type\": \"string\", \"maxLength\": 8}, "
                                 "\"days\": {\"type\": \"integer\","
                                 " \"maximum\": 12}}, \"required\": [\"town\", \"days\"]}}]";
    static const text_case llamas[] = {
        {ALONE("weather", "parameters", "\"town\": \"Rome\", \"days\": 3"), true, true},
        {ALONE("clock", "arguments", ""), false, false},
        {ALONE("clock", "parameters", "") "\n" ALONE("clock", "parameters", ""), false, false},
        {"\n{ \"name\" : \"clock\", \"parameters\": {}}", false, false},
        {"{\"name\": \"Ada\", \"age\": 36}", false, true},
    };
    static const text_case plains[] = {
        {ALONE("clock", "arguments", ""), true, true},
        {"So: " ALONE("clock", "arguments", ""), false, true},
        {"{\"name of a town\": 1}", false, true},
        {ALONE("clocks", "arguments", ""), false, true},
        {ALONE("weather", "arguments", "\"town\": \"Rome\", \"days\": 13"), false, false},
        {ALONE("clock", "arguments", "") ".", false, false},
    };
    check_texts_with(llama3, strict, llamas, sizeof llamas / sizeof llamas[0]);
    check_texts_with(plain, strict, plains, sizeof plains / sizeof plains[0]);
}

/* Nothing is taken from a model whose marks are not known, unless a tool is strict. */
static void calls_without_marks_are_the_models(void **state) {
    (void)state;
    static const text_case cases[] = {
        {"<think>So.</think> <tool_call>clock", false, true},
        {ALONE("weather", "arguments", "\"days\": 13"), false, true},
        {"", false, true},
    };
    check_texts(plain, cases, sizeof cases / sizeof cases[0]);
    check_texts(llama3, cases, sizeof cases / sizeof cases[0]);
}

#define ATEM(name, inner)                                                                                    \
    " to=" name "<|message|><atem:function_calls>\n<atem:invoke name=\"" name "\">\n" inner                  \
    "</atem:invoke>\n</atem:function_calls>"
#define PARAMETER(name, value) "<atem:parameter name=\"" name "\">" value "</atem:parameter>\n"

/* The name is that of the recipient too. */
static void muses_calls(void **state) {
    (void)state;
    static const text_case cases[] = {
        {ATEM("clock", ""), true, true},
        {ATEM("weather", PARAMETER("town", " a\n\"<b\\") PARAMETER("days", "12")), true, true},
        {ATEM("weather", PARAMETER("town", "") PARAMETER("days", "3") PARAMETER("near", "[\"a\"]")), true,
         true},
        {" to=user<|message|>It is late.", false, true},
        {ATEM("clock", "") ATEM("clock", ""), false, true},
        {ATEM("clocks", ""), false, true},
        {ATEM("weather", PARAMETER("days", "3")), false, true},
        {" to=weather<|message|><atem:function_calls>\n<atem:invoke name=\"clock\">\n</atem:invoke>\n"
         "</atem:function_calls>",
         false, true},
    };
    check_texts(muse, cases, sizeof cases / sizeof cases[0]);
}

/* Behind another name special tokens may stand: a message to another recipient. */
static void names_that_a_token_ends(void **state) {
    (void)state;
    static const char format[] =
        "{\"fields\": {\"tool_calls\": {\"open_pattern\": \"to=[a-z]+<\\\\|im_start\\\\|>\", \"content\": "
        "\"json\","
        " \"written\": {\"before\": [\"<|im_end|>\"], \"alone\": true,"
        " \"call\": \"to={name}<|im_start|>{name}: {arguments}\"}}, \"content\": {}}}";
    static const char strict[] = "[{\"name\": \"clock\", \"strict\": true, \"input_schema\": {}}]";
    static const text_case cases[] = {
        {"to=clock<|im_start|>clock: {}", true, true},
        {"<|im_end|>to=clock<|im_start|>clock: {}", true, false},
        {"to=clock<|im_start|>clock: 1", false, false},
        {"to=clock<|im_start|>clocks: {}", false, false},
        {"to=user<|im_start|>So.<|im_end|>to=clock<|im_start|>clock: 1", false, true},
        {"to=clocks<|im_start|>", false, true},
        {"So.", false, true},
    };
    gumbel_tokenizer *tokenizer = with_format("plain");
    assert_ok(gb_tokenizer_use_reply_format(tokenizer, format, strlen(format), "format", &error), &error);
    check_texts_with(tokenizer, strict, cases, sizeof cases / sizeof cases[0]);
    gumbel_tokenizer_destroy(tokenizer);
}

/* ---- Choices ------------------------------------------------------------------------------------------- */

#define CLOCK GEMMA("clock{}")
#define WEATHER GEMMA("weather{town:" STRING STRING ",days:1}")

static void choices(void **state) {
    (void)state;
    static const struct {
        gumbel_grammar_options options;
        const char *taken[4], *refused[4];
    } cases[] = {
        {{.tool_choice = GUMBEL_TOOLS_NONE}, {"", "So it is.", "call:clock{}"}, {CLOCK, "So " CLOCK}},
        {{.tool_name = "clock"}, {CLOCK}, {"", WEATHER, CLOCK CLOCK, "So " CLOCK}},
        {{.tool_choice = GUMBEL_TOOLS_REQUIRED, .single_call = true},
         {CLOCK, WEATHER},
         {"", CLOCK WEATHER, "So " CLOCK}},
        {{.single_call = true}, {"", "So", "So " CLOCK}, {CLOCK CLOCK, "So " CLOCK " " WEATHER}},
        {{.kind = GUMBEL_GRAMMAR_JSON_SCHEMA, .text = "{\"type\": \"boolean\"}"},
         {"true", CLOCK, CLOCK WEATHER},
         {"", "maybe", "true" CLOCK, CLOCK "true"}},
        {{.kind = GUMBEL_GRAMMAR_JSON_SCHEMA,
          .text = "{\"type\": \"boolean\"}",
          .tool_choice = GUMBEL_TOOLS_REQUIRED},
         {CLOCK},
         {"", "true"}},
        {{.kind = GUMBEL_GRAMMAR_REGEX, .text = "a+", .tool_choice = GUMBEL_TOOLS_NONE},
         {"aa"},
         {CLOCK, "b"}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        gumbel_grammar *grammar = compile(gemma, cases[i].options);
        for (size_t k = 0; k < 4; k++) {
            if (cases[i].taken[k] && !takes(gemma, grammar, cases[i].taken[k]))
                fail_msg("case %zu: %s is refused", i, cases[i].taken[k]);
            if (cases[i].refused[k] && takes(gemma, grammar, cases[i].refused[k]))
                fail_msg("case %zu: %s is taken", i, cases[i].refused[k]);
        }
        gumbel_grammar_destroy(grammar);
    }
}

/* ---- Errors, and what is left out ---------------------------------------------------------------------- */

static void assert_refused(gumbel_grammar_options options, gumbel_status status, const char *part) {
    gumbel_grammar *grammar;
    options.size = sizeof options;
    options.kind = GUMBEL_GRAMMAR_TEXT;
    assert_fails(gumbel_grammar_create(gemma, &options, &grammar, &error), status, &error, part);
    assert_null(grammar);
}

static void errors(void **state) {
    (void)state;
    assert_refused((gumbel_grammar_options){0}, GUMBEL_ERROR_ARGUMENT, "with tools");
    assert_refused((gumbel_grammar_options){.tools = "[]"}, GUMBEL_ERROR_ARGUMENT, "there are none");
    assert_refused((gumbel_grammar_options){.tools = "{"}, GUMBEL_ERROR_ARGUMENT, "line 1");
    assert_refused((gumbel_grammar_options){.tools = "[{}]"}, GUMBEL_ERROR_ARGUMENT, "number 0 has no name");
    assert_refused((gumbel_grammar_options){.tools = "[{\"name\": \"a b\"}]"}, GUMBEL_ERROR_ARGUMENT, "a b");
    assert_refused(
        (gumbel_grammar_options){
            .tools = "[{\"name\": \"a\", \"parameters\": {\"type\": [\"number\", \"null\"]}}]"},
        GUMBEL_ERROR_ARGUMENT, "another type than \"object\"");
    assert_refused(
        (gumbel_grammar_options){
            .tools = "[{\"name\": \"a\", \"strict\": true, \"parameters\": {\"type\": \"dict\"}}]"},
        GUMBEL_ERROR_FORMAT, "dict");
    assert_refused((gumbel_grammar_options){.tools = "[{\"name\": \"a\"}, {\"name\": \"a\"}]"},
                   GUMBEL_ERROR_ARGUMENT, "number 0 and 1 are both \"a\"");
    assert_refused((gumbel_grammar_options){.tools = tools, .tool_name = "moon"}, GUMBEL_ERROR_ARGUMENT,
                   "\"moon\"");
    assert_refused((gumbel_grammar_options){.tools = tools, .tool_choice = (gumbel_tool_choice)3},
                   GUMBEL_ERROR_ARGUMENT, "tool_choice is 3");
    assert_refused((gumbel_grammar_options){.tools = "[{\"name\": \"a\", \"strict\": true, \"parameters\": "
                                                     "{\"properties\": {\"x\": {\"uniqueItems\": true}}}}]"},
                   GUMBEL_ERROR_UNSUPPORTED, "tool \"a\": schema: \"uniqueItems\"");
}

/* Of a tool that is not strict: names and types stay. */
static void what_cannot_be_had_is_left_out(void **state) {
    (void)state;
    static const char loose[] =
        "[{\"name\": \"a\", \"parameters\": {\"type\": \"object\", \"properties\": {\"x\": {\"type\": "
        "\"array\","
        " \"uniqueItems\": true}, \"y\": {\"type\": \"integer\"}, \"z\": {\"description\": \"any\"}}}},"
        " {\"name\": \"b\", \"parameters\": {\"type\": \"object\", \"properties\": {\"y\": {\"minimum\": 3,"
        " \"type\": \"integer\"}}}},"
        " {\"name\": \"c\", \"parameters\": {\"type\": \"OBJECT\", \"properties\": {\"y\": {\"type\": "
        "\"integer\"}}}}]";
    gumbel_grammar *grammar =
        compile(gemma, (gumbel_grammar_options){.tools = loose, .tool_choice = GUMBEL_TOOLS_REQUIRED});
    assert_true(takes(gemma, grammar, GEMMA("a{y:1,x:[1,1]}")));
    assert_true(takes(gemma, grammar, GEMMA("a{z:[{},null]}")));
    assert_true(takes(gemma, grammar, GEMMA("b{y:3}")));
    assert_true(takes(gemma, grammar, GEMMA("c{y:3}")));
    assert_false(takes(gemma, grammar, GEMMA("c3")));
    assert_false(takes(gemma, grammar, GEMMA("a{y:1.5}")));
    assert_false(takes(gemma, grammar, GEMMA("a{w:1}")));
    assert_false(takes(gemma, grammar, GEMMA("b{y:2}")));
    gumbel_grammar_destroy(grammar);
}

/* ---- Replies ------------------------------------------------------------------------------------------- */

static uint32_t draw(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33);
}

/* A token that the mask allows, at random; -1: none is, or the answer may end and does. */
static int32_t choose(gumbel_matcher *matcher, uint64_t *state) {
    uint32_t words[MOST_WORDS];
    assert_ok(gumbel_matcher_mask(matcher, words, MOST_WORDS, &error), &error);
    if (gumbel_matcher_may_end(matcher) && draw(state) % 2)
        return -1;
    const uint32_t start = draw(state) % (MOST_WORDS * 32);
    for (uint32_t i = 0; i < MOST_WORDS * 32; i++) {
        const uint32_t token = (start + i) % (MOST_WORDS * 32);
        if (words[token / 32] >> token % 32 & 1)
            return (int32_t)token;
    }
    return -1;
}

static bool is_string_of(const json_t *value, size_t most) {
    size_t count = 0;
    for (size_t i = 0; i < json_string_length(value); i++)
        count += ((uint8_t)json_string_value(value)[i] & 0xC0) != 0x80;
    return json_is_string(value) && count <= most;
}

static bool is_note(const json_t *value) {
    const json_int_t number = json_integer_value(value);
    return !value || json_is_null(value) || is_string_of(value, 5) ||
           (json_is_integer(value) && number >= 100 && number <= 200);
}

static bool is_weather(const json_t *arguments) {
    const json_t *kind = json_object_get(arguments, "kind"), *near = json_object_get(arguments, "near");
    const json_t *sure = json_object_get(arguments, "sure"), *days = json_object_get(arguments, "days");
    const json_int_t number = json_integer_value(days);
    size_t known = 2;
    known += (kind ? 1u : 0u) + (near ? 1u : 0u) + (sure ? 1u : 0u);
    known += json_object_get(arguments, "note") ? 1u : 0u;
    for (size_t i = 0; i < json_array_size(near); i++)
        if (!is_string_of(json_array_get(near, i), 3))
            return false;
    return is_string_of(json_object_get(arguments, "town"), 8) && json_is_integer(days) && number >= 1 &&
           number <= 12 && (!kind || is_string_of(kind, 4)) && (!sure || json_is_boolean(sure)) &&
           (!near || (json_is_array(near) && json_array_size(near) <= 2)) &&
           is_note(json_object_get(arguments, "note")) && json_object_size(arguments) == known;
}

static void check_reply(gumbel_reply *reply) {
    assert_ok(gumbel_reply_end(reply, &error), &error);
    assert_true(gumbel_reply_part_count(reply) > 0);
    for (size_t i = 0; i < gumbel_reply_part_count(reply); i++) {
        gumbel_reply_part part = {.size = sizeof part};
        assert_ok(gumbel_reply_get_part(reply, i, &part, &error), &error);
        json_t *arguments = json_loadb(part.text, part.text_length, JSON_ALLOW_NUL, NULL);
        const bool is_good =
            part.type == GUMBEL_PART_TOOL_CALL && !part.warning &&
            (strcmp(part.name, "clock") == 0 ? json_object_size(arguments) == 0 : is_weather(arguments));
        if (!is_good)
            fail_msg("%.*s: %.*s (%s)", (int)part.raw_length, part.raw, (int)part.text_length, part.text,
                     part.warning ? part.warning : "no warning");
        json_decref(arguments);
    }
}

/* The end of a turn is no part of a call. */
static void add_end_of_turn(const gumbel_tokenizer *tokenizer, gumbel_reply *reply) {
    const char *text = tokenizer == gemma ? "<turn|>" : "<|im_end|>";
    const gumbel_encode_options encode = {.size = sizeof encode, .parse_special = true};
    int32_t end;
    size_t count;
    assert_ok(gumbel_encode(tokenizer, text, strlen(text), &encode, &end, 1, &count, &error), &error);
    assert_ok(gumbel_reply_add_token(reply, end, &error), &error);
}

/* Random answers. True: it ended in time. */
static bool walk(const gumbel_tokenizer *tokenizer, const gumbel_grammar *grammar, uint64_t seed) {
    const gumbel_reply_options options = {.size = sizeof options, .tools = tools};
    gumbel_matcher *matcher;
    gumbel_reply *reply;
    assert_ok(gumbel_matcher_create(grammar, NULL, 0, &matcher, &error), &error);
    assert_ok(gumbel_reply_create(tokenizer, &options, &reply, &error), &error);
    int32_t token = 0;
    for (int i = 0; i < MOST_TOKENS && (token = choose(matcher, &seed)) >= 0; i++) {
        assert_ok(gumbel_matcher_accept(matcher, token, &error), &error);
        assert_ok(gumbel_reply_add_token(reply, token, &error), &error);
    }
    if (token < 0) {
        add_end_of_turn(tokenizer, reply);
        check_reply(reply);
    }
    gumbel_reply_destroy(reply);
    gumbel_matcher_destroy(matcher);
    return token < 0;
}

static void what_is_taken_is_read(void **state) {
    (void)state;
    const gumbel_tokenizer *const tokenizers[] = {gemma, qwen, qwen3, llama3, muse, plain};
    for (size_t t = 0; t < sizeof tokenizers / sizeof tokenizers[0]; t++) {
        gumbel_grammar *grammar =
            compile(tokenizers[t], (gumbel_grammar_options){.tool_choice = GUMBEL_TOOLS_REQUIRED});
        int ended = 0;
        for (uint64_t seed = 1; seed <= WALKS; seed++)
            ended += walk(tokenizers[t], grammar, seed);
        assert_true(ended > WALKS / 2);
        gumbel_grammar_destroy(grammar);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gemmas_calls),
        cmocka_unit_test(qwens_calls),
        cmocka_unit_test(qwen3s_calls),
        cmocka_unit_test(calls_that_stand_alone),
        cmocka_unit_test(calls_without_marks_are_the_models),
        cmocka_unit_test(muses_calls),
        cmocka_unit_test(names_that_a_token_ends),
        cmocka_unit_test(choices),
        cmocka_unit_test(errors),
        cmocka_unit_test(what_cannot_be_had_is_left_out),
        cmocka_unit_test(what_is_taken_is_read),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
