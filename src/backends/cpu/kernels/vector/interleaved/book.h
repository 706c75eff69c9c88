/* SPDX-License-Identifier: Apache-2.0
 *
 * How kernels take codes apart, and codes with a book as what they stand for: bytes, its integers plus 128,
 * so that products go on as those with codes of 8 bits. Only this folder and exact/ include it.
 */
#ifndef GUMBEL_BACKENDS_CPU_KERNELS_VECTOR_INTERLEAVED_BOOK_H
#define GUMBEL_BACKENDS_CPU_KERNELS_VECTOR_INTERLEAVED_BOOK_H

#include "backends/cpu/kernels/vector/lanes/dots.h"
#include "tensor/format.h"

/* The kind of a kernel: the bits of a code, with a book so many more. A constant where it is inlined. */
enum { GB_BY_BOOK = 16, GB_BOOK_RAISE = 128 };

/* Kinds are 2 .. 6, 8, 19 and 20. */
enum { GB_KINDS = GB_BY_BOOK + 5 };

GB_INLINE int gb_kind_of(const gb_format *format) {
    return format->bits + (format->book != GB_BOOK_NONE ? GB_BY_BOOK : 0);
}

GB_INLINE int gb_kind_bits(int kind) {
    return kind % GB_BY_BOOK;
}

/* Whether what is multiplied are bytes (gb_dot_bytes). */
GB_INLINE bool gb_kind_has_bytes(int kind) {
    return kind >= 8;
}

/* What the bytes that are multiplied have above the integers that they stand for. */
GB_INLINE int32_t gb_raise_of(const gb_format *format) {
    return format->book != GB_BOOK_NONE ? GB_BOOK_RAISE : gb_format_center(format);
}

/* An integer sum is of c * (q - GB_BYTE_OFFSET) or of c * q: it lacks so many times the sum of c. */
GB_INLINE int32_t gb_start_factor(const gb_format *format) {
    return (gb_kind_has_bytes(gb_kind_of(format)) ? GB_BYTE_OFFSET : 0) - gb_raise_of(format);
}

/* The bytes of a book. */
typedef struct gb_raised_book {
    _Alignas(16) uint8_t bytes[16];
} gb_raised_book;

GB_INLINE gb_raised_book gb_raise_book(gb_code_book book) {
    const gb_book_bytes integers = gb_book_integers(book);
    gb_raised_book raised;
    for (uint32_t i = 0; i < 16; i++)
        raised.bytes[i] = (uint8_t)(gb_book_integer(integers, i) + GB_BOOK_RAISE);
    return raised;
}

/* The bytes of codes below 16. */
GB_INLINE gb_codes gb_look_up(const gb_raised_book *book, gb_codes codes) {
#if defined(__AVX512BW__)
    const __m512i bytes = _mm512_broadcast_i32x4(_mm_load_si128((const __m128i *)(const void *)book->bytes));
    codes.part[0] = (gb_vector_bits)_mm512_shuffle_epi8(bytes, (__m512i)codes.part[0]);
#elif defined(__AVX2__)
    const __m256i bytes =
        _mm256_broadcastsi128_si256(_mm_load_si128((const __m128i *)(const void *)book->bytes));
    for (int p = 0; p < GB_PARTS; p++)
        codes.part[p] = (gb_vector_bits)_mm256_shuffle_epi8(bytes, (__m256i)codes.part[p]);
#elif defined(__aarch64__)
    const uint8x16_t bytes = vld1q_u8(book->bytes);
    for (int p = 0; p < GB_PARTS; p++)
        codes.part[p] = (gb_vector_bits)vqtbl1q_u8(bytes, (uint8x16_t)codes.part[p]);
#else
    uint8_t numbers[sizeof codes];
    memcpy(numbers, &codes, sizeof codes);
    for (size_t i = 0; i < sizeof codes; i++)
        numbers[i] = book->bytes[numbers[i] & 15];
    memcpy(&codes, numbers, sizeof codes);
#endif
    return codes;
}

#endif
