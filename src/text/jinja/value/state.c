/* SPDX-License-Identifier: Apache-2.0 */
#include "text/jinja/value/state.h"

#include "base/clock.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <utf8proc.h>

/* The message is one line by contract, but a template's own text in it may not be. */
static void keep_one_line(char *message) {
    for (; *message; message++)
        if ((unsigned char)*message < 0x20 || *message == 0x7F)
            *message = ' ';
}

gumbel_status gb_jinja_fail(gb_jinja_state *state, gumbel_status status, const char *format, ...) {
    char message[sizeof state->error->message];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    keep_one_line(message);
    return gb_fail(state->error, status, "chat template, line %u: %s", state->line, message);
}

void *gb_jinja_allocate(gb_jinja_state *state, size_t count, size_t size, gumbel_status *status) {
    uint64_t bytes;
    bool over_limit = __builtin_mul_overflow(count, size, &bytes) || bytes > state->limits.memory;
    void *block = NULL;
    if (!over_limit)
        block = gb_jinja_arena_allocate(&state->arena, (size_t)bytes, state->limits.memory, &over_limit);
    *status = GUMBEL_OK;
    if (over_limit)
        *status = gb_jinja_fail(state, GUMBEL_ERROR_LIMIT, "rendering takes more than %zu MiB of memory",
                                state->limits.memory >> 20);
    else if (!block)
        *status = gb_jinja_fail(state, GUMBEL_ERROR_MEMORY, "no memory");
    return block;
}

gumbel_status gb_jinja_work(gb_jinja_state *state, uint64_t steps) {
    enum { STEPS_BETWEEN_LOOKS = 4096 };
    if (steps > state->limits.steps - state->steps)
        return gb_jinja_fail(state, GUMBEL_ERROR_LIMIT, "rendering takes more than %" PRIu64 " steps",
                             state->limits.steps);
    state->steps += steps;
    if (state->steps < state->next_look)
        return GUMBEL_OK;
    state->next_look = state->steps + STEPS_BETWEEN_LOOKS;
    if (gb_seconds() - state->start > state->limits.seconds)
        return gb_jinja_fail(state, GUMBEL_ERROR_LIMIT, "rendering takes more than %g seconds",
                             state->limits.seconds);
    return GUMBEL_OK;
}

gumbel_status gb_jinja_work_search(gb_jinja_state *state, gb_jinja_text text, gb_jinja_text needle) {
    return gb_jinja_work(state, (uint64_t)(text.length / 64) * (needle.length / 64 + 1));
}

gumbel_status gb_jinja_enter(gb_jinja_state *state) {
    if (state->depth >= GB_JINJA_MAX_DEPTH)
        return gb_jinja_fail(state, GUMBEL_ERROR_LIMIT, "calls or values are nested more than %d deep",
                             GB_JINJA_MAX_DEPTH);
    state->depth++;
    return gb_jinja_work(state, 1);
}

/* Room for the taint of all bytes that the buffer has room for. */
static gumbel_status reserve_taint(gb_jinja_state *state, gb_jinja_buffer *buffer) {
    gumbel_status status;
    uint8_t *taint = gb_jinja_allocate(state, buffer->capacity, 1, &status);
    if (taint && buffer->taint)
        memcpy(taint, buffer->taint, buffer->length);
    if (taint)
        buffer->taint = taint;
    return status;
}

static gumbel_status reserve(gb_jinja_state *state, gb_jinja_buffer *buffer, size_t more) {
    if (more > state->limits.text - buffer->length)
        return gb_jinja_fail(state, GUMBEL_ERROR_LIMIT, "a text is longer than %zu MiB",
                             state->limits.text >> 20);
    size_t needed = buffer->length + more;
    if (needed <= buffer->capacity)
        return GUMBEL_OK;
    size_t capacity = buffer->capacity ? 2 * buffer->capacity : 64;
    if (capacity < needed)
        capacity = needed;
    gumbel_status status;
    char *bytes = gb_jinja_allocate(state, capacity, 1, &status);
    if (!bytes)
        return status;
    if (buffer->length)
        memcpy(bytes, buffer->bytes, buffer->length);
    buffer->bytes = bytes;
    buffer->capacity = capacity;
    return buffer->taint ? reserve_taint(state, buffer) : GUMBEL_OK;
}

/* Says of the length bytes just written where they come from. */
static gumbel_status append_taint(gb_jinja_state *state, gb_jinja_buffer *buffer, gb_jinja_text text) {
    if (!buffer->taint && !buffer->taints && !text.taint)
        return GUMBEL_OK;
    if (!buffer->taint)
        GB_TRY(reserve_taint(state, buffer));
    uint8_t *to = buffer->taint + buffer->length;
    if (text.taint && !buffer->taints)
        memcpy(to, text.taint, text.length);
    else
        memset(to, buffer->taints, text.length);
    return GUMBEL_OK;
}

gumbel_status gb_jinja_append(gb_jinja_state *state, gb_jinja_buffer *buffer, gb_jinja_text text) {
    if (text.length == 0)
        return GUMBEL_OK;
    GB_TRY(reserve(state, buffer, text.length));
    GB_TRY(append_taint(state, buffer, text));
    memcpy(buffer->bytes + buffer->length, text.bytes, text.length);
    buffer->length += text.length;
    return GUMBEL_OK;
}

gumbel_status gb_jinja_append_string(gb_jinja_state *state, gb_jinja_buffer *buffer, const char *string) {
    return gb_jinja_append(state, buffer, gb_jinja_text_of(string));
}

gumbel_status gb_jinja_append_code_point(gb_jinja_state *state, gb_jinja_buffer *buffer,
                                         uint32_t code_point) {
    utf8proc_uint8_t bytes[4];
    utf8proc_ssize_t length = utf8proc_encode_char((utf8proc_int32_t)code_point, bytes);
    return gb_jinja_append(state, buffer,
                           (gb_jinja_text){.bytes = (const char *)bytes, .length = (size_t)length});
}

gumbel_status gb_jinja_append_format(gb_jinja_state *state, gb_jinja_buffer *buffer, const char *format,
                                     ...) {
    char text[128];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return gb_jinja_append_string(state, buffer, text);
}
