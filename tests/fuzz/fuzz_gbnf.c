/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes as GBNF: refused with a message, or followed without a dead end.
 */
#include "grammar/gbnf/gbnf.h"
#include "grammar_walk.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Tokens have no bytes, so a text could end before one. */
static bool has_token(const uint8_t *data, size_t size) {
    for (size_t i = 0; i < size; i++)
        if (data[i] == '<')
            return true;
    return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    gb_expressions *expressions = gb_expressions_create();
    gumbel_error error = {0};
    gb_expression root = 0;
    gumbel_status status = gb_read_gbnf(expressions, (const char *)data, size, NULL, &root, &error);
    check_grammar(expressions, status, root, &error, data, has_token(data, size) ? 0 : size);
    return 0;
}
