/* SPDX-License-Identifier: Apache-2.0 */
#include "export/gguf/import.h"

#include "base/memory.h"
#include "export/gguf/generation.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Makes x of a float32 tensor of -exp(x): its data becomes new memory, which *values also holds (gb_free;
 * NULL after an error). Errors: FORMAT and UNSUPPORTED naming the tensor, MEMORY. */
static gumbel_status take_logarithm(gb_tensor *tensor, float **values, gumbel_error *error) {
    *values = NULL;
    if (tensor->dtype != GB_F32)
        return gb_fail(error, GUMBEL_ERROR_UNSUPPORTED, "tensor %s has dtype %s, expected F32", tensor->name,
                       tensor->dtype_name);
    size_t count = (size_t)(tensor->size / sizeof **values);
    *values = gb_allocate(count, sizeof **values);
    if (!*values)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "tensor %s: no memory for %zu values", tensor->name,
                       count);
    for (size_t i = 0; i < count; i++) {
        float value;
        memcpy(&value, tensor->data + i * sizeof value, sizeof value);
        if (!(value <= 0) || isinf(value)) {
            gb_free(*values);
            *values = NULL;
            return gb_fail(error, GUMBEL_ERROR_FORMAT,
                           "tensor %s: value %zu is %g, expected a finite one of 0 or below, as -exp() gives",
                           tensor->name, i, (double)value);
        }
        (*values)[i] = (float)log(-(double)value);
    }
    tensor->data = (const uint8_t *)*values;
    tensor->is_in_memory = true;
    return GUMBEL_OK;
}

static void flatten(gb_tensor *tensor) {
    for (int32_t i = 1; i < tensor->rank; i++)
        tensor->dims[0] *= tensor->dims[i];
    tensor->rank = tensor->rank > 0 ? 1 : 0;
}

enum { NAME_PAST_LAST = GB_GGUF_NAME + sizeof "mtp.layers.0." };

/* A layer past the last guesses several tokens ahead, which the original calls mtp. The first one is the
 * draft head's, under the names of the original. */
static void name_past_last(const gb_gguf_import *import, const char *own, const char *name,
                           char text[NAME_PAST_LAST]) {
    static const char LAYERS[] = "model.layers.";
    const bool is_first = gb_gguf_layer_of(own) == import->layer_count;
    const char *rest = strncmp(name, LAYERS, strlen(LAYERS)) == 0 ? strchr(name + strlen(LAYERS), '.') : NULL;
    if (is_first && rest)
        snprintf(text, NAME_PAST_LAST, "mtp.layers.0%s", rest);
    else if (is_first && strncmp(name, "mtp.", 4) == 0)
        snprintf(text, NAME_PAST_LAST, "%s", name);
    else
        snprintf(text, NAME_PAST_LAST, "mtp.%s", own);
}

/* The name that the graph knows a tensor by: a tensor that no weight is made of keeps its own. pair may be
 * NULL. */
static gumbel_status rename_tensor(gb_gguf_import *import, const gb_tensor *tensor, const gb_gguf_name *pair,
                                   const char *name, gumbel_error *error) {
    gb_tensor *renamed = &import->tensors[import->tensor_count];
    char text[NAME_PAST_LAST];
    bool is_past_last = gb_gguf_layer_of(tensor->name) >= import->layer_count;
    *renamed = *tensor;
    if (pair && pair->is_minus_exp && !is_past_last)
        GB_TRY(take_logarithm(renamed, &import->values[import->tensor_count], error));
    if (pair && pair->is_flat)
        flatten(renamed);
    if (pair && pair->has_row_pairs)
        renamed->row_pairs = import->head_dim / 2;
    if (is_past_last)
        name_past_last(import, tensor->name, name, text);
    else
        snprintf(text, sizeof text, "%s", pair ? name : tensor->name);
    renamed->name = gb_copy_string(text, strlen(text));
    import->tensor_count++;
    return renamed->name ? GUMBEL_OK : gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for tensor names");
}

