/* SPDX-License-Identifier: Apache-2.0 */
#include "base/byte_buffer.h"

#include "base/little_endian.h"
#include "base/memory.h"

#include <string.h>

void gb_buffer_append(gb_byte_buffer *buffer, const void *data, size_t size) {
    if (size == 0 || buffer->failed)
        return;
    uint64_t needed;
    if (!gb_add_size(buffer->size, size, &needed) ||
        !gb_grow((void **)&buffer->data, &buffer->capacity, needed, 1)) {
        buffer->failed = true;
        return;
    }
    memcpy(buffer->data + buffer->size, data, size);
    buffer->size += size;
}

void gb_buffer_append_u32(gb_byte_buffer *buffer, uint32_t value) {
    uint8_t bytes[4];
    gb_put_u32(bytes, value);
    gb_buffer_append(buffer, bytes, sizeof bytes);
}

void gb_buffer_append_u64(gb_byte_buffer *buffer, uint64_t value) {
    uint8_t bytes[8];
    gb_put_u64(bytes, value);
    gb_buffer_append(buffer, bytes, sizeof bytes);
}

void gb_buffer_append_f64(gb_byte_buffer *buffer, double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    gb_buffer_append_u64(buffer, bits);
}

void gb_buffer_append_text(gb_byte_buffer *buffer, const char *text, size_t length) {
    gb_buffer_append_u32(buffer, (uint32_t)length);
    gb_buffer_append(buffer, text, length);
}

void gb_buffer_patch_u32(gb_byte_buffer *buffer, size_t offset, uint32_t value) {
    if (!buffer->failed)
        gb_put_u32(buffer->data + offset, value);
}

void gb_buffer_free(gb_byte_buffer *buffer) {
    gb_free(buffer->data);
    *buffer = (gb_byte_buffer){0};
}
