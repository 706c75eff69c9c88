/* SPDX-License-Identifier: Apache-2.0
 *
 * What the user named as the checkpoint, opened: its configuration and, unless weights are drawn at random,
 * its tensors.
 */
#ifndef GUMBEL_EXPORT_SOURCE_H
#define GUMBEL_EXPORT_SOURCE_H

#include "export/checkpoint/checkpoint.h"
#include "export/checkpoint/config.h"
#include "export/gguf/import.h"
#include "export/packed/quantization.h"

typedef struct gb_source {
    gb_gguf_import gguf; /* of a GGUF: owns config and checkpoint; else zeroed */
    bool is_gguf;
    char *directory;           /* of config.json, tokenizer and generation_config.json; or the GGUF's path */
    char *name;                /* what to call the model */
    gb_config_file *config;    /* config.json */
    gb_checkpoint *checkpoint; /* NULL: random weights */
    gb_quantization packing;   /* how the checkpoint's weights are quantized; of config */
} gb_source;

/* Opens a Hugging Face directory or a GGUF file; or, with random_weights, a config.json or the directory that
 * it lies in. Errors: IO, FORMAT, UNSUPPORTED, MEMORY; ARGUMENT for a config.json without random_weights, or
 * a GGUF with. Close with gb_source_close, also after an error. */
gumbel_status gb_source_open(const char *path, bool random_weights, gb_source *source, gumbel_error *error);

void gb_source_close(gb_source *source);

/* Whether the checkpoint has matrices that are quantized. */
bool gb_source_is_quantized(const gb_source *source);

/* The dtype that the configuration says weights have: bfloat16 when it says nothing. Errors: UNSUPPORTED. */
gumbel_status gb_source_dtype(const gb_source *source, gb_dtype *dtype, gumbel_error *error);

#endif
