/* SPDX-License-Identifier: Apache-2.0 */
#include "export/source.h"

#include "base/memory.h"
#include "export/packed/fp8.h"
#include "export/packed/packed.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static bool ends_with(const char *text, const char *ending) {
    size_t length = strlen(text), tail = strlen(ending);
    return length >= tail && strcmp(text + length - tail, ending) == 0;
}

/* The last component of a path, without the slashes at its end; in new memory. */
static char *last_component(const char *path) {
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/')
        length--;
    size_t begin = length;
    while (begin > 0 && path[begin - 1] != '/')
        begin--;
    return gb_copy_string(path + begin, length - begin);
}

/* The last component without this ending; in new memory. */
static char *file_stem(const char *path, const char *ending) {
    char *name = last_component(path);
    if (name && ends_with(name, ending))
        name[strlen(name) - strlen(ending)] = '\0';
    return name;
}

/* A name for people: the configuration's own, else the directory's or the file's. */
static char *choose_name(const gb_source *source, const char *path, bool is_file) {
    gb_config root = gb_config_root(source->config);
    const char *own = gb_config_string(&root, "_name_or_path", "");
    if (own[0] != '\0')
        return last_component(own);
    if (is_file && !ends_with(path, "/config.json") && strcmp(path, "config.json") != 0) {
        return file_stem(path, ".json");
    }
    char *absolute = realpath(source->directory, NULL); /* so that "." has a name */
    char *name = last_component(absolute ? absolute : source->directory);
    free(absolute);
    return name;
}

static char *directory_of(const char *path) {
    const char *slash = strrchr(path, '/');
    if (!slash)
        return gb_copy_string(".", 1);
    return gb_copy_string(path, slash == path ? 1 : (size_t)(slash - path));
}

static gumbel_status open_parts(const char *path, bool is_file, bool random_weights, gb_source *source,
                                gumbel_error *error) {
    source->directory = is_file ? directory_of(path) : gb_copy_string(path, strlen(path));
    char *config_path = is_file             ? gb_copy_string(path, strlen(path))
                        : source->directory ? gb_join_path(source->directory, "config.json")
                                            : NULL;
    gumbel_status status =
        source->directory && config_path
            ? gb_config_open(config_path, &source->config, error)
            : gb_fail(error, GUMBEL_ERROR_MEMORY, "%s: no memory for its file names", path);
    gb_free(config_path);
    GB_TRY(status);
    source->name = choose_name(source, path, is_file);
    if (!source->name)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "%s: no memory for its name", path);
    if (random_weights)
        return GUMBEL_OK;
    gb_config root = gb_config_root(source->config);
    GB_TRY(gb_quantization_read(&root, &source->packing, error));
    if (source->packing.method == GB_QUANTIZATION_NONE)
        GB_TRY(gb_quantization_read_beside(source->directory, &source->packing, error));
    return gb_checkpoint_open(source->directory, &source->checkpoint, error);
}

/* Which llama.cpp's converter writes beside blocks of NVFP4. */
static bool has_input_scales(const gb_gguf_import *gguf) {
    for (size_t i = 0; i < gguf->tensor_count; i++)
        if (gb_nvfp4_companion(gguf->checkpoint, &gguf->tensors[i], ".input_scale"))
            return true;
    return false;
}

static gumbel_status open_gguf(const char *path, gb_source *source, gumbel_error *error) {
    source->is_gguf = true;
    GB_TRY(gb_gguf_import_open(path, &source->gguf, error));
    source->config = source->gguf.config;
    source->checkpoint = source->gguf.checkpoint;
    source->packing.leaves_input_scales = has_input_scales(&source->gguf);
    source->directory = gb_copy_string(path, strlen(path));
    const char *own = source->gguf.name;
    source->name = own && own[0] ? gb_copy_string(own, strlen(own)) : file_stem(path, ".gguf");
    if (!source->directory || !source->name)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "%s: no memory for its name", path);
    return GUMBEL_OK;
}

gumbel_status gb_source_open(const char *path, bool random_weights, gb_source *source, gumbel_error *error) {
    *source = (gb_source){0};
    struct stat information;
    if (stat(path, &information) != 0)
        return gb_fail_errno(error, errno, "%s", path);
    bool is_file = !S_ISDIR(information.st_mode);
    if (is_file && gb_is_gguf(path) && random_weights)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "%s: random weights need a config.json, found a GGUF",
                       path);
    if (is_file && gb_is_gguf(path))
        return open_gguf(path, source, error);
    if (is_file && !random_weights)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT,
                       "%s: expected a checkpoint directory (a config.json alone needs random weights: "
                       "--random-weights)",
                       path);
    return open_parts(path, is_file, random_weights, source, error);
}

void gb_source_close(gb_source *source) {
    if (!source->is_gguf) {
        gb_checkpoint_close(source->checkpoint);
        gb_config_close(source->config);
    }
    gb_gguf_import_close(&source->gguf);
    gb_free(source->name);
    gb_free(source->directory);
    *source = (gb_source){0};
}

/* Those of NVFP4 with a scale are read as numbers. */
static bool has_blocks(const gb_gguf_import *gguf) {
    for (size_t i = 0; i < gguf->tensor_count; i++)
        if (gguf->tensors[i].dtype == GB_DTYPE_NONE &&
            !gb_nvfp4_companion(gguf->checkpoint, &gguf->tensors[i], ".scale"))
            return true;
    return false;
}

bool gb_source_is_quantized(const gb_source *source) {
    if (source->is_gguf)
        return has_blocks(&source->gguf);
    return source->checkpoint && gb_packed_has_any(&source->packing, source->checkpoint);
}

static const char *dtype_name(const gb_config *config, const char *fallback) {
    return gb_config_string(config, "dtype", gb_config_string(config, "torch_dtype", fallback));
}

gumbel_status gb_source_dtype(const gb_source *source, gb_dtype *dtype, gumbel_error *error) {
    gb_config root = gb_config_root(source->config);
    gb_config text = gb_config_child(&root, "text_config");
    const char *name = dtype_name(&root, dtype_name(&text, "bfloat16"));
    *dtype = strcmp(name, "bfloat16") == 0  ? GB_BF16
             : strcmp(name, "float16") == 0 ? GB_F16
             : strcmp(name, "float32") == 0 ? GB_F32
                                            : GB_DTYPE_NONE;
    if (*dtype == GB_DTYPE_NONE)
        gb_config_fail(&root, "dtype", GUMBEL_ERROR_UNSUPPORTED,
                       "\"%s\", expected bfloat16, float16 or float32", name);
    return gb_config_status(source->config, error);
}
