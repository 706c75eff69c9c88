/* SPDX-License-Identifier: Apache-2.0 */
#include "bundled.h"

#include "support/paths.h"
#include "support/temporary.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct bundled_program {
    const char *name, *model;
    gumbel_export_options options;
} bundled_program;

/* Four layers have one of each kind. */
static const bundled_program programs[BUNDLED_PROGRAMS] = {
    [BUNDLED_GEMMA] = {"gemma.gumbel", "gemma4-tiny", {.layers = 4, .max_context = 512}},
    [BUNDLED_QWEN] = {"qwen.gumbel", "qwen3_5-moe-tiny", {.layers = 4, .max_context = 512}},
    [BUNDLED_GEMMA_INT4] = {"gemma-int4.gumbel",
                            "gemma4-tiny",
                            {.layers = 4, .max_context = 512, .quantize = "int4"}},
    [BUNDLED_QWEN_INT4] = {"qwen-int4.gumbel",
                           "qwen3_5-moe-tiny",
                           {.layers = 4, .max_context = 512, .quantize = "int4"}},
    [BUNDLED_GEMMA_MINIMAL] =
        {"gemma-minimal.gumbel",
         "gemma4-tiny",
         {.layers = 4, .max_context = 512, .quantize = "int8", .sampler = "minimal", .backend = "none"}},
    [BUNDLED_QWEN_SENSITIVE] = {"qwen-sensitive.gumbel",
                                "qwen3_5-moe-tiny",
                                {.layers = 4,
                                 .max_context = 512,
                                 .quantize = "sensitive",
                                 .backend = "cuda",
                                 .max_top_logprobs = 5}},
    [BUNDLED_GEMMA_MLX] = {"gemma-mlx.gumbel",
                           "gemma4-tiny",
                           {.layers = 4,
                            .max_context = 512,
                            .quantize = "int4-affine-g32",
                            .backend = "mlx",
                            .cache = "bfloat16"}},
    [BUNDLED_QWEN_LOGITS] = {"qwen-logits.gumbel",
                             "qwen3_5-moe-tiny",
                             {.layers = 4, .max_context = 512, .quantize = "int8", .logits = true}},
};

void export_bundled(void) {
    for (size_t i = 0; i < BUNDLED_PROGRAMS; i++) {
        gumbel_export_options options = programs[i].options;
        gumbel_error error;
        char checkpoint[512];
        options.size = sizeof options;
        snprintf(checkpoint, sizeof checkpoint, "%s/%s", test_models_folder, programs[i].model);
        if (gumbel_export(checkpoint, bundled_path(i), &options, &error) != GUMBEL_OK) {
            fprintf(stderr, "%s: %s\n", programs[i].name, error.message);
            exit(1);
        }
    }
}

const char *bundled_path(size_t i) {
    return temporary_path(programs[i].name);
}

const char *bundled_name(size_t i) {
    return programs[i].name;
}
