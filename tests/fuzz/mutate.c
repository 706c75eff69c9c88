/* SPDX-License-Identifier: Apache-2.0 */
#include "mutate.h"

#include "program/file/records.h"

#include <string.h>

/* Bytes of the file that are damaged together. */
typedef struct stretch {
    uint8_t *bytes;
    uint64_t size;
} stretch;

/* Part of the file; the header where it does not lie in it, since an earlier change was of the header. */
static stretch part_of(const program_file *file, uint64_t offset, uint64_t size) {
    const bool is_there = offset <= file->size && size <= file->size - offset;
    return is_there ? (stretch){file->bytes + offset, size} : (stretch){file->bytes, GB_HEADER_BYTES};
}

static stretch table_of(const program_file *file) {
    const uint64_t count = gb_get_u32(file->bytes + GB_HEADER_SECTIONS);
    return part_of(file, gb_get_u64(file->bytes + GB_HEADER_TABLE), count * GB_ENTRY_BYTES);
}

static stretch section_of(const program_file *file, uint32_t kind) {
    const bool has_table = table_of(file).bytes != file->bytes;
    const uint8_t *entry = has_table ? section_entry(file, kind) : NULL;
    if (!entry)
        return (stretch){file->bytes, GB_HEADER_BYTES};
    return part_of(file, gb_get_u64(entry + GB_ENTRY_OFFSET), gb_get_u64(entry + GB_ENTRY_SIZE));
}

/* Sections are as likely as others, whatever their size. */
static stretch any_section(const program_file *file, random_source *source) {
    static const uint32_t kinds[] = {GB_SECTION_GRAPH,     GB_SECTION_GRAPH, GB_SECTION_METADATA,
                                     GB_SECTION_TOKENIZER, GB_SECTION_CHAT,  GB_SECTION_TRIE,
                                     GB_SECTION_WEIGHTS};
    return section_of(file, kinds[random_below(source, sizeof kinds / sizeof *kinds)]);
}

static uint64_t odd_number(uint64_t old, random_source *source) {
    static const uint64_t numbers[] = {
        0,
        1,
        2,
        3,
        7,
        8,
        63,
        64,
        255,
        4095,
        4096,
        0x7fff,
        0xffff,
        0x10000,
        0x7fffffff,
        0x80000000,
        0xffffffff,
        0x100000000,
        UINT64_MAX,
        1ull << 62,
        1ull << 63,
        0x7f800000,
        0x7fc00000,
        0xff800000,
        0x7ff0ull << 48,
        0x7ff8ull << 48,
        0x3ff0ull << 48,
    };
    switch (random_below(source, 8)) {
    case 0:
        return random_below(source, 64);
    case 1:
        return random_bits(source);
    case 2:
    case 3:
        return numbers[random_below(source, sizeof numbers / sizeof *numbers)];
    default:
        return neighbour_of(old, source);
    }
}

/* Replaces a number of 4 or 8 bytes at the offset. */
static void replace_number(stretch at, uint64_t offset, random_source *source) {
    if (at.size < 8 || offset > at.size - 8)
        return;
    uint8_t *bytes = at.bytes + offset;
    if (random_once_in(source, 3))
        gb_put_u64(bytes, odd_number(gb_get_u64(bytes), source));
    else
        gb_put_u32(bytes, (uint32_t)odd_number(gb_get_u32(bytes), source));
}

static void flip_bits(stretch at, random_source *source) {
    if (at.size > 0)
        at.bytes[random_below(source, at.size)] ^= (uint8_t)(1u << random_below(source, 8));
}

/* Copies a stretch to another place of its section. */
static void copy_within(stretch at, random_source *source) {
    uint64_t size = 1 + random_below(source, random_once_in(source, 2) ? 8 : 256);
    if (at.size <= size)
        return;
    memmove(at.bytes + random_below(source, at.size - size), at.bytes + random_below(source, at.size - size),
            (size_t)size);
}

static void fill(stretch at, random_source *source) {
    static const int bytes[] = {0, 0xff, 0x7f, 0x80};
    uint64_t size = 1 + random_below(source, 64);
    if (at.size > size)
        memset(at.bytes + random_below(source, at.size - size), bytes[random_below(source, 4)], (size_t)size);
}

/* A number within a field of a record of the graph: most of what is accepted with another meaning. */
static void change_field(const program_file *file, random_source *source) {
    stretch graph = section_of(file, GB_SECTION_GRAPH);
    gb_byte_view view = {.data = graph.bytes, .size = graph.size};
    uint64_t chosen = 0;
    gb_record record, found = {0}, field;
    for (uint64_t count = 1; gb_next_record(&view, &record); count++)
        if (random_once_in(source, count)) {
            found = record;
            chosen = count;
        }
    if (chosen == 0)
        return;
    stretch numbers = {NULL, 0};
    for (uint64_t count = 1; gb_next_record(&found.payload, &field); count++)
        if (random_once_in(source, count))
            numbers = (stretch){(uint8_t *)(uintptr_t)field.payload.data, field.payload.size};
    if (numbers.size >= 4) {
        uint8_t *bytes = numbers.bytes + 4 * random_below(source, numbers.size / 4);
        gb_put_u32(bytes, (uint32_t)odd_number(gb_get_u32(bytes), source));
    }
}

static void change_table(const program_file *file, random_source *source) {
    const stretch table = table_of(file);
    if (table.size == 0)
        return;
    replace_number(table, 4 * random_below(source, table.size / 4), source);
}

void mutate_program(program_file *file, random_source *source) {
    const program_file original = *file;
    for (uint64_t left = 1 + random_below(source, 4); left > 0; left--) {
        uint64_t kind = random_below(source, 16);
        stretch at = any_section(&original, source);
        if (kind < 8)
            change_field(&original, source);
        else if (kind < 10)
            flip_bits(at, source);
        else if (kind < 12)
            replace_number(at, at.size ? random_below(source, at.size) : 0, source);
        else if (kind == 12)
            copy_within(at, source);
        else if (kind == 13)
            fill(at, source);
        else if (kind == 14)
            fill(section_of(&original, GB_SECTION_WEIGHTS), source);
        else if (random_once_in(source, 4)) {
            change_table(&original, source);
            break; /* where sections lie is not known any more */
        }
    }
    repair_checksums(file);
}
