/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads little-endian values from untrusted bytes. Reading past the end gives zeros and is remembered, so
 * that a parser reads a whole record and asks once.
 */
#ifndef GUMBEL_TEXT_BASE_BYTE_READER_H
#define GUMBEL_TEXT_BASE_BYTE_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct gb_byte_reader {
    const uint8_t *data; /* what is left */
    size_t size;
    bool failed; /* something lay past the end */
} gb_byte_reader;

/* The 4 bytes at data, which need not be aligned. */
static inline uint32_t gb_load_u32(const uint8_t *data) {
    return (uint32_t)data[0] | (uint32_t)data[1] << 8 | (uint32_t)data[2] << 16 | (uint32_t)data[3] << 24;
}

/* The next size bytes, or NULL when there are fewer. */
static inline const uint8_t *gb_read_bytes(gb_byte_reader *reader, uint64_t size) {
    if (reader->failed || size > reader->size) {
        reader->failed = true;
        return NULL;
    }
    const uint8_t *bytes = reader->data;
    reader->data += size;
    reader->size -= (size_t)size;
    return bytes;
}

static inline uint32_t gb_read_u32(gb_byte_reader *reader) {
    const uint8_t *bytes = gb_read_bytes(reader, 4);
    return bytes ? gb_load_u32(bytes) : 0;
}

/* A text that gb_buffer_append_text wrote; "" past the end. Not terminated by a zero. */
static inline const char *gb_read_text(gb_byte_reader *reader, uint32_t *length) {
    *length = gb_read_u32(reader);
    const uint8_t *bytes = gb_read_bytes(reader, *length);
    if (!bytes)
        *length = 0;
    return bytes ? (const char *)bytes : "";
}

#endif
