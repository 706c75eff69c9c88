/* SPDX-License-Identifier: Apache-2.0
 *
 * Grammars at the public API: a text of some kind, read and compiled.
 */
#include "grammar/api.h"

#include "base/memory.h"
#include "base/versioned.h"
#include "grammar/choices.h"
#include "grammar/gbnf/gbnf.h"
#include "grammar/regex/regex.h"
#include "grammar/schema/notice.h"
#include "grammar/schema/schema.h"
#include "grammar/tools/tools.h"
#include "text/trie/tokenizer_trie.h"

#include <string.h>

/* That compiling may take. */
#define MOST_SECONDS 10.0

/* ---- Reading ------------------------------------------------------------------------------------------- */

static gb_expression read_schema(gb_expressions *expressions, const char *text,
                                 const gumbel_grammar_options *options, gumbel_error *error) {
    gb_schema_options schema = {.space = options->compact ? GB_SPACE_NONE : GB_SPACE_LINES,
                                .in_order = options->in_order,
                                .strict = options->strict,
                                .unknown = options->log ? json_object() : NULL};
    const gb_expression read = gb_schema_express_text(expressions, text, strlen(text), &schema, error);
    if (read)
        gb_note_unknown(schema.unknown, options->log, options->log_user);
    json_decref(schema.unknown);
    return read;
}

static gb_expression read_regex(gb_expressions *expressions, const char *text, gumbel_error *error) {
    gb_regex regex = {0};
    return gb_read_regex(expressions, text, strlen(text), NULL, &regex, error) == GUMBEL_OK ? regex.expression
                                                                                            : 0;
}

static int32_t find_token(void *user, const char *spelling, size_t length) {
    const gumbel_tokenizer *tokenizer = user;
    return gb_vocabulary_find(&tokenizer->vocabulary, spelling, length);
}

static gb_expression read_gbnf(gb_expressions *expressions, const gumbel_tokenizer *tokenizer,
                               const char *text, gumbel_error *error) {
    const gb_gbnf_options options = {.find_token = find_token, .user = (void *)(uintptr_t)tokenizer};
    gb_expression root = 0;
    return gb_read_gbnf(expressions, text, strlen(text), &options, &root, error) == GUMBEL_OK ? root : 0;
}

/* 0 with an error, or for any text. */
static gb_expression read_answer(gb_expressions *expressions, const gumbel_tokenizer *tokenizer,
                                 const gumbel_grammar_options *options, gumbel_error *error) {
    switch (options->kind) {
    case GUMBEL_GRAMMAR_JSON:
        return read_schema(expressions, "{\"type\": \"object\"}", options, error);
    case GUMBEL_GRAMMAR_JSON_SCHEMA:
        return read_schema(expressions, options->text, options, error);
    case GUMBEL_GRAMMAR_REGEX:
        return read_regex(expressions, options->text, error);
    case GUMBEL_GRAMMAR_GBNF:
        return read_gbnf(expressions, tokenizer, options->text, error);
    case GUMBEL_GRAMMAR_CHOICES:
        return gb_read_choices(expressions, options->text, error);
    case GUMBEL_GRAMMAR_TEXT:
        break;
    }
    return 0;
}

/* 0 with an error. loosened: as in gb_express_tools. */
static gb_expression read(gb_expressions *expressions, const gumbel_tokenizer *tokenizer,
                          const gumbel_grammar_options *options, bool loosened, gumbel_error *error) {
    const gb_expression answer = read_answer(expressions, tokenizer, options, error);
    if (!options->tools || (!answer && options->kind != GUMBEL_GRAMMAR_TEXT))
        return answer;
    return gb_express_tools(expressions, tokenizer, options, answer, loosened, error);
}

