/* SPDX-License-Identifier: Apache-2.0
 *
 * A growing run of bytes; numbers in it are little-endian. Running out of memory is remembered, so that a
 * writer appends freely and asks once at the end.
 */
#ifndef GUMBEL_BASE_BYTE_BUFFER_H
#define GUMBEL_BASE_BYTE_BUFFER_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

/* Zeroed at the start. */
typedef struct gb_byte_buffer {
    union { /* owned; gb_free frees it where it is taken over */
        uint8_t *data;
        char *text;
    };
    size_t size, capacity;
    bool failed; /* memory ran out: the content is incomplete */
} gb_byte_buffer;

/* Appends size bytes. data may be NULL when size is 0. */
void gb_buffer_append(gb_byte_buffer *buffer, const void *data, size_t size);

/* Appends size bytes for the caller to write, and returns where they are; NULL: memory has run out. */
void *gb_buffer_extend(gb_byte_buffer *buffer, size_t size);

/* Appends a string without its zero byte. */
void gb_buffer_append_string(gb_byte_buffer *buffer, const char *string);

/* Formats to the end; what is longer than 4 KiB is cut. */
void gb_buffer_print(gb_byte_buffer *buffer, const char *format, ...) GB_PRINTF(2, 3);

/* gb_buffer_append as a gumbel_write_callback: user is the buffer. */
void gb_buffer_write(void *user, const char *text, size_t length);

/* The bytes with a zero behind them that does not count; "" where memory has run out. */
const char *gb_buffer_string(gb_byte_buffer *buffer);

/* Appends a number. */
void gb_buffer_append_u32(gb_byte_buffer *buffer, uint32_t value);
void gb_buffer_append_u64(gb_byte_buffer *buffer, uint64_t value);
void gb_buffer_append_f64(gb_byte_buffer *buffer, double value);

/* Appends length in 4 bytes and then the bytes. length must be below 2^32. */
void gb_buffer_append_text(gb_byte_buffer *buffer, const char *text, size_t length);

/* Overwrites the 4 bytes at offset, which must be there. */
void gb_buffer_patch_u32(gb_byte_buffer *buffer, size_t offset, uint32_t value);

/* Empties the buffer and keeps its memory; as a string it is empty, too. */
void gb_buffer_clear(gb_byte_buffer *buffer);

/* Frees the bytes and leaves an empty buffer. */
void gb_buffer_free(gb_byte_buffer *buffer);

#endif
