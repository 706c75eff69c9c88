/* SPDX-License-Identifier: Apache-2.0
 *
 * Items that all differ.
 */
#include "grammar/nodes.h"

gb_expression gb_express_distinct(gb_expressions *expressions, gb_expression item, gb_expression separator,
                                  uint32_t least, uint32_t most) {
    if (most < least)
        return gb_expressions_fail(expressions, GUMBEL_ERROR_ARGUMENT,
                                   "grammar: items that differ, at least %u and at most %u of them", least,
                                   most);
    if (!separator)
        separator = gb_express_empty(expressions);
    const unsigned of_item = gb_item_depth(expressions, item),
                   of_separator = gb_item_depth(expressions, separator);
    const uint32_t first = (uint32_t)expressions->link_count;
    if (!gb_add_links(expressions, (const uint32_t[]){separator, least, most}, 3))
        return 0;
    return gb_add_node(expressions,
                       (gb_expression_node){.kind = GB_NODE_DISTINCT, .item = item, .first = first},
                       of_item > of_separator ? of_item : of_separator);
}
