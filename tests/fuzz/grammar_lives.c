/* SPDX-License-Identifier: Apache-2.0
 *
 * Lives of grammars: each is compiled, and followed along texts that it takes or refuses; what comes out is
 * the masks on the way. Parts of a schema that were lost would show there as tokens that are allowed besides.
 */
#include "cases.h"
#include "export/text/reply_formats.h"
#include "grammar/api.h"
#include "grammar/matcher.h"
#include "lives.h"
#include "support/paths.h"
#include "text/reply/use_format.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_TEXTS = 3, MOST_TOKENS = 128, MOST_MASK_WORDS = 8192 };

/* Whose reply format says how tools are called: as tagged arguments, as an object without quotes, as JSON. */
typedef enum call_writer { QWEN, GEMMA, LLAMA3, WRITERS } call_writer;

typedef struct tried_grammar {
    gumbel_grammar_kind kind;
    const char *text;
    const char *texts[MOST_TEXTS]; /* NULL: no more */
    const char *tools;
    gumbel_tool_choice choice;
    call_writer writer;
} tried_grammar;

#define SCHEMA GUMBEL_GRAMMAR_JSON_SCHEMA

static const char tools[] =
    "[{\"name\":\"a\",\"parameters\":{\"type\":\"object\",\"properties\":{\"s\":{\"type\":\"string\"},"
    "\"n\":{\"type\":[\"integer\",\"null\"]}},\"required\":[\"s\"]}}]";
static const char strict_tools[] =
    "[{\"name\":\"a\",\"strict\":true,\"parameters\":{\"properties\":{\"s\":{\"type\":\"string\"}}}}]";
/* Its pattern cannot be had, so that the types alone are asked. */
static const char loosened_tools[] =
    "[{\"name\":\"a\",\"parameters\":{\"properties\":{\"s\":{\"type\":[\"string\",\"integer\"],"
    "\"pattern\":\"(?=x)\"}}}},{\"name\":\"b\"}]";

