/* SPDX-License-Identifier: Apache-2.0 */
#include "base/output_file.h"

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static gumbel_status fail_write(const gb_output_file *file, int errno_value, gumbel_error *error) {
    if (errno_value == EFAULT) /* the bytes are those of a mapped file */
        return gb_fail(error, GUMBEL_ERROR_IO,
                       "%s: cannot be written: a file that it is made from was cut short", file->target.path);
    return gb_fail_errno(error, errno_value, "%s: cannot be written", file->target.path);
}

/* What is replaced may be private, so that until the end its successor is. */
static gumbel_status open_temporary(gb_output_file *file, gumbel_error *error) {
    const mode_t mode = file->target.is_new ? 0666 : 0600;
    file->descriptor = gb_create_nameless(file->target.directory, mode);
    if (file->descriptor < 0)
        file->descriptor = gb_create_temporary(file->target.directory, mode, file->temporary);
    if (file->descriptor >= 0)
        return GUMBEL_OK;
    return gb_fail_errno(error, errno, "%s: no file can be created in its directory", file->target.path);
}

gumbel_status gb_output_create(gb_output_file *file, const char *path, const gb_input_list *inputs,
                               void *buffer, size_t capacity, gumbel_error *error) {
    *file = GB_NO_OUTPUT;
    file->buffer = buffer;
    file->capacity = capacity;
    GB_TRY(gb_open_target(&file->target, path, inputs, error));
    gb_collect_temporaries(file->target.directory);
    return open_temporary(file, error);
}

/* ---- Bytes --------------------------------------------------------------------------------------------- */

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
        const uint64_t whole = file->buffered == 0 ? size / file->capacity * file->capacity : 0;
        const uint64_t room = file->capacity - file->buffered;
        const uint64_t part = whole > 0 ? whole : size < room ? size : room;
        if (whole > 0) {
            GB_TRY(write_all(file, from, whole, error));
        } else {
            memcpy(file->buffer + file->buffered, from, (size_t)part);
            file->buffered += (size_t)part;
        }
        if (file->buffered == file->capacity)
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

/* ---- The end ------------------------------------------------------------------------------------------- */

static gumbel_status write_head(gb_output_file *file, const void *head, size_t size, gumbel_error *error) {
    if (size == 0)
        return GUMBEL_OK;
    if (lseek(file->descriptor, 0, SEEK_SET) != 0)
        return fail_write(file, errno, error);
    return write_all(file, head, size, error);
}

static gumbel_status sync_file(gb_output_file *file, gumbel_error *error) {
    double begin = gb_seconds();
    if (fsync(file->descriptor) != 0)
        return fail_write(file, errno, error);
    count_time(file, begin);
    return GUMBEL_OK;
}

/* Gives the file the permissions of the one that it replaces. Those of a group that it cannot have are left
 * out. Some file systems have none. */
static void keep_permissions(const gb_output_file *file) {
    const struct stat *replaced = &file->target.replaced;
    mode_t mode = replaced->st_mode & 0777;
    if (file->target.is_new)
        return;
    if (fchown(file->descriptor, replaced->st_uid, replaced->st_gid) != 0 &&
        fchown(file->descriptor, (uid_t)-1, replaced->st_gid) != 0)
        mode &= ~(mode_t)070;
    (void)fchmod(file->descriptor, mode);
}

/* A file system may have synced only the bytes of a file without a name (btrfs): it is synced once more. */
static gumbel_status give_name(gb_output_file *file, gumbel_error *error) {
    if (file->temporary[0])
        return GUMBEL_OK;
    if (!gb_name_temporary(file->target.directory, file->descriptor, file->temporary))
        return fail_write(file, errno, error);
    return sync_file(file, error);
}

/* The lock, and with it the descriptor, is held until the file has its name. */
gumbel_status gb_output_commit(gb_output_file *file, const void *head, size_t size, gumbel_error *error) {
    const int directory = file->target.directory;
    GB_TRY(flush(file, error));
    GB_TRY(write_head(file, head, size, error));
    keep_permissions(file);
    GB_TRY(sync_file(file, error));
    GB_TRY(gb_check_target(&file->target, error));
    GB_TRY(give_name(file, error));
    if (renameat(directory, file->temporary, directory, file->target.name) != 0)
        return fail_write(file, errno, error);
    file->temporary[0] = '\0';
    (void)fsync(directory); /* makes the rename durable; where it cannot, that is only less sure */
    if (file->totals)
        file->totals->bytes += file->position;
    return GUMBEL_OK;
}

void gb_output_close(gb_output_file *file) {
    if (file->temporary[0])
        unlinkat(file->target.directory, file->temporary, 0);
    if (file->descriptor >= 0)
        close(file->descriptor);
    gb_close_target(&file->target);
    *file = GB_NO_OUTPUT;
}
