/* SPDX-License-Identifier: Apache-2.0
 *
 * Little-endian numbers and tagged, length-prefixed records: what the structural sections of a program file
 * are made of. Writing goes into a growing buffer, reading through a view that cannot leave its bytes.
 */
#ifndef GUMBEL_PROGRAM_FILE_RECORDS_H
#define GUMBEL_PROGRAM_FILE_RECORDS_H

#include "base/byte_buffer.h"
#include "base/little_endian.h"

/* ---- Writing ------------------------------------------------------------------------------------------- */

/* Begins a record (flags: GB_RECORD_CRITICAL or 0); its payload is what is appended until the end, which is
 * given what begin returned. Records nest. One of more than 4 GiB fails the buffer as want of memory does. */
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
