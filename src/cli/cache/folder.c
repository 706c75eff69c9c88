/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cache/folder.h"

#include "base/status.h"
#include "cli/base/user_paths.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

gumbel_status cli_cache_folder(char **path, gumbel_error *error) {
    const char *caches = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    gb_byte_buffer text = {0};
    *path = NULL;
    if (caches && caches[0] == '/') { /* a relative one is to be ignored */
        cli_append_string(&text, caches);
    } else if (home && home[0] == '/') {
        cli_append_string(&text, home);
        cli_append_string(&text, "/.cache");
    } else {
        return gb_fail(error, GUMBEL_ERROR_UNSUPPORTED,
                       "no place for a program made from a checkpoint: neither XDG_CACHE_HOME nor HOME is "
                       "an absolute path; gumbel export writes it where -o says");
    }
    cli_append_string(&text, "/gumbel");
    *path = text.text;
    return GUMBEL_OK;
}

gumbel_status cli_cache_make_folder(const char *path, gumbel_error *error) {
    gumbel_status status = cli_make_folders(path, error);
    return status == GUMBEL_OK ? cli_cache_check_folder(path, error) : status;
}

/* What a stat found must be the user's, and no other's to write. */
static gumbel_status check_private(const char *path, const struct stat *file, const char *mode,
                                   gumbel_error *error) {
    if (file->st_uid != geteuid())
        return gb_fail(
            error, GUMBEL_ERROR_IO,
            "%s: it belongs to user %ld, and you are user %ld: what others can write is not run; let "
            "XDG_CACHE_HOME name a folder of your own",
            path, (long)file->st_uid, (long)geteuid());
    if (file->st_mode & (S_IWGRP | S_IWOTH))
        return gb_fail(
            error, GUMBEL_ERROR_IO,
            "%s: its mode is %04o: what others can write is not run; chmod %s %s if all in it is yours, "
            "or let XDG_CACHE_HOME name another folder",
            path, (unsigned)(file->st_mode & 07777), mode, path);
    return GUMBEL_OK;
}

gumbel_status cli_cache_check_folder(const char *path, gumbel_error *error) {
    struct stat file;
    if (stat(path, &file) != 0)
        return gb_fail_errno(error, errno, "%s", path);
    if (!S_ISDIR(file.st_mode)) {
        errno = ENOTDIR;
        return gb_fail_errno(error, errno, "%s", path);
    }
    return check_private(path, &file, "700", error);
}

gumbel_status cli_cache_check_file(const char *path, bool *is_there, gumbel_error *error) {
    struct stat file;
    *is_there = lstat(path, &file) == 0;
    if (!*is_there)
        return errno == ENOENT ? GUMBEL_OK : gb_fail_errno(error, errno, "%s", path);
    if (!S_ISREG(file.st_mode)) {
        return gb_fail(error, GUMBEL_ERROR_IO, "%s: it is no regular file; remove it", path);
    }
    return check_private(path, &file, "600", error);
}
