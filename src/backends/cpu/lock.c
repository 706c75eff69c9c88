/* SPDX-License-Identifier: Apache-2.0 */
#if defined(__linux__)
#define _GNU_SOURCE /* mlock2 */
#endif
#include "backends/cpu/lock.h"

#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef struct pages {
    void *first;
    size_t size;
} pages;

static pages pages_of(const gb_program *program, const gb_placed_weights *weights, uint32_t constant) {
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), data = (uintptr_t)weights->of[constant].data;
    uintptr_t begin = data & ~(page - 1);
    uintptr_t end = (data + program->constants[constant].size + page - 1) & ~(page - 1);
    return (pages){(uint8_t *)begin, end - begin};
}

#if defined(MLOCK_ONFAULT)
/* Of /proc/meminfo, in bytes; 0 where there is none. */
static uint64_t available_memory(void) {
    char text[4096];
    int file = open("/proc/meminfo", O_RDONLY | O_CLOEXEC);
    ssize_t size = file >= 0 ? read(file, text, sizeof text - 1) : -1;
    if (file >= 0)
        close(file);
    if (size <= 0)
        return 0;
    text[size] = 0;
    static const char key[] = "MemAvailable:";
    const char *line = strstr(text, key);
    return line ? strtoull(line + sizeof key - 1, NULL, 10) * 1024 : 0;
}

/* Of the weights that are mapped. */
static uint64_t mapped_bytes(const gb_program *program, const gb_placed_weights *weights) {
    uint64_t total = 0;
    for (uint32_t i = 0; i < program->constant_count; i++)
        if (!weights->of[i].is_rearranged && !gb_add_size(total, program->constants[i].size, &total))
            return UINT64_MAX;
    return total;
}

static void lock_touched(const gb_program *program, const gb_placed_weights *weights) {
    uint64_t available = available_memory();
    if (mapped_bytes(program, weights) > available / 5 * 4)
        return;
    for (uint32_t i = 0; i < program->constant_count; i++) {
        pages range = pages_of(program, weights, i);
        if (mlock2(range.first, range.size, MLOCK_ONFAULT) != 0)
            return;
    }
}
#else
static void lock_touched(const gb_program *program, const gb_placed_weights *weights) {
    (void)program, (void)weights;
}
#endif

gumbel_status gb_lock_weights(const gb_program *program, const gb_placed_weights *weights, gumbel_lock mode,
                              gumbel_error *error) {
    if (mode == GUMBEL_LOCK_TOUCHED)
        lock_touched(program, weights);
    for (uint32_t i = 0; mode == GUMBEL_LOCK_ALL && i < program->constant_count; i++) {
        pages range = pages_of(program, weights, i);
        if (mlock(range.first, range.size) != 0)
            return gb_fail_errno(error, errno, "locking %llu bytes of weights in memory (see ulimit -l)",
                                 (unsigned long long)gb_program_weight_bytes(program));
    }
    return GUMBEL_OK;
}

void gb_unlock_weights(const gb_program *program, const gb_placed_weights *weights) {
    for (uint32_t i = 0; i < program->constant_count; i++) {
        pages range = pages_of(program, weights, i);
        munlock(range.first, range.size);
    }
}
