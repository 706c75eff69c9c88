/* SPDX-License-Identifier: Apache-2.0 */
#include "text/reply/call_form.h"

#include "base/status.h"

#include <string.h>

/* Cuts the text of `key` into the parts before, between and after two placeholders that it must have, in that
 * order. */
static gumbel_status cut(const json_t *value, const char *key, const char *first, const char *second,
                         const char *where, gb_form_text parts[3], gumbel_error *error) {
    const char *text = json_string_value(value);
    const char *one = text ? strstr(text, first) : NULL, *two = one ? strstr(one, second) : NULL;
    if (!two || one == text)
        return gb_fail(error, GUMBEL_ERROR_FORMAT,
                       "%s: written: %s is not a text with %s and then %s, and something before them", where,
                       key, first, second);
    const char *behind_one = one + strlen(first), *behind_two = two + strlen(second);
    parts[0] = (gb_form_text){text, (size_t)(one - text)};
    parts[1] = (gb_form_text){behind_one, (size_t)(two - behind_one)};
    parts[2] = (gb_form_text){behind_two, strlen(behind_two)};
    return GUMBEL_OK;
}

/* Takes a second name off what stands between the first and the arguments. */
static void cut_again(gb_call_form *form) {
    static const char NAME[] = "{name}";
    const char *text = form->call[1].text, *end = text + form->call[1].length, *two = strstr(text, NAME);
    if (!two || two == text || two >= end)
        return;
    form->again = (gb_form_text){text, (size_t)(two - text)};
    two += strlen(NAME);
    form->call[1] = (gb_form_text){two, (size_t)(end - two)};
}

static gumbel_status read_list(const json_t *written, const char *key, const char *where, const json_t **list,
                               gumbel_error *error) {
    *list = json_object_get(written, key);
    bool is_good = !*list || json_is_array(*list);
    for (size_t i = 0; i < json_array_size(*list); i++)
        is_good = is_good && json_string_length(json_array_get(*list, i)) > 0;
    return is_good
               ? GUMBEL_OK
               : gb_fail(error, GUMBEL_ERROR_FORMAT, "%s: written: %s is not a list of texts", where, key);
}

static gumbel_status read_alone(const json_t *written, const char *where, bool *is_alone,
                                gumbel_error *error) {
    const json_t *value = json_object_get(written, "alone");
    *is_alone = json_is_true(value);
    return !value || json_is_boolean(value)
               ? GUMBEL_OK
               : gb_fail(error, GUMBEL_ERROR_FORMAT, "%s: written: alone is not true or false", where);
}

static gumbel_status check_keys(const json_t *written, const char *where, gumbel_error *error) {
    static const char *const keys[] = {"call", "argument", "before", "reserved", "alone"};
    size_t known = 0;
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        known += json_object_get(written, keys[i]) != NULL;
    return json_is_object(written) && known == json_object_size(written)
               ? GUMBEL_OK
               : gb_fail(error, GUMBEL_ERROR_FORMAT,
                         "%s: written is not an object of call, argument, before, reserved and alone", where);
}

gumbel_status gb_read_call_form(const json_t *written, bool is_tagged, const char *where, gb_call_form *form,
                                gumbel_error *error) {
    GB_TRY(check_keys(written, where, error));
    GB_TRY(cut(json_object_get(written, "call"), "call", "{name}", "{arguments}", where, form->call, error));
    cut_again(form);
    if (is_tagged)
        GB_TRY(cut(json_object_get(written, "argument"), "argument", "{name}", "{value}", where,
                   form->argument, error));
    GB_TRY(read_list(written, "before", where, &form->before, error));
    GB_TRY(read_list(written, "reserved", where, &form->reserved, error));
    return read_alone(written, where, &form->is_alone, error);
}
