/* SPDX-License-Identifier: Apache-2.0 */
#include "base/status.h"

#include <stdio.h>
#include <string.h>

/* A message as it is written: long enough for a path or two. */
enum { MESSAGE_BYTES = 8192 };

static const char ellipsis[] = "\xe2\x80\xa6";
enum { ELLIPSIS_BYTES = sizeof ellipsis - 1 };

static bool continues_character(char byte) {
    return ((unsigned char)byte & 0xc0) == 0x80;
}

/* Puts the text into error as one line. A long one loses its middle, between two characters: the reason
 * stands at its end, often behind a path. */
static void set_message(gumbel_error *error, const char *text) {
    size_t length = strlen(text), capacity = sizeof error->message;
    size_t head = length, tail = length;
    if (length >= capacity) {
        size_t room = capacity - 1 - ELLIPSIS_BYTES;
        head = room / 2;
        tail = length - (room - head);
        while (head > 0 && continues_character(text[head]))
            head--;
        while (continues_character(text[tail]))
            tail++;
    }
    snprintf(error->message, capacity, "%.*s%s%s", (int)head, text, tail > head ? ellipsis : "", text + tail);
    for (char *c = error->message; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f) /* names from files go into messages */
            *c = ' ';
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

gumbel_status gb_fail(gumbel_error *error, gumbel_status status, const char *format, ...) {
    if (!error)
        return status;
    va_list arguments;
    va_start(arguments, format);
    write_message(error, status, NULL, format, arguments);
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
