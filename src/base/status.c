/* SPDX-License-Identifier: Apache-2.0 */
#include "base/status.h"

#include <stdio.h>
#include <string.h>

/* Names from files go into messages: a message stays one line, and a cut one ends in a whole character. */
static void tidy(gumbel_error *error) {
    size_t length = strlen(error->message);
    if (length == sizeof error->message - 1) {
        while (length > 0 && ((unsigned char)error->message[length - 1] & 0xc0) == 0x80)
            length--;
        if (length > 0 && ((unsigned char)error->message[length - 1] & 0x80) != 0)
            length--;
        error->message[length] = '\0';
    }
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)error->message[i] < 0x20 || error->message[i] == 0x7f)
            error->message[i] = ' ';
}

static gumbel_status write_message(gumbel_error *error, gumbel_status status, const char *format,
                                   va_list arguments) {
    if (error) {
        error->status = status;
        vsnprintf(error->message, sizeof error->message, format, arguments);
        tidy(error);
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

static void append(gumbel_error *error, const char *text) {
    size_t used = strlen(error->message);
    snprintf(error->message + used, sizeof error->message - used, "%s", text);
    tidy(error);
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
