/* SPDX-License-Identifier: Apache-2.0 */
#include "base/status.h"

#include <stdio.h>
#include <string.h>

enum { LONGEST_ESCAPE = sizeof "\\U0010ffff" - 1 };

/* A message that is being put together. */
typedef struct unfinished {
    char *end;
    size_t room; /* after end, the terminating zero not counted */
} unfinished;

/* Appends as much as there is room for: whole characters, whole escapes, and nothing after a part that was
 * left out. */
static void append_piece(void *user, const char *text, size_t length) {
    unfinished *message = user;
    if (length > message->room) {
        bool is_escape = text[0] == '\\' && length <= LONGEST_ESCAPE;
        length = is_escape ? 0 : message->room;
        while (length > 0 && ((unsigned char)text[length] & 0xc0) == 0x80)
            length--;
        message->room = length;
    }
    memcpy(message->end, text, length);
    message->end += length;
    message->room -= length;
    *message->end = '\0';
}

/* Names from files go into messages: what they have is escaped, and a message stays one line. */
static void append(gumbel_error *error, const char *text) {
    size_t used = strlen(error->message);
    unfinished message = {error->message + used, sizeof error->message - 1 - used};
    gumbel_escape(GUMBEL_ESCAPE_LINE, text, strlen(text), append_piece, &message);
}

static gumbel_status write_message(gumbel_error *error, gumbel_status status, const char *format,
                                   va_list arguments) {
    if (error) {
        char text[2 * sizeof error->message]; /* what is cut here has no room there */
        vsnprintf(text, sizeof text, format, arguments);
        error->status = status;
        error->message[0] = '\0';
        append(error, text);
    }
    return status;
}

gumbel_status gb_fail(gumbel_error *error, gumbel_status status, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    write_message(error, status, format, arguments);
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
    va_list arguments;
    va_start(arguments, format);
    write_message(error, GUMBEL_ERROR_IO, format, arguments);
    va_end(arguments);
    char reason[128] = "";
    append(error, ": ");
    append(error, message_from_posix(strerror_r(errno_value, reason, sizeof reason), reason));
    return GUMBEL_ERROR_IO;
}

gumbel_status gb_prefix(gumbel_error *error, gumbel_status status, const char *format, ...) {
    if (!error)
        return status;
    gumbel_error inner = *error;
    va_list arguments;
    va_start(arguments, format);
    write_message(error, status, format, arguments);
    va_end(arguments);
    append(error, ": ");
    append(error, inner.message);
    return status;
}
