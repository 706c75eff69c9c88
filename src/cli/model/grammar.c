/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/model/grammar.h"

#include "base/status.h"
#include "cli/base/files.h"
#include "cli/base/report.h"

#include <string.h>

const cli_option cli_grammar_table[] = {
    {.names = "-j --json-schema --json-schema-file -jf",
     .argument = "FILE|JSON",
     .help =
         "The answer is JSON that this schema allows, given as a file or as the schema itself. What it asks "
         "and cannot be had is an error that names the keyword.",
     .type = CLI_STRING,
     .offset = offsetof(cli_grammar_options, schema)},
    {.names = "--json-object",
     .help = "The answer is a JSON object.",
     .type = CLI_FLAG,
     .offset = offsetof(cli_grammar_options, json)},
    {.names = "--regex",
     .argument = "REGEX",
     .help = "The whole answer matches this regular expression.",
     .type = CLI_STRING,
     .offset = offsetof(cli_grammar_options, regex)},
    {.names = "--grammar --grammar-file",
     .argument = "FILE|GBNF",
     .help = "The answer follows this grammar, in the GBNF of llama.cpp, from its rule root on.",
     .type = CLI_STRING,
     .offset = offsetof(cli_grammar_options, grammar)},
    {.names = "--json-in-order",
     .help = "Members of objects stand in the order of the schema's properties; otherwise in any order.",
     .type = CLI_FLAG,
     .offset = offsetof(cli_grammar_options, in_order)},
    {.names = "--json-compact",
     .help = "JSON without white space between its tokens.",
     .type = CLI_FLAG,
     .offset = offsetof(cli_grammar_options, compact)},
    {.names = "--json-strict",
     .help =
         "Keywords and formats of the schema that are not known are an error; otherwise a note lists them.",
     .type = CLI_FLAG,
     .offset = offsetof(cli_grammar_options, strict)},
    {.names = "--tool-choice",
     .argument = "auto|required|none|NAME",
     .help =
         "Whether the answer calls tools of --tools: it may; it is calls alone; it has none; or it is one "
         "call of the tool with that name.",
     .type = CLI_STRING,
     .offset = offsetof(cli_grammar_options, tool_choice)},
    {0},
};

/* A schema is an object, or true or false. */
static bool is_schema(const char *text) {
    return text[strspn(text, " \t\r\n")] == '{' || strcmp(text, "true") == 0 || strcmp(text, "false") == 0;
}

static gumbel_status read_file(const char *path, gb_byte_buffer *file, gumbel_error *error) {
    const gumbel_status status = cli_read_file(path, file, error);
    if (status != GUMBEL_OK || strlen(file->text) == file->size)
        return status;
    return gb_fail(error, GUMBEL_ERROR_FORMAT, "%s: a schema or a grammar has no zero bytes", path);
}

/* A file's name begins the message about its text. */
static gumbel_status create(const gumbel_tokenizer *tokenizer, const gumbel_grammar_options *options,
                            const char *path, gumbel_grammar **grammar, gumbel_error *error) {
    gumbel_error found;
    const gumbel_status status = gumbel_grammar_create(tokenizer, options, grammar, &found);
    if (status == GUMBEL_OK)
        return status;
    return gb_fail(error, status, "%s%s%s", path ? path : "", path ? ": " : "", found.message);
}

static int count_of(const cli_grammar_options *flags) {
    return (flags->schema != NULL) + (flags->grammar != NULL) + (flags->regex != NULL) + flags->json;
}

static gumbel_status check(const cli_grammar_options *flags, const char *tools, const cli_model *model,
                           gumbel_error *error) {
    if (count_of(flags) > 1)
        cli_refuse(error, "an answer takes one of --json-schema, --json-object, --regex and --grammar");
    else if (flags->tool_choice && !tools)
        cli_refuse(error, "--tool-choice needs --tools, and messages rather than plain text");
    else if ((count_of(flags) > 0 || flags->tool_choice) && !model->tokenizer)
        cli_refuse(error, "the program has no tokenizer, which a grammar needs to know its tokens by");
    else
        return GUMBEL_OK;
    return error->status;
}

static void choose_tools(const char *choice, gumbel_grammar_options *options) {
    if (!choice || strcmp(choice, "auto") == 0)
        options->tool_choice = GUMBEL_TOOLS_AUTO;
    else if (strcmp(choice, "required") == 0)
        options->tool_choice = GUMBEL_TOOLS_REQUIRED;
    else if (strcmp(choice, "none") == 0)
        options->tool_choice = GUMBEL_TOOLS_NONE;
    else
        options->tool_name = choice;
}

/* Both are files, or NULL. */
static gumbel_status read_grammar(const char *text, const char *tools, const gumbel_tokenizer *tokenizer,
                                  gumbel_grammar_options *options, gumbel_grammar **grammar,
                                  gumbel_error *error) {
    gb_byte_buffer text_file = {0}, tools_file = {0};
    gumbel_status status = GUMBEL_OK;
    if (text) {
        status = read_file(text, &text_file, error);
        options->text = text_file.text;
    }
    if (status == GUMBEL_OK && tools) {
        status = read_file(tools, &tools_file, error);
        options->tools = tools_file.text;
    }
    if (status == GUMBEL_OK)
        status = create(tokenizer, options, text ? text : tools, grammar, error);
    gb_buffer_free(&text_file);
    gb_buffer_free(&tools_file);
    return status;
}

static void note_unknown(void *user, gumbel_log_level level, const char *line) {
    (void)user;
    (void)level;
    cli_note("%s", line);
}

gumbel_status cli_read_grammar(const cli_grammar_options *flags, const char *tools, const cli_model *model,
                               gumbel_grammar **grammar, gumbel_error *error) {
    const bool is_asked = count_of(flags) > 0 || flags->tool_choice;
    gumbel_grammar_options options = {.size = sizeof options,
                                      .in_order = flags->in_order,
                                      .compact = flags->compact,
                                      .strict = flags->strict,
                                      .log = note_unknown};
    options.kind = flags->schema    ? GUMBEL_GRAMMAR_JSON_SCHEMA
                   : flags->grammar ? GUMBEL_GRAMMAR_GBNF
                   : flags->regex   ? GUMBEL_GRAMMAR_REGEX
                   : flags->json    ? GUMBEL_GRAMMAR_JSON
                                    : GUMBEL_GRAMMAR_TEXT;
    options.text = flags->schema ? flags->schema : flags->grammar ? flags->grammar : flags->regex;
    const bool is_file =
        (flags->schema && !is_schema(flags->schema)) || (flags->grammar && !strstr(flags->grammar, "::="));
    gumbel_grammar *made = NULL;
    gumbel_status status = check(flags, tools, model, error);
    choose_tools(flags->tool_choice, &options);
    if (status == GUMBEL_OK && (is_asked || (tools && model->info.has_mask)))
        status = read_grammar(is_file ? options.text : NULL, tools, model->tokenizer, &options, &made, error);
    if (status != GUMBEL_OK && is_asked)
        return status;
    if (status != GUMBEL_OK)
        cli_note("calls of tools are not held to their schemas: %s", error->message);
    gumbel_grammar_destroy(*grammar);
    *grammar = made;
    return GUMBEL_OK;
}
