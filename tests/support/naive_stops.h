/* SPDX-License-Identifier: Apache-2.0
 *
 * Stop strings in the plainest way: the definition that the matcher is tested against.
 */
#ifndef GUMBEL_TESTS_NAIVE_STOPS_H
#define GUMBEL_TESTS_NAIVE_STOPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct naive_stop {
    int32_t string; /* that ends the text first, the longest of those that do; -1: none */
    size_t begin, end;
} naive_stop;

static inline bool naive_ends_in(const char *text, size_t length, const char *string) {
    size_t size = strlen(string);
    return size <= length && memcmp(text + length - size, string, size) == 0;
}

static inline naive_stop naive_find(const char *const *strings, size_t count, const char *text,
                                    size_t length) {
    naive_stop found = {-1, length, length};
    for (size_t end = 0; end <= length && found.string < 0; end++)
        for (size_t i = 0; i < count; i++)
            if (naive_ends_in(text, end, strings[i]) && end - strlen(strings[i]) < found.begin)
                found = (naive_stop){(int32_t)i, end - strlen(strings[i]), end};
    return found;
}

/* How many bytes of a text that goes on may be the beginning of a string. */
static inline size_t naive_held(const char *const *strings, size_t count, const char *text, size_t length) {
    size_t held = 0;
    for (size_t i = 0; i < count; i++)
        for (size_t size = strlen(strings[i]) - 1; size > held; size--)
            if (size <= length && memcmp(text + length - size, strings[i], size) == 0)
                held = size;
    return held;
}

#endif
