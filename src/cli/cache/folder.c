/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cache/folder.h"

#include "cli/base/report.h"
#include "cli/base/storage.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static gumbel_status refuse_path(const char *path, gumbel_error *error) {
    cli_refuse(error, "%s: %s", path, strerror(errno));
    return error->status = GUMBEL_ERROR_IO;
}

gumbel_status cli_cache_folder(char **path, gumbel_error *error) {
    const char *caches = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    cli_text text = {0};
    *path = NULL;
    if (caches && caches[0] == '/') { /* a relative one is to be ignored */
        cli_text_add(&text, caches, strlen(caches));
    } else if (home && home[0] == '/') {
        cli_text_add(&text, home, strlen(home));
        cli_text_add(&text, "/.cache", 7);
    } else {
        cli_refuse(error, "no place for a program made from a checkpoint: neither XDG_CACHE_HOME nor HOME is "
                          "an absolute path; gumbel export writes it where -o says");
        return error->status = GUMBEL_ERROR_UNSUPPORTED;
    }
    cli_text_add(&text, "/gumbel", 7);
    *path = text.bytes;
    return GUMBEL_OK;
}

static gumbel_status make_folders(char *path, gumbel_error *error) {
    for (char *slash = strchr(path + 1, '/');; slash = strchr(slash + 1, '/')) {
        if (slash)
            *slash = '\0';
        bool is_there = mkdir(path, 0700) == 0 || errno == EEXIST || access(path, X_OK) == 0;
        gumbel_status status = is_there ? GUMBEL_OK : refuse_path(path, error);
        if (slash)
            *slash = '/';
        if (status != GUMBEL_OK || !slash)
            return status;
    }
}

gumbel_status cli_cache_make_folder(const char *path, gumbel_error *error) {
    char *copy = cli_copy_text(path, strlen(path));
    gumbel_status status = make_folders(copy, error);
    free(copy);
    return status == GUMBEL_OK ? cli_cache_check_folder(path, error) : status;
}

/* What a stat found must be the user's, and no other's to write. */
static gumbel_status check_private(const char *path, const struct stat *file, const char *mode,
                                   gumbel_error *error) {
    if (file->st_uid != geteuid())
        cli_refuse(error,
                   "%s: it belongs to user %ld, and you are user %ld: what others can write is not run; let "
                   "XDG_CACHE_HOME name a folder of your own",
                   path, (long)file->st_uid, (long)geteuid());
    else if (file->st_mode & (S_IWGRP | S_IWOTH))
        cli_refuse(
            error,
            "%s: its mode is %04o: what others can write is not run; chmod %s %s if all in it is yours, "
            "or let XDG_CACHE_HOME name another folder",
            path, (unsigned)(file->st_mode & 07777), mode, path);
    else
        return GUMBEL_OK;
    return error->status = GUMBEL_ERROR_IO;
}

gumbel_status cli_cache_check_folder(const char *path, gumbel_error *error) {
    struct stat file;
    if (stat(path, &file) != 0)
        return refuse_path(path, error);
    if (!S_ISDIR(file.st_mode)) {
        errno = ENOTDIR;
        return refuse_path(path, error);
    }
    return check_private(path, &file, "700", error);
}

gumbel_status cli_cache_check_file(const char *path, bool *is_there, gumbel_error *error) {
    struct stat file;
    *is_there = lstat(path, &file) == 0;
    if (!*is_there)
        return errno == ENOENT ? GUMBEL_OK : refuse_path(path, error);
    if (!S_ISREG(file.st_mode)) {
        cli_refuse(error, "%s: it is no regular file; remove it", path);
        return error->status = GUMBEL_ERROR_IO;
    }
    return check_private(path, &file, "600", error);
}
