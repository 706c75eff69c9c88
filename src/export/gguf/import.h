/* SPDX-License-Identifier: Apache-2.0
 *
 * A GGUF checkpoint as the exporter wants it: a config.json in memory, and tensors by their Hugging Face
 * names.
 */
#ifndef GUMBEL_EXPORT_GGUF_IMPORT_H
#define GUMBEL_EXPORT_GGUF_IMPORT_H

#include "export/checkpoint/checkpoint.h"
#include "export/checkpoint/config.h"
#include "export/gguf/architecture.h"

typedef struct gb_gguf_import {
    gb_gguf_files files;
    const gb_gguf_architecture *architecture;
    gb_tensor *tensors; /* those of the checkpoint; names are owned */
    float **values;     /* of each, those that are its data, or NULL; owned */
    size_t tensor_count;
    int64_t layer_count;    /* of those that generate; more layers of tensors may follow */
    int64_t head_dim;       /* 0: it differs by layer */
    gb_config_file *config; /* holds the generation settings as well */
    gb_checkpoint *checkpoint;
    char *name; /* what to call the model; NULL: the file does not say */
} gb_gguf_import;

/* Opens the file at path with its further parts. Errors: IO, MEMORY; FORMAT and UNSUPPORTED naming file and
 * key or tensor. Close with gb_gguf_import_close, also after an error. */
gumbel_status gb_gguf_import_open(const char *path, gb_gguf_import *import, gumbel_error *error);

/* The same of files that are open, which it closes in the end; path stands in messages. */
gumbel_status gb_gguf_import_files(const char *path, const gb_gguf_files *files, gb_gguf_import *import,
                                   gumbel_error *error);

/* Safe on a zeroed structure and twice. */
void gb_gguf_import_close(gb_gguf_import *import);

#endif
