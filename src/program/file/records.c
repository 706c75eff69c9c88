/* SPDX-License-Identifier: Apache-2.0 */
#include "program/file/records.h"

#include "program/file/format.h"

#include <string.h>

size_t gb_record_begin(gb_byte_buffer *buffer, uint16_t tag, uint16_t flags) {
    gb_buffer_append_u32(buffer, (uint32_t)flags << 16 | tag);
    gb_buffer_append_u32(buffer, 0);
    return buffer->size;
}

void gb_record_end(gb_byte_buffer *buffer, size_t begin) {
    if (buffer->failed)
        return;
    size_t length = buffer->size - begin;
    if (length > UINT32_MAX)
        buffer->failed = true;
    else
        gb_put_u32(buffer->data + begin - 4, (uint32_t)length);
}

/* The next size bytes, or NULL. */
static const uint8_t *take(gb_byte_view *view, uint64_t size) {
    if (view->failed || size > view->size) {
        view->failed = true;
        return NULL;
    }
    const uint8_t *bytes = view->data;
    view->data += size;
    view->size -= size;
    return bytes;
}

uint32_t gb_view_u32(gb_byte_view *view) {
    const uint8_t *bytes = take(view, 4);
    return bytes ? gb_get_u32(bytes) : 0;
}

uint64_t gb_view_u64(gb_byte_view *view) {
    const uint8_t *bytes = take(view, 8);
    return bytes ? gb_get_u64(bytes) : 0;
}

double gb_view_f64(gb_byte_view *view) {
    uint64_t bits = gb_view_u64(view);
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

bool gb_next_record(gb_byte_view *view, gb_record *record) {
    if (view->failed || view->size == 0)
        return false;
    uint32_t head = gb_view_u32(view);
    uint32_t length = gb_view_u32(view);
    const uint8_t *payload = take(view, length);
    if (!payload)
        return false;
    *record = (gb_record){.tag = (uint16_t)(head & 0xffff), .flags = (uint16_t)(head >> 16)};
    record->payload = (gb_byte_view){.data = payload, .size = length};
    return true;
}
