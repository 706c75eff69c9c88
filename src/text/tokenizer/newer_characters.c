/* SPDX-License-Identifier: Apache-2.0 */
#include "text/tokenizer/newer_characters.h"

typedef enum character_class {
    UPPER,
    LOWER,
    MODIFIER,
    LETTER, /* without case */
    MARK,
    NUMBER,
    PUNCTUATION,
    SYMBOL,
    OTHER,
    CLASS_COUNT
} character_class;

typedef struct newer_range {
    uint32_t first, last;
    character_class kind;
} newer_range;

static const newer_range ranges[] = {
#define GB_NEWER(first, last, kind) {first, last, kind},
#include "text/tokenizer/newer_characters.def"
#undef GB_NEWER
};
enum { RANGE_COUNT = sizeof ranges / sizeof ranges[0] };

static const newer_range *find(uint32_t code_point) {
    size_t low = 0, high = RANGE_COUNT;
    while (low < high) { /* the first range that does not end before the character */
        size_t middle = low + (high - low) / 2;
        if (ranges[middle].last < code_point)
            low = middle + 1;
        else
            high = middle;
    }
    return low < RANGE_COUNT && ranges[low].first <= code_point ? &ranges[low] : NULL;
}

bool gb_is_newer(uint32_t code_point) {
    return code_point >= ranges[0].first && find(code_point);
}

/* None of them has another case, so that expressions without regard to case do not match them either. */
const char *gb_representative(uint32_t code_point, size_t size) {
    static const char *const by_size[3][CLASS_COUNT] = {
        {"\u03D2", "\u0138", "\u02B9", "\u00AA", "\u0300", "\u00B2", "\u00A7", "\u00A6", "\u00AD"},
        {"\u2102", "\u1D00", "\u3005", "\u3042", "\u20D0", "\u2460", "\u2030", "\u2190", "\u2060"},
        {"\U0001D400", "\U0001D41A", "\U00016B40", "\U00020000", "\U0001D165", "\U0001D7CE", "\U00010100",
         "\U0001F600", "\U000E0001"},
    };
    const newer_range *range = size >= 2 ? find(code_point) : NULL;
    return range ? by_size[size - 2][range->kind] : NULL;
}
