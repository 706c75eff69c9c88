/* SPDX-License-Identifier: Apache-2.0 */
#include "export/models/step_limit.h"

#include <math.h>

/* Of Nemotron transformers clamps by time_step_min in this key's place, NVIDIA's own code and mlx-lm by the
 * key. Of Granite transformers clamps prompts and not what is generated. */
void gb_refuse_clamped_steps(const gb_config *config) {
    static const char KEY[] = "time_step_limit";
    const size_t count = gb_config_list_size(config, KEY);
    if (count == 0)
        return;
    if (count != 2 || gb_config_list_number(config, KEY, 0, 0, INFINITY) > 0 ||
        gb_config_list_number(config, KEY, 1, 0, INFINITY) < 1e30)
        gb_config_fail(
            config, KEY, GUMBEL_ERROR_UNSUPPORTED,
            "step sizes that are clamped are not supported in this version; expected [0, Infinity]");
}
