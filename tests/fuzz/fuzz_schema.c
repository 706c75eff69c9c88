/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes as options and a JSON Schema: refused with a message, or followed without a dead end.
 */
#include "grammar/schema/schema.h"
#include "grammar_walk.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0)
        return 0;
    const gb_schema_options options = {.space = (gb_schema_space)(data[0] % 3),
                                       .longest_space = data[0] & 4 ? 1 : 0,
                                       .in_order = data[0] & 8,
                                       .one_of_as_any_of = data[0] & 16,
                                       .strict = data[0] & 32};
    gb_expressions *expressions = gb_expressions_create();
    gumbel_error error = {0};
    const gb_expression root =
        gb_schema_express_text(expressions, (const char *)data + 1, size - 1, &options, &error);
    check_grammar(expressions, root ? GUMBEL_OK : error.status, root, &error, data, size);
    return 0;
}
