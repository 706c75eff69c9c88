/* SPDX-License-Identifier: Apache-2.0 */
#include "export/models/rope_unread.h"

#include <string.h>

void gb_refuse_rope_type(const gb_config *object) {
    const char *key = gb_config_has(object, "rope_type") ? "rope_type" : "type";
    const char *type = gb_config_string(object, key, "default");
    if (strcmp(type, "default") != 0)
        gb_config_fail(object, key, GUMBEL_ERROR_UNSUPPORTED,
                       "\"%s\" is not supported here in this version; expected \"default\", or no such key",
                       type);
}

void gb_refuse_rope(const gb_config *config, const char *key) {
    static const char *const kinds[] = {"full_attention", "sliding_attention"};
    const gb_config object = gb_config_child(config, key);
    gb_refuse_rope_type(&object);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const gb_config kind = gb_config_child(&object, kinds[i]);
        gb_refuse_rope_type(&kind);
    }
}

void gb_refuse_rope_beside(const gb_config *config, const char *key, const char *read) {
    static const char THETA[] = "rope_theta";
    const gb_config object = gb_config_child(config, key), other = gb_config_child(config, read);
    if (gb_config_equal_objects(&object, &other))
        return;
    gb_refuse_rope(config, key);
    const double theta = gb_config_number(&object, THETA, 0, 0, 1e12),
                 own = gb_config_number(config, THETA, 0, 0, 1e12);
    if (theta != 0 && theta != gb_config_number(&other, THETA, own, 0, 1e12))
        gb_config_fail(&object, THETA, GUMBEL_ERROR_UNSUPPORTED,
                       "%g stands beside %s, expected equal objects", theta, read);
}

void gb_refuse_rope_of_wrapper(const gb_config *root) {
    static const char *const keys[] = {"rope_scaling", "rope_parameters"};
    const gb_config text = gb_config_child(root, "text_config");
    for (size_t i = 0; text.object && i < sizeof keys / sizeof *keys; i++)
        if (!gb_config_equal(root, &text, keys[i]))
            gb_refuse_rope(root, keys[i]);
}
