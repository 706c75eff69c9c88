/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* O_PATH */
#include "base/output_target.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#ifndef O_PATH
#define O_PATH O_RDONLY
#endif

enum { MAX_LINKS = 40 }; /* in a row, as in Linux */
enum { MAX_WALKS = 10 }; /* another writer may replace the target meanwhile */

static gumbel_status fail_target(const gb_output_target *target, int reason, gumbel_error *error) {
    return gb_fail_errno(error, reason, "%s: cannot be written", target->path);
}

static gumbel_status check_kind(const gb_output_target *target, mode_t mode, gumbel_error *error) {
    if (S_ISREG(mode))
        return GUMBEL_OK;
    return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "%s: is %s, expected a regular file or a new name",
                   target->path, gb_file_kind(mode));
}

gumbel_status gb_check_target(gb_output_target *target, gumbel_error *error) {
    target->is_new = fstatat(target->directory, target->name, &target->replaced, AT_SYMLINK_NOFOLLOW) != 0;
    if (target->is_new)
        return errno == ENOENT ? GUMBEL_OK : fail_target(target, errno, error);
    GB_TRY(check_kind(target, target->replaced.st_mode, error));
    if (gb_is_input(target->inputs, &target->replaced))
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT,
                       "%s: is one of the files that are read, expected another file or a new name",
                       target->path);
    return GUMBEL_OK;
}

/* ---- The way there ------------------------------------------------------------------------------------- */

static size_t directory_length(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash - path) + 1 : 0;
}

/* What the system finds at the path, through all links. */
static gumbel_status look(gb_output_target *target, gumbel_error *error) {
    size_t length = strlen(target->path);
    if (length == 0)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "the output's name is empty, expected that of a file");
    target->is_new = stat(target->path, &target->replaced) != 0;
    if (target->is_new && errno != ENOENT)
        return fail_target(target, errno, error);
    if (!target->is_new)
        GB_TRY(check_kind(target, target->replaced.st_mode, error));
    if (target->path[length - 1] == '/')
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "%s: names a directory, expected a file", target->path);
    return GUMBEL_OK;
}

/* Replaces a path that is a link by where it leads. Directories' links the system follows. */
static gumbel_status follow_links(const gb_output_target *target, char path[PATH_MAX], gumbel_error *error) {
    for (int links = 0; links <= MAX_LINKS; links++) {
        char to[PATH_MAX];
        ssize_t length = readlink(path, to, sizeof to);
        if (length < 0)
            return GUMBEL_OK;
        size_t kept = length > 0 && to[0] == '/' ? 0 : directory_length(path);
        if (kept + (size_t)length >= PATH_MAX)
            return fail_target(target, ENAMETOOLONG, error);
        memcpy(path + kept, to, (size_t)length);
        path[kept + (size_t)length] = '\0';
    }
    return fail_target(target, ELOOP, error);
}

/* A directory that cannot be read can still take files. */
static int open_directory(const char *path) {
    int descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return descriptor < 0 && errno == EACCES ? open(path, O_PATH | O_DIRECTORY | O_CLOEXEC) : descriptor;
}

static gumbel_status enter(gb_output_target *target, char path[PATH_MAX], gumbel_error *error) {
    const size_t length = directory_length(path), name_length = strlen(path + length);
    if (name_length == 0 || name_length > NAME_MAX)
        return fail_target(target, name_length == 0 ? EISDIR : ENAMETOOLONG, error);
    memcpy(target->name, path + length, name_length + 1);
    path[length] = '\0';
    target->directory = open_directory(length > 0 ? path : ".");
    if (target->directory >= 0)
        return GUMBEL_OK;
    return gb_fail_errno(error, errno, "%s: cannot be written: %s", target->path, path);
}

/* Whether the way has led to what the system finds at the path: links of /proc have no way. */
static gumbel_status walk(gb_output_target *target, bool *arrived, gumbel_error *error) {
    char way[PATH_MAX];
    const size_t length = strlen(target->path);
    GB_TRY(look(target, error));
    const bool was_new = target->is_new;
    const gb_file_id expected = gb_file_id_of(&target->replaced);
    if (length >= sizeof way)
        return fail_target(target, ENAMETOOLONG, error);
    memcpy(way, target->path, length + 1);
    GB_TRY(follow_links(target, way, error));
    GB_TRY(enter(target, way, error));
    GB_TRY(gb_check_target(target, error));
    const gb_file_id found = gb_file_id_of(&target->replaced);
    *arrived = target->is_new == was_new &&
               (was_new || (found.device == expected.device && found.inode == expected.inode));
    return GUMBEL_OK;
}

gumbel_status gb_open_target(gb_output_target *target, const char *path, const gb_input_list *inputs,
                             gumbel_error *error) {
    *target = (gb_output_target){.path = path, .inputs = inputs, .directory = -1};
    for (int i = 0; i < MAX_WALKS; i++) {
        bool arrived;
        GB_TRY(walk(target, &arrived, error));
        if (arrived)
            return GUMBEL_OK;
        gb_close_target(target);
    }
    return gb_fail(error, GUMBEL_ERROR_ARGUMENT,
                   "%s: the file that it stands for has no name, expected a path", target->path);
}

void gb_close_target(gb_output_target *target) {
    if (target->directory >= 0)
        close(target->directory);
    target->directory = -1;
}
