/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cache/folder.h"

#include "base/status.h"
#include "cli/base/storage.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

gumbel_status cli_cache_folder(char **path, gumbel_error *error) {
    const char *caches = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    bool is_given = caches && caches[0] == '/'; /* a relative one is to be ignored */
    gb_byte_buffer text = {0};
    *path = NULL;
    if (!is_given && !(home && home[0] == '/'))
        return gb_fail(error, GUMBEL_ERROR_UNSUPPORTED,
                       "no place for a program made from a checkpoint: neither XDG_CACHE_HOME nor HOME is "
                       "an absolute path; gumbel export writes it where -o says");
    cli_append_string(&text, is_given ? caches : home);
    cli_append_string(&text, is_given ? "/gumbel" : "/.cache/gumbel");
    *path = text.text;
    return GUMBEL_OK;
}

/* The cache may be a link to another disk; a program may not. */
gumbel_status cli_cache_check(const char *path, mode_t kind, bool *is_there, gumbel_error *error) {
    struct stat file;
    bool is_folder = kind == S_IFDIR;
    *is_there = (is_folder ? stat(path, &file) : lstat(path, &file)) == 0;
    if (!*is_there)
        return errno == ENOENT ? GUMBEL_OK : gb_fail_errno(error, errno, "%s", path);
    if ((file.st_mode & S_IFMT) != kind)
        return gb_fail(error, GUMBEL_ERROR_IO, "%s: it is no %s; remove it", path,
                       is_folder ? "folder" : "regular file");
    if (file.st_uid != geteuid())
        return gb_fail(
            error, GUMBEL_ERROR_IO,
            "%s: it belongs to user %ld, and you are user %ld: what others can write is not run; let "
            "XDG_CACHE_HOME name a folder of your own",
            path, (long)file.st_uid, (long)geteuid());
    if (file.st_mode & (S_IWGRP | S_IWOTH))
        return gb_fail(
            error, GUMBEL_ERROR_IO,
            "%s: its mode is %04o: what others can write is not run; chmod %s %s if all in it is yours, "
            "or let XDG_CACHE_HOME name another folder",
            path, (unsigned)(file.st_mode & 07777), is_folder ? "700" : "600", path);
    return GUMBEL_OK;
}
