/* SPDX-License-Identifier: Apache-2.0 */
#include "export/backend_order.h"

#include <string.h>

gumbel_status gb_backend_order(const char *backend, gb_packing_order *order, gumbel_error *error) {
    static const struct {
        const char *name;
        gb_packing_order order;
    } backends[] = {{"cpu", GB_ORDER_INTERLEAVED},
                    {"cuda", GB_ORDER_FRAGMENTS},
                    {"mlx", GB_ORDER_CANONICAL},
                    {"none", GB_ORDER_CANONICAL}};
    for (size_t i = 0; i < sizeof backends / sizeof *backends; i++)
        if (!backend || strcmp(backend, backends[i].name) == 0) {
            *order = backends[i].order;
            return GUMBEL_OK;
        }
    return gb_fail(error, GUMBEL_ERROR_ARGUMENT,
                   "backend: \"%s\", expected \"cpu\", \"cuda\", \"mlx\" or \"none\"", backend);
}

int64_t gb_backend_prefill_chunk(const char *backend) {
    return backend && strcmp(backend, "cuda") == 0 ? 2048 : 512;
}
