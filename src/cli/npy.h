/* SPDX-License-Identifier: Apache-2.0
 *
 * NumPy's array file, version 1.0 (numpy.lib.format), for one row of float32.
 */
#ifndef GUMBEL_CLI_NPY_H
#define GUMBEL_CLI_NPY_H

#include "gumbel.h"

/* Writes count little-endian float32 values as an array of shape (count,). On an error no file is left at
 * path. Errors: IO, naming the file. */
gumbel_status cli_write_npy(const char *path, const float *values, size_t count, gumbel_error *error);

#endif
