/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor/format.h"

#include "base/memory.h"
#include "tensor/convert.h"

#include <stdio.h>
#include <string.h>

static bool has_code_bits(const gb_format *f) {
    if (f->book != GB_BOOK_NONE)
        return f->book < GB_BOOK_COUNT && f->bits == gb_book_bits(f->book) && !f->has_bias;
    return (f->bits >= 2 && f->bits <= 6) || f->bits == 8;
}

static bool is_half(gb_dtype dtype) {
    return dtype == GB_F16 || dtype == GB_BF16;
}

static bool has_one_level_group(const gb_format *f) {
    if (f->group == 0)
        return f->bits == 8;
    if (f->group == 16)
        return f->book != GB_BOOK_NONE;
    return f->group == 32 || f->group == 64 || f->group == 128;
}

bool gb_format_valid(const gb_format *f) {
    switch (f->kind) {
    case GB_FORMAT_DENSE:
        return f->bits == 0 && !f->has_bias && f->scale_bits == 0 && f->scale == GB_DTYPE_NONE &&
               f->group == 0 && f->book == GB_BOOK_NONE;
    case GB_FORMAT_ONE_LEVEL:
        return has_code_bits(f) && f->scale_bits == 0 && is_half(f->scale) && gb_book_unit(f->book) == 1 &&
               has_one_level_group(f);
    case GB_FORMAT_TWO_LEVEL:
        return has_code_bits(f) && f->scale == GB_F16 && (f->group == 16 || f->group == 32) &&
               (f->scale_bits == 4 || f->scale_bits == 6 || (f->scale_bits == 8 && !f->has_bias));
    case GB_FORMAT_PROGRESSIVE:
        return f->bits >= 4 && f->bits <= 6 && f->scale == GB_F16 && f->scale_bits == 8 && !f->has_bias &&
               f->book == GB_BOOK_NONE && (f->group == 32 || f->group == 64 || f->group == 128);
    }
    return false;
}

bool gb_format_equal(const gb_format *a, const gb_format *b) {
    return a->kind == b->kind && a->bits == b->bits && a->has_bias == b->has_bias &&
           a->scale_bits == b->scale_bits && a->scale == b->scale && a->group == b->group &&
           a->book == b->book;
}

bool gb_format_fits(const gb_format *format, uint64_t columns) {
    if (format->kind == GB_FORMAT_TWO_LEVEL)
        return columns % GB_SUPER_GROUP == 0;
    return format->group == 0 || columns % format->group == 0;
}

/* Appends a plane of rows of that many bits. */
static bool add_plane(gb_planes *planes, gb_plane *plane, uint64_t rows, uint64_t row_items, uint64_t bits) {
    uint64_t row_bits, bytes;
    if (!gb_multiply_size(row_items, bits, &row_bits) || !gb_add_size(row_bits, 7, &row_bits) ||
        !gb_align_size(planes->size, GB_PLANE_ALIGNMENT, &plane->offset))
        return false;
    plane->row_bytes = row_bits / 8;
    return gb_multiply_size(plane->row_bytes, rows, &bytes) &&
           gb_add_size(plane->offset, bytes, &planes->size);
}

uint64_t gb_format_supers(const gb_format *format, uint64_t columns) {
    if (format->kind == GB_FORMAT_TWO_LEVEL)
        return columns / GB_SUPER_GROUP;
    return format->kind == GB_FORMAT_PROGRESSIVE;
}

uint32_t gb_format_scale_bits(const gb_format *format) {
    return format->scale_bits > 0 ? format->scale_bits : 16;
}

bool gb_format_planes(const gb_format *format, uint64_t rows, uint64_t columns, gb_planes *planes) {
    *planes = (gb_planes){.group = format->group ? format->group : columns};
    uint64_t groups = planes->group ? columns / planes->group : 0;
    uint64_t supers = gb_format_supers(format, columns), scale_bits = gb_format_scale_bits(format);
    if (!add_plane(planes, &planes->codes, rows, columns, format->bits) ||
        !add_plane(planes, &planes->scales, rows, groups, scale_bits) ||
        (format->has_bias && !add_plane(planes, &planes->biases, rows, groups, scale_bits)))
        return false;
    return supers == 0 || (add_plane(planes, &planes->super_scales, rows, supers, 16) &&
                           (!format->has_bias || add_plane(planes, &planes->super_biases, rows, supers, 16)));
}

double gb_format_bits_per_weight(const gb_format *format, uint64_t columns) {
    double numbers = format->has_bias ? 2 : 1;
    double group = (double)(format->group ? format->group : columns), super = (double)columns;
    double scale_bits = gb_format_scale_bits(format);
    if (format->kind == GB_FORMAT_ONE_LEVEL)
        return format->bits + numbers * scale_bits / group;
    if (format->kind == GB_FORMAT_TWO_LEVEL)
        super = GB_SUPER_GROUP;
    return format->bits + numbers * (scale_bits / group + 16 / super);
}

