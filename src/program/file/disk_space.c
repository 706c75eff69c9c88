/* SPDX-License-Identifier: Apache-2.0 */
#include "program/file/disk_space.h"

#include <stdio.h>
#include <sys/statvfs.h>

enum { BYTES_TEXT = 24 };

/* "18.7 GB" */
static const char *describe_bytes(double bytes, char text[BYTES_TEXT]) {
    static const char *const units[] = {"bytes", "kB", "MB", "GB", "TB", "PB", "EB"};
    size_t unit = 0;
    for (; bytes >= 999.95 && unit + 1 < sizeof units / sizeof *units; unit++)
        bytes /= 1000;
    snprintf(text, BYTES_TEXT, unit == 0 ? "%.0f %s" : "%.1f %s", bytes, units[unit]);
    return text;
}

gumbel_status gb_check_disk_space(int descriptor, const char *path, uint64_t needed, gumbel_error *error) {
    struct statvfs disk;
    char needed_text[BYTES_TEXT], free_text[BYTES_TEXT];
    if (fstatvfs(descriptor, &disk) != 0 || disk.f_blocks == 0)
        return GUMBEL_OK;
    double free_bytes = (double)disk.f_bavail * (double)disk.f_frsize;
    if ((double)needed <= free_bytes)
        return GUMBEL_OK;
    return gb_fail(error, GUMBEL_ERROR_LIMIT, "%s: it needs %s, and its disk has %s free", path,
                   describe_bytes((double)needed, needed_text), describe_bytes(free_bytes, free_text));
}
