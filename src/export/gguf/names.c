/* SPDX-License-Identifier: Apache-2.0 */
#include "export/gguf/names.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* Whether name is pattern with digits for its *, which *digits and *length tell. */
static bool matches(const char *pattern, const char *name, const char **digits, size_t *length) {
    size_t before = strcspn(pattern, "*");
    *digits = "";
    *length = 0;
    if (pattern[before] == '\0')
        return strcmp(pattern, name) == 0;
    if (strncmp(pattern, name, before) != 0)
        return false;
    *digits = name + before;
    *length = strspn(*digits, "0123456789");
    return *length > 0 && strcmp(pattern + before + 1, *digits + *length) == 0;
}

static void fill(const char *pattern, const char *digits, size_t length, char text[GB_GGUF_NAME]) {
    size_t before = strcspn(pattern, "*");
    if (pattern[before] == '\0')
        snprintf(text, GB_GGUF_NAME, "%s", pattern);
    else
        snprintf(text, GB_GGUF_NAME, "%.*s%.*s%s", (int)before, pattern, (int)length, digits,
                 pattern + before + 1);
}

const gb_gguf_name *gb_gguf_to_checkpoint(const gb_gguf_name *names, const char *name,
                                          char other[GB_GGUF_NAME]) {
    const char *digits;
    size_t length;
    for (; names->gguf; names++) {
        if (!matches(names->gguf, name, &digits, &length))
            continue;
        fill(names->checkpoint, digits, length, other);
        return names;
    }
    return NULL;
}

const gb_gguf_name *gb_gguf_from_checkpoint(const gb_gguf_name *names, const char *name,
                                            char other[GB_GGUF_NAME]) {
    const char *digits;
    size_t length;
    for (; names->gguf; names++) {
        if (names->checkpoint[0] == '\0' || !matches(names->checkpoint, name, &digits, &length) ||
            (length == 0 && strchr(names->gguf, '*')))
            continue;
        fill(names->gguf, digits, length, other);
        return names;
    }
    return NULL;
}

int64_t gb_gguf_layer_of(const char *name) {
    static const char PREFIX[] = "blk.";
    int64_t layer = 0;
    size_t at = strlen(PREFIX);
    if (strncmp(name, PREFIX, at) != 0 || !isdigit((unsigned char)name[at]))
        return -1;
    for (; isdigit((unsigned char)name[at]); at++) {
        layer = 10 * layer + (name[at] - '0');
        if (layer > INT32_MAX)
            return -1;
    }
    return name[at] == '.' ? layer : -1;
}
