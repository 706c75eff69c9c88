/* SPDX-License-Identifier: Apache-2.0
 *
 * The MLX backend of a build that found no MLX.
 */
#include "backends/mlx/mlx.h"
#include "base/text_sink.h"

gumbel_status gb_mlx_backend_create(const gb_program *program, const gb_backend_options *options,
                                    gb_backend **backend, gumbel_error *error) {
    (void)program, (void)options;
    *backend = NULL;
    return gb_fail(
        error, GUMBEL_ERROR_UNSUPPORTED,
        "backend mlx is not in this build of gumbel: install MLX (pip install mlx) and build again "
        "with -DMLX_ROOT=DIR (docs/mlx.md), or use --backend cpu");
}

void gb_mlx_describe(gumbel_write_callback write, void *user) {
    gb_print(&(gb_text_sink){write, user}, "not in this build (docs/mlx.md says how to get it)");
}
