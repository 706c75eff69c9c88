/* SPDX-License-Identifier: Apache-2.0
 *
 * Little-endian numbers and tagged, length-prefixed records: what the structural sections of a program file
 * are made of. Writing goes into a growing buffer, reading through a view that cannot leave its bytes.
 */
#ifndef GUMBEL_PROGRAM_RECORDS_H
#define GUMBEL_PROGRAM_RECORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- Numbers at a place that the caller has checked ---------------------------------------------------- */

static inline void gb_put_u32(uint8_t *bytes, uint32_t value) {
    for (int i = 0; i < 4; i++)
        bytes[i] = (uint8_t)(value >> (8 * i));
}
static inline void gb_put_u64(uint8_t *bytes, uint64_t value) {
    for (int i = 0; i < 8; i++)
        bytes[i] = (uint8_t)(value >> (8 * i));
}
static inline uint32_t gb_get_u32(const uint8_t *bytes) {
    uint32_t value = 0;
    for (int i = 0; i < 4; i++)
        value |= (uint32_t)bytes[i] << (8 * i);
    return value;
}
static inline uint64_t gb_get_u64(const uint8_t *bytes) {
    return gb_get_u32(bytes) | (uint64_t)gb_get_u32(bytes + 4) << 32;
}

/* ---- Writing ------------------------------------------------------------------------------------------- */

/* Zeroed at the start. After memory ran short or a record grew over 4 GiB, failed is set and nothing is
 * added any more. Free data with gb_free. */
typedef struct gb_byte_buffer {
    uint8_t *data;
    size_t size, capacity;
    bool failed;
} gb_byte_buffer;

void gb_buffer_bytes(gb_byte_buffer *buffer, const void *data, size_t size);
void gb_buffer_u32(gb_byte_buffer *buffer, uint32_t value);
void gb_buffer_u64(gb_byte_buffer *buffer, uint64_t value);
void gb_buffer_f64(gb_byte_buffer *buffer, double value);

/* Begins a record (flags: GB_RECORD_CRITICAL or 0); its payload is what is added until the end, which is
 * given what begin returned. Records nest. */
size_t gb_record_begin(gb_byte_buffer *buffer, uint16_t tag, uint16_t flags);
void gb_record_end(gb_byte_buffer *buffer, size_t begin);

/* ---- Reading ------------------------------------------------------------------------------------------- */

/* Bytes that have not been read yet. A read of more than there are gives 0 and sets failed. */
typedef struct gb_byte_view {
    const uint8_t *data;
    uint64_t size;
    bool failed;
} gb_byte_view;

uint32_t gb_view_u32(gb_byte_view *view);
uint64_t gb_view_u64(gb_byte_view *view);
double gb_view_f64(gb_byte_view *view);

/* Whether everything was read and nothing failed. */
static inline bool gb_view_ended(const gb_byte_view *view) {
    return view->size == 0 && !view->failed;
}

typedef struct gb_record {
    uint16_t tag, flags;
    gb_byte_view payload;
} gb_record;

/* Takes the next record. False at the end of the view, and when what is left is no whole record: then failed
 * is set. */
bool gb_next_record(gb_byte_view *view, gb_record *record);

#endif
