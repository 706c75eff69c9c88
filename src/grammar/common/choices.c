/* SPDX-License-Identifier: Apache-2.0 */
#include "base/memory.h"
#include "grammar/common/common.h"

gb_expression gb_express_choices(gb_expressions *expressions, const char *const *texts, const size_t *sizes,
                                 size_t count) {
    if (count == 0)
        return gb_expressions_fail(expressions, GUMBEL_ERROR_ARGUMENT, "choices: there are none");
    gb_expression *items = gb_allocate(count, sizeof *items);
    if (!items)
        return gb_expressions_fail(expressions, GUMBEL_ERROR_MEMORY, "no memory for %zu choices", count);
    for (size_t i = 0; i < count; i++)
        items[i] = gb_express_bytes(expressions, texts[i], sizes[i]);
    const gb_expression choice = gb_express_choice(expressions, items, count);
    gb_free(items);
    return choice;
}
