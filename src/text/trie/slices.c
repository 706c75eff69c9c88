/* SPDX-License-Identifier: Apache-2.0 */
#include "text/base/utf8.h"
#include "text/trie/trie.h"

const uint32_t gb_slice_lengths[GB_SLICE_COUNT - 1] = {4, 8, 16, 32, GB_ENDLESS};

/* Whether JSON strings have the character unescaped; DEL is left out as llguidance does. */
static bool is_plain(const uint8_t *character) {
    return *character >= 0x20 && *character != '"' && *character != '\\' && *character != 0x7F;
}

unsigned gb_slice_of(const uint8_t *data, size_t size) {
    uint32_t characters = 0;
    for (size_t at = 0, length; at < size; at += length, characters++)
        if (!is_plain(data + at) ||
            gb_utf8_next((const char *)data + at, size - at, &length) != GB_UTF8_CHARACTER)
            return GB_SLICE_COUNT - 1;
    unsigned slice = 0;
    while (characters > gb_slice_lengths[slice])
        slice++;
    return slice;
}
