/* SPDX-License-Identifier: Apache-2.0 */
#include "export/unused_tensors.h"

#include <stdio.h>
#include <string.h>

enum { MAX_PARTS = 8 };

typedef struct part {
    const char *name; /* not terminated */
    size_t length, count;
} part;

/* The part ends at the first character that no name of a module has. */
static part part_of(const gb_tensor *tensor) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
    const char *name = strncmp(tensor->name, "model.", 6) == 0 ? tensor->name + 6 : tensor->name;
    return (part){.name = name, .length = strspn(name, letters)};
}

/* Counts one tensor of that part. When the parts are too many the last one takes the rest. */
static void count_part(part parts[MAX_PARTS], size_t *part_count, part added) {
    size_t at = 0;
    while (at < *part_count &&
           (parts[at].length != added.length || memcmp(parts[at].name, added.name, added.length) != 0))
        at++;
    if (at == *part_count && at < MAX_PARTS) {
        parts[at] = added;
        ++*part_count;
    }
    if (at == MAX_PARTS) {
        at = MAX_PARTS - 1;
        parts[at].name = "others";
        parts[at].length = strlen("others");
    }
    parts[at].count++;
}

size_t gb_describe_unused(const gb_checkpoint *checkpoint, const gb_weights *weights, char *text,
                          size_t text_size) {
    part parts[MAX_PARTS];
    size_t part_count = 0, total = 0, used = 0;
    for (size_t i = 0; checkpoint && i < gb_checkpoint_count(checkpoint); i++) {
        if (gb_weights_uses(weights, i))
            continue;
        count_part(parts, &part_count, part_of(gb_checkpoint_at(checkpoint, i)));
        total++;
    }
    text[0] = '\0';
    for (size_t i = 0; i < part_count && used < text_size; i++)
        used += (size_t)snprintf(text + used, text_size - used, "%s%.*s %zu", i ? ", " : "",
                                 (int)(parts[i].length < 64 ? parts[i].length : 64), parts[i].name,
                                 parts[i].count);
    return total;
}