static const tried_grammar tried[] = {
    /* Keywords that are rewritten to others. */
    {.kind = SCHEMA,
     .text = "{\"not\":{\"type\":[\"object\",\"array\",\"string\",\"number\"]}}",
     .texts = {"null", "{"}},
    {.kind = SCHEMA,
     .text = "{\"type\":\"string\",\"not\":{\"enum\":[\"a\",\"bc\"]}}",
     .texts = {"\"bc\"", "\"bd\""}},
    {.kind = SCHEMA,
     .text = "{\"type\":\"string\",\"not\":{\"pattern\":\"^a\"}}",
     .texts = {"\"ab\"", "\"ba\""}},
    {.kind = SCHEMA,
     .text = "{\"type\":\"string\",\"not\":{\"minLength\":3,\"pattern\":\"b$\"}}",
     .texts = {"\"aab\"", "\"ab\""}},
    {.kind = SCHEMA,
     .text = "{\"type\":\"integer\",\"not\":{\"minimum\":3,\"maximum\":20}}",
     .texts = {"5", "2", "21"}},
    {.kind = SCHEMA, .text = "{\"type\":\"array\",\"not\":{\"maxItems\":1}}", .texts = {"[1]", "[1,2]"}},
    {.kind = SCHEMA,
     .text = "{\"type\":\"object\",\"properties\":{\"a\":{},\"b\":{}},\"additionalProperties\":false,"
             "\"not\":{\"required\":[\"a\",\"b\"]}}",
     .texts = {"{\"a\":1}", "{\"a\":1,\"b\":2}"}},
    {.kind = SCHEMA,
     .text =
         "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\"}},\"additionalProperties\":false,"
         "\"not\":{\"properties\":{\"a\":{\"minimum\":4}}}}",
     .texts = {"{\"a\":3}", "{\"a\":4}", "{}"}},
    {.kind = SCHEMA,
     .text = "{\"type\":\"integer\",\"not\":{\"allOf\":[{\"minimum\":3},{\"not\":{\"minimum\":9}}]}}",
     .texts = {"5", "9"}},
    {.kind = SCHEMA,
     .text = "{\"type\":\"integer\",\"not\":{\"anyOf\":[{\"minimum\":9},{\"maximum\":3}]}}",
     .texts = {"5", "12", "2"}},
    {.kind = SCHEMA,
     .text =
         "{\"$defs\":{\"big\":{\"minimum\":100}},\"type\":\"integer\",\"not\":{\"$ref\":\"#/$defs/big\"}}",
     .texts = {"99", "100"}},
    {.kind = SCHEMA,
     .text = "{\"type\":\"object\",\"properties\":{\"k\":{\"enum\":[1,2]},\"v\":{}},\"required\":[\"k\"],"
             "\"additionalProperties\":false,\"if\":{\"properties\":{\"k\":{\"const\":1}}},"
             "\"then\":{\"required\":[\"v\"]},\"else\":{\"properties\":{\"v\":false}}}",
     .texts = {"{\"k\":1}", "{\"k\":2}", "{\"k\":2,\"v\":0}"}},
    {.kind = SCHEMA,
     .text = "{\"type\":\"object\",\"properties\":{\"a\":{},\"b\":{}},\"additionalProperties\":false,"
             "\"dependentRequired\":{\"a\":[\"b\"]}}",
     .texts = {"{\"a\":1}", "{\"a\":1,\"b\":2}", "{\"b\":1}"}},
    {.kind = SCHEMA,
     .text = "{\"type\":\"object\",\"properties\":{\"a\":{},\"b\":{}},\"additionalProperties\":false,"
             "\"dependentSchemas\":{\"a\":{\"properties\":{\"b\":{\"type\":\"null\"}}}}}",
     .texts = {"{\"b\":1,\"a\":2}", "{\"b\":null,\"a\":2}"}},
    {.kind = SCHEMA,
     .text =
         "{\"type\":\"object\",\"properties\":{\"a\":{},\"b\":{},\"c\":{}},\"additionalProperties\":false,"
         "\"dependencies\":{\"a\":\"b\",\"b\":[\"c\"]}}",
     .texts = {"{\"a\":1}", "{\"a\":1,\"b\":1,\"c\":1}"}},
    /* Choices and references. */
    {.kind = SCHEMA,
     .text =
         "{\"oneOf\":[{\"type\":\"object\",\"properties\":{\"k\":{\"const\":\"x\"}},\"required\":[\"k\"]},"
         "{\"type\":\"object\",\"properties\":{\"k\":{\"const\":\"y\"}},\"required\":[\"k\"]},{\"type\":"
         "\"null\"}"
         "]}",
     .texts = {"{\"k\":\"x\"}", "{\"k\":\"z\"}", "null"}},
    {.kind = SCHEMA,
     .text =
         "{\"allOf\":[{\"type\":\"integer\"},{\"minimum\":7},{\"anyOf\":[{\"maximum\":9},{\"const\":40}]}]}",
     .texts = {"8", "10", "40"}},
    {.kind = SCHEMA,
     .text = "{\"type\":\"object\",\"properties\":{\"v\":{\"type\":\"boolean\"},\"next\":{\"$ref\":\"#\"}},"
             "\"required\":[\"v\"],\"additionalProperties\":false}",
     .texts = {"{\"v\":true,\"next\":{\"v\":false}}", "{\"next\":{}"}},
    {.kind = SCHEMA,
     .text = "{\"$ref\":\"#/$defs/a~1b\",\"$defs\":{\"a/b\":{\"enum\":[true,\"on\"]},\"\":{}}}",
     .texts = {"true", "\"on\"", "1"}},
    {.kind = SCHEMA,
     .text = "{\"$ref\":\"#n\",\"$defs\":{\"x\":{\"$anchor\":\"n\",\"type\":\"null\"}}}",
     .texts = {"null", "1"}},
    /* Values. */
    {.kind = SCHEMA,
     .text =
         "{\"type\":\"object\",\"properties\":{\"a\":{}},\"patternProperties\":{\"^p\":{\"type\":\"null\"},"
         "\"q$\":{\"type\":\"boolean\"}},\"propertyNames\":{\"maxLength\":3},\"required\":[\"a\"]}",
     .texts = {"{\"a\":1,\"px\":null}", "{\"a\":1,\"pxxx\"", "{\"xq\":1"}},
    {.kind = SCHEMA,
     .text =
         "{\"type\":\"object\",\"properties\":{\"a\":{},\"b\":{}},\"minProperties\":1,\"maxProperties\":1}",
     .texts = {"{}", "{\"a\":1}", "{\"a\":1,\"b\":1}"}},
    {.kind = SCHEMA,
     .text = "{\"type\":\"array\",\"prefixItems\":[{\"type\":\"integer\"},{\"const\":\"z\"}],\"items\":false,"
             "\"minItems\":2}",
     .texts = {"[1,\"z\"]", "[1]", "[1,\"z\",2]"}},
    {.kind = SCHEMA,
     .text = "{\"enum\":[{\"a\":[1,\"x\"]},{\"a\":[2]},3,null,\"s\",\"t\",\"u\",\"v\",4.5],\"not\":{"
             "\"const\":3}}",
     .texts = {"{\"a\":[1,\"x\"]}", "3", "4.5"}},
    {.kind = SCHEMA,
     .text = "{\"properties\":{\"a\":{\"type\":\"string\",\"pattern\":\"^x\"}},\"enum\":[{\"a\":\"xy\"},{"
             "\"a\":\"y\"}"
             "]}",
     .texts = {"{\"a\":\"xy\"}", "{\"a\":\"y\"}"}},
    {.kind = SCHEMA,
     .text = "{\"type\":\"string\",\"format\":\"date\"}",
     .texts = {"\"2024-02-30\"", "\"2024-13\""}},
    {.kind = SCHEMA,
     .text = "{\"type\":\"number\",\"multipleOf\":0.5,\"minimum\":-2,\"maximum\":11}",
     .texts = {"10.5", "10.4", "-3"}},
    {.kind = SCHEMA,
     .text = "{\"type\":\"string\",\"minLength\":2,\"maxLength\":3}",
     .texts = {"\"a\"", "\"abc\"", "\"abcd\""}},
    {.kind = GUMBEL_GRAMMAR_JSON, .texts = {"{\"a\":[1,{}]}", "[", "{\"a\"}"}},
    /* Expressions. */
    {.kind = GUMBEL_GRAMMAR_REGEX, .text = "(a|bc){2,3}[^x-z]?", .texts = {"abcbc", "az", "aaaq"}},
    {.kind = GUMBEL_GRAMMAR_REGEX,
     .text = "^\\p{Lu}\\w*(end|END)\\d{0,40}$",
     .texts = {"Xend12", "xend", "XEND"}},
    {.kind = GUMBEL_GRAMMAR_REGEX,
     .text = "([0-9]+\\.){3}[0-9]+|\\u00e9+",
     .texts = {"1.22.3.4", "1.2", "\xc3\xa9"}},
    {.kind = GUMBEL_GRAMMAR_GBNF,
     .text = "root ::= item (\",\" item)* end\nitem ::= [a-z]+ | \"(\" root \")\"\nend ::= \"\\n\"?\n",
     .texts = {"ab,(c)", "(a,", "a\nb"}},
    {.kind = GUMBEL_GRAMMAR_GBNF,
     .text = "root ::= x{2,5} | y\nx ::= \"a\" | [^a-f]\ny ::= \"b\" y?\n",
     .texts = {"aagg", "bbb", "ab"}},
    {.kind = GUMBEL_GRAMMAR_CHOICES, .text = "[\"yes\",\"yellow\",\"no\"]", .texts = {"yes", "yell", "ny"}},
    /* Calls of tools. */
    {.kind = GUMBEL_GRAMMAR_TEXT,
     .texts =
         {"<tool_call>\n<function=a>\n<parameter=s>\nx\n</parameter>\n<parameter=n>\n12\n</parameter>\n</"
          "function>\n",
          "<tool_call>\n<function=a>\n</function>"},
     .tools = tools,
     .choice = GUMBEL_TOOLS_REQUIRED},
    {.kind = GUMBEL_GRAMMAR_TEXT,
     .texts = {"Hello <tool_call>\n<function=b", "<function"},
     .tools = tools,
     .choice = GUMBEL_TOOLS_AUTO},
    {.kind = GUMBEL_GRAMMAR_TEXT,
     .texts = {"<tool_call>\n<function=a>\n<parameter=s>\n12\n</parameter>\n<parameter=t",
               "<tool_call>\n<function=b>\n<"},
     .tools = loosened_tools,
     .choice = GUMBEL_TOOLS_REQUIRED},
    {.kind = GUMBEL_GRAMMAR_TEXT,
     .texts = {"<|tool_call>call:a{s:<|\"|>x<|\"|>,n:null}<tool_call|>", "<|tool_call>call:a{n:1}<"},
     .tools = tools,
     .choice = GUMBEL_TOOLS_AUTO,
     .writer = GEMMA},
    {.kind = GUMBEL_GRAMMAR_TEXT,
     .texts = {"{\"name\": \"a\", \"parameters\": {\"s\": \"x\"}}", "{\"name\": \"b\"", "Hello"},
     .tools = strict_tools,
     .choice = GUMBEL_TOOLS_AUTO,
     .writer = LLAMA3},
    {.kind = SCHEMA,
     .text = "{\"type\":\"null\"}",
     .texts = {"null", "<tool_call>\n<function=a"},
     .tools = tools,
     .choice = GUMBEL_TOOLS_AUTO},
};

