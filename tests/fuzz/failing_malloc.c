/* SPDX-License-Identifier: Apache-2.0
 *
 * In a command the environment says which allocation fails, from the start of main():
 *
 *     GUMBEL_FAILING_ALLOCATION=N      the N-th; 0: none
 *     GUMBEL_ALLOCATION_COUNT=FILE     where the number of allocations is written at the end
 */
#include "failing_malloc.h"

#include "fault_command.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* glibc's own, beside the names that are replaced here. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *block, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void __libc_free(void *block);

static atomic_size_t seen, failing, in_use;
static atomic_bool counts;

/* jansson 2.14 does not look whether its lexer's buffer could grow, and then reads past the end of a token.
 * That buffer's sizes are powers of two; allocations of such sizes are left out while it parses. */
static _Thread_local bool is_parsing;

json_t *__real_json_loadb(const char *text, size_t length, size_t flags, json_error_t *error);
json_t *__wrap_json_loadb(const char *text, size_t length, size_t flags, json_error_t *error);

json_t *__wrap_json_loadb(const char *text, size_t length, size_t flags, json_error_t *error) {
    is_parsing = true;
    json_t *value = __real_json_loadb(text, length, flags, error);
    is_parsing = false;
    return value;
}

static bool is_refused(size_t size) {
    const bool is_left_out = is_parsing && (size & (size - 1)) == 0;
    if (!atomic_load(&counts) || is_left_out || atomic_fetch_add(&seen, 1) + 1 != atomic_load(&failing))
        return false;
    tell_of_fault();
    errno = ENOMEM;
    return true;
}

static void *counted(void *block) {
    if (block)
        atomic_fetch_add(&in_use, 1);
    return block;
}

void begin_failing(size_t nth) {
    atomic_store(&seen, 0);
    atomic_store(&failing, nth);
    atomic_store(&counts, true);
}

size_t end_failing(void) {
    atomic_store(&counts, false);
    return atomic_load(&seen);
}

size_t blocks_in_use(void) {
    return atomic_load(&in_use);
}

#define REPLACED __attribute__((visibility("default")))

REPLACED void *malloc(size_t size) {
    return is_refused(size) ? NULL : counted(__libc_malloc(size));
}

REPLACED void *calloc(size_t count, size_t size) {
    return is_refused(count * size) ? NULL : counted(__libc_calloc(count, size));
}

REPLACED void *realloc(void *block, size_t size) {
    if (is_refused(size))
        return NULL;
    void *moved = __libc_realloc(block, size);
    return block ? moved : counted(moved);
}

REPLACED void free(void *block) {
    if (block)
        atomic_fetch_sub(&in_use, 1);
    __libc_free(block);
}

REPLACED void *memalign(size_t alignment, size_t size) {
    return is_refused(size) ? NULL : counted(__libc_memalign(alignment, size));
}

REPLACED void *aligned_alloc(size_t alignment, size_t size) {
    return is_refused(size) ? NULL : counted(__libc_memalign(alignment, size));
}

REPLACED int posix_memalign(void **block, size_t alignment, size_t size) {
    void *made = is_refused(size) ? NULL : counted(__libc_memalign(alignment, size));
    if (!made)
        return ENOMEM;
    *block = made;
    return 0;
}

/* ---- OpenSSL ------------------------------------------------------------------------------------------- */

/* OpenSSL 3 takes a lock that it had no memory for when it starts. What it allocates is left out. */
int CRYPTO_set_mem_functions(void *(*allocate)(size_t, const char *, int),
                             void *(*resize)(void *, size_t, const char *, int),
                             void (*release)(void *, const char *, int)) __attribute__((weak));

static void *allocate_left_out(size_t size, const char *file, int line) {
    (void)file, (void)line;
    return __libc_malloc(size);
}

static void *resize_left_out(void *block, size_t size, const char *file, int line) {
    (void)file, (void)line;
    return __libc_realloc(block, size);
}

static void release_left_out(void *block, const char *file, int line) {
    (void)file, (void)line;
    __libc_free(block);
}

static void leave_openssl_out(void) {
    if (CRYPTO_set_mem_functions)
        CRYPTO_set_mem_functions(allocate_left_out, resize_left_out, release_left_out);
}

/* ---- In a command -------------------------------------------------------------------------------------- */

static void write_count(void) {
    const char *path = getenv("GUMBEL_ALLOCATION_COUNT");
    int file = path ? open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600) : -1;
    char text[32];
    int length = snprintf(text, sizeof text, "%zu", end_failing());
    if (file >= 0 && write(file, text, (size_t)length) != length)
        _exit(99);
}

int __real_main(int count, char **words);
int __wrap_main(int count, char **words);

static size_t wanted;

static void begin(void) {
    begin_failing(wanted);
}

/* From main() on: CUDA's runtime registers its kernels before that, and crashes where it gets no memory. */
int __wrap_main(int count, char **words) {
    const char *nth = getenv("GUMBEL_FAILING_ALLOCATION");
    if (nth) {
        atexit(write_count);
        wanted = strtoull(nth, NULL, 10);
        leave_openssl_out();
        start_faults(begin);
    }
    return __real_main(count, words);
}