static gumbel_status check(const gumbel_grammar_options *options, gumbel_error *error) {
    const bool needs_text = options->kind != GUMBEL_GRAMMAR_JSON && options->kind != GUMBEL_GRAMMAR_TEXT;
    if (options->kind < GUMBEL_GRAMMAR_JSON || options->kind > GUMBEL_GRAMMAR_TEXT)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT,
                       "grammar: kind is %d, expected one of gumbel_grammar_kind", (int)options->kind);
    if (needs_text && !options->text)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "grammar: text is NULL");
    if (options->kind == GUMBEL_GRAMMAR_TEXT && !options->tools)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "grammar: any text needs no grammar, but with tools");
    if (!(options->max_seconds >= 0))
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "grammar: max_seconds is %g, expected 0 or more",
                       options->max_seconds);
    if (options->tool_choice < GUMBEL_TOOLS_AUTO || options->tool_choice > GUMBEL_TOOLS_NONE)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT,
                       "grammar: tool_choice is %d, expected one of gumbel_tool_choice",
                       (int)options->tool_choice);
    return GUMBEL_OK;
}

/* ---- Making -------------------------------------------------------------------------------------------- */

static gumbel_status compile_once(const gumbel_tokenizer *tokenizer, const gumbel_grammar_options *options,
                                  bool loosened, gb_watch *watch, gb_grammar **compiled,
                                  gumbel_error *error) {
    gb_expressions *expressions = gb_expressions_create();
    if (!expressions)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for a grammar");
    gumbel_error found = {0};
    gb_expressions_watch(expressions, watch);
    const gb_expression root = read(expressions, tokenizer, options, loosened, &found);
    gumbel_status status = found.status;
    if (status == GUMBEL_OK)
        status = gb_expressions_error(expressions, &found);
    if (status == GUMBEL_OK)
        status = gb_grammar_compile(expressions, root, NULL, compiled, &found);
    gb_expressions_destroy(expressions);
    if (status != GUMBEL_OK && error)
        *error = found;
    return status;
}

/* What schemas of tools ask and cannot be had is left out where they are not strict. */
static gumbel_status compile(const gumbel_tokenizer *tokenizer, const gumbel_grammar_options *options,
                             gb_grammar **compiled, gumbel_error *error) {
    gb_watch watch = {.seconds = options->max_seconds > 0 ? options->max_seconds : MOST_SECONDS,
                      .is_cancelled = options->is_cancelled,
                      .user = options->user};
    gb_watch_begin(&watch);
    const gumbel_status status = compile_once(tokenizer, options, false, &watch, compiled, error);
    const bool may_loosen =
        status == GUMBEL_ERROR_UNSUPPORTED || status == GUMBEL_ERROR_FORMAT || status == GUMBEL_ERROR_LIMIT;
    if (!options->tools || !may_loosen || watch.error.status != GUMBEL_OK)
        return status;
    return compile_once(tokenizer, options, true, &watch, compiled, error);
}

gumbel_status gumbel_grammar_create(const gumbel_tokenizer *tokenizer, const gumbel_grammar_options *given,
                                    gumbel_grammar **grammar, gumbel_error *error) {
    gumbel_grammar_options options;
    *grammar = NULL;
    GB_TRY(gb_read_versioned(given, "grammar options", &options, sizeof options, error));
    GB_TRY(check(&options, error));
    gumbel_grammar *made = gb_allocate(1, sizeof *made);
    if (!made)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for a grammar");
    made->tokenizer = tokenizer;
    made->is_json = options.kind == GUMBEL_GRAMMAR_JSON || options.kind == GUMBEL_GRAMMAR_JSON_SCHEMA;
    atomic_init(&made->references, 1);
    gumbel_status status = gb_find_free_text(tokenizer, &options, &made->is_free_text, error);
    if (status == GUMBEL_OK)
        status = compile(tokenizer, &options, &made->compiled, error);
    if (status == GUMBEL_OK)
        status = gb_tokenizer_trie(tokenizer, &made->trie, error);
    if (status != GUMBEL_OK) {
        gumbel_grammar_destroy(made);
        return status;
    }
    *grammar = made;
    return GUMBEL_OK;
}

gumbel_grammar *gb_grammar_retain(const gumbel_grammar *grammar) {
    gumbel_grammar *shared = (gumbel_grammar *)(uintptr_t)grammar; /* of which the count alone changes */
    atomic_fetch_add(&shared->references, 1);
    return shared;
}

void gumbel_grammar_destroy(gumbel_grammar *grammar) {
    if (!grammar || atomic_fetch_sub(&grammar->references, 1) > 1)
        return;
    gb_grammar_destroy(grammar->compiled);
    gb_free(grammar);
}
