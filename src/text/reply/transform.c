/* SPDX-License-Identifier: Apache-2.0 */
#include "text/reply/transform.h"

#include "base/status.h"

#include <string.h>

static bool is_word(char c) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_' ||
           (unsigned char)c >= 0x80;
}

/* Bytes of the placeholder that the text begins with; 0: none. */
static size_t placeholder_size(const char *text) {
    size_t at = 1;
    if (text[0] != '{' || !is_word(text[1]))
        return 0;
    while (is_word(text[at]) || (text[at] == '.' && is_word(text[at + 1])))
        at++;
    return text[at] == '}' ? at + 1 : 0;
}

static bool is_mixed(const char *text) {
    if (placeholder_size(text) == strlen(text))
        return false;
    for (; *text; text++)
        if (placeholder_size(text) > 0)
            return true;
    return false;
}

gumbel_status gb_check_transform(const json_t *transform, const char *where, gumbel_error *error) {
    const char *key;
    json_t *member;
    if (json_is_string(transform) && is_mixed(json_string_value(transform)))
        return gb_fail(error, GUMBEL_ERROR_FORMAT,
                       "%s: transform: \"%.100s\" has a placeholder and other text, expected one alone",
                       where, json_string_value(transform));
    for (size_t i = 0; i < json_array_size(transform); i++)
        GB_TRY(gb_check_transform(json_array_get(transform, i), where, error));
    json_object_foreach((json_t *)(uintptr_t)transform, key, member)
        GB_TRY(gb_check_transform(member, where, error));
    return GUMBEL_OK;
}

/* What the placeholder stands for. */
static json_t *look_up(const char *placeholder, const json_t *scope) {
    const json_t *value = scope;
    for (const char *key = placeholder + 1; *key;) {
        const size_t length = strcspn(key, ".}");
        value = json_object_getn(value, key, length);
        key += length + 1;
    }
    return json_deep_copy(value);
}

static json_t *apply_object(const json_t *transform, const json_t *scope) {
    const char *key;
    json_t *member, *object = json_object();
    json_object_foreach((json_t *)(uintptr_t)transform, key,
                        member) if (json_object_set_new(object, key, gb_apply_transform(member, scope)) !=
                                    0) {
        json_decref(object);
        return NULL;
    }
    return object;
}

static json_t *apply_array(const json_t *transform, const json_t *scope) {
    json_t *array = json_array();
    for (size_t i = 0; i < json_array_size(transform); i++)
        if (json_array_append_new(array, gb_apply_transform(json_array_get(transform, i), scope)) != 0) {
            json_decref(array);
            return NULL;
        }
    return array;
}

json_t *gb_apply_transform(const json_t *transform, const json_t *scope) {
    if (json_is_object(transform))
        return apply_object(transform, scope);
    if (json_is_array(transform))
        return apply_array(transform, scope);
    if (json_is_string(transform) && placeholder_size(json_string_value(transform)) > 0)
        return look_up(json_string_value(transform), scope);
    return json_deep_copy(transform);
}
