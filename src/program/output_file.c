/* SPDX-License-Identifier: Apache-2.0 */
#include "program/output_file.h"

#include "base/clock.h"
#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Written in whole buffers, the file gets large pages from file systems that have them, so that a program can
 * be mapped quickly right after it was written. */
enum { BUFFER_BYTES = 2 << 20, NAME_ATTEMPTS = 1000 };

static gumbel_status fail_write(const gb_output_file *file, int errno_value, gumbel_error *error) {
    return gb_fail_errno(error, errno_value, "%s: cannot be written", file->path);
}

static size_t directory_length(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash - path) + 1 : 0;
}

static gumbel_status check_target(const char *path, gumbel_error *error) {
    struct stat information;
    if (!path[directory_length(path)])
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "%s: not the name of a file", path);
    if (stat(path, &information) == 0 && !S_ISREG(information.st_mode))
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "%s: is there and not a regular file", path);
    return GUMBEL_OK;
}

/* Opens `.NAME.gumbel-PROCESS-ATTEMPT` beside the target. Not mkstemp: its files cannot be read by others
 * even where the umask allows it. */
static gumbel_status open_temporary(gb_output_file *file, gumbel_error *error) {
    size_t directory = directory_length(file->path), size = strlen(file->path) + 64;
    file->temporary_path = gb_allocate(size, 1);
    file->buffer = gb_allocate(BUFFER_BYTES, 1);
    if (!file->temporary_path || !file->buffer)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "%s: no memory for writing it", file->path);
    for (int attempt = 0; attempt < NAME_ATTEMPTS && file->descriptor < 0; attempt++) {
        snprintf(file->temporary_path, size, "%.*s.%s.gumbel-%ld-%d", (int)directory, file->path,
                 file->path + directory, (long)getpid(), attempt);
        file->descriptor = open(file->temporary_path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (file->descriptor < 0 && errno != EEXIST)
            break;
    }
    return file->descriptor < 0 ? fail_write(file, errno, error) : GUMBEL_OK;
}

gumbel_status gb_output_create(gb_output_file *file, const char *path, gumbel_error *error) {
    *file = (gb_output_file){.descriptor = -1};
    GB_TRY(check_target(path, error));
    file->path = gb_copy_string(path, strlen(path));
    if (!file->path)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "%s: no memory for writing it", path);
    gumbel_status status = open_temporary(file, error);
    if (status != GUMBEL_OK)
        gb_output_close(file);
    return status;
}

/* Counts the time since begin. */
static void count_time(gb_output_file *file, double begin) {
    if (file->totals)
        file->totals->seconds += gb_seconds() - begin;
}

static gumbel_status write_all(gb_output_file *file, const uint8_t *data, uint64_t size,
                               gumbel_error *error) {
    double begin = gb_seconds();
    while (size > 0) {
        size_t part = size < (1u << 30) ? (size_t)size : (size_t)1 << 30;
        ssize_t written = write(file->descriptor, data, part);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return fail_write(file, written < 0 ? errno : ENOSPC, error);
        data += written;
        size -= (uint64_t)written;
    }
    count_time(file, begin);
    return GUMBEL_OK;
}

static gumbel_status flush(gb_output_file *file, gumbel_error *error) {
    size_t buffered = file->buffered;
    file->buffered = 0;
    return write_all(file, file->buffer, buffered, error);
}

gumbel_status gb_output_write(gb_output_file *file, const void *data, uint64_t size, gumbel_error *error) {
    const uint8_t *from = data;
    file->position += size;
    while (size > 0) {
        const uint64_t whole = file->buffered == 0 ? size / BUFFER_BYTES * BUFFER_BYTES : 0;
        const uint64_t room = BUFFER_BYTES - file->buffered;
        const uint64_t part = whole > 0 ? whole : size < room ? size : room;
        if (whole > 0) {
            GB_TRY(write_all(file, from, whole, error));
        } else {
            memcpy(file->buffer + file->buffered, from, (size_t)part);
            file->buffered += (size_t)part;
        }
        if (file->buffered == BUFFER_BYTES)
            GB_TRY(flush(file, error));
        from += part;
        size -= part;
    }
    return GUMBEL_OK;
}

gumbel_status gb_output_align(gb_output_file *file, uint64_t alignment, gumbel_error *error) {
    static const uint8_t zeros[4096];
    uint64_t missing = (alignment - file->position % alignment) % alignment;
    while (missing > 0) {
        uint64_t part = missing < sizeof zeros ? missing : sizeof zeros;
        GB_TRY(gb_output_write(file, zeros, part, error));
        missing -= part;
    }
    return GUMBEL_OK;
}

/* The rename is durable once its directory is synced; where that is not possible it is only less so. */
static void sync_directory(const char *path) {
    size_t length = directory_length(path);
    char *directory = length ? gb_copy_string(path, length) : gb_copy_string(".", 1);
    int descriptor = directory ? open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (descriptor >= 0) {
        (void)fsync(descriptor);
        close(descriptor);
    }
    gb_free(directory);
}

gumbel_status gb_output_commit(gb_output_file *file, const void *head, size_t size, gumbel_error *error) {
    GB_TRY(flush(file, error));
    if (lseek(file->descriptor, 0, SEEK_SET) != 0)
        return fail_write(file, errno, error);
    GB_TRY(write_all(file, head, size, error));
    double begin = gb_seconds();
    if (fsync(file->descriptor) != 0)
        return fail_write(file, errno, error);
    count_time(file, begin);
    if (file->totals)
        file->totals->bytes += file->position;
    int closed = close(file->descriptor);
    file->descriptor = -1;
    if (closed != 0 || rename(file->temporary_path, file->path) != 0) {
        gumbel_status status = fail_write(file, errno, error);
        unlink(file->temporary_path);
        return status;
    }
    sync_directory(file->path);
    return GUMBEL_OK;
}

void gb_output_close(gb_output_file *file) {
    if (file->descriptor >= 0) {
        close(file->descriptor);
        unlink(file->temporary_path);
    }
    gb_free(file->path);
    gb_free(file->temporary_path);
    gb_free(file->buffer);
    *file = (gb_output_file){.descriptor = -1};
}
