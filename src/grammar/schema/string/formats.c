/* SPDX-License-Identifier: Apache-2.0 */
#include "grammar/schema/string/formats.h"

#include <stddef.h>
#include <string.h>

const gb_string_format *gb_find_format(const char *name) {
    static const gb_string_format formats[] = {
#define GB_FORMAT(name, regex, outer) {name, regex, outer},
#define GB_EXACT_FORMAT(name, regex) {name, regex, regex},
#define GB_PLAIN_FORMAT(name) {name, NULL, ""},
#include "grammar/schema/string/formats.def"
#undef GB_FORMAT
#undef GB_EXACT_FORMAT
#undef GB_PLAIN_FORMAT
    };
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++)
        if (strcmp(formats[i].name, name) == 0)
            return &formats[i];
    return NULL;
}
