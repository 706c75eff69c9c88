/* SPDX-License-Identifier: Apache-2.0 */
#include "base/input_file.h"

#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/* The innermost list of this thread. */
static _Thread_local gb_input_list *recording;

const char *gb_file_kind(mode_t mode) {
    return S_ISREG(mode)    ? "a regular file"
           : S_ISDIR(mode)  ? "a directory"
           : S_ISFIFO(mode) ? "a FIFO"
           : S_ISCHR(mode)  ? "a character device"
           : S_ISBLK(mode)  ? "a block device"
           : S_ISSOCK(mode) ? "a socket"
           : S_ISLNK(mode)  ? "a symbolic link"
                            : "a file of an unknown kind";
}

static gumbel_status check_kind(const char *path, mode_t mode, gumbel_error *error) {
    if (S_ISREG(mode))
        return GUMBEL_OK;
    return gb_fail(error, GUMBEL_ERROR_IO, "%s: is %s, expected a regular file", path, gb_file_kind(mode));
}

/* Some kinds cannot be opened at all; what they are says more than why that is. */
static gumbel_status fail_open(const char *path, int reason, gumbel_error *error) {
    struct stat information;
    if (stat(path, &information) == 0)
        GB_TRY(check_kind(path, information.st_mode, error));
    return gb_fail_errno(error, reason, "%s", path);
}

static gumbel_status look(const char *path, int descriptor, struct stat *information, gumbel_error *error) {
    if (fstat(descriptor, information) != 0)
        return gb_fail_errno(error, errno, "%s", path);
    GB_TRY(check_kind(path, information->st_mode, error));
    return gb_note_input(path, information, error);
}

gumbel_status gb_open_input(const char *path, int *descriptor, struct stat *information,
                            gumbel_error *error) {
    *descriptor = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (*descriptor < 0)
        return fail_open(path, errno, error);
    gumbel_status status = look(path, *descriptor, information, error);
    if (status != GUMBEL_OK) {
        close(*descriptor);
        *descriptor = -1;
    }
    return status;
}

/* ---- What was opened ----------------------------------------------------------------------------------- */

gb_file_id gb_file_id_of(const struct stat *information) {
    return (gb_file_id){(uint64_t)information->st_dev, (uint64_t)information->st_ino};
}

void gb_record_inputs(gb_input_list *list) {
    *list = (gb_input_list){.outer = recording};
    recording = list;
}

void gb_end_inputs(gb_input_list *list) {
    recording = list->outer;
    gb_free(list->files);
    *list = (gb_input_list){0};
}

gumbel_status gb_note_input(const char *path, const struct stat *information, gumbel_error *error) {
    for (gb_input_list *list = recording; list; list = list->outer) {
        if (gb_is_input(list, information))
            continue;
        if (!gb_grow((void **)&list->files, &list->capacity, list->count + 1, sizeof *list->files))
            return gb_fail(error, GUMBEL_ERROR_MEMORY, "%s: no memory for the list of inputs", path);
        list->files[list->count++] = gb_file_id_of(information);
    }
    return GUMBEL_OK;
}

bool gb_is_input(const gb_input_list *list, const struct stat *information) {
    const gb_file_id id = gb_file_id_of(information);
    for (size_t i = 0; list && i < list->count; i++)
        if (list->files[i].device == id.device && list->files[i].inode == id.inode)
            return true;
    return false;
}
