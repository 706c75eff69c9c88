/* SPDX-License-Identifier: Apache-2.0 */
#include "server/http/head.h"

#include <ctype.h>
#include <string.h>

static server_head bad(server_failure *failure, int status, const char *message) {
    server_fail(failure, status, "%s", message);
    return SERVER_HEAD_BAD;
}

/* Behind the empty line; NULL where that is not there yet. */
static const char *find_end(const char *line, const char *end) {
    for (; (line = memchr(line, '\n', (size_t)(end - line))); line++) {
        const char *next = line + 1;
        next += next < end && *next == '\r';
        if (next < end && *next == '\n')
            return next + 1;
    }
    return NULL;
}

/* libmicrohttpd ends a header at a NUL, and keeps a CR that a proxy may take for the line's end. */
static bool has_bad_byte(const char *bytes, size_t length) {
    for (size_t i = 0; i < length; i++) {
        const unsigned char byte = (unsigned char)bytes[i];
        const bool is_end = byte == '\r' && (i + 1 == length || bytes[i + 1] == '\n');
        if (byte == 0x7f || (byte < ' ' && byte != '\t' && byte != '\n' && !is_end))
            return true;
    }
    return false;
}

static server_head check_version(const char *version, size_t length, server_failure *failure) {
    if (length != 8 || memcmp(version, "HTTP/", 5) != 0 || version[6] != '.' ||
        !isdigit((unsigned char)version[5]) || !isdigit((unsigned char)version[7]))
        return bad(failure, 400, "the request line has to end in HTTP/1.1 or HTTP/1.0");
    return version[5] == '1' ? SERVER_HEAD_WHOLE : bad(failure, 505, "only HTTP/1.1 and HTTP/1.0 are known");
}

/* METHOD target HTTP/1.1 */
static server_head check_line(const char *line, size_t length, server_failure *failure) {
    const char *end = line + length, *method_end = memchr(line, ' ', length);
    const char *target = method_end ? method_end + 1 : end;
    const char *target_end = memchr(target, ' ', (size_t)(end - target));
    if (!target_end || method_end == line || target_end == target)
        return bad(failure, 400, "expected a request line such as GET /v1/models HTTP/1.1");
    return check_version(target_end + 1, (size_t)(end - target_end - 1), failure);
}

/* Empty lines before the first one are allowed. */
static const char *skip_empty_lines(const char *bytes, const char *end) {
    while (bytes < end && (*bytes == '\r' || *bytes == '\n'))
        bytes++;
    return bytes;
}

static server_head check_size(size_t size, bool has_line, server_failure *failure) {
    if (size < SERVER_HEAD_BYTES)
        return SERVER_HEAD_PART;
    return has_line ? bad(failure, 431, "the request line and headers are larger than 32 KiB")
                    : bad(failure, 414, "the request line is longer than 32 KiB");
}

server_head server_check_head(const char *bytes, size_t size, server_failure *failure) {
    const char *end = bytes + size, *line = skip_empty_lines(bytes, end);
    const char *line_end = memchr(line, '\n', (size_t)(end - line));
    const char *head_end = line_end ? find_end(line_end, end) : NULL;
    if (has_bad_byte(line, (size_t)((head_end ? head_end : end) - line)))
        return bad(failure, 400, "there is a control character in the request line or a header");
    if (line_end &&
        check_line(line, (size_t)(line_end - line) - (line_end[-1] == '\r'), failure) == SERVER_HEAD_BAD)
        return SERVER_HEAD_BAD;
    return head_end ? SERVER_HEAD_WHOLE : check_size(size, line_end != NULL, failure);
}
