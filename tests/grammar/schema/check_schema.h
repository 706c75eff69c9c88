/* SPDX-License-Identifier: Apache-2.0
 *
 * Schemas and texts for tests. In all of them ' stands for ".
 */
#ifndef GUMBEL_TESTS_CHECK_SCHEMA_H
#define GUMBEL_TESTS_CHECK_SCHEMA_H

#include "grammar/matching.h"
#include "grammar/schema/schema.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { MOST_TEXTS = 14 };

typedef struct schema_case {
    const char *schema;
    const char *accepted[MOST_TEXTS], *refused[MOST_TEXTS]; /* up to NULL */
} schema_case;

static inline size_t unquote(const char *text, char *to, size_t room) {
    const size_t length = strlen(text);
    assert_true(length < room);
    for (size_t i = 0; i <= length; i++)
        to[i] = text[i] == '\'' ? '"' : text[i];
    return length;
}

static inline gumbel_status compile_schema(const char *schema, const gb_schema_options *options,
                                           gb_grammar **grammar, gumbel_error *error) {
    char text[4096];
    const size_t length = unquote(schema, text, sizeof text);
    gb_expressions *expressions = gb_expressions_create();
    assert_non_null(expressions);
    const gb_expression root = gb_schema_express_text(expressions, text, length, options, error);
    const gumbel_status status =
        root ? gb_grammar_compile(expressions, root, NULL, grammar, error) : error->status;
    gb_expressions_destroy(expressions);
    return status;
}

static inline bool accepts_text(const gb_grammar *grammar, const char *quoted) {
    char text[4096];
    return accepts_bytes(grammar, text, unquote(quoted, text, sizeof text));
}

static inline void check_schema(const schema_case *test, const gb_schema_options *options) {
    gb_grammar *grammar = NULL;
    gumbel_error error;
    if (compile_schema(test->schema, options, &grammar, &error) != GUMBEL_OK)
        fail_msg("%s: %s", test->schema, error.message);
    for (size_t i = 0; i < MOST_TEXTS && test->accepted[i]; i++)
        if (!accepts_text(grammar, test->accepted[i]))
            fail_msg("%s refuses %s", test->schema, test->accepted[i]);
    for (size_t i = 0; i < MOST_TEXTS && test->refused[i]; i++)
        if (accepts_text(grammar, test->refused[i]))
            fail_msg("%s accepts %s", test->schema, test->refused[i]);
    gb_grammar_destroy(grammar);
}

#define CHECK_SCHEMAS(cases, options)                                                                        \
    for (size_t case_index = 0; case_index < sizeof(cases) / sizeof((cases)[0]); case_index++)               \
    check_schema(&(cases)[case_index], (options))

#endif
