/* SPDX-License-Identifier: Apache-2.0 */
#include "export/quantize/recipe.h"

#include "base/memory.h"
#include "export/quantize/recipe_json.h"
#include "text/base/load_json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- Opening ------------------------------------------------------------------------------------------- */

static gumbel_status parse_builtin(const char *text, gb_recipe *recipe, gumbel_error *error) {
    static const char name[] = "built-in recipe";
    json_t *root;
    GB_TRY(gb_load_json(name, text, strlen(text), JSON_REJECT_DUPLICATES, &root, error));
    gumbel_status status = gb_recipe_parse(name, root, recipe, error);
    json_decref(root);
    return status;
}

/* The built-in recipe of that name, if there is one; *names lists them all. */
static gumbel_status find_builtin(const char *name, gb_recipe *recipe, bool *found, char *names,
                                  size_t names_size, gumbel_error *error) {
    size_t used = 0;
    *found = false;
    names[0] = '\0';
    for (size_t i = 0; gb_builtin_recipe(i) && !*found; i++) {
        *recipe = (gb_recipe){0};
        GB_TRY(parse_builtin(gb_builtin_recipe(i), recipe, error));
        if (used < names_size)
            used += (size_t)snprintf(names + used, names_size - used, "%s%s", i ? ", " : "", recipe->name);
        *found = strcmp(recipe->name, name) == 0;
    }
    return GUMBEL_OK;
}

static gumbel_status parse_file(const char *path, const char *names, gb_recipe *recipe, gumbel_error *error) {
    enum { LIMIT = 1 << 20 };
    if (access(path, F_OK) != 0)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT,
                       "quantize: \"%s\" is neither a file nor one of the recipes %s", path, names);
    json_t *root = NULL;
    GB_TRY(gb_read_json(path, LIMIT, &root, error));
    *recipe = (gb_recipe){0};
    gumbel_status status = gb_recipe_parse(path, root, recipe, error);
    json_decref(root);
    return status;
}

gumbel_status gb_recipe_open(const char *name, gb_recipe **recipe, gumbel_error *error) {
    *recipe = NULL;
    gb_recipe *made = gb_allocate(1, sizeof *made);
    if (!made)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for a recipe");
    char names[128];
    bool found = false;
    gumbel_status status = find_builtin(name ? name : "none", made, &found, names, sizeof names, error);
    if (status == GUMBEL_OK && !found)
        status = parse_file(name, names, made, error);
    if (status == GUMBEL_OK)
        *recipe = made;
    else
        gb_recipe_close(made);
    return status;
}

void gb_recipe_close(gb_recipe *recipe) {
    gb_free(recipe);
}

const char *const gb_recipe_activation_words[] = {"none", "int8", "bfloat16", NULL};

static gumbel_status find_activations(const char *word, gb_recipe_activations *found, gumbel_error *error) {
    for (size_t i = 0; gb_recipe_activation_words[i]; i++)
        if (strcmp(word, gb_recipe_activation_words[i]) == 0) {
            *found = (gb_recipe_activations)i;
            return GUMBEL_OK;
        }
    return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "activations: \"%s\", expected none, int8 or bfloat16",
                   word);
}

gumbel_status gb_recipe_override(gb_recipe *recipe, const char *activations, const char *cache,
                                 gumbel_error *error) {
    if (activations)
        GB_TRY(find_activations(activations, &recipe->activations, error));
    return cache ? gb_cache_find(cache, &recipe->cache, error) : GUMBEL_OK;
}

void gumbel_describe_recipes(gumbel_write_callback write, void *user) {
    const gb_text_sink sink = {write, user};
    for (size_t i = 0; gb_builtin_recipe(i); i++) {
        gb_print_bytes(&sink, gb_builtin_recipe(i), strlen(gb_builtin_recipe(i)));
        gb_print_bytes(&sink, "\n", 1);
    }
}

const char *gb_recipe_name(const gb_recipe *recipe) {
    return recipe->name;
}

gb_recipe_activations gb_recipe_inputs(const gb_recipe *recipe) {
    return recipe->activations;
}

const gb_cache_choice *gb_recipe_cache(const gb_recipe *recipe) {
    return recipe->cache;
}

