/* SPDX-License-Identifier: Apache-2.0 */
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

static gb_allocation_hook allocation_hook;
static void *allocation_hook_user;

void gb_set_allocation_hook(gb_allocation_hook hook, void *user) {
    allocation_hook = hook;
    allocation_hook_user = user;
}

static bool allowed(size_t count, size_t size, size_t *bytes) {
    if (__builtin_mul_overflow(count, size, bytes))
        return false;
    if (*bytes == 0)
        *bytes = 1;
    return !allocation_hook || allocation_hook(allocation_hook_user, *bytes);
}

void *gb_allocate(size_t count, size_t size) {
    size_t bytes;
    return allowed(count, size, &bytes) ? calloc(1, bytes) : NULL;
}

void *gb_reallocate(void *block, size_t count, size_t size) {
    size_t bytes;
    return allowed(count, size, &bytes) ? realloc(block, bytes) : NULL;
}

void *gb_allocate_aligned(size_t count, size_t size) {
    size_t bytes;
    void *block = NULL;
    if (!allowed(count, size, &bytes) || posix_memalign(&block, 64, bytes) != 0)
        return NULL;
    memset(block, 0, bytes);
    return block;
}

char *gb_copy_string(const char *text, size_t length) {
    char *copy = length < SIZE_MAX ? gb_allocate(length + 1, 1) : NULL;
    if (copy)
        memcpy(copy, text, length);
    return copy;
}

void gb_free(void *block) {
    free(block);
}

bool gb_grow(void **items, size_t *capacity, size_t needed, size_t item_size) {
    if (needed <= *capacity)
        return true;
    size_t larger = *capacity ? *capacity : 16;
    while (larger < needed) {
        if (larger > SIZE_MAX / 2)
            return false;
        larger *= 2;
    }
    void *grown = gb_reallocate(*items, larger, item_size);
    if (!grown)
        return false;
    *items = grown;
    *capacity = larger;
    return true;
}

bool gb_align_size(uint64_t value, uint64_t alignment, uint64_t *result) {
    if (!gb_add_size(value, alignment - 1, result))
        return false;
    *result &= ~(alignment - 1);
    return true;
}
