/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/backends.h"

#include "backends/cpu/cpu.h"
#include "backends/cuda/cuda.h"
#include "backends/mlx/mlx.h"
#include "backends/ranks/processes/processes.h"
#include "base/text_sink.h"

#include <string.h>

static const gb_backend_entry entries[] = {
    {"cpu", gb_cpu_backend_create, gb_cpu_describe, gb_cpu_describe_plan, true, NULL, true, 0, NULL, NULL,
     NULL},
    {"cuda", gb_cuda_backend_create, gb_cuda_describe, gb_cuda_describe_plan, false, NULL, true, 8192,
     gb_cuda_measure_weights, gb_cuda_count_devices, gb_cuda_list_devices},
    {"mlx", gb_mlx_backend_create, gb_mlx_describe, NULL, false,
     "mlx gives a row other bits in a step of several", false, 0, NULL, NULL, NULL},
};

gumbel_status gb_backend_find(const char *name, const gb_backend_entry **entry, gumbel_error *error) {
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
        if (!name || strcmp(name, entries[i].name) == 0) {
            *entry = &entries[i];
            return GUMBEL_OK;
        }
    }
    return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "backend \"%s\": expected cpu, cuda or mlx", name);
}

gumbel_status gb_backend_create_on(const gb_backend_entry *entry, const gb_devices *devices,
                                   const gb_program *program, const gb_backend_options *options,
                                   gb_backend **backend, gumbel_error *error) {
    const bool is_alone =
        devices->processes ? gb_processes_count(devices->processes) < 2 : devices->count < 2;
    if (is_alone)
        return entry->create(program, options, backend, error);
    if (!entry->has_ranks)
        return gb_fail(error, GUMBEL_ERROR_UNSUPPORTED, "backend %s runs on one device", entry->name);
    return gb_ranks_backend_create(entry->create, program, options, devices, backend, error);
}

gumbel_status gb_backend_check_observe(const gb_backend_entry *entry, const gb_backend_options *options,
                                       gumbel_error *error) {
    if (!options->observe || entry->observes)
        return GUMBEL_OK;
    return gb_fail(error, GUMBEL_ERROR_UNSUPPORTED,
                   "backend %s does not report the inputs of products (observe); use the cpu", entry->name);
}

void gumbel_describe_backends(gumbel_write_callback write, void *user) {
    gb_text_sink sink = {write, user};
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
        gb_print(&sink, "%s: ", entries[i].name);
        entries[i].describe(write, user);
        gb_print(&sink, "\n");
    }
}
