/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/npy.h"

#include "cli/report.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { HEADER_BYTES = 128 }; /* a multiple of 64, as the format asks; our header is always shorter */

static void put_little_endian(unsigned char *bytes, uint32_t value, size_t count) {
    for (size_t i = 0; i < count; i++)
        bytes[i] = (unsigned char)(value >> (8 * i));
}

/* Magic, version, the header's length, and a Python dictionary padded with blanks up to a newline. */
static bool write_header(FILE *file, size_t count) {
    unsigned char header[HEADER_BYTES];
    enum { PREFIX = 10 };
    memcpy(header, "\x93NUMPY\x01\x00", 8);
    put_little_endian(header + 8, HEADER_BYTES - PREFIX, 2);
    memset(header + PREFIX, ' ', HEADER_BYTES - PREFIX);
    int length = snprintf((char *)header + PREFIX, HEADER_BYTES - PREFIX,
                          "{'descr': '<f4', 'fortran_order': False, 'shape': (%zu,), }", count);
    header[PREFIX + length] = ' ';
    header[HEADER_BYTES - 1] = '\n';
    return fwrite(header, 1, sizeof header, file) == sizeof header;
}

static bool write_values(FILE *file, const float *values, size_t count) {
    for (size_t i = 0; i < count; i++) {
        uint32_t bits;
        unsigned char bytes[4];
        memcpy(&bits, &values[i], sizeof bits);
        put_little_endian(bytes, bits, sizeof bytes);
        if (fwrite(bytes, 1, sizeof bytes, file) != sizeof bytes)
            return false;
    }
    return true;
}

gumbel_status cli_write_npy(const char *path, const float *values, size_t count, gumbel_error *error) {
    FILE *file = fopen(path, "wb");
    bool written = file && write_header(file, count) && write_values(file, values, count);
    int reason = errno;
    if (file && fclose(file) != 0 && written) {
        written = false;
        reason = errno;
    }
    if (written)
        return GUMBEL_OK;
    if (file)
        remove(path);
    cli_refuse(error, "%s: %s", path, strerror(reason));
    return error->status = GUMBEL_ERROR_IO;
}
