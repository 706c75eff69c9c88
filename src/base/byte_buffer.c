/* SPDX-License-Identifier: Apache-2.0 */
#include "base/byte_buffer.h"

#include "base/little_endian.h"
#include "base/memory.h"
#include "base/text_sink.h"

#include <string.h>

void *gb_buffer_extend(gb_byte_buffer *buffer, size_t size) {
    uint64_t needed;
    if (buffer->failed)
        return NULL;
    if (!gb_add_size(buffer->size, size, &needed) ||
        !gb_grow((void **)&buffer->data, &buffer->capacity, needed, 1)) {
        buffer->failed = true;
        return NULL;
    }
    void *room = buffer->data + buffer->size;
    buffer->size += size;
    return room;
}

void gb_buffer_append(gb_byte_buffer *buffer, const void *data, size_t size) {
    void *room = size > 0 ? gb_buffer_extend(buffer, size) : NULL;
    if (room)
        memcpy(room, data, size);
}

void gb_buffer_append_string(gb_byte_buffer *buffer, const char *string) {
    gb_buffer_append(buffer, string, strlen(string));
}

void gb_buffer_write(void *user, const char *text, size_t length) {
    gb_buffer_append(user, text, length);
}

void gb_buffer_print(gb_byte_buffer *buffer, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    gb_print_list(&(gb_text_sink){gb_buffer_write, buffer}, format, arguments);
    va_end(arguments);
}

const char *gb_buffer_string(gb_byte_buffer *buffer) {
    char *end = gb_buffer_extend(buffer, 1);
    if (!end)
        return "";
    *end = '\0';
    buffer->size--;
    return buffer->text;
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

void gb_buffer_clear(gb_byte_buffer *buffer) {
    buffer->size = 0;
    buffer->failed = false;
    if (buffer->capacity > 0)
        buffer->text[0] = '\0';
}

void gb_buffer_free(gb_byte_buffer *buffer) {
    gb_free(buffer->data);
    *buffer = (gb_byte_buffer){0};
}
