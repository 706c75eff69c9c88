/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/runtime/expand_codes.h"

bool gb_cuda_expanded_format(const gb_format *format, gb_format *wide) {
    *wide = *format;
    wide->bits = 8;
    wide->book = GB_BOOK_NONE;
    return format->kind == GB_FORMAT_ONE_LEVEL && format->book != GB_BOOK_NONE && format->bits == 4 &&
           gb_book_unit(format->book) == 1 && gb_format_valid(wide);
}

void gb_cuda_expand_codes(const gb_format *format, const uint8_t *codes, uint64_t count, uint8_t *bytes) {
    const gb_book_bytes book = gb_book_integers(format->book);
    uint8_t of_code[16];
    for (uint32_t code = 0; code < 16; code++)
        of_code[code] = (uint8_t)(gb_book_integer(book, code) + 128);
    for (uint64_t i = 0; i < count / 2; i++) {
        bytes[2 * i] = of_code[codes[i] & 15];
        bytes[2 * i + 1] = of_code[codes[i] >> 4];
    }
}
