/* SPDX-License-Identifier: Apache-2.0 */
#include "base/temporary_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static const char prefix[] = ".gumbel-temporary-";
enum { PREFIX = sizeof prefix - 1, DIGITS = 4, NAMES = 10000 };

bool gb_is_temporary_name(const char *name) {
    for (int i = 0; i < PREFIX; i++)
        if (name[i] != prefix[i])
            return false;
    for (int i = PREFIX; i < PREFIX + DIGITS; i++)
        if (name[i] < '0' || name[i] > '9')
            return false;
    return name[PREFIX + DIGITS] == '\0';
}

/* Whether the new file is locked and still there. A collector may have come in between, and takes it. Where
 * there are no locks nobody collects. */
static bool lock(int descriptor) {
    struct stat information;
    if (flock(descriptor, LOCK_EX | LOCK_NB) != 0)
        return errno != EWOULDBLOCK;
    return fstat(descriptor, &information) != 0 || information.st_nlink > 0;
}

int gb_create_temporary(int directory, mode_t mode, char name[GB_TEMPORARY_NAME]) {
    for (int i = 0; i < NAMES; i++) {
        snprintf(name, GB_TEMPORARY_NAME, "%s%0*d", prefix, DIGITS, i);
        int descriptor = openat(directory, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode);
        if (descriptor >= 0 && lock(descriptor))
            return descriptor;
        if (descriptor < 0 && errno != EEXIST)
            break;
        if (descriptor >= 0)
            close(descriptor);
    }
    name[0] = '\0';
    return -1;
}

/* With the lock the file stays what it is: its name is compared last. O_RDWR, since NFS locks no other. */
static void remove_dead(int directory, const char *name) {
    struct stat opened, named;
    int descriptor = openat(directory, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (descriptor < 0)
        return;
    if (fstat(descriptor, &opened) == 0 && S_ISREG(opened.st_mode) &&
        flock(descriptor, LOCK_EX | LOCK_NB) == 0 &&
        fstatat(directory, name, &named, AT_SYMLINK_NOFOLLOW) == 0 && named.st_dev == opened.st_dev &&
        named.st_ino == opened.st_ino)
        unlinkat(directory, name, 0);
    close(descriptor);
}

void gb_collect_temporaries(int directory) {
    int descriptor = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *entries = descriptor >= 0 ? fdopendir(descriptor) : NULL;
    if (!entries) {
        if (descriptor >= 0)
            close(descriptor);
        return;
    }
    for (const struct dirent *entry; (entry = readdir(entries));)
        if (gb_is_temporary_name(entry->d_name))
            remove_dead(directory, entry->d_name);
    closedir(entries);
}
