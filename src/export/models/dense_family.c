/* SPDX-License-Identifier: Apache-2.0 */
#include "export/models/dense_family.h"

#include <string.h>

/* model_type and what stands around it; sizes of vocabulary, hidden state and MLP; layers, heads, heads of
 * keys and values, size of a head. */
static const gb_dense_family FAMILIES[] = {
    {"llama", NULL, 32000, 4096, 11008, 32, 32, 0, 0, .max_positions = 2048},
    {"mistral", "mistral3", 32000, 4096, 14336, 32, 32, 8, 0, .max_positions = 131072, .sliding_window = 4096,
     .windows = GB_WINDOWS_IN_ALL},
    {"ministral3", "mistral3", 131072, 4096, 14336, 34, 32, 8, 128, .max_positions = 262144,
     .rms_norm_eps = 1e-5, .windows = GB_WINDOWS_IN_ALL, .scales_queries = true},
    {"qwen2", NULL, 151936, 4096, 22016, 32, 32, 32, 0, .max_positions = 32768, .sliding_window = 4096,
     .windows = GB_WINDOWS_FROM_A_LAYER, .traits = {.has_head_biases = true}},
    {"qwen3", NULL, 151936, 4096, 22016, 32, 32, 32, 128, .max_positions = 32768, .sliding_window = 4096,
     .windows = GB_WINDOWS_FROM_A_LAYER, .traits = {.has_head_norms = true}},
    {"qwen3_moe", NULL, 151936, 2048, 6144, 24, 32, 4, 0, .max_positions = 32768, .sliding_window = 4096,
     .windows = GB_WINDOWS_FROM_A_LAYER, .has_experts = true, .traits = {.has_head_norms = true}},
    {"gemma3_text", "gemma3", 262208, 2304, 9216, 26, 8, 4, 256, .max_positions = 131072,
     .sliding_window = 4096, .window_pattern = 6, .query_scalar = 256, .windows = GB_WINDOWS_BY_PATTERN,
     .has_tied_head = true, .has_logit_cap = true, .scales_embeddings = true,
     .traits = {.has_head_norms = true,
                .has_output_norms = true,
                .has_norms_from_one = true,
                .has_geglu = true,
                .has_sliding_rope = true}},
    {"smollm3", NULL, 128256, 2048, 11008, 36, 16, 4, 0, .max_positions = 32768, .rope_interval = 4,
     .rope_theta = 2e6, .has_tied_head = true},
    {"granite", NULL, 32000, 4096, 11008, 32, 32, 0, 0, .max_positions = 2048, .has_multipliers = true},
    {"granitemoehybrid", NULL, 32000, 4096, 1024, 32, 32, 0, 0, .max_positions = 2048,
     .windows = GB_LISTED_MIXERS, .has_multipliers = true, .traits = {.has_shared_mlp = true}},
    {"phi3", NULL, 32064, 3072, 8192, 32, 32, 0, 0, .max_positions = 4096, .rms_norm_eps = 1e-5,
     .windows = GB_WINDOWS_IN_ALL, .traits = {.has_fused_matrices = true, .has_long_rope = true}},
    {"gpt_oss", NULL, 201088, 2880, 2880, 36, 64, 8, 64, .max_positions = 131072, .sliding_window = 128,
     .window_pattern = 2, .rope_theta = 150000, .rms_norm_eps = 1e-5, .windows = GB_WINDOWS_BY_PATTERN,
     .has_experts = true, .has_gpt_oss_experts = true,
     .traits = {.has_head_biases = true, .has_output_bias = true, .has_sinks = true}},
    {"olmo2", NULL, 50304, 4096, 11008, 32, 32, 0, 0, .max_positions = 2048, .rms_norm_eps = 1e-5,
     .traits = {.has_wide_head_norms = true, .has_output_norms = true, .has_plain_inputs = true}},
    {"olmo3", NULL, 50304, 4096, 11008, 32, 32, 0, 0, .max_positions = 2048, .sliding_window = 4096,
     .window_pattern = 4, .rope_theta = 5e5, .rms_norm_eps = 1e-5, .windows = GB_WINDOWS_BY_PATTERN,
     .has_one_theta = true,
     .traits = {.has_wide_head_norms = true,
                .has_output_norms = true,
                .has_plain_inputs = true,
                .has_sliding_rope = true}},
    {"muse_glimmer_text",
     "muse_glimmer",
     202048,
     6656,
     19968,
     52,
     32,
     2,
     128,
     .max_positions = 131072,
     .sliding_window = 2048,
     .window_pattern = 4,
     .rope_theta = 5e5,
     .rms_norm_eps = 1e-5,
     .windows = GB_WINDOWS_BY_PATTERN,
     .may_be_flat = true,
     .has_rope_in_windows = true,
     .has_logit_cap = true,
     .logit_cap = 20,
     .query_factor = 3.87,
     .logit_scale = 0.19611613513818404,
     .output_norm_eps = 1e-8,
     .traits = {.has_plain_head_norms = true,
                .has_output_norms = true,
                .has_norms_from_one = true,
                .has_plain_last_norm = true,
                .has_embedding_norm = true,
                .has_attention_gate = true}},
};
enum { FAMILY_COUNT = sizeof FAMILIES / sizeof FAMILIES[0] };

const gb_dense_family *gb_dense_family_find(const char *type) {
    for (size_t i = 0; i < FAMILY_COUNT; i++) {
        const gb_dense_family *family = &FAMILIES[i];
        if (strcmp(type, family->text) == 0 || (family->wrapper && strcmp(type, family->wrapper) == 0))
            return family;
    }
    return NULL;
}
