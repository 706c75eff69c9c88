/* SPDX-License-Identifier: Apache-2.0
 *
 * A file that an earlier download has left, of any size and with any marks, and then claims, writes and
 * releases in any order: no range leaves the file, and a blob gets its name only where its hash is right.
 */
#include "hub/partial.h"
#include "support/temporary.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST_CHUNKS = 4, MARKS = 8, HEAD = 4 + MARKS, MOST_CALLS = 64 };
/* Of nothing at all: what any other bytes have is wrong. */
static const char empty_hash[] = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

/* The size that it is to have, what it is off by, its marks. */
static void leave(const char *path, const uint8_t *data, uint64_t size) {
    const int descriptor = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    const uint64_t chunks = (size + HUB_CHUNK - 1) / HUB_CHUNK;
    uint64_t left = size + (data[3] < 128 ? chunks : data[3] % 16u);
    if (data[3] % 16 == 15)
        left = size;
    if (descriptor < 0 || ftruncate(descriptor, (off_t)left) != 0)
        abort();
    if (left >= size + chunks && pwrite(descriptor, data + 4, (size_t)chunks, (off_t)size) != (ssize_t)chunks)
        abort();
    close(descriptor);
}

static void call(hub_partial *partial, uint8_t what) {
    static uint8_t bytes[MOST_CHUNKS * HUB_CHUNK];
    hub_range range;
    gumbel_error error;
    partial->is_whole = what >= 200;
    if (!hub_partial_claim(partial, 1 + what % 3, &range))
        return;
    if (range.offset >= range.end || range.end > partial->file->size)
        abort();
    const uint64_t begin = range.offset, room = range.end - range.offset;
    const uint64_t count = what % 4 == 0 ? room : room * (what % 16) / 16;
    if (hub_partial_write(partial, &range, bytes, (size_t)count, &error) != GUMBEL_OK ||
        range.offset != begin + count || partial->bytes > partial->file->size)
        abort();
    hub_partial_release(partial, begin, &range);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < HEAD || size > HEAD + MOST_CALLS)
        return 0;
    hub_file file = {.name = "file",
                     .size = 1 + (uint64_t)(data[0] | data[1] << 8 | (data[2] & 7) << 16) %
                                     (MOST_CHUNKS * HUB_CHUNK)};
    hub_partial partial;
    gumbel_error error;
    bool is_done = false;
    snprintf(file.hash, sizeof file.hash, "%s", empty_hash);
    char name[HUB_HASH + sizeof HUB_INCOMPLETE];
    snprintf(name, sizeof name, "%s" HUB_INCOMPLETE, file.hash);
    leave(temporary_path(name), data, file.size);
    if (hub_partial_open(temporary_directory(), &file, &partial, &error) != GUMBEL_OK)
        abort();
    for (size_t i = HEAD; i < size; i++)
        call(&partial, data[i]);
    if (hub_partial_hash(&partial, MOST_CHUNKS, &is_done, &error) != GUMBEL_OK ||
        (is_done && partial.bytes != file.size))
        abort();
    if (is_done && hub_partial_finish(&partial, &error) == GUMBEL_OK)
        abort();
    hub_partial_close(&partial);
    if (access(temporary_path(empty_hash), F_OK) == 0)
        abort();
    return 0;
}
