/* SPDX-License-Identifier: Apache-2.0 */
#include "export/gguf/architecture.h"

#include "base/memory.h"

#include <stdio.h>
#include <string.h>

static const gb_gguf_architecture *const ARCHITECTURES[] = {
    &gb_gguf_gemma3,        &gb_gguf_gemma4,          &gb_gguf_llama,      &gb_gguf_qwen2,
    &gb_gguf_qwen3,         &gb_gguf_qwen3moe,        &gb_gguf_qwen35,     &gb_gguf_qwen35moe,
    &gb_gguf_qwen3next,     &gb_gguf_smollm3,         &gb_gguf_granite,    &gb_gguf_phi3,
    &gb_gguf_gpt_oss,       &gb_gguf_muse_glimmer,    &gb_gguf_nemotron_h, &gb_gguf_nemotron_h_moe,
    &gb_gguf_lfm2,          &gb_gguf_lfm2moe,         &gb_gguf_mistral3,   &gb_gguf_olmo2,
    &gb_gguf_granitehybrid, &gb_gguf_gemma4_assistant};
enum { ARCHITECTURE_COUNT = sizeof ARCHITECTURES / sizeof ARCHITECTURES[0] };
static const char KEY[] = "general.architecture";

static void refuse(gb_gguf_metadata *metadata, const char *found) {
    char known[384] = "";
    for (size_t i = 0; i < ARCHITECTURE_COUNT; i++) {
        size_t used = strlen(known);
        snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "", ARCHITECTURES[i]->name);
    }
    gb_gguf_fail(metadata, KEY, GUMBEL_ERROR_UNSUPPORTED,
                 "\"%.60s\" is not supported in this version; known are %s", found, known);
}

gumbel_status gb_gguf_architecture_find(gb_gguf_metadata *metadata, const gb_gguf_architecture **architecture,
                                        gumbel_error *error) {
    char *found = gb_gguf_copy_text(metadata, KEY);
    *architecture = NULL;
    for (size_t i = 0; found && i < ARCHITECTURE_COUNT; i++)
        if (strcmp(found, ARCHITECTURES[i]->name) == 0)
            *architecture = ARCHITECTURES[i];
    if (!found)
        gb_gguf_fail(metadata, KEY, GUMBEL_ERROR_FORMAT, "the key is missing");
    else if (!*architecture)
        refuse(metadata, found);
    gb_free(found);
    if (metadata->error.status != GUMBEL_OK && error)
        *error = metadata->error;
    return metadata->error.status;
}
