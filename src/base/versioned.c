/* SPDX-License-Identifier: Apache-2.0 */
#include "base/versioned.h"

#include <string.h>

/* The first field of every such structure. */
static size_t size_of(const void *given) {
    size_t size;
    memcpy(&size, given, sizeof size);
    return size;
}

gumbel_status gb_check_versioned(const void *given, const char *what, gumbel_error *error) {
    if (!given)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "%s: NULL", what);
    if (size_of(given) < sizeof(size_t))
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "%s: the field size is %zu, expected its sizeof", what,
                       size_of(given));
    return GUMBEL_OK;
}

gumbel_status gb_read_versioned(const void *given, const char *what, void *ours, size_t size,
                                gumbel_error *error) {
    memset(ours, 0, size);
    memcpy(ours, &size, sizeof size);
    if (!given)
        return GUMBEL_OK;
    GB_TRY(gb_check_versioned(given, what, error));
    const size_t given_size = size_of(given), known = given_size < size ? given_size : size;
    for (size_t i = known; i < given_size; i++)
        if (((const unsigned char *)given)[i] != 0)
            return gb_fail(error, GUMBEL_ERROR_UNSUPPORTED,
                           "%s: a field at byte %zu is set, this version of the library knows %zu bytes",
                           what, i, size);
    memcpy((char *)ours + sizeof size, (const char *)given + sizeof size, known - sizeof size);
    return GUMBEL_OK;
}

void gb_write_versioned(const void *ours, size_t size, void *given) {
    const size_t given_size = size_of(given), known = given_size < size ? given_size : size;
    memcpy((char *)given + sizeof size, (const char *)ours + sizeof size, known - sizeof size);
    memset((char *)given + known, 0, given_size - known);
}
