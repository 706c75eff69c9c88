/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/options/foreign.h"

#include "cli/options/option_table.h"

#include <string.h>

static const cli_foreign rows[] = {
#define CLI_FOREIGN(names, value, kind, text) {names, value, CLI_FOREIGN_##kind, text},
#include "cli/options/foreign_flags.def"
#undef CLI_FOREIGN
};

const cli_foreign *cli_next_foreign(const cli_foreign *row, const char *name, size_t length) {
    for (row = row ? row + 1 : rows; row < rows + sizeof rows / sizeof *rows; row++)
        if (cli_has_name(row->names, name, length))
            return row;
    return NULL;
}

/* Whether each part between commas is one of the words, which end at the list's end or at a bracket. */
static bool are_words(const char *given, const char *words) {
    do {
        size_t length = strcspn(given, ","), n = 0;
        const char *rest = words, *word;
        while ((n = cli_next_name(&rest, &word)) > 0) {
            n -= word[n - 1] == ']';
            if (n == length && memcmp(word, given, n) == 0)
                break;
        }
        if (n == 0 || length == 0)
            return false;
        given += length;
    } while (*given++ == ',');
    return true;
}

cli_foreign_value cli_foreign_takes(const cli_foreign *row, const char *word) {
    switch (row->value[0]) {
    case '\0':
        return CLI_FOREIGN_NO_VALUE;
    case '[':
        return word && are_words(word, row->value + 1) ? CLI_FOREIGN_VALUE : CLI_FOREIGN_NO_VALUE;
    case '=':
        return word && are_words(word, row->value + 1) ? CLI_FOREIGN_VALUE : CLI_FOREIGN_OTHER_VALUE;
    default:
        return CLI_FOREIGN_VALUE;
    }
}
