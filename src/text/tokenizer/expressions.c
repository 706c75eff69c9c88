/* SPDX-License-Identifier: Apache-2.0 */
#include "text/tokenizer/expressions.h"

#include <string.h>

static const struct known {
    const char *text;
    bool is_linear;
} known[] = {
    {"", false},
#define GB_EXPRESSION(name, is_linear, text) {text, is_linear},
#include "text/tokenizer/expressions.def"
#undef GB_EXPRESSION
};

const char *gb_split_expression_text(gb_split_expression expression) {
    return known[expression].text;
}

gb_split_expression gb_split_expression_find(const char *text, size_t length) {
    for (int i = 1; i < GB_EXPRESSION_COUNT; i++)
        if (strlen(known[i].text) == length && memcmp(known[i].text, text, length) == 0)
            return (gb_split_expression)i;
    return GB_EXPRESSION_NONE;
}

bool gb_split_expression_is_linear(gb_split_expression expression) {
    return known[expression].is_linear;
}
