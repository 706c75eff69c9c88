/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes as a regular expression: refused with a message, or followed without a dead end.
 */
#include "grammar/regex/regex.h"
#include "grammar_walk.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    gb_expressions *expressions = gb_expressions_create();
    gumbel_error error = {0};
    gb_regex regex = {0};
    gumbel_status status = gb_read_regex(expressions, (const char *)data, size, NULL, &regex, &error);
    check_grammar(expressions, status, regex.expression, &error, data, size);
    return 0;
}
