/* SPDX-License-Identifier: Apache-2.0
 *
 * A recipe in memory, and its making from JSON. Only recipe.c and recipe_json.c include it.
 */
#ifndef GUMBEL_EXPORT_QUANTIZE_RECIPE_JSON_H
#define GUMBEL_EXPORT_QUANTIZE_RECIPE_JSON_H

#include "export/checkpoint/json.h"
#include "export/quantize/recipe.h"

enum { GB_MAX_RECIPE_RULES = 64, GB_RECIPE_PATTERN = 256, GB_RECIPE_NAME = 64 };

typedef struct gb_recipe_rule {
    char pattern[GB_RECIPE_PATTERN];
    bool keep, optional;
    bool has_matched; /* while a graph is built */
    gb_quantize_choice choice;
    uint32_t fallback_group;            /* 0: none */
    uint32_t rotation;                  /* the largest block */
    bool is_per_token;                  /* inputs are rounded per token, where they are rounded */
    uint32_t first_layers, last_layers; /* both 0: all */
} gb_recipe_rule;

struct gb_recipe {
    char name[GB_RECIPE_NAME];
    gb_recipe_activations activations;
    const gb_cache_choice *cache;
    size_t rule_count;
    gb_recipe_rule rules[GB_MAX_RECIPE_RULES];
};

/* Of each gb_recipe_activations, and NULL. */
extern const char *const gb_recipe_activation_words[];

/* Fills a zeroed recipe; from names it in messages. Errors: FORMAT naming rule, key and what was expected. */
gumbel_status gb_recipe_parse(const char *from, const json_t *root, gb_recipe *recipe, gumbel_error *error);

#endif
