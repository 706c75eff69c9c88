/* SPDX-License-Identifier: Apache-2.0 */
#include "export/models/expert_layers.h"

enum { MAX_LAYERS = 1024 };

bool gb_layer_has_experts(const gb_config *text, int64_t index) {
    int64_t listed[MAX_LAYERS];
    const size_t count = gb_config_integers(text, "mlp_only_layers", 0, MAX_LAYERS - 1, listed, MAX_LAYERS);
    const int64_t step = gb_config_integer(text, "decoder_sparse_step", 1, 1, MAX_LAYERS);
    bool is_listed = false;
    for (size_t i = 0; i < count; i++)
        is_listed = is_listed || listed[i] == index;
    return !is_listed && (index + 1) % step == 0;
}
