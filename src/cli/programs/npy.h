/* SPDX-License-Identifier: Apache-2.0
 *
 * NumPy's array file, version 1.0 (numpy.lib.format), for one row of float32.
 */
#ifndef GUMBEL_CLI_PROGRAMS_NPY_H
#define GUMBEL_CLI_PROGRAMS_NPY_H

#include "base/output_file.h"

/* Writes count little-endian float32 values as an array of shape (count,) to path, which may be none of the
 * inputs (NULL: any). On an error what is at path stays. Errors: those of gb_output_create. */
gumbel_status cli_write_npy(const char *path, const gb_input_list *inputs, const float *values, size_t count,
                            gumbel_error *error);

#endif
