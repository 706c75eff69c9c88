/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes as the header of an answer of the hub and of its redirects, a line each: what is read fits its
 * room and ends in a zero, and no answer's range outlives it.
 */
#include "hub/http.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must_end(const char *text, size_t capacity) {
    if (!memchr(text, '\0', capacity))
        abort();
}

static void check(const hub_reply *reply, const uint8_t *line, size_t length) {
    must_end(reply->commit, sizeof reply->commit);
    must_end(reply->etag, sizeof reply->etag);
    must_end(reply->code, sizeof reply->code);
    must_end(reply->message, sizeof reply->message);
    if (length > 5 && memcmp(line, "HTTP/", 5) == 0 &&
        (reply->has_range || reply->code[0] || reply->message[0]))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    hub_reply reply = {0};
    for (size_t at = 0; at < size;) {
        const uint8_t *end = memchr(data + at, '\n', size - at);
        const size_t length = end ? (size_t)(end - data) + 1 - at : size - at;
        char *line = malloc(length); /* of just its size, and without a zero behind it, as libcurl gives it */
        if (!line)
            return 0;
        memcpy(line, data + at, length);
        hub_read_header(line, length, &reply);
        check(&reply, data + at, length);
        free(line);
        at += length;
    }
    return 0;
}
