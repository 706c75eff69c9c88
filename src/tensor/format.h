/* SPDX-License-Identifier: Apache-2.0
 *
 * Weight formats: how the numbers of a constant are stored. One definition, which the quantizers, the file's
 * reader and verifier, the kernels and `inspect` share.
 *
 *     dense       the numbers themselves, f32, f16 or bf16
 *     one-level   w = scale * q + bias, or without a bias w = scale * (q - 2^(bits - 1))
 *     two-level   the same, with scale and bias themselves stored as small integers:
 *                 scale = super_scale * s, bias = -(super_bias * b), where the supers are f16 and shared by
 * 256 inputs. 4- and 6-bit s and b are unsigned; 8-bit s are signed and have no b.
 *     progressive w = super_scale * ((q - zero) * s), where the super-scale is f16 and the row's, and zero
 * and s are small integers in one byte of a group, so that (q - zero) * s is an 8-bit integer (Lin et al.,
 * "QServe", 2024)
 *
 * q is unsigned, of 2 to 6 or 8 bits (progressive: 4 to 6). Scale and bias are shared by a group of inputs,
 * neighbours in a row. With a book (tensor/code_books.h) q is the number of one of its integers, which stands
 * for q - 2^(bits - 1), and scales are in the book's unit; such a format has no bias. Every number is float32
 * once it is read, each product rounded before it is added; of progressive formats all of them are exact.
 *
 * A constant's bytes are planes, each beginning at a multiple of 64 bytes from the constant's beginning, in
 * this order: codes; scales; biases; super-scales; super-biases. A plane that a format lacks is left out. A
 * plane is row-major. Codes (and the small integers of two levels) of a row follow one another without gaps,
 * the first one in the lowest bits of the first byte; each row begins at a whole byte. The scales of a
 * progressive format are its groups' bytes.
 */
#ifndef GUMBEL_TENSOR_FORMAT_H
#define GUMBEL_TENSOR_FORMAT_H

#include "base/anywhere.h"
#include "tensor/code_books.h"
#include "tensor/dtype.h"

typedef enum gb_format_kind {
    GB_FORMAT_DENSE = 0, /* all other fields are 0 */
    GB_FORMAT_ONE_LEVEL = 1,
    GB_FORMAT_TWO_LEVEL = 2,
    GB_FORMAT_PROGRESSIVE = 3
} gb_format_kind;

typedef struct gb_format {
    gb_format_kind kind;
    uint8_t bits;       /* of a code: 2 .. 6, 8 */
    bool has_bias;      /* */
    uint8_t scale_bits; /* two-level: 4, 6 or 8; progressive: 8; else 0 */
    gb_dtype scale;     /* of scales and biases, or of the supers: f16 or bf16; of the supers: f16 */
    uint32_t group; /* inputs that share a scale. One-level: 32, 64, 128, with a book 16, or, for 8 bits, 0:
                     * the row. Two-level: 16 or 32. Progressive: 32, 64 or 128 */
    gb_code_book book; /* GB_BOOK_NONE, or one whose integers have that many bits' numbers */
} gb_format;

enum { GB_SUPER_GROUP = 256, GB_PLANE_ALIGNMENT = 64 };

/* Where the planes of a matrix are, in bytes from its beginning; a missing one has row_bytes 0. */
typedef struct gb_plane {
    uint64_t offset, row_bytes;
} gb_plane;

typedef struct gb_planes {
    gb_plane codes, scales, biases, super_scales, super_biases;
    uint64_t size;  /* of all together */
    uint64_t group; /* inputs that share a scale: as in the format, or all of the row */
} gb_planes;

/* Whether the fields are a format of those above. */
bool gb_format_valid(const gb_format *format);

bool gb_format_equal(const gb_format *a, const gb_format *b);

/* Whether rows of that many inputs can have the format: the group (two-level: 256) divides them. */
bool gb_format_fits(const gb_format *format, uint64_t columns);

/* Super-scales of a row of that many inputs, 0 where the format has none; and bits of one of its scales. */
uint64_t gb_format_supers(const gb_format *format, uint64_t columns);
uint32_t gb_format_scale_bits(const gb_format *format);

/* The planes of a matrix [rows, columns] (of a tensor of higher rank, rows is the product of all dims but the
 * last) in a valid format that is not dense and fits. False on overflow. */
bool gb_format_planes(const gb_format *format, uint64_t rows, uint64_t columns, gb_planes *planes);

/* Bits per weight, scales and biases included; per row: of rows of that many inputs. */
double gb_format_bits_per_weight(const gb_format *format, uint64_t columns);

/* "int4 g64 f16+bias", "int8 row bf16", "int6 g16 f16x8", "int4 g32 progressive", "e2m1 g32 bf16"; returns
 * text. */
enum { GB_FORMAT_TEXT = 48 };
const char *gb_format_text(const gb_format *format, char text[GB_FORMAT_TEXT]);

