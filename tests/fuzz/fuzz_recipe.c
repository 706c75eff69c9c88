/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes as a quantization recipe: refused, or every choice that it makes for a matrix is a format that
 * the matrix can have and a quantizer can fill.
 */
#include "export/quantize/recipe_json.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void choose(gb_recipe *recipe, const char *name, uint64_t columns) {
    gb_quantize_choice choice;
    gb_planes planes;
    if (gb_recipe_choose(recipe, name, columns, 30, &choice, NULL) != GUMBEL_OK ||
        choice.format.kind == GB_FORMAT_DENSE)
        return;
    if (!gb_format_valid(&choice.format) || !gb_format_fits(&choice.format, columns) ||
        !gb_can_quantize(choice.method, &choice.format) ||
        !gb_format_planes(&choice.format, 7, columns, &planes) ||
        (choice.input.rotation > 0 && columns % choice.input.rotation != 0) ||
        (choice.input.activation == GB_ACTIVATION_INT8_PER_TOKEN && !gb_format_is_integer(&choice.format)))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char *const names[] = {"model.embed_tokens.weight", "lm_head.weight",
                                        "model.layers.0.self_attn.v_proj.weight",
                                        "model.layers.29.mlp.experts.down_proj", ""};
    static const uint64_t columns[] = {1, 32, 96, 2816, 5376};
    gb_recipe recipe = {0};
    json_t *root;
    if (gb_parse_json("fuzz", (const char *)data, size, &root, NULL) != GUMBEL_OK)
        return 0;
    if (gb_recipe_parse("fuzz", root, &recipe, NULL) == GUMBEL_OK) {
        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
            for (size_t j = 0; j < sizeof columns / sizeof *columns; j++)
                choose(&recipe, names[i], columns[j]);
        gb_recipe_check_used(&recipe, NULL);
    }
    json_decref(root);
    return 0;
}
