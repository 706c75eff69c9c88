/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file_map.h"

#include "base/memory.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static gumbel_status map_descriptor(int descriptor, const char *path, const struct stat *information,
                                    gb_file_map *map, gumbel_error *error) {
    *map = (gb_file_map){.size = (size_t)information->st_size, .id = gb_file_id_of(information)};
    if (map->size == 0)
        return GUMBEL_OK;
    void *data = mmap(NULL, map->size, PROT_READ, MAP_SHARED, descriptor, 0);
    if (data == MAP_FAILED)
        return gb_fail_errno(error, errno, "%s: cannot be mapped", path);
    map->data = data;
#if defined(MADV_HUGEPAGE) /* where the file system has large pages, each of them is mapped by one fault */
    madvise(data, map->size, MADV_HUGEPAGE);
#endif
    return GUMBEL_OK;
}

gumbel_status gb_map_file(const char *path, gb_file_map *map, gumbel_error *error) {
    *map = (gb_file_map){0};
    int descriptor;
    struct stat information;
    GB_TRY(gb_open_input(path, &descriptor, &information, error));
    gumbel_status status = map_descriptor(descriptor, path, &information, map, error);
    close(descriptor);
    return status;
}

void gb_unmap_file(gb_file_map *map) {
    if (map->data)
        munmap((void *)(uintptr_t)map->data, map->size);
    *map = (gb_file_map){0};
}

void gb_release_pages(const void *data, uint64_t size) {
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t first = ((uintptr_t)data + page - 1) / page * page;
    uintptr_t end = ((uintptr_t)data + (uintptr_t)size) / page * page;
    if (first < end)
        madvise((void *)first, end - first, MADV_DONTNEED);
}

gumbel_status gb_read_file(const char *path, size_t limit, char **text, size_t *size, gumbel_error *error) {
    gb_file_map map;
    *text = NULL;
    GB_TRY(gb_map_file(path, &map, error));
    if (map.size > limit) {
        gumbel_status status = gb_fail(error, GUMBEL_ERROR_FORMAT, "%s: %zu bytes, more than the %zu allowed",
                                       path, map.size, limit);
        gb_unmap_file(&map);
        return status;
    }
    *text = gb_allocate(map.size + 1, 1);
    if (*text && map.size)
        memcpy(*text, map.data, map.size);
    if (size)
        *size = map.size;
    gb_unmap_file(&map);
    return *text ? GUMBEL_OK : gb_fail(error, GUMBEL_ERROR_MEMORY, "%s: no memory for its text", path);
}
