/* SPDX-License-Identifier: Apache-2.0
 *
 * Sets of Unicode characters as expressions over bytes. UTF-8 is a tree: below a lead byte, each continuation
 * byte chooses one of 64 parts. Parts that are equal become one expression, so that the result stays small.
 */
#include "base/memory.h"
#include "grammar/nodes.h"

#include <string.h>

#define BLOCKS (0x110000u / 64)

typedef struct characters {
    gb_expressions *expressions;
    uint64_t *blocks;                    /* 64 code points each */
    gb_expression of_block[BLOCKS];      /* of the last byte; 0 where none of the block is in the set */
    gb_expression of_group[BLOCKS / 64]; /* of the last two bytes */
} characters;

static void add_range(uint64_t *blocks, uint32_t first, uint32_t last) {
    for (uint32_t block = first / 64; block <= last / 64; block++) {
        uint64_t bits = UINT64_MAX;
        if (block == first / 64)
            bits &= UINT64_MAX << (first % 64);
        if (block == last / 64)
            bits &= UINT64_MAX >> (63 - last % 64);
        blocks[block] |= bits;
    }
}

static void add_bits(gb_byte_set *set, unsigned base, uint64_t bits) {
    for (unsigned i = 0; i < 64; i++)
        if (bits >> i & 1u)
            gb_set_add(set, base + i);
}

/* Of count parts that lead bytes base, base + 1... choose, those that are equal go together; appends a
 * sequence for each. */
static size_t lead_parts(gb_expressions *expressions, const gb_expression *parts, unsigned count,
                         unsigned base, gb_expression *choices) {
    size_t chosen = 0;
    uint64_t done = 0;
    for (unsigned i = 0; i < count; i++) {
        if (!parts[i] || done >> i & 1u)
            continue;
        gb_byte_set leads = {{0}};
        for (unsigned k = i; k < count; k++)
            if (parts[k] == parts[i]) {
                gb_set_add(&leads, base + k);
                done |= UINT64_C(1) << k;
            }
        gb_expression pair[] = {gb_express_byte_set(expressions, leads.words), parts[i]};
        choices[chosen++] = gb_express_sequence(expressions, pair, 2);
    }
    return chosen;
}

/* The expressions of last bytes. Equal blocks near each other share one. */
static void express_blocks(characters *all) {
    for (unsigned i = 2; i < BLOCKS; i++) {
        uint64_t bits = all->blocks[i];
        if (!bits)
            continue;
        for (unsigned k = i; k-- > 2 && k + 128 > i && !all->of_block[i];)
            if (all->blocks[k] == bits)
                all->of_block[i] = all->of_block[k];
        if (all->of_block[i])
            continue;
        gb_byte_set set = {{0}};
        add_bits(&set, 0x80, bits);
        all->of_block[i] = gb_express_byte_set(all->expressions, set.words);
    }
}

/* The expressions of the last two bytes of characters from U+0800 on. */
static void express_groups(characters *all) {
    for (unsigned i = 0; i < BLOCKS / 64; i++) {
        const gb_expression *blocks = all->of_block + i * 64;
        for (unsigned k = 1; k < i && !all->of_group[i]; k++)
            if (memcmp(blocks, all->of_block + k * 64, 64 * sizeof *blocks) == 0)
                all->of_group[i] = all->of_group[k];
        gb_expression choices[64];
        /* Below U+0800 a character has two bytes: group 0 leaves those out. */
        size_t count = all->of_group[i] ? 0
                                        : lead_parts(all->expressions, blocks + (i ? 0 : 32), i ? 64 : 32,
                                                     i ? 0x80 : 0xA0, choices);
        if (count)
            all->of_group[i] = gb_express_choice(all->expressions, choices, count);
    }
}

static gb_expression express_all(characters *all) {
    gb_expressions *expressions = all->expressions;
    gb_expression choices[1 + 32 + 16 + 8], planes[17] = {0};
    size_t count = 0;
    gb_byte_set ascii = {{0}};
    add_bits(&ascii, 0, all->blocks[0]);
    add_bits(&ascii, 64, all->blocks[1]);
    if (all->blocks[0] | all->blocks[1])
        choices[count++] = gb_express_byte_set(expressions, ascii.words);
    express_blocks(all);
    express_groups(all);
    count += lead_parts(expressions, all->of_block + 2, 30, 0xC2, choices + count);
    count += lead_parts(expressions, all->of_group, 16, 0xE0, choices + count);
    /* Four bytes: the lead one chooses 64 groups, of which F0's first 16 and F4's last 48 do not exist. */
    for (unsigned lead = 0; lead < 5; lead++) {
        unsigned first = lead ? 0 : 16, groups = lead == 4 ? 16 : 64 - first;
        gb_expression below[64];
        size_t parts =
            lead_parts(expressions, all->of_group + lead * 64 + first, groups, 0x80 + first, below);
        planes[lead] = parts ? gb_express_choice(expressions, below, parts) : 0;
    }
    count += lead_parts(expressions, planes, 5, 0xF0, choices + count);
    return gb_express_choice(expressions, choices, count);
}

static bool check_ranges(gb_expressions *expressions, const gb_character_range *ranges, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (ranges[i].last < ranges[i].first || ranges[i].last > 0x10FFFF)
            gb_expressions_fail(expressions, GUMBEL_ERROR_ARGUMENT, "grammar: characters U+%04X to U+%04X",
                                ranges[i].first, ranges[i].last);
    return expressions->error.status == GUMBEL_OK;
}

static bool is_ascii(const gb_character_range *ranges, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (ranges[i].last >= 0x80)
            return false;
    return true;
}

static gb_expression express_ascii(gb_expressions *expressions, const gb_character_range *ranges,
                                   size_t count) {
    gb_byte_set set = {{0}};
    for (size_t i = 0; i < count; i++)
        for (uint32_t c = ranges[i].first; c <= ranges[i].last; c++)
            gb_set_add(&set, c);
    return gb_express_byte_set(expressions, set.words);
}

gb_expression gb_express_characters(gb_expressions *expressions, const gb_character_range *ranges,
                                    size_t count) {
    if (!check_ranges(expressions, ranges, count))
        return 0;
    if (is_ascii(ranges, count))
        return express_ascii(expressions, ranges, count);
    characters *all = gb_allocate(1, sizeof *all);
    uint64_t *blocks = gb_allocate(BLOCKS, sizeof *blocks);
    gb_expression result = 0;
    if (!all || !blocks)
        gb_expressions_no_memory(expressions);
    for (size_t i = 0; i < count && blocks; i++)
        add_range(blocks, ranges[i].first, ranges[i].last);
    if (expressions->error.status == GUMBEL_OK) {
        memset(blocks + 0xD800 / 64, 0, 0x800 / 64 * sizeof *blocks);
        *all = (characters){.expressions = expressions, .blocks = blocks};
        result = express_all(all);
    }
    gb_free(blocks);
    gb_free(all);
    return result;
}
