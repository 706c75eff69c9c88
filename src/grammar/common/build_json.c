/* SPDX-License-Identifier: Apache-2.0 */
#include "grammar/common/build_json.h"

json_t *gb_append_value(json_t *array, json_t *value) {
    if (json_array_append_new(array, value) == 0)
        return array;
    json_decref(array);
    return NULL;
}

json_t *gb_set_member(json_t *object, const char *name, json_t *value) {
    if (json_object_set_new(object, name, value) == 0)
        return object;
    json_decref(object);
    return NULL;
}
