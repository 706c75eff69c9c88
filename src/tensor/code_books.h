/* SPDX-License-Identifier: Apache-2.0
 *
 * Books: what codes of 3 or 4 bits stand for where that is no straight line. A book is 8 or 16 signed
 * integers and a unit, a power of two. They are those of GGUF's types and of the MX formats' E2M1.
 */
#ifndef GUMBEL_TENSOR_CODE_BOOKS_H
#define GUMBEL_TENSOR_CODE_BOOKS_H

#include "base/anywhere.h"

#include <stdint.h>

/* Stored in files. */
typedef enum gb_code_book {
    GB_BOOK_NONE = 0,
    GB_BOOK_E2M1 = 1,   /* 4 bits, a sign and a magnitude, in halves: 0, 1, 2, 3, 4, 6, 8, 12 */
    GB_BOOK_IQ4 = 2,    /* 4 bits, of IQ4_NL and IQ4_XS */
    GB_BOOK_IQ3XXS = 3, /* 4 bits in quarters, of IQ3_XXS, a sign and a magnitude */
    GB_BOOK_IQ3S = 4,   /* 4 bits, of IQ3_S: 2 q - 15 */
    GB_BOOK_IQ2 = 5,    /* 3 bits in eighths, of IQ2_XXS, IQ2_XS and IQ2_S: a sign and 8, 25 or 43 */
    GB_BOOK_IQ1 = 6,    /* 3 bits in eighths, of IQ1_S and IQ1_M: -1, 0 or 1, and an eighth more or less */
    GB_BOOK_COUNT
} gb_code_book;

/* Sixteen bytes, the first in the lowest bits of low; those of a book of 3 bits stand there twice. */
typedef struct gb_book_bytes {
    uint64_t low, high;
} gb_book_bytes;

/* The integers as bytes with a sign. */
GB_ANYWHERE gb_book_bytes gb_book_integers(gb_code_book book) {
    gb_book_bytes bytes = {0, 0};
    switch (book) {
    case GB_BOOK_E2M1: /* 0 1 2 3 4 6 8 12, 0 -1 -2 -3 -4 -6 -8 -12 */
        bytes.low = 0x0c08060403020100u;
        bytes.high = 0xf4f8fafcfdfeff00u;
        break;
    case GB_BOOK_IQ4: /* -127 -104 -83 -65 -49 -35 -22 -10, 1 13 25 38 53 69 89 113 */
        bytes.low = 0xf6eaddcfbfad9881u;
        bytes.high = 0x7159453526190d01u;
        break;
    case GB_BOOK_IQ3XXS: /* 4 12 20 28 36 44 52 62, and their negatives */
        bytes.low = 0x3e342c241c140c04u;
        bytes.high = 0xc2ccd4dce4ecf4fcu;
        break;
    case GB_BOOK_IQ3S: /* -15 -13 .. 15 */
        bytes.low = 0xfffdfbf9f7f5f3f1u;
        bytes.high = 0x0f0d0b0907050301u;
        break;
    case GB_BOOK_IQ2: /* 8 25 43 0, -8 -25 -43 0 */
        bytes.low = bytes.high = 0x00d5e7f8002b1908u;
        break;
    case GB_BOOK_IQ1: /* -7 1 9 0, -9 -1 7 0 */
        bytes.low = bytes.high = 0x0007fff7000901f9u;
        break;
    default:
        break;
    }
    return bytes;
}

GB_ANYWHERE int32_t gb_book_integer(gb_book_bytes bytes, uint32_t code) {
    return (int8_t)((code & 8u ? bytes.high : bytes.low) >> (code & 7u) * 8);
}

/* Times a scale that is float16 or bfloat16 it is exact. 1 without a book. */
GB_ANYWHERE float gb_book_unit(gb_code_book book) {
    return book == GB_BOOK_IQ2 || book == GB_BOOK_IQ1 ? 0.125f : book == GB_BOOK_IQ3XXS ? 0.25f : 1.0f;
}

/* Of a code. */
GB_ANYWHERE uint32_t gb_book_bits(gb_code_book book) {
    return book == GB_BOOK_IQ2 || book == GB_BOOK_IQ1 ? 3 : 4;
}

/* "e2m1"; of one that is none of these "int". */
static inline const char *gb_book_name(gb_code_book book) {
    static const char *const names[GB_BOOK_COUNT] = {"int", "e2m1", "iq4", "iq3xxs", "iq3s", "iq2", "iq1"};
    return names[book < GB_BOOK_COUNT ? book : GB_BOOK_NONE];
}

#endif
