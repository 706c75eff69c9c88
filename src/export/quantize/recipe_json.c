/* SPDX-License-Identifier: Apache-2.0 */
#include "export/quantize/recipe_json.h"

#include <stdio.h>
#include <string.h>

enum { DEFAULT_ROTATION = 128 };

/* One object of the recipe while it is read. Errors are sticky. */
typedef struct reader {
    const char *from;
    char place[32]; /* "rules[3]: ", or nothing */
    const json_t *object;
    gumbel_status status;
    gumbel_error *error;
} reader;

static void refuse(reader *r, const char *key, const json_t *found, const char *expected) {
    char text[GB_JSON_TEXT];
    if (r->status == GUMBEL_OK)
        r->status = gb_fail(r->error, GUMBEL_ERROR_FORMAT, "%s: %s%s: expected %s, found %s", r->from,
                            r->place, key, expected, gb_json_text(found, text));
}

static const json_t *take(reader *r, const char *key) {
    return json_object_get(r->object, key);
}

static bool take_bool(reader *r, const char *key, bool fallback) {
    const json_t *value = take(r, key);
    if (value && !json_is_boolean(value))
        refuse(r, key, value, "true or false");
    return value ? json_is_true(value) : fallback;
}

static uint32_t take_integer(reader *r, const char *key, uint32_t fallback) {
    const json_t *value = take(r, key);
    if (!value)
        return fallback;
    json_int_t number = json_is_integer(value) ? json_integer_value(value) : -1;
    if (number < 0 || number > 1000000)
        refuse(r, key, value, "an integer from 0 to 1000000");
    return (uint32_t)number;
}

/* Which of these words stands there, NULL after the last; the first one where nothing does. */
static size_t take_word(reader *r, const char *key, const char *const *words) {
    const json_t *value = take(r, key);
    const char *text = json_string_value(value);
    char expected[64] = "";
    size_t used = 0, i = 0;
    for (; words[i] && used < sizeof expected; i++) {
        if (!value || (text && strcmp(text, words[i]) == 0))
            return i;
        used += (size_t)snprintf(expected + used, sizeof expected - used, "%s\"%s\"",
                                 i == 0         ? ""
                                 : words[i + 1] ? ", "
                                                : " or ",
                                 words[i]);
    }
    refuse(r, key, value, expected);
    return 0;
}

static bool take_choice(reader *r, const char *key, const char *first, const char *second) {
    return take_word(r, key, (const char *const[]){first, second, NULL}) == 1;
}

static void take_text(reader *r, const char *key, char *text, size_t size) {
    const json_t *value = take(r, key);
    const char *found = json_string_value(value);
    if (!found || !*found || strlen(found) >= size)
        refuse(r, key, value, "a short text");
    else
        memcpy(text, found, strlen(found) + 1);
}

static uint32_t take_group(reader *r) {
    const json_t *value = json_object_get(r->object, "group");
    if (json_is_string(value) && strcmp(json_string_value(value), "row") == 0)
        return 0;
    uint32_t group = take_integer(r, "group", 64);
    if (group == 0)
        refuse(r, "group", value, "32, 64, 128 or \"row\"");
    return group;
}

/* An unknown key is a slip of the pen, which would change what a rule means. */
static gumbel_status check_keys(reader *r, const char *const *known) {
    const char *key;
    json_t *value, *object = (json_t *)(uintptr_t)r->object; /* iterating does not change it */
    json_object_foreach(object, key, value) {
        size_t i = 0;
        while (known[i] && strcmp(known[i], key) != 0)
            i++;
        if (!known[i] && r->status == GUMBEL_OK)
            r->status = gb_fail(r->error, GUMBEL_ERROR_FORMAT, "%s: %sthe key \"%s\" is not known", r->from,
                                r->place, key);
    }
    return r->status;
}

static void check_format(reader *r, gb_quantize_method method, const gb_format *format) {
    char text[GB_FORMAT_TEXT];
    if (r->status == GUMBEL_OK && !gb_can_quantize(method, format))
        r->status = gb_fail(
            r->error, GUMBEL_ERROR_FORMAT,
            "%s: %s%s by %s is no weight format (bits 4, 5, 6 or 8; groups of 32, 64, 128 or, "
            "for 8 bits, the row; hqq needs groups and a bias; integer scales have groups and no bias)",
            r->from, r->place, gb_format_text(format, text), gb_quantize_method_name(method));
}

static void check_choice(reader *r, const gb_recipe_rule *rule) {
    gb_format fallback = rule->choice.format;
    fallback.group = rule->fallback_group;
    check_format(r, rule->choice.method, &rule->choice.format);
    if (fallback.group == 0)
        return;
    check_format(r, rule->choice.method, &fallback);
    if (rule->choice.format.group > 0 && fallback.group >= rule->choice.format.group)
        refuse(r, "fallback_group", take(r, "fallback_group"), "a smaller group than the rule's");
}

