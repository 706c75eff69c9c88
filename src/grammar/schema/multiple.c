/* SPDX-License-Identifier: Apache-2.0 */
#include "grammar/schema/multiple.h"

gb_expression gb_express_multiple(gb_schema_reader *reader, const json_t *schema, const json_t *multiple) {
    (void)multiple;
    return gb_schema_fail(reader, schema, "multipleOf", GUMBEL_ERROR_UNSUPPORTED, "todo");
}
