/* SPDX-License-Identifier: Apache-2.0
 *
 * The MLX backend: the program's graph lowered to MLX's, through libmlx, on MLX's default device. In a build
 * without MLX the same two functions say how to get it.
 */
#ifndef GUMBEL_BACKENDS_MLX_MLX_H
#define GUMBEL_BACKENDS_MLX_MLX_H

#include "backends/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Makes a backend for the program, which must outlive it and whose constants must have their data. Says by
 * options->log what it converts. One thread may use it at a time. Errors: UNSUPPORTED (an op that is not
 * lowered, weights that are to be locked, no MLX in this build), ARGUMENT (an instruction set), BACKEND (MLX
 * failed). */
gumbel_status gb_mlx_backend_create(const gb_program *program, const gb_backend_options *options,
                                    gb_backend **backend, gumbel_error *error);

/* Writes what this build and machine offer: "MLX 0.32.4 on its cpu stream; .."; no newline. Thread-safe. */
void gb_mlx_describe(gumbel_write_callback write, void *user);

#ifdef __cplusplus
}
#endif

#endif
