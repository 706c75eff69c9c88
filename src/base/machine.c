/* SPDX-License-Identifier: Apache-2.0 */
#include "base/machine.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

/* Programs are mapped whole, and their weights are used as they lie in the file. */
_Static_assert(sizeof(void *) == 8, "gumbel needs a 64-bit, little-endian machine");
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "gumbel needs a 64-bit, little-endian machine"
#endif

/* What a container may use, in both versions of control groups; without a bound that is "max", or a number
 * larger than any machine's. */
static const char *const limit_files[] = {"/sys/fs/cgroup/memory.max",
                                          "/sys/fs/cgroup/memory/memory.limit_in_bytes"};

static uint64_t smaller_limit(const char *path, uint64_t bytes) {
    uint64_t limit;
    FILE *file = fopen(path, "re");
    if (!file)
        return bytes;
    const bool is_number = fscanf(file, "%" SCNu64, &limit) == 1;
    fclose(file);
    return is_number && limit < bytes ? limit : bytes;
}

uint64_t gb_machine_bytes(void) {
    const long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
    uint64_t bytes = pages > 0 && size > 0 ? (uint64_t)pages * (uint64_t)size : 0;
    for (size_t i = 0; i < sizeof limit_files / sizeof *limit_files; i++)
        bytes = smaller_limit(limit_files[i], bytes);
    return bytes;
}
