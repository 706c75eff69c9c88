/* SPDX-License-Identifier: Apache-2.0 */
#include "grammar/match/plain_parts.h"

#include <string.h>

enum {
    CHARACTER = GB_PLAIN_CHARACTER,
    LAST_BYTE,
    LAST_TWO,
    LAST_THREE,
    AFTER_E0,
    AFTER_ED,
    AFTER_F0,
    AFTER_F4
};

/* Bytes that lead from a part of a well-formed UTF-8 character to the next. */
static const struct {
    uint8_t from, to, first, last;
} part_bytes[] = {
    {CHARACTER, CHARACTER, 0x20, '"' - 1},  {CHARACTER, CHARACTER, '"' + 1, '\\' - 1},
    {CHARACTER, CHARACTER, '\\' + 1, 0x7E}, {CHARACTER, LAST_BYTE, 0xC2, 0xDF},
    {CHARACTER, AFTER_E0, 0xE0, 0xE0},      {CHARACTER, LAST_TWO, 0xE1, 0xEC},
    {CHARACTER, AFTER_ED, 0xED, 0xED},      {CHARACTER, LAST_TWO, 0xEE, 0xEF},
    {CHARACTER, AFTER_F0, 0xF0, 0xF0},      {CHARACTER, LAST_THREE, 0xF1, 0xF3},
    {CHARACTER, AFTER_F4, 0xF4, 0xF4},      {LAST_BYTE, CHARACTER, 0x80, 0xBF},
    {LAST_TWO, LAST_BYTE, 0x80, 0xBF},      {LAST_THREE, LAST_TWO, 0x80, 0xBF},
    {AFTER_E0, LAST_BYTE, 0xA0, 0xBF},      {AFTER_ED, LAST_BYTE, 0x80, 0x9F},
    {AFTER_F0, LAST_TWO, 0x90, 0xBF},       {AFTER_F4, LAST_TWO, 0x80, 0x8F},
};

void gb_find_plain_parts(const uint8_t class_of[256], gb_plain_parts *parts) {
    memset(parts, 0, sizeof *parts);
    for (size_t i = 0; i < sizeof part_bytes / sizeof *part_bytes; i++)
        for (unsigned byte = part_bytes[i].first; byte <= part_bytes[i].last; byte++) {
            const uint8_t class = class_of[byte];
            parts->needed[part_bytes[i].from][part_bytes[i].to][class / 64] |= UINT64_C(1) << (class % 64);
        }
}
