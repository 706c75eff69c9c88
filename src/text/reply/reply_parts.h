/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of a reply as they come to be, and what is new about them. One text may be open at a time; it
 * becomes a part with its first character that is not left out.
 */
#ifndef GUMBEL_TEXT_REPLY_REPLY_PARTS_H
#define GUMBEL_TEXT_REPLY_REPLY_PARTS_H

#include "base/byte_buffer.h"
#include "text/reply/reply_format.h"

typedef struct gb_reply_part {
    gumbel_part_type type;
    const gb_reply_field *field; /* NULL: content without a format */
    size_t raw;                  /* where it begins in the reply's text; it ends where the next one begins */
    gb_byte_buffer text;
    char *id, *name; /* of a call, owned */
    int32_t call;
    const char *warning;
} gb_reply_part;

typedef struct gb_part_delta {
    size_t part, start, end; /* bytes of the part's text */
    bool begins;
    const char *warning;
} gb_part_delta;

typedef struct gb_reply_parts {
    gb_reply_part *items; /* owned */
    size_t count, capacity;
    gb_part_delta *deltas; /* owned; those before `taken` were taken */
    size_t delta_count, delta_capacity, taken;
    int32_t calls;
    struct {
        const gb_reply_field *field;
        bool is_open, has_part;
        bool strips, goes_on; /* something of it was seen: white space is not left out any more */
        size_t raw;
        gb_byte_buffer space; /* white space that is left out if nothing follows */
    } text;
    bool failed; /* memory ran out */
} gb_reply_parts;

void gb_reply_parts_free(gb_reply_parts *parts);

/* Opens a text of the field (NULL: content) at byte `raw` of the reply, and ends the one before. */
void gb_open_text(gb_reply_parts *parts, const gb_reply_field *field, size_t raw);

/* Adds to the open text. */
void gb_show_text(gb_reply_parts *parts, const char *text, size_t length);

/* Says something about the open text, if anything of it was shown. The warning is a literal. */
void gb_warn_text(gb_reply_parts *parts, const char *warning);

/* The open text goes on from something that is not to be shown. */
void gb_continue_text(gb_reply_parts *parts);

/* Ends the open text, if there is one. */
void gb_close_text(gb_reply_parts *parts);

/* Adds a part that is complete. Takes over id and name, which may be NULL. */
void gb_add_part(gb_reply_parts *parts, const gb_reply_field *field, size_t raw, char *id, char *name,
                 const gb_byte_buffer *text, const char *warning);

#endif