const char *gb_format_text(const gb_format *format, char text[GB_FORMAT_TEXT]) {
    char codes[16], group[16] = "row", levels[8] = "";
    if (format->book != GB_BOOK_NONE)
        snprintf(codes, sizeof codes, "%s", gb_book_name(format->book));
    else
        snprintf(codes, sizeof codes, "int%u", (unsigned)format->bits);
    if (format->group)
        snprintf(group, sizeof group, "g%u", (unsigned)format->group);
    if (format->kind == GB_FORMAT_TWO_LEVEL)
        snprintf(levels, sizeof levels, "x%u", (unsigned)format->scale_bits);
    if (format->kind == GB_FORMAT_DENSE)
        snprintf(text, GB_FORMAT_TEXT, "dense");
    else if (format->kind == GB_FORMAT_PROGRESSIVE)
        snprintf(text, GB_FORMAT_TEXT, "%s %s progressive", codes, group);
    else
        snprintf(text, GB_FORMAT_TEXT, "%s %s %s%s%s", codes, group, gb_dtype_name(format->scale), levels,
                 format->has_bias ? "+bias" : "");
    return text;
}

/* ---- Reading ------------------------------------------------------------------------------------------- */

static const uint8_t *row_of(const gb_plane *plane, const void *data, uint64_t row) {
    return (const uint8_t *)data + plane->offset + row * plane->row_bytes;
}

static float read_half(const uint8_t *halves, uint64_t i, gb_dtype dtype) {
    uint16_t half;
    memcpy(&half, halves + 2 * i, sizeof half);
    return gb_widen_half(half, dtype);
}

static gb_affine two_level_affine(const gb_format *format, const gb_planes *planes, const void *data,
                                  uint64_t row, uint64_t group) {
    uint64_t super = group * format->group / GB_SUPER_GROUP;
    const uint8_t *scales = row_of(&planes->scales, data, row);
    gb_affine affine = {read_half(row_of(&planes->super_scales, data, row), super, GB_F16), 0};
    affine.scale *= gb_book_unit(format->book);
    affine.scale *= format->scale_bits == 8 ? (float)(int8_t)scales[group]
                                            : (float)gb_get_code(scales, format->scale_bits, group);
    if (format->has_bias)
        affine.bias = -(read_half(row_of(&planes->super_biases, data, row), super, GB_F16) *
                        (float)gb_get_code(row_of(&planes->biases, data, row), format->scale_bits, group));
    return affine;
}

static bool is_group_byte(uint32_t bits, uint8_t byte) {
    const gb_group_integers integers = gb_get_group_integers(bits, byte);
    return integers.scale <= gb_largest_group_scale(bits, integers.zero);
}

/* A table, since there are gigabytes of weights. */
uint64_t gb_check_group_bytes(uint32_t bits, const uint8_t *bytes, uint64_t count) {
    bool is_valid[256];
    for (uint32_t byte = 0; byte < 256; byte++)
        is_valid[byte] = is_group_byte(bits, (uint8_t)byte);
    uint64_t i = 0;
    while (i < count && is_valid[bytes[i]])
        i++;
    return i;
}

gb_affine gb_group_affine(float super_scale, gb_group_integers integers) {
    float scale = super_scale * (float)integers.scale;
    return (gb_affine){scale, -(scale * (float)integers.zero)};
}

static gb_affine progressive_affine(const gb_format *format, const gb_planes *planes, const void *data,
                                    uint64_t row, uint64_t group) {
    uint8_t byte = row_of(&planes->scales, data, row)[group];
    return gb_group_affine(read_half(row_of(&planes->super_scales, data, row), 0, GB_F16),
                           gb_get_group_integers(format->bits, byte));
}

gb_affine gb_format_affine(const gb_format *format, const gb_planes *planes, const void *data, uint64_t row,
                           uint64_t group) {
    if (format->kind == GB_FORMAT_TWO_LEVEL)
        return two_level_affine(format, planes, data, row, group);
    if (format->kind == GB_FORMAT_PROGRESSIVE)
        return progressive_affine(format, planes, data, row, group);
    gb_affine affine = {read_half(row_of(&planes->scales, data, row), group, format->scale), 0};
    if (format->has_bias)
        affine.bias = read_half(row_of(&planes->biases, data, row), group, format->scale);
    return affine;
}

void gb_format_dequantize(const gb_format *format, const gb_planes *planes, const void *data, uint64_t row,
                          uint64_t first, uint64_t count, float *values) {
    const uint8_t *codes = row_of(&planes->codes, data, row);
    for (uint64_t i = 0; i < count;) {
        uint64_t group = (first + i) / planes->group, end = (group + 1) * planes->group - first;
        gb_affine affine = gb_format_affine(format, planes, data, row, group);
        for (; i < count && i < end; i++) {
            int32_t integer = gb_format_integer(format, gb_get_code(codes, format->bits, first + i));
            float product = affine.scale * (float)integer;
            values[i] = gb_format_has_offset(format) ? product + affine.bias : product;
        }
    }
}
