/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/programs/npy.h"

#include <stdio.h>
#include <string.h>

enum { HEADER_BYTES = 128 }; /* a multiple of 64, as the format asks; our header is always shorter */
enum { BUFFER_BYTES = 16384 };

static void put_little_endian(unsigned char *bytes, uint32_t value, size_t count) {
    for (size_t i = 0; i < count; i++)
        bytes[i] = (unsigned char)(value >> (8 * i));
}

/* Magic, version, the header's length, and a Python dictionary padded with blanks up to a newline. */
static gumbel_status write_header(gb_output_file *file, size_t count, gumbel_error *error) {
    unsigned char header[HEADER_BYTES];
    enum { PREFIX = 10 };
    memcpy(header, "\x93NUMPY\x01\x00", 8);
    put_little_endian(header + 8, HEADER_BYTES - PREFIX, 2);
    memset(header + PREFIX, ' ', HEADER_BYTES - PREFIX);
    int length = snprintf((char *)header + PREFIX, HEADER_BYTES - PREFIX,
                          "{'descr': '<f4', 'fortran_order': False, 'shape': (%zu,), }", count);
    header[PREFIX + length] = ' ';
    header[HEADER_BYTES - 1] = '\n';
    return gb_output_write(file, header, sizeof header, error);
}

static gumbel_status write_values(gb_output_file *file, const float *values, size_t count,
                                  gumbel_error *error) {
    for (size_t i = 0; i < count; i++) {
        uint32_t bits;
        unsigned char bytes[4];
        memcpy(&bits, &values[i], sizeof bits);
        put_little_endian(bytes, bits, sizeof bytes);
        GB_TRY(gb_output_write(file, bytes, sizeof bytes, error));
    }
    return GUMBEL_OK;
}

static gumbel_status write_array(gb_output_file *file, const float *values, size_t count,
                                 gumbel_error *error) {
    GB_TRY(write_header(file, count, error));
    GB_TRY(write_values(file, values, count, error));
    return gb_output_commit(file, NULL, 0, error);
}

gumbel_status cli_write_npy(const char *path, const gb_input_list *inputs, const float *values, size_t count,
                            gumbel_error *error) {
    unsigned char buffer[BUFFER_BYTES];
    gb_output_file file;
    gumbel_status status = gb_output_create(&file, path, inputs, buffer, sizeof buffer, error);
    if (status == GUMBEL_OK)
        status = write_array(&file, values, count, error);
    gb_output_close(&file);
    return status;
}
