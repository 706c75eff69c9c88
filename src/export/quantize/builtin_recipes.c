/* SPDX-License-Identifier: Apache-2.0 */
#include "export/quantize/recipe.h"

#include <stddef.h>

/* Small parts whose error every token would feel and whose size nobody would: routers, and the gates of
 * recurrent layers. */
#define KEEP                                                                                                 \
    "    {\"pattern\": \"*.mlp.gate.weight\", \"keep\": true, \"optional\": true},\n"                        \
    "    {\"pattern\": \"*.shared_expert_gate.weight\", \"keep\": true, \"optional\": true},\n"              \
    "    {\"pattern\": \"*.in_proj_a.weight\", \"keep\": true, \"optional\": true},\n"                       \
    "    {\"pattern\": \"*.in_proj_b.weight\", \"keep\": true, \"optional\": true},\n"                       \
    "    {\"pattern\": \"*conv1d.weight\", \"keep\": true, \"optional\": true},\n"

#define EMBEDDING                                                                                            \
    "    {\"pattern\": \"*embed_tokens.weight\", \"bits\": 8, \"group\": \"row\", \"bias\": false},\n"

#define HEADER(name, description) "{\n  \"name\": \"" name "\",\n  \"description\": \"" description "\",\n"
#define SMALL "  \"activations\": \"int8\",\n  \"cache\": \"bfloat16\",\n"

static const char *const RECIPES[] = {
    HEADER("none", "every weight keeps the checkpoint's dtype; float32 caches") "  \"rules\": []\n}",

    HEADER("int8", "8 bits in groups of 64, 8.25 bits a weight") SMALL
    "  \"rules\": [\n" KEEP EMBEDDING
    "    {\"pattern\": \"*\", \"bits\": 8, \"group\": 64, \"fallback_group\": 32, \"bias\": false}\n  ]\n}",

    HEADER("int4", "4 bits in groups of 64, 4.5 bits a weight; 8-bit embedding, a 4-bit head of its own")
        SMALL "  \"rules\": [\n" KEEP EMBEDDING "    {\"pattern\": \"*\", \"bits\": 4, \"group\": 64, "
              "\"fallback_group\": 32, \"method\": \"hqq\"}\n  ]\n}",

    HEADER("int4-g32", "4 bits in groups of 32, 5 bits a weight; 8-bit embedding, a 4-bit head of its own")
        SMALL "  \"rules\": [\n" KEEP EMBEDDING
              "    {\"pattern\": \"*\", \"bits\": 4, \"group\": 32, \"method\": \"hqq\"}\n  ]\n}",

    HEADER("sensitive", "int4, but 8 bits for value and down projections in the first and last two layers")
        SMALL "  \"rules\": [\n" KEEP EMBEDDING "    {\"pattern\": \"*.v_proj.weight\", \"bits\": 8, "
              "\"group\": 64, \"fallback_group\": 32, \"bias\": false,\n"
              "     \"first_layers\": 2, \"last_layers\": 2, \"optional\": true},\n"
              "    {\"pattern\": \"*down_proj*\", \"bits\": 8, \"group\": 64, \"fallback_group\": 32, "
              "\"bias\": false,\n"
              "     \"first_layers\": 2, \"last_layers\": 2, \"optional\": true},\n"
              "    {\"pattern\": \"*\", \"bits\": 4, \"group\": 64, \"fallback_group\": 32, \"method\": "
              "\"hqq\"}\n  ]\n}",
};

const char *gb_builtin_recipe(size_t index) {
    return index < sizeof RECIPES / sizeof *RECIPES ? RECIPES[index] : NULL;
}
