/* SPDX-License-Identifier: Apache-2.0
 *
 * Recipes: which tensor gets which weight format. A recipe is a JSON object, built in or in a user's file:
 *
 *     {"name": "mine", "description": "one line",
 *      "activations": "int8",        what linear does with its input: "none" (default), "int8" beside
 *                                    quantized weights, or "bfloat16" beside bfloat16 ones
 *      "cache": "bfloat16",          of attention: "float32" (default), "bfloat16", "q8", "q4" or "q4-all"
 *      "rules": [
 *        {"pattern": "*.v_proj.weight", "bits": 8, "group": 64, "first_layers": 2, "last_layers": 2},
 *        {"pattern": "*.gate.weight", "keep": true, "optional": true},
 *        {"pattern": "*.o_proj.weight", "bits": 4, "group": 64, "fallback_group": 32, "method": "hqq"},
 *        {"pattern": "*", "bits": 4, "group": 32, "scale": "integer"}]}
 *
 * The first rule whose pattern matches a matrix's name decides; without one the matrix keeps its dtype.
 * `*` stands for any characters, `?` for one. An embedding that is the head, too, is one matrix and goes
 * by the head's name, lm_head.weight: a rule for *embed_tokens.weight matches nothing there. first_layers
 * and last_layers confine a rule to tensors of those layers, of which a draft head's (mtp.*, assistant.*)
 * is none. bits: 4, 5, 6 or 8; group: 32, 64, 128 or "row" (8 bits only); bias: true by default; scale:
 * "float16" (default), "bfloat16", or "integer" for the progressive formats, which have no bias and
 * methods of their own; method: "min-max" (default) or "hqq". fallback_group, a smaller one, is taken
 * where the group does not divide the rows. rotation: of weights that are integers but for a scale of the
 * row ("scale": "integer", or 8 bits a row without a bias) the largest block of the Hadamard transform
 * that they and their inputs are rotated by, a power of two up to 256, or 0; with it inputs are rounded
 * per token. By default 128 for "integer". A rule with keep has none of these. A rule that matches nothing
 * is an error, unless it is optional.
 */
#ifndef GUMBEL_EXPORT_QUANTIZE_RECIPE_H
#define GUMBEL_EXPORT_QUANTIZE_RECIPE_H

#include "base/status.h"
#include "base/text_sink.h"
#include "export/quantize/quantizer.h"
#include "program/caches.h"

typedef struct gb_recipe gb_recipe;

/* Which products round their input: none; those with quantized weights, to 8 bits; those with bfloat16
 * weights, to bfloat16. */
typedef enum gb_recipe_activations {
    GB_RECIPE_INPUTS_AS_THEY_ARE,
    GB_RECIPE_INPUTS_INT8,
    GB_RECIPE_INPUTS_BFLOAT16
} gb_recipe_activations;

/* How a product takes its input. */
typedef struct gb_product_input {
    gb_activation activation;
    uint32_t rotation; /* of GB_ACTIVATION_INT8_PER_TOKEN: a block that divides the rows, or 0 */
} gb_product_input;

/* How one matrix is to be stored, and multiplied where it is a product's weight. */
typedef struct gb_quantize_choice {
    gb_format format; /* dense: as it is */
    gb_quantize_method method;
    gb_product_input input;
} gb_quantize_choice;

/* The built-in recipe of that name (NULL: "none"), or the one in that file. Errors: ARGUMENT listing the
 * built-in names where there is no such file; IO, FORMAT naming file, rule and key; MEMORY. */
gumbel_status gb_recipe_open(const char *name, gb_recipe **recipe, gumbel_error *error);

/* NULL is allowed. */
void gb_recipe_close(gb_recipe *recipe);

/* Sets what linear nodes do with their input ("none", "int8", "bfloat16") and what caches hold (as
 * gb_cache_find takes it); NULL leaves what the recipe says. Errors: ARGUMENT. */
gumbel_status gb_recipe_override(gb_recipe *recipe, const char *activations, const char *cache,
                                 gumbel_error *error);

const char *gb_recipe_name(const gb_recipe *recipe);
gb_recipe_activations gb_recipe_inputs(const gb_recipe *recipe);
const gb_cache_choice *gb_recipe_cache(const gb_recipe *recipe);

/* What the recipe says of the matrix of that name, with rows of that many columns, in a model of that many
 * layers. Remembers which rules have matched. Errors: ARGUMENT naming the tensor whose rows no group of its
 * rule divides. */
gumbel_status gb_recipe_choose(gb_recipe *recipe, const char *name, uint64_t columns, uint64_t layer_count,
                               gb_quantize_choice *choice, gumbel_error *error);

/* Errors: ARGUMENT naming the pattern of a rule that has matched nothing. */
gumbel_status gb_recipe_check_used(const gb_recipe *recipe, gumbel_error *error);

/* Whether text has the form of pattern. */
bool gb_match_pattern(const char *pattern, const char *text);

/* The built-in recipes' JSON, by index; NULL past the last (builtin_recipes.c). */
const char *gb_builtin_recipe(size_t index);

#endif
