/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes as a connection's first head, at once and byte by byte: what is refused in part is refused whole,
 * and refusals have a status. The text up to the first newline is also a list of origins, of which what is
 * listed is found.
 */
#include "base/memory.h"
#include "server/http/head.h"
#include "server/http/origin.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static server_head check_head(const char *bytes, size_t size) {
    server_failure failure = {0};
    const server_head head = server_check_head(bytes, size, &failure);
    if (head == SERVER_HEAD_BAD && (failure.status < 400 || failure.status > 599 || !failure.message[0]))
        abort();
    return head;
}

static void check_heads(const char *bytes, size_t size) {
    const server_head whole = check_head(bytes, size);
    server_head part = SERVER_HEAD_PART;
    for (size_t i = 0; i <= size && i <= 512 && part == SERVER_HEAD_PART; i++)
        part = check_head(bytes, i);
    if (part == SERVER_HEAD_BAD && whole != SERVER_HEAD_BAD)
        abort();
}

static void check_origins(const char *list) {
    size_t length = 0;
    const char *bad = server_find_bad_origin(list, &length);
    if (bad && (bad < list || bad + length > list + strlen(list)))
        abort();
    (void)server_is_origin_listed(list, list);
    if (!server_is_same_key(list, list))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const uint8_t *end = memchr(data, '\n', size);
    char *list = gb_copy_string((const char *)data, end ? (size_t)(end - data) : size);
    check_heads((const char *)data, size);
    if (list)
        check_origins(list);
    gb_free(list);
    return 0;
}
