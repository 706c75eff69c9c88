/* SPDX-License-Identifier: Apache-2.0
 *
 * Checked allocation. The library allocates through these alone, so that sizes are checked for overflow in
 * one place and the tests can count allocations or make the n-th one fail.
 */
#ifndef GUMBEL_BASE_MEMORY_H
#define GUMBEL_BASE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* count * size zeroed bytes, or NULL if that overflows, is refused, or there is no memory.
 * A zero-byte request gives a valid pointer. Free with gb_free. Thread-safe. */
void *gb_allocate(size_t count, size_t size);

/* Resizes to count * size bytes; new bytes are not initialized. On failure returns NULL and leaves block. */
void *gb_reallocate(void *block, size_t count, size_t size);

/* Like gb_allocate, aligned to 64 bytes (one cache line, one AVX-512 register). Free with gb_free. */
void *gb_allocate_aligned(size_t count, size_t size);

/* A copy of the first length bytes of text with a terminating zero. Free with gb_free. */
char *gb_copy_string(const char *text, size_t length);

void gb_free(void *block);

/* Grows *items (of item_size bytes each) so that it holds at least needed items, doubling. Returns false and
 * leaves everything as it was when memory is short. */
bool gb_grow(void **items, size_t *capacity, size_t needed, size_t item_size);

/* a + b and a * b in *result; false on overflow. */
static inline bool gb_add_size(uint64_t a, uint64_t b, uint64_t *result) {
    return !__builtin_add_overflow(a, b, result);
}
static inline bool gb_multiply_size(uint64_t a, uint64_t b, uint64_t *result) {
    return !__builtin_mul_overflow(a, b, result);
}
/* value rounded up to a multiple of alignment (a power of two); false on overflow. */
bool gb_align_size(uint64_t value, uint64_t alignment, uint64_t *result);

/* For tests. Called before every allocation; returning false makes it fail. NULL (the start) allows all.
 * Not thread-safe: set it while no other thread is in the library. */
typedef bool (*gb_allocation_hook)(void *user, size_t bytes);
void gb_set_allocation_hook(gb_allocation_hook hook, void *user);

#endif
