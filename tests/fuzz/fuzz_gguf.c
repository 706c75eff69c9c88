/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes as a GGUF file: refused, or every tensor lies inside, every array can be walked through, what a
 * tokenizer is made of is refused or read, and the model is refused or its graph built. Reading each tensor's
 * first and last byte lets the sanitizer check the first.
 */
#include "base/memory.h"
#include "export/gguf/import.h"
#include "export/models/model.h"
#include "export/text/chat_template.h"
#include "export/text/tokenizer_gguf.h"
#include "export/unused_tensors.h"

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void touch_tensors(const gb_gguf *file) {
    volatile uint8_t sink = 0;
    for (size_t i = 0; i < file->tensor_count; i++) {
        const gb_tensor *tensor = &file->tensors[i];
        if (tensor->size > 0)
            sink = (uint8_t)(sink ^ tensor->data[0] ^ tensor->data[tensor->size - 1]);
    }
}

static void walk_arrays(const gb_gguf *file) {
    for (size_t i = 0; i < file->key_count; i++) {
        gb_gguf_value item;
        gb_gguf_items items = gb_gguf_items_of(&file->keys[i].value);
        if (file->keys[i].value.type == GB_GGUF_ARRAY)
            while (gb_gguf_next(&items, &item))
                ;
    }
}

static void read_tokenizer(const gb_gguf *file) {
    gb_byte_buffer bytes = {0};
    gb_chat_section chat = {0};
    gb_read_gguf_tokenizer(file, "fuzz", &bytes, NULL);
    gb_read_gguf_chat_templates(file, "fuzz", &chat, NULL);
    gb_chat_section_free(&chat);
    gb_buffer_free(&bytes);
}

/* The table of models finds the reader of the configuration, as in an export. */
static void build_graph(const gb_gguf_import *import) {
    gb_config root = gb_config_root(import->config);
    const gb_model *model;
    if (gb_model_find(&root, &model, NULL) != GUMBEL_OK)
        return;
    gb_builder *builder = gb_builder_create();
    gb_weights *weights = gb_weights_create(import->checkpoint, GB_DTYPE_NONE, 0);
    if (builder && weights &&
        model->build(&root, &(gb_model_options){0}, builder, weights, NULL) == GUMBEL_OK)
        gb_refuse_unused_companions(import->checkpoint, NULL, weights, NULL);
    gb_weights_destroy(weights);
    gb_builder_destroy(builder);
}

/* Takes the file. */
static void read_model(const gb_gguf *file) {
    gb_gguf_files files = {
        .files = gb_allocate(1, sizeof *files.files), .count = 1, .tensor_count = file->tensor_count};
    files.files[0] = *file;
    gb_gguf_import import;
    if (gb_gguf_import_files("fuzz", &files, &import, NULL) == GUMBEL_OK)
        build_graph(&import);
    gb_gguf_import_close(&import);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    gb_gguf file;
    if (gb_gguf_parse("fuzz", data, size, &file, NULL) != GUMBEL_OK)
        return 0;
    touch_tensors(&file);
    walk_arrays(&file);
    read_tokenizer(&file);
    read_model(&file);
    return 0;
}
