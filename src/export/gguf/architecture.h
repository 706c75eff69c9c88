/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of architectures that are read from GGUF files. An entry leads back to what the file was made
 * from: tensors by their Hugging Face names, and a config.json, so that one graph serves both.
 */
#ifndef GUMBEL_EXPORT_GGUF_ARCHITECTURE_H
#define GUMBEL_EXPORT_GGUF_ARCHITECTURE_H

#include "export/gguf/metadata.h"
#include "export/gguf/names.h"

#include <jansson.h>

typedef struct gb_gguf_architecture {
    const char *name;          /* general.architecture */
    const gb_gguf_name *names; /* up to {0} */

    /* Fills config with what config.json of such a model says. Errors: the metadata's. */
    void (*configure)(gb_gguf_metadata *metadata, json_t *config);
} gb_gguf_architecture;

/* The file's architecture. Errors: FORMAT (the key is missing), UNSUPPORTED naming the one found and those
 * that are known. */
gumbel_status gb_gguf_architecture_find(gb_gguf_metadata *metadata, const gb_gguf_architecture **architecture,
                                        gumbel_error *error);

extern const gb_gguf_architecture gb_gguf_gemma3, gb_gguf_gemma4, gb_gguf_gemma4_assistant, gb_gguf_llama,
    gb_gguf_qwen2, gb_gguf_qwen3, gb_gguf_qwen3moe, gb_gguf_qwen35, gb_gguf_qwen35moe, gb_gguf_qwen3next,
    gb_gguf_smollm3, gb_gguf_granite, gb_gguf_granitehybrid, gb_gguf_phi3, gb_gguf_gpt_oss,
    gb_gguf_muse_glimmer, gb_gguf_nemotron_h, gb_gguf_nemotron_h_moe, gb_gguf_lfm2, gb_gguf_lfm2moe,
    gb_gguf_mistral3, gb_gguf_olmo2;

#endif