/* ---- Choosing ------------------------------------------------------------------------------------------ */

bool gb_match_pattern(const char *pattern, const char *text) {
    const char *star = NULL, *resume = NULL; /* the last star, and where what it stands for ends so far */
    while (*text) {
        if (*pattern == '*') {
            star = pattern++;
            resume = text;
        } else if (*pattern == '?' || *pattern == *text) {
            pattern++;
            text++;
        } else if (star) {
            pattern = star + 1;
            text = ++resume;
        } else {
            return false;
        }
    }
    return pattern[strspn(pattern, "*")] == '\0';
}

/* Tensors of a checkpoint's own draft head, or of an assistant that becomes one. */
static bool is_of_head(const char *name) {
    return strncmp(name, "mtp.", 4) == 0 || strncmp(name, "assistant.", 10) == 0;
}

/* The number after "layers." in a tensor's name; false where there is none, or it counts a draft head's. */
static bool layer_of(const char *name, uint64_t *layer) {
    const char *at = strstr(name, "layers.");
    if (!at || is_of_head(name) || at[7] < '0' || at[7] > '9')
        return false;
    *layer = strtoull(at + 7, NULL, 10);
    return true;
}

static bool applies(const gb_recipe_rule *rule, const char *name, uint64_t layer_count) {
    uint64_t layer;
    if (!gb_match_pattern(rule->pattern, name))
        return false;
    if (rule->first_layers == 0 && rule->last_layers == 0)
        return true;
    return layer_of(name, &layer) && (layer < rule->first_layers || layer + rule->last_layers >= layer_count);
}

/* The largest block up to `most` that divides the rows; 0: none does. */
static uint32_t rotation_for(uint64_t columns, uint32_t most) {
    uint32_t rotation = most;
    while (rotation > 1 && columns % rotation != 0)
        rotation /= 2;
    return rotation > 1 ? rotation : 0;
}

static gb_product_input input_of(const gb_recipe *recipe, const gb_recipe_rule *rule, uint64_t columns) {
    if (recipe->activations != GB_RECIPE_INPUTS_INT8)
        return (gb_product_input){GB_ACTIVATION_NONE, 0};
    if (!rule->is_per_token)
        return (gb_product_input){GB_ACTIVATION_INT8_PER_GROUP, 0};
    return (gb_product_input){GB_ACTIVATION_INT8_PER_TOKEN, rotation_for(columns, rule->rotation)};
}

gumbel_status gb_recipe_choose(gb_recipe *recipe, const char *name, uint64_t columns, uint64_t layer_count,
                               gb_quantize_choice *choice, gumbel_error *error) {
    *choice = (gb_quantize_choice){.format.kind = GB_FORMAT_DENSE};
    gb_recipe_rule *rule = recipe->rules, *end = recipe->rules + recipe->rule_count;
    while (rule < end && !applies(rule, name, layer_count))
        rule++;
    if (rule == end)
        return GUMBEL_OK;
    rule->has_matched = true;
    if (rule->keep)
        return GUMBEL_OK;
    *choice = rule->choice;
    choice->input = input_of(recipe, rule, columns);
    if (gb_format_fits(&choice->format, columns))
        return GUMBEL_OK;
    choice->format.group = rule->fallback_group;
    if (rule->fallback_group > 0 && gb_format_fits(&choice->format, columns))
        return GUMBEL_OK;
    return gb_fail(error, GUMBEL_ERROR_ARGUMENT,
                   "recipe %s: %s has rows of %llu, which the group of %u%s does not divide", recipe->name,
                   name, (unsigned long long)columns, (unsigned)rule->choice.format.group,
                   rule->fallback_group ? " (or its fallback)" : "");
}

gumbel_status gb_recipe_check_used(const gb_recipe *recipe, gumbel_error *error) {
    for (size_t i = 0; i < recipe->rule_count; i++) {
        const gb_recipe_rule *rule = &recipe->rules[i];
        if (!rule->has_matched && !rule->optional)
            return gb_fail(error, GUMBEL_ERROR_ARGUMENT,
                           "recipe %s: the pattern \"%s\" matches no weight that an earlier rule leaves",
                           recipe->name, rule->pattern);
    }
    return GUMBEL_OK;
}