/* Tensors that the configuration speaks for are left out. */
static gumbel_status add_tensor(gb_gguf_import *import, const gb_tensor *tensor, gumbel_error *error) {
    char name[GB_GGUF_NAME] = "";
    const gb_gguf_name *pair = gb_gguf_to_checkpoint(import->architecture->names, tensor->name, name);
    if (pair && name[0] == '\0')
        return GUMBEL_OK;
    return rename_tensor(import, tensor, pair, name, error);
}

static gumbel_status add_tensors(gb_gguf_import *import, gumbel_error *error) {
    import->tensors = gb_allocate(import->files.tensor_count, sizeof *import->tensors);
    import->values = gb_allocate(import->files.tensor_count, sizeof *import->values);
    if (!import->tensors || !import->values)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for %zu tensors", import->files.tensor_count);
    for (size_t f = 0; f < import->files.count; f++) {
        const gb_gguf *file = &import->files.files[f];
        for (size_t i = 0; i < file->tensor_count; i++)
            GB_TRY(add_tensor(import, &file->tensors[i], error));
    }
    return GUMBEL_OK;
}

static bool name_in_file(const void *user, const char *name, char *text, size_t size) {
    const gb_gguf_architecture *architecture = user;
    char other[GB_GGUF_NAME];
    if (!gb_gguf_from_checkpoint(architecture->names, name, other))
        return false;
    snprintf(text, size, "%s", other);
    return true;
}

static gumbel_status make_config(gb_gguf_metadata *metadata, gb_gguf_import *import, json_t *object,
                                 gumbel_error *error) {
    char label[512];
    import->architecture->configure(metadata, object);
    gb_gguf_read_generation(metadata, object);
    import->name = gb_gguf_copy_text(metadata, "general.name");
    if (metadata->error.status != GUMBEL_OK) {
        if (error)
            *error = metadata->error;
        return metadata->error.status;
    }
    const json_t *text = json_object_get(object, "text_config");
    import->layer_count = json_integer_value(json_object_get(text ? text : object, "num_hidden_layers"));
    import->head_dim = json_integer_value(json_object_get(object, "head_dim"));
    snprintf(label, sizeof label, "%.480s: as config.json", metadata->path);
    return gb_config_from_json(label, object, &import->config, error);
}

static gumbel_status read_all(const char *path, gb_gguf_import *import, gumbel_error *error) {
    gb_gguf_metadata metadata = {.files = &import->files, .path = path, .architecture = ""};
    GB_TRY(gb_gguf_architecture_find(&metadata, &import->architecture, error));
    metadata.architecture = import->architecture->name;
    if (import->files.tensor_count == 0)
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "%s: it has no tensors, only a vocabulary", path);
    json_t *object = json_object();
    gumbel_status status = object ? make_config(&metadata, import, object, error)
                                  : gb_fail(error, GUMBEL_ERROR_MEMORY, "%s: no memory to read it", path);
    json_decref(object);
    GB_TRY(status);
    status = add_tensors(import, error);
    if (status != GUMBEL_OK)
        return gb_prefix(error, status, "%s", path);
    return gb_checkpoint_of(path, import->tensors, import->tensor_count, name_in_file, import->architecture,
                            &import->checkpoint, error);
}

gumbel_status gb_gguf_import_files(const char *path, const gb_gguf_files *files, gb_gguf_import *import,
                                   gumbel_error *error) {
    *import = (gb_gguf_import){.files = *files};
    return read_all(path, import, error);
}

gumbel_status gb_gguf_import_open(const char *path, gb_gguf_import *import, gumbel_error *error) {
    gb_gguf_files files;
    *import = (gb_gguf_import){0};
    GB_TRY(gb_gguf_files_open(path, &files, error));
    return gb_gguf_import_files(path, &files, import, error);
}

void gb_gguf_import_close(gb_gguf_import *import) {
    gb_checkpoint_close(import->checkpoint);
    gb_config_close(import->config);
    for (size_t i = 0; i < import->tensor_count; i++) {
        gb_free((void *)(uintptr_t)import->tensors[i].name);
        gb_free(import->values[i]);
    }
    gb_free(import->tensors);
    gb_free(import->values);
    gb_free(import->name);
    gb_gguf_files_close(&import->files);
    *import = (gb_gguf_import){0};
}