/* Code i of a row of codes of that many bits: 1 .. 6, 8 or 16. */
GB_ANYWHERE uint32_t gb_get_code(const uint8_t *codes, uint32_t bits, uint64_t i) {
    uint64_t bit = i * bits;
    uint32_t low = codes[bit / 8], shift = (uint32_t)(bit % 8);
    uint32_t both = shift + bits > 8 ? low | (uint32_t)codes[bit / 8 + 1] << 8 : low;
    return (both >> shift) & ((1u << bits) - 1u);
}

/* Sets it; what was there must be zero. */
static inline void gb_put_code(uint8_t *codes, uint32_t bits, uint64_t i, uint32_t code) {
    uint64_t bit = i * bits;
    uint32_t shifted = code << (bit % 8);
    codes[bit / 8] = (uint8_t)(codes[bit / 8] | shifted);
    if (shifted > 0xff)
        codes[bit / 8 + 1] = (uint8_t)(codes[bit / 8 + 1] | shifted >> 8);
}

/* ---- The bytes of progressive formats ------------------------------------------------------------------ */

/* What the byte of a group says: 8 - bits low bits have scale - 1, the others zero. */
typedef struct gb_group_integers {
    uint32_t zero, scale; /* 0 .. 2^bits - 1, 1 .. 2^(8 - bits) */
} gb_group_integers;

GB_ANYWHERE gb_group_integers gb_get_group_integers(uint32_t bits, uint8_t byte) {
    gb_group_integers integers = {(uint32_t)byte >> (8 - bits), (byte & ((1u << (8 - bits)) - 1u)) + 1u};
    return integers;
}

static inline uint8_t gb_put_group_integers(uint32_t bits, gb_group_integers integers) {
    return (uint8_t)(integers.zero << (8 - bits) | (integers.scale - 1));
}

/* The largest magnitude of (q - zero) * scale. Kernels rely on all codes being within it, so that products of
 * 8 bits hold every weight; programs with other bytes are refused (gb_check_group_bytes). */
enum { GB_MOST_INTEGER_WEIGHT = 127 };

/* Inputs of a row whose products with 8-bit inputs an int32 sum holds, whatever they are. */
enum { GB_MAX_INT32_INPUTS = (1 << 17) - 1 };

/* The largest scale that goes with a zero. */
static inline uint32_t gb_largest_group_scale(uint32_t bits, uint32_t zero) {
    uint32_t above = (1u << bits) - 1u - zero, farthest = above > zero ? above : zero;
    uint32_t scale = GB_MOST_INTEGER_WEIGHT / farthest, most = 1u << (8 - bits);
    return scale < most ? scale : most;
}

/* The index of the first byte whose weights would leave 8 bits; count where none does. */
uint64_t gb_check_group_bytes(uint32_t bits, const uint8_t *bytes, uint64_t count);

/* ---- Numbers ------------------------------------------------------------------------------------------- */

/* Scale and bias of a group as float32; where the format has no offset (gb_format_has_offset), bias is 0 and
 * codes count from gb_format_center. */
typedef struct gb_affine {
    float scale, bias;
} gb_affine;

gb_affine gb_format_affine(const gb_format *format, const gb_planes *planes, const void *data, uint64_t row,
                           uint64_t group);

/* That of a group of a progressive format whose row has this super-scale; both numbers are exact. */
gb_affine gb_group_affine(float super_scale, gb_group_integers integers);

/* Whether a weight is scale * q + bias; otherwise it is scale * (q - gb_format_center). */
static inline bool gb_format_has_offset(const gb_format *format) {
    return format->has_bias || format->kind == GB_FORMAT_PROGRESSIVE;
}

/* What is taken from a code: 2^(bits - 1) without an offset, else 0. Of no meaning with a book. */
static inline int32_t gb_format_center(const gb_format *format) {
    return gb_format_has_offset(format) ? 0 : 1 << (format->bits - 1);
}

/* What the scale is multiplied by: the code less its center, or the book's integer. */
GB_ANYWHERE int32_t gb_format_integer(const gb_format *format, uint32_t code) {
    const bool has_offset = format->has_bias || format->kind == GB_FORMAT_PROGRESSIVE;
    if (format->book != GB_BOOK_NONE)
        return gb_book_integer(gb_book_integers(format->book), code);
    return (int32_t)code - (has_offset ? 0 : 1 << (format->bits - 1));
}

/* Whether each weight is an 8-bit integer times one number of its row, so that sums of its products with
 * 8-bit inputs are exact: progressive formats, and 8 bits a row without a bias. */
static inline bool gb_format_is_integer(const gb_format *format) {
    return format->kind == GB_FORMAT_PROGRESSIVE ||
           (format->kind == GB_FORMAT_ONE_LEVEL && format->bits == 8 && format->group == 0 &&
            !format->has_bias);
}

/* Inputs first .. first + count - 1 of a row as float32. This is the definition. */
void gb_format_dequantize(const gb_format *format, const gb_planes *planes, const void *data, uint64_t row,
                          uint64_t first, uint64_t count, float *values);

#endif
