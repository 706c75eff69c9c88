/* SPDX-License-Identifier: Apache-2.0 */
#include "program/file/storage.h"

#include "base/memory.h"

#include <stdalign.h>
#include <string.h>

enum { CHUNK_BYTES = 64 * 1024 };

typedef struct chunk {
    struct chunk *next;
    size_t used, size;
    alignas(max_align_t) unsigned char bytes[];
} chunk;

struct gb_storage {
    chunk *chunks; /* the one in use first */
};

gb_storage *gb_storage_create(void) {
    return gb_allocate(1, sizeof(gb_storage));
}

void *gb_storage_take(gb_storage *storage, size_t count, size_t size) {
    uint64_t bytes, total;
    if (!gb_multiply_size(count, size, &bytes) || !gb_align_size(bytes, alignof(max_align_t), &bytes) ||
        !gb_add_size(bytes, sizeof(chunk), &total) || total > SIZE_MAX)
        return NULL;
    chunk *current = storage->chunks;
    if (!current || bytes > current->size - current->used) {
        size_t chunk_size = bytes > CHUNK_BYTES ? (size_t)bytes : (size_t)CHUNK_BYTES;
        chunk *fresh = gb_allocate(1, sizeof(chunk) + chunk_size);
        if (!fresh)
            return NULL;
        *fresh = (chunk){.next = current, .size = chunk_size};
        storage->chunks = current = fresh;
    }
    void *piece = current->bytes + current->used;
    current->used += (size_t)bytes;
    return piece;
}

char *gb_storage_string(gb_storage *storage, const char *text, size_t length) {
    char *copy = length < SIZE_MAX ? gb_storage_take(storage, length + 1, 1) : NULL;
    if (copy && length)
        memcpy(copy, text, length);
    return copy;
}

void gb_storage_destroy(gb_storage *storage) {
    if (!storage)
        return;
    for (chunk *next, *current = storage->chunks; current; current = next) {
        next = current->next;
        gb_free(current);
    }
    gb_free(storage);
}
