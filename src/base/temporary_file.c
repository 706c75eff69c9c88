/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* O_TMPFILE, AT_EMPTY_PATH */
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

static void print_name(char name[GB_TEMPORARY_NAME], int number) {
    snprintf(name, GB_TEMPORARY_NAME, "%s%0*d", prefix, DIGITS, number);
}

int gb_create_temporary(int directory, mode_t mode, char name[GB_TEMPORARY_NAME]) {
    for (int i = 0; i < NAMES; i++) {
        print_name(name, i);
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

/* ---- Without a name ------------------------------------------------------------------------------------ */

#ifdef O_TMPFILE
/* By the descriptor, which before Linux 6.10 root alone may; or through /proc, which need not be there. */
static bool link_descriptor(int descriptor, int directory, const char *name) {
    char path[32];
    if (linkat(descriptor, "", directory, name, AT_EMPTY_PATH) == 0)
        return true;
    if (errno == EEXIST)
        return false;
    snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
    return linkat(AT_FDCWD, path, directory, name, AT_SYMLINK_FOLLOW) == 0;
}

bool gb_name_temporary(int directory, int descriptor, char name[GB_TEMPORARY_NAME]) {
    (void)flock(descriptor, LOCK_EX | LOCK_NB); /* where there are no locks nobody collects */
    for (int i = 0; i < NAMES; i++) {
        print_name(name, i);
        if (link_descriptor(descriptor, directory, name))
            return true;
        if (errno != EEXIST)
            break;
    }
    name[0] = '\0';
    return false;
}

static int open_nameless(int directory, mode_t mode) {
    return openat(directory, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, mode);
}

/* Sandboxes and mounts refuse names for reasons of their own: that is to come out before the file is written.
 */
static bool can_be_named(int directory) {
    char name[GB_TEMPORARY_NAME];
    int descriptor = open_nameless(directory, 0600);
    bool is_named = descriptor >= 0 && gb_name_temporary(directory, descriptor, name);
    if (is_named)
        unlinkat(directory, name, 0);
    if (descriptor >= 0)
        close(descriptor);
    return is_named;
}

int gb_create_nameless(int directory, mode_t mode) {
    return can_be_named(directory) ? open_nameless(directory, mode) : -1;
}
#else
bool gb_name_temporary(int directory, int descriptor, char name[GB_TEMPORARY_NAME]) {
    (void)directory, (void)descriptor;
    name[0] = '\0';
    errno = ENOTSUP;
    return false;
}

int gb_create_nameless(int directory, mode_t mode) {
    (void)directory, (void)mode;
    return -1;
}
#endif

/* ---- What killed writers left -------------------------------------------------------------------------- */

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
