/* SPDX-License-Identifier: Apache-2.0 */
#include "base/status.h"

#include <stdio.h>
#include <string.h>

/* A message as it is written: long enough for a path or two. */
enum { MESSAGE_BYTES = 8192, LONGEST_ESCAPE = sizeof "\\U0010ffff" - 1 };

static const char ellipsis[] = "\xe2\x80\xa6";
enum { ELLIPSIS_BYTES = sizeof ellipsis - 1 };

static bool continues_character(char byte) {
    return ((unsigned char)byte & 0xc0) == 0x80;
}

/* Of an escaped text: what is before head and from tail on. */
typedef struct selection {
    size_t at, head, tail;
    char *end; /* where the next selected byte goes */
} selection;

static void measure_piece(void *user, const char *text, size_t length) {
    (void)text;
    *(size_t *)user += length;
}

static void add_selected(selection *s, const char *text, size_t length) {
    memcpy(s->end, text, length);
    s->end += length;
}

/* How many bytes of a piece can stand before a cut in it: whole characters, and an escape as a whole. */
static size_t bytes_before(const char *text, size_t length, size_t cut) {
    if (text[0] == '\\' && length <= LONGEST_ESCAPE)
        return 0;
    while (cut > 0 && continues_character(text[cut]))
        cut--;
    return cut;
}

static size_t bytes_until(const char *text, size_t length, size_t cut) {
    if (text[0] == '\\' && length <= LONGEST_ESCAPE)
        return length;
    while (cut < length && continues_character(text[cut]))
        cut++;
    return cut;
}

static void select_piece(void *user, const char *text, size_t length) {
    selection *s = user;
    size_t begin = s->at, end = begin + length;
    s->at = end;
    if (end <= s->head || begin >= s->tail) {
        add_selected(s, text, length);
        return;
    }
    if (begin <= s->head) {
        add_selected(s, text, bytes_before(text, length, s->head - begin));
        add_selected(s, ellipsis, ELLIPSIS_BYTES);
    }
    if (end > s->tail) {
        size_t skipped = bytes_until(text, length, s->tail - begin);
        add_selected(s, text + skipped, length - skipped);
    }
}

/* Puts the text into error as one line, escaped, since names from files go into messages. A long one loses
 * its middle: the reason stands at its end, often behind a path. */
static void set_message(gumbel_error *error, const char *text) {
    size_t length = 0, room = sizeof error->message - 1;
    gumbel_escape(GUMBEL_ESCAPE_LINE, text, strlen(text), measure_piece, &length);
    selection s = {.head = length, .tail = length, .end = error->message};
    if (length > room) {
        room -= ELLIPSIS_BYTES;
        s.head = room / 2;
        s.tail = length - (room - s.head);
    }
    gumbel_escape(GUMBEL_ESCAPE_LINE, text, strlen(text), select_piece, &s);
    *s.end = '\0';
}

/* The formatted message, then ": " and the reason, unless that is NULL. */
static void write_message(gumbel_error *error, gumbel_status status, const char *reason, const char *format,
                          va_list arguments) {
    enum { REASON_BYTES = sizeof error->message + 2 };
    char whole[MESSAGE_BYTES];
    size_t room = sizeof whole - REASON_BYTES;
    int formatted = vsnprintf(whole, room, format, arguments);
    size_t length = formatted < 0 ? 0 : (size_t)formatted;
    if (length >= room) {
        length = room - 1;
        while (length > 0 && continues_character(whole[length - 1]))
            length--;
        length -= length > 0; /* the first byte of a character that may be cut */
    }
    whole[length] = '\0';
    if (reason)
        snprintf(whole + length, REASON_BYTES, ": %s", reason);
    error->status = status;
    set_message(error, whole);
}

gumbel_status gb_fail_list(gumbel_error *error, gumbel_status status, const char *format, va_list arguments) {
    if (error)
        write_message(error, status, NULL, format, arguments);
    return status;
}

gumbel_status gb_fail(gumbel_error *error, gumbel_status status, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    gb_fail_list(error, status, format, arguments);
    va_end(arguments);
    return status;
}

/* strerror_r has two incompatible forms; going through this pair accepts either. */
static const char *message_from_posix(int result, const char *buffer) {
    return result == 0 ? buffer : "unknown error";
}

gumbel_status gb_fail_errno(gumbel_error *error, int errno_value, const char *format, ...) {
    if (!error)
        return GUMBEL_ERROR_IO;
    char buffer[128] = "";
    const char *reason = message_from_posix(strerror_r(errno_value, buffer, sizeof buffer), buffer);
    va_list arguments;
    va_start(arguments, format);
    write_message(error, GUMBEL_ERROR_IO, reason, format, arguments);
    va_end(arguments);
    return GUMBEL_ERROR_IO;
}

gumbel_status gb_prefix(gumbel_error *error, gumbel_status status, const char *format, ...) {
    if (!error)
        return status;
    gumbel_error inner = *error;
    va_list arguments;
    va_start(arguments, format);
    write_message(error, status, inner.message, format, arguments);
    va_end(arguments);
    return status;
}

gumbel_status gb_no_memory(gumbel_error *error, const char *what) {
    return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for %s", what);
}

gumbel_error gb_error_to_send(const gumbel_error *error) {
    gumbel_error sent = {.status = error->status};
    if (error->status != GUMBEL_OK)
        snprintf(sent.message, sizeof sent.message, "%s", error->message);
    return sent;
}
