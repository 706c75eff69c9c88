/* SPDX-License-Identifier: Apache-2.0
 *
 * The CUDA backend of a build that found no CUDA compiler.
 */
#include "backends/cuda/cuda.h"
#include "base/text_sink.h"

gumbel_status gb_cuda_backend_create(const gb_program *program, const gb_backend_options *options,
                                     gb_backend **backend, gumbel_error *error) {
    (void)program, (void)options;
    *backend = NULL;
    return gb_fail(
        error, GUMBEL_ERROR_UNSUPPORTED,
        "backend cuda is not in this build of gumbel: build again where CMake finds CUDA's compiler "
        "(docs/cuda.md), or use --backend cpu");
}

gumbel_status gb_cuda_describe_plan(const gb_program *program, const gb_backend_options *options,
                                    const gb_text_sink *sink, gumbel_error *error) {
    gb_backend *none;
    (void)sink;
    return gb_cuda_backend_create(program, options, &none, error);
}

gumbel_status gb_cuda_count_devices(int *count, gumbel_error *error) {
    gb_backend *none;
    *count = 0;
    return gb_cuda_backend_create(NULL, NULL, &none, error);
}

gumbel_status gb_cuda_list_devices(gb_device_info *devices, uint32_t capacity, uint32_t *count,
                                   gumbel_error *error) {
    gb_backend *none;
    (void)devices, (void)capacity;
    *count = 0;
    return gb_cuda_backend_create(NULL, NULL, &none, error);
}

gumbel_status gb_cuda_measure_weights(const gb_program *program, uint64_t *bytes, gumbel_error *error) {
    gb_backend *none;
    *bytes = 0;
    return gb_cuda_backend_create(program, NULL, &none, error);
}

void gb_cuda_describe(gumbel_write_callback write, void *user) {
    gb_print(&(gb_text_sink){write, user}, "not in this build (docs/cuda.md says how to get it)");
}
