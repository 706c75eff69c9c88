/* SPDX-License-Identifier: Apache-2.0 */
#include "export/quantize/recipe.h"

#include <stddef.h>

/* Small parts whose error every token would feel and whose size nobody would: routers, and the gates of
 * recurrent layers. */
#define KEEP                                                                                                 \
    "    {\"pattern\": \"*.mlp.gate.weight\", \"keep\": true, \"optional\": true},\n"                        \
    "    {\"pattern\": \"*.router.proj.weight\", \"keep\": true, \"optional\": true},\n"                     \
    "    {\"pattern\": \"*.shared_expert_gate.weight\", \"keep\": true, \"optional\": true},\n"              \
    "    {\"pattern\": \"*.in_proj_a.weight\", \"keep\": true, \"optional\": true},\n"                       \
    "    {\"pattern\": \"*.in_proj_b.weight\", \"keep\": true, \"optional\": true},\n"                       \
    "    {\"pattern\": \"*conv1d.weight\", \"keep\": true, \"optional\": true},\n"

/* Of an embedding that is the head, too, the head's rule decides. */
#define EMBEDDING                                                                                            \
    "    {\"pattern\": \"*embed_tokens.weight\", \"bits\": 8, \"group\": \"row\", \"bias\": false,\n"        \
    "     \"optional\": true},\n"

#define HEADER(name, description) "{\n  \"name\": \"" name "\",\n  \"description\": \"" description "\",\n"
#define SMALL "  \"activations\": \"int8\",\n  \"cache\": \"bfloat16\",\n"
#define RULES "  \"rules\": [\n"
#define END "\n  ]\n}"

/* A rule without its end, so that more keys can follow. */
#define RULE(pattern, keys) "    {\"pattern\": \"" pattern "\", " keys
#define ROWS8(pattern) RULE(pattern, ROW8) ", \"optional\": true},\n"
#define SENSITIVE(pattern)                                                                                   \
    RULE(pattern, ROW8) ",\n     \"first_layers\": 2, \"last_layers\": 2, \"optional\": true},\n"

#define ROW8 "\"bits\": 8, \"group\": \"row\", \"bias\": false, \"rotation\": 128"
#define INTEGER4 "\"bits\": 4, \"group\": 32, \"scale\": \"integer\""
#define INTEGER4_64 "\"bits\": 4, \"group\": 64, \"fallback_group\": 32, \"scale\": \"integer\""
#define FLOAT8 "\"bits\": 8, \"group\": 64, \"fallback_group\": 32, \"bias\": false"
#define FLOAT4 "\"bits\": 4, \"group\": 64, \"fallback_group\": 32, \"method\": \"hqq\""
#define FLOAT4_32 "\"bits\": 4, \"group\": 32, \"method\": \"hqq\""

#define OTHERS(keys) RULES KEEP EMBEDDING RULE("*", keys) "}" END

/* All of a sequence's tokens are attended to through them, and they are small. */
#define KEYS_VALUES ROWS8("*.k_proj.weight") ROWS8("*.v_proj.weight")

static const char *const RECIPES[] = {
    HEADER("none", "every weight keeps the checkpoint's dtype; float32 caches") "  \"rules\": []\n}",

    HEADER("int8", "8 bits, a scale a row, exact sums") SMALL OTHERS(ROW8),

    HEADER("int4", "4 bits, integer scales in groups of 32, exact sums: 4.25 bits a weight; 8 bits for an "
                   "embedding that is not the head") SMALL OTHERS(INTEGER4),

    HEADER("int4-g64", "int4 in groups of 64: 4.13 bits a weight") SMALL OTHERS(INTEGER4_64),

    HEADER("sensitive",
           "int4, but 8 bits for keys and values, and for down projections in the first and last "
           "two layers") SMALL RULES KEEP EMBEDDING KEYS_VALUES SENSITIVE("*down_proj*")
        RULE("*", INTEGER4) "}" END,

    HEADER("int8-affine", "8 bits, float16 scales in groups of 64: 8.25 bits a weight") SMALL OTHERS(FLOAT8),

    HEADER("int4-affine", "4 bits, float16 scales and biases in groups of 64: 4.5 bits a weight")
        SMALL OTHERS(FLOAT4),

    HEADER("int4-affine-g32", "int4-affine in groups of 32: 5 bits a weight") SMALL OTHERS(FLOAT4_32),
};

const char *gb_builtin_recipe(size_t index) {
    return index < sizeof RECIPES / sizeof *RECIPES ? RECIPES[index] : NULL;
}