enum { TRIED = sizeof tried / sizeof tried[0] };

static gumbel_tokenizer *tokenizers[WRITERS];
static struct {
    int32_t tokens[MOST_TOKENS];
    size_t count;
} encoded[TRIED][MOST_TEXTS];

static void encode_text(size_t which, size_t index) {
    const gumbel_encode_options options = {.size = sizeof options, .parse_special = true};
    const char *text = tried[which].texts[index];
    gumbel_error error;
    if (text && gumbel_encode(tokenizers[tried[which].writer], text, strlen(text), &options,
                              encoded[which][index].tokens, MOST_TOKENS, &encoded[which][index].count,
                              &error) != GUMBEL_OK)
        fail_case("%s: %s", text, error.message);
}

/* format: NULL: the model's own. */
static void prepare_tokenizer(call_writer writer, const char *model, const char *format) {
    gumbel_error error;
    const char *text = format ? gb_known_reply_format(format) : NULL;
    gumbel_status status = gumbel_export_tokenizer(bundled_model(model), &tokenizers[writer], &error);
    if (status == GUMBEL_OK && text)
        status = gb_tokenizer_use_reply_format(tokenizers[writer], text, strlen(text), format, &error);
    if (status != GUMBEL_OK)
        fail_case("%s", error.message);
}

