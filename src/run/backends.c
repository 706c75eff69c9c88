/* SPDX-License-Identifier: Apache-2.0 */
#include "run/backends.h"

#include "base/text_sink.h"
#include "run/cpu/cpu.h"
#include "run/mlx/mlx.h"

#include <string.h>

static gumbel_status no_cuda(const gb_program *program, const gb_backend_options *options,
                             gb_backend **backend, gumbel_error *error) {
    (void)program, (void)options, (void)backend;
    return gb_fail(error, GUMBEL_ERROR_UNSUPPORTED,
                   "backend cuda is not in this version of gumbel; use --backend cpu");
}

static void describe_absent(gumbel_write_callback write, void *user) {
    gb_print(&(gb_text_sink){write, user}, "not in this build");
}

static const gb_backend_entry entries[] = {
    {"cpu", gb_cpu_backend_create, gb_cpu_describe},
    {"cuda", no_cuda, describe_absent},
    {"mlx", gb_mlx_backend_create, gb_mlx_describe},
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

void gumbel_describe_backends(gumbel_write_callback write, void *user) {
    gb_text_sink sink = {write, user};
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
        gb_print(&sink, "%s: ", entries[i].name);
        entries[i].describe(write, user);
        gb_print(&sink, "\n");
    }
}
