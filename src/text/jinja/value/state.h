/* SPDX-License-Identifier: Apache-2.0
 *
 * One render in progress: its memory, its limits, and the template line that errors name. Every part of the
 * interpreter gets it as its first argument and gives up at the first error, so nothing is ever undone.
 */
#ifndef GUMBEL_TEXT_JINJA_VALUE_STATE_H
#define GUMBEL_TEXT_JINJA_VALUE_STATE_H

#include "base/status.h"
#include "text/jinja/value/arena.h"
#include "text/jinja/value/limits.h"
#include "text/jinja/value/text.h"

#include <stdint.h>

/* What ended a statement list early. */
typedef enum gb_jinja_flow { GB_JINJA_NEXT, GB_JINJA_BREAK, GB_JINJA_CONTINUE } gb_jinja_flow;

typedef struct gb_jinja_state {
    gb_jinja_arena arena;
    gumbel_error *error;
    struct gb_jinja_buffer *output;        /* where statements write */
    const struct gb_jinja_dict *variables; /* the caller's context */
    const struct gb_jinja_dict *trusted;   /* more variables, or NULL */
    gb_jinja_limits limits;
    double start; /* of the render, by gb_seconds */
    uint64_t steps;
    uint64_t next_look; /* at the clock, when as many steps are done */
    bool has_time;      /* gb_jinja_input's, with time */
    int64_t time;
    bool printed_structure; /* gb_jinja_output's */
    uint32_t line;          /* of what is being read or evaluated */
    uint32_t depth;
    gb_jinja_flow flow;
} gb_jinja_state;

/* Fails with "chat template, line N: " before the message. */
gumbel_status gb_jinja_fail(gb_jinja_state *state, gumbel_status status, const char *format, ...)
    GB_PRINTF(3, 4);

/* count * size zeroed bytes of the arena. On failure NULL, with the error set and its status in *status. */
void *gb_jinja_allocate(gb_jinja_state *state, size_t count, size_t size, gumbel_status *status);

/* Counts work done; fails with LIMIT when a render has done too much. What allocates is bounded by that;
 * other work that grows with a value counts a step for some 16 items, 64 characters or 1024 bytes. */
gumbel_status gb_jinja_work(gb_jinja_state *state, uint64_t steps);

/* Counts the work of a search before it is done: in the worst case the product of the lengths. */
gumbel_status gb_jinja_work_search(gb_jinja_state *state, gb_jinja_text text, gb_jinja_text needle);

/* Goes one evaluation deeper, and back. Fails with LIMIT. */
gumbel_status gb_jinja_enter(gb_jinja_state *state);
static inline void gb_jinja_leave(gb_jinja_state *state) {
    state->depth--;
}

/* Text under construction in the arena; starts zeroed. */
typedef struct gb_jinja_buffer {
    char *bytes;
    uint8_t *taint; /* [capacity] NULL until something tainted is appended */
    size_t length, capacity;
    bool taints; /* what is appended counts as tainted: spellings of a tainted character */
} gb_jinja_buffer;

gumbel_status gb_jinja_append(gb_jinja_state *state, gb_jinja_buffer *buffer, gb_jinja_text text);
gumbel_status gb_jinja_append_string(gb_jinja_state *state, gb_jinja_buffer *buffer, const char *string);
gumbel_status gb_jinja_append_code_point(gb_jinja_state *state, gb_jinja_buffer *buffer, uint32_t code_point);
gumbel_status gb_jinja_append_format(gb_jinja_state *state, gb_jinja_buffer *buffer, const char *format, ...)
    GB_PRINTF(3, 4); /* at most 127 bytes */

static inline gb_jinja_text gb_jinja_buffer_text(const gb_jinja_buffer *buffer) {
    return (gb_jinja_text){
        .bytes = buffer->length ? buffer->bytes : "",
        .length = buffer->length,
        .taint = buffer->length ? buffer->taint : NULL,
    };
}

/* A template's text in an error message: "%.*s" with GB_JINJA_SHOWN(text), cut at 60 bytes. */
static inline int gb_jinja_shown_length(gb_jinja_text text) {
    size_t length = text.length < 60 ? text.length : 60;
    while (length > 0 && length < text.length && ((unsigned char)text.bytes[length] & 0xC0) == 0x80)
        length--;
    return (int)length;
}
#define GB_JINJA_SHOWN(text) gb_jinja_shown_length(text), (text).bytes

#endif