static void prepare(void) {
    prepare_tokenizer(QWEN, "qwen3_5-moe-tiny", NULL);
    prepare_tokenizer(GEMMA, "gemma4-tiny", NULL);
    prepare_tokenizer(LLAMA3, "qwen3_5-moe-tiny", "llama3");
    for (size_t which = 0; which < TRIED; which++)
        for (size_t index = 0; index < MOST_TEXTS; index++)
            encode_text(which, index);
}

static const char *name_of(size_t which) {
    return tried[which].text ? tried[which].text : tried[which].tools ? tried[which].tools : "JSON";
}

/* Where memory was short, once more: an error leaves everything as it was. */
static gumbel_status make_mask(gb_matcher *matcher, uint32_t *words, gumbel_error *error) {
    const gumbel_status status = gb_matcher_mask(matcher, words, error);
    return status == GUMBEL_ERROR_MEMORY ? gb_matcher_mask(matcher, words, error) : status;
}

static bool accept_token(gb_matcher *matcher, uint32_t token) {
    return gb_matcher_accept_token(matcher, token) ||
           (gb_matcher_error(matcher, NULL) == GUMBEL_ERROR_MEMORY &&
            gb_matcher_accept_token(matcher, token));
}

static gumbel_status add_mask(gb_matcher *matcher, const gumbel_grammar *grammar, uint64_t *made,
                              gumbel_error *error) {
    static uint32_t words[MOST_MASK_WORDS];
    const gumbel_status status = make_mask(matcher, words, error);
    hash_bytes(made, words, grammar->trie->word_count * sizeof *words);
    return status;
}

/* Masks up to the token that is refused. */
static gumbel_status follow(gb_matcher *matcher, const gumbel_grammar *grammar, const int32_t *tokens,
                            size_t count, uint64_t *made, gumbel_error *error) {
    gumbel_status status = add_mask(matcher, grammar, made, error);
    for (size_t i = 0; i < count && status == GUMBEL_OK; i++) {
        if (!accept_token(matcher, (uint32_t)tokens[i]))
            return gb_matcher_error(matcher, error);
        status = add_mask(matcher, grammar, made, error);
    }
    const bool may_end = gb_matcher_may_end(matcher);
    hash_bytes(made, &may_end, sizeof may_end);
    return status;
}

static gumbel_status follow_texts(const gumbel_grammar *grammar, size_t which, uint64_t *made,
                                  gumbel_error *error) {
    gb_matcher *matcher;
    gumbel_status status = GUMBEL_OK;
    for (size_t i = 0; i < MOST_TEXTS && tried[which].texts[i] && status == GUMBEL_OK; i++) {
        status = gb_matcher_create(grammar->compiled, grammar->trie, NULL, &matcher, error);
        if (status != GUMBEL_OK)
            return status;
        status = follow(matcher, grammar, encoded[which][i].tokens, encoded[which][i].count, made, error);
        gb_matcher_destroy(matcher);
    }
    return status;
}

static gumbel_status run(size_t which, uint64_t *made, gumbel_error *error) {
    const gumbel_grammar_options options = {.size = sizeof options,
                                            .kind = tried[which].kind,
                                            .text = tried[which].text,
                                            .compact = true,
                                            .tools = tried[which].tools,
                                            .tool_choice = tried[which].choice};
    gumbel_grammar *grammar;
    gumbel_status status = gumbel_grammar_create(tokenizers[tried[which].writer], &options, &grammar, error);
    if (status != GUMBEL_OK)
        return status;
    hash_bytes(made, &grammar->is_free_text, sizeof grammar->is_free_text);
    status = follow_texts(grammar, which, made, error);
    gumbel_grammar_destroy(grammar);
    return status;
}

const life_set lives = {.harness = "grammar_allocation",
                        .is_short_alone = true,
                        .count = TRIED,
                        .prepare = prepare,
                        .name_of = name_of,
                        .run = run};
