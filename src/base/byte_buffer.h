/* SPDX-License-Identifier: Apache-2.0
 *
 * A growing run of bytes; numbers in it are little-endian. Running out of memory is remembered, so that a
 * writer appends freely and asks once at the end.
 */
#ifndef GUMBEL_BASE_BYTE_BUFFER_H
#define GUMBEL_BASE_BYTE_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zeroed at the start. */
typedef struct gb_byte_buffer {
    uint8_t *data; /* owned */
    size_t size, capacity;
    bool failed; /* memory ran out: the content is incomplete */
} gb_byte_buffer;

/* Appends size bytes. data may be NULL when size is 0. */
void gb_buffer_append(gb_byte_buffer *buffer, const void *data, size_t size);

/* Appends a number. */
void gb_buffer_append_u32(gb_byte_buffer *buffer, uint32_t value);
void gb_buffer_append_u64(gb_byte_buffer *buffer, uint64_t value);
void gb_buffer_append_f64(gb_byte_buffer *buffer, double value);

/* Appends length in 4 bytes and then the bytes. length must be below 2^32. */
void gb_buffer_append_text(gb_byte_buffer *buffer, const char *text, size_t length);

/* Overwrites the 4 bytes at offset, which must be there. */
void gb_buffer_patch_u32(gb_byte_buffer *buffer, size_t offset, uint32_t value);

/* Frees the bytes and leaves an empty buffer. */
void gb_buffer_free(gb_byte_buffer *buffer);

#endif
