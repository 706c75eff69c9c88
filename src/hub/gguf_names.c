/* SPDX-License-Identifier: Apache-2.0 */
#include "hub/gguf_names.h"

#include "hub/names.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

/* The ending of a part; its number is the first DIGITS bytes after the dash. */
#define PART_ENDING "-00001-of-00002.gguf"
enum { DIGITS = 5, ENDING = sizeof PART_ENDING - 1 };

bool hub_is_gguf_model(const char *name) {
    return hub_ends_with(name, ".gguf") && strcmp(name, ".gguf") != 0 && !strstr(name, "mmproj") &&
           !strstr(name, "imatrix");
}

const char *hub_part_number(const char *name) {
    size_t length = strlen(name);
    if (length < ENDING)
        return NULL;
    const char *ending = name + length - ENDING;
    for (size_t i = 0; i < ENDING; i++) {
        bool is_digit = PART_ENDING[i] >= '0' && PART_ENDING[i] <= '9';
        if (is_digit ? ending[i] < '0' || ending[i] > '9' : ending[i] != PART_ENDING[i])
            return NULL;
    }
    return ending + 1;
}

bool hub_is_first_part(const char *name) {
    const char *number = hub_part_number(name);
    return !number || strncmp(number, "00001", DIGITS) == 0;
}

bool hub_is_same_gguf(const char *a, const char *b) {
    const char *number = hub_part_number(a), *other = hub_part_number(b);
    if (!number || !other)
        return strcmp(a, b) == 0;
    return number - a == other - b && strncmp(a, b, (size_t)(number - a)) == 0 &&
           strcmp(number + DIGITS, other + DIGITS) == 0;
}

bool hub_has_quant(const char *name, const char *quant) {
    size_t length = strlen(quant);
    for (const char *at = name; length > 0 && strlen(at) >= length; at++)
        if (strncasecmp(at, quant, length) == 0 && (at == name || strchr("-./", at[-1])) &&
            strchr("-./", at[length]))
            return true;
    return false;
}

static int choose_quant(const char *const *names, size_t count, const char *quant) {
    int found = HUB_NO_GGUF;
    size_t shortest = 0;
    for (size_t i = 0; i < count; i++) {
        size_t length = strlen(names[i]);
        if (!hub_has_quant(names[i], quant) || (found != HUB_NO_GGUF && length > shortest))
            continue;
        found = found != HUB_NO_GGUF && length == shortest ? HUB_SEVERAL_GGUFS : (int)i;
        shortest = length;
    }
    return found;
}

int hub_choose_gguf(const char *const *names, size_t count, const char *quant) {
    if (quant[0])
        return choose_quant(names, count, quant);
    if (count <= 1)
        return count == 1 ? 0 : HUB_NO_GGUF;
    int usual = choose_quant(names, count, HUB_USUAL_QUANT);
    return usual == HUB_NO_GGUF ? HUB_SEVERAL_GGUFS : usual;
}

void hub_describe_names(const char *const *names, size_t count, char *text, size_t capacity) {
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < count; i++) {
        size_t length = strlen(names[i]);
        if (i > 0 && used + length + 32 > capacity) {
            snprintf(text + used, capacity - used, " and %zu more", count - i);
            return;
        }
        int written = snprintf(text + used, capacity - used, "%s%.100s", i ? ", " : "", names[i]);
        used += (size_t)written < capacity - used ? (size_t)written : capacity - used - 1;
    }
}