/* Only exact sums have inputs that are rotated. */
static void take_rotation(reader *r, gb_recipe_rule *rule) {
    const bool is_integer = gb_format_is_integer(&rule->choice.format);
    const bool is_progressive = rule->choice.format.kind == GB_FORMAT_PROGRESSIVE;
    const uint32_t rotation = take_integer(r, "rotation", is_progressive ? DEFAULT_ROTATION : 0);
    if (rotation == 1 || rotation > GB_MAX_ROTATION || (rotation & (rotation - 1)) != 0)
        refuse(r, "rotation", take(r, "rotation"), "0 or a power of two from 2 to 256");
    if (rotation > 0 && !is_integer)
        refuse(r, "rotation", take(r, "rotation"), "\"scale\": \"integer\", or 8 bits a row without a bias");
    rule->rotation = rotation;
    rule->is_per_token = is_progressive || rotation > 0;
}

/* A rule keeps a weight or says how it is quantized, not both. */
static void refuse_format_keys(reader *r) {
    static const char *const keys[] = {"bits",  "group",  "fallback_group", "bias",
                                       "scale", "method", "rotation"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (take(r, keys[i]))
            refuse(r, keys[i], take(r, keys[i]), "nothing beside \"keep\"");
}

static void take_format(reader *r, uint8_t bits, gb_quantize_choice *choice) {
    static const char *const scales[] = {"float16", "bfloat16", "integer", NULL};
    const size_t scale = take_word(r, "scale", scales);
    const bool is_progressive = scale == 2;
    choice->format = (gb_format){
        .kind = is_progressive ? GB_FORMAT_PROGRESSIVE : GB_FORMAT_ONE_LEVEL,
        .bits = bits,
        .has_bias = take_bool(r, "bias", !is_progressive),
        .scale_bits = is_progressive ? 8 : 0,
        .scale = scale == 1 ? GB_BF16 : GB_F16,
        .group = take_group(r),
    };
    choice->method = take_choice(r, "method", "min-max", "hqq") ? GB_METHOD_HQQ : GB_METHOD_MIN_MAX;
    if (!is_progressive)
        return;
    choice->method = GB_METHOD_SEARCH;
    if (take(r, "method"))
        refuse(r, "method", take(r, "method"), "nothing beside \"scale\": \"integer\"");
}

static gumbel_status parse_rule(const char *from, size_t index, const json_t *object, gb_recipe_rule *rule,
                                gumbel_error *error) {
    static const char *const known[] = {
        "pattern",        "keep", "optional", "first_layers", "last_layers", "bits", "group",
        "fallback_group", "bias", "scale",    "method",       "rotation",    NULL};
    reader r = {.from = from, .object = object, .error = error};
    snprintf(r.place, sizeof r.place, "rules[%zu]: ", index);
    if (!json_is_object(object))
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "%s: rules[%zu]: expected an object", from, index);
    GB_TRY(check_keys(&r, known));
    take_text(&r, "pattern", rule->pattern, sizeof rule->pattern);
    rule->keep = take_bool(&r, "keep", false);
    rule->optional = take_bool(&r, "optional", false);
    rule->first_layers = take_integer(&r, "first_layers", 0);
    rule->last_layers = take_integer(&r, "last_layers", 0);
    if (rule->keep) {
        refuse_format_keys(&r);
        return r.status;
    }
    uint32_t bit_count = take_integer(&r, "bits", 0);
    if (bit_count == 0 || bit_count > 8)
        refuse(&r, "bits", take(&r, "bits"), "4, 5, 6 or 8");
    take_format(&r, (uint8_t)bit_count, &rule->choice);
    rule->fallback_group = take_integer(&r, "fallback_group", 0);
    take_rotation(&r, rule);
    check_choice(&r, rule);
    return r.status;
}

gumbel_status gb_recipe_parse(const char *from, const json_t *root, gb_recipe *recipe, gumbel_error *error) {
    static const char *const known[] = {"name", "description", "activations", "cache", "rules", NULL};
    static const char *const caches[] = {"float32", "bfloat16", "q8", "q4", "q4-all", NULL};
    reader r = {.from = from, .object = root, .error = error};
    GB_TRY(check_keys(&r, known));
    take_text(&r, "name", recipe->name, sizeof recipe->name);
    recipe->activations = (gb_recipe_activations)take_word(&r, "activations", gb_recipe_activation_words);
    GB_TRY(gb_cache_find(caches[take_word(&r, "cache", caches)], &recipe->cache, error));
    const json_t *rules = take(&r, "rules");
    if (!json_is_array(rules) || json_array_size(rules) > GB_MAX_RECIPE_RULES)
        refuse(&r, "rules", rules, "a list of at most 64 rules");
    GB_TRY(r.status);
    for (size_t i = 0; i < json_array_size(rules); i++)
        GB_TRY(parse_rule(from, i, json_array_get(rules, i), &recipe->rules[recipe->rule_count++], error));
    return GUMBEL_OK;
}
