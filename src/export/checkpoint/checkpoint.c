/* SPDX-License-Identifier: Apache-2.0 */
#include "export/checkpoint/checkpoint.h"

#include "base/memory.h"
#include "export/checkpoint/ggml_types.h"
#include "export/checkpoint/json.h"
#include "export/quantize/import_blocks.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const size_t MAX_INDEX_BYTES = 100000000;

typedef struct shard {
    char *path;
    const char *name; /* the file's name, inside path */
    gb_safetensors file;
} shard;

struct gb_checkpoint {
    char *directory; /* or the file's path */
    shard *shards;
    size_t shard_count, shard_capacity;
    const gb_tensor **tensors; /* sorted by name */
    size_t tensor_count, tensor_capacity;
    gb_file_name file_name; /* NULL: the file's names are ours */
    const void *file_name_user;
    const gb_checkpoint *joined; /* what this one was joined to, or NULL */
    gb_tensor *renamed;          /* of a joined one: the other's tensors */
    char *new_names;             /* and what these are called */
};

char *gb_join_path(const char *directory, const char *name) {
    size_t size = strlen(directory) + strlen(name) + 2;
    char *path = gb_allocate(size, 1);
    if (path)
        snprintf(path, size, "%s/%s", directory, name);
    return path;
}

static gumbel_status out_of_memory(gumbel_error *error) {
    return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for the checkpoint's tensor table");
}

/* A shard that is not opened yet. */
static gumbel_status append_shard(gb_checkpoint *checkpoint, const char *name, shard **added,
                                  gumbel_error *error) {
    if (!gb_grow((void **)&checkpoint->shards, &checkpoint->shard_capacity, checkpoint->shard_count + 1,
                 sizeof *checkpoint->shards))
        return out_of_memory(error);
    shard *next = &checkpoint->shards[checkpoint->shard_count];
    *next = (shard){.path = gb_join_path(checkpoint->directory, name)};
    if (!next->path)
        return out_of_memory(error);
    next->name = next->path + strlen(checkpoint->directory) + 1;
    checkpoint->shard_count++;
    *added = next;
    return GUMBEL_OK;
}

static gumbel_status add_shard(gb_checkpoint *checkpoint, const char *name, shard **added,
                               gumbel_error *error) {
    GB_TRY(append_shard(checkpoint, name, added, error));
    return gb_safetensors_open((*added)->path, &(*added)->file, error);
}

static gumbel_status add_tensor(gb_checkpoint *checkpoint, const gb_tensor *tensor, gumbel_error *error) {
    if (!gb_grow((void **)&checkpoint->tensors, &checkpoint->tensor_capacity, checkpoint->tensor_count + 1,
                 sizeof *checkpoint->tensors))
        return out_of_memory(error);
    checkpoint->tensors[checkpoint->tensor_count++] = tensor;
    return GUMBEL_OK;
}

static int compare_tensors(const void *a, const void *b) {
    const gb_tensor *const *left = a, *const *right = b;
    return strcmp((*left)->name, (*right)->name);
}

static gumbel_status open_single(gb_checkpoint *checkpoint, gumbel_error *error) {
    shard *only = NULL;
    GB_TRY(add_shard(checkpoint, "model.safetensors", &only, error));
    for (size_t i = 0; i < only->file.tensor_count; i++)
        GB_TRY(add_tensor(checkpoint, &only->file.tensors[i], error));
    return GUMBEL_OK;
}

/* An index is untrusted: its files must be plain names in the checkpoint's own directory. */
static bool is_plain_name(const char *name) {
    return name[0] != '\0' && name[0] != '.' && !strchr(name, '/') && !strchr(name, '\\');
}

static int compare_names(const void *a, const void *b) {
    const char *const *left = a, *const *right = b;
    return strcmp(*left, *right);
}

/* Opens each file that the weight map names, once. */
static gumbel_status open_shards(gb_checkpoint *checkpoint, json_t *weight_map, gumbel_error *error) {
    size_t count = 0;
    const char **names = gb_allocate(json_object_size(weight_map), sizeof *names);
    if (!names)
        return out_of_memory(error);
    gumbel_status status = GUMBEL_OK;
    const char *tensor = NULL;
    json_t *file = NULL;
    json_object_foreach(weight_map, tensor, file) {
        char text[GB_JSON_TEXT];
        if (!json_is_string(file) || !is_plain_name(json_string_value(file))) {
            status = gb_fail(error, GUMBEL_ERROR_FORMAT,
                             "weight_map: %s: expected the name of a file in this directory, found %s",
                             tensor, gb_json_text(file, text));
            break;
        }
        names[count++] = json_string_value(file);
    }
    if (count > 1)
        qsort(names, count, sizeof *names, compare_names);
    for (size_t i = 0; i < count && status == GUMBEL_OK; i++) {
        shard *added = NULL;
        if (i == 0 || strcmp(names[i], names[i - 1]) != 0)
            status = add_shard(checkpoint, names[i], &added, error);
    }
    gb_free(names);
    return status;
}

static int compare_shard_name(const void *key, const void *element) {
    return strcmp(key, ((const shard *)element)->name);
}

static int compare_tensor_name(const void *key, const void *element) {
    return strcmp(key, (*(const gb_tensor *const *)element)->name);
}

static const gb_tensor *const *find_place(const gb_tensor *const *tensors, size_t count, const char *name) {
    return count > 0 ? bsearch(name, tensors, count, sizeof *tensors, compare_tensor_name) : NULL;
}

static const gb_tensor *find_sorted(const gb_tensor *const *tensors, size_t count, const char *name) {
    const gb_tensor *const *found = find_place(tensors, count, name);
    return found ? *found : NULL;
}

/* Collects the tensors of all shards and checks the index against them. A tensor counts only where the index
 * says that it is. */
static gumbel_status list_indexed(gb_checkpoint *checkpoint, json_t *weight_map, gumbel_error *error) {
    const char *name = NULL;
    json_t *file = NULL;
    for (size_t s = 0; s < checkpoint->shard_count; s++) {
        const gb_safetensors *shard_file = &checkpoint->shards[s].file;
        for (size_t i = 0; i < shard_file->tensor_count; i++) {
            const json_t *listed = json_object_get(weight_map, shard_file->tensors[i].name);
            if (listed && strcmp(json_string_value(listed), checkpoint->shards[s].name) == 0)
                GB_TRY(add_tensor(checkpoint, &shard_file->tensors[i], error));
        }
    }
    if (checkpoint->tensor_count == json_object_size(weight_map))
        return GUMBEL_OK;
    if (checkpoint->tensor_count > 0)
        qsort(checkpoint->tensors, checkpoint->tensor_count, sizeof *checkpoint->tensors, compare_tensors);
    json_object_foreach(weight_map, name, file) {
        if (find_sorted(checkpoint->tensors, checkpoint->tensor_count, name))
            continue;
        const shard *where = bsearch(json_string_value(file), checkpoint->shards, checkpoint->shard_count,
                                     sizeof *checkpoint->shards, compare_shard_name);
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "weight_map: tensor %s is not in %s", name,
                       where ? where->name : "its file");
    }
    return GUMBEL_OK;
}

static gumbel_status open_indexed(gb_checkpoint *checkpoint, const char *index_path, gumbel_error *error) {
    json_t *index = NULL;
    GB_TRY(gb_read_json(index_path, MAX_INDEX_BYTES, &index, error));
    json_t *weight_map = json_object_get(index, "weight_map");
    gumbel_status status = GUMBEL_OK;
    if (!json_is_object(weight_map))
        status =
            gb_fail(error, GUMBEL_ERROR_FORMAT, "weight_map: expected an object of tensor and file names");
    if (status == GUMBEL_OK)
        status = open_shards(checkpoint, weight_map, error);
    if (status == GUMBEL_OK)
        status = list_indexed(checkpoint, weight_map, error);
    json_decref(index);
    return status == GUMBEL_OK ? GUMBEL_OK : gb_prefix(error, status, "%s", index_path);
}

static gumbel_status open_weights(gb_checkpoint *checkpoint, gumbel_error *error) {
    char *single = gb_join_path(checkpoint->directory, "model.safetensors");
    char *index = gb_join_path(checkpoint->directory, "model.safetensors.index.json");
    gumbel_status status = GUMBEL_OK;
    if (!single || !index)
        status = out_of_memory(error);
    else if (access(single, F_OK) == 0)
        status = open_single(checkpoint, error);
    else if (access(index, F_OK) == 0)
        status = open_indexed(checkpoint, index, error);
    else
        status = gb_fail(error, GUMBEL_ERROR_IO,
                         "%s: neither model.safetensors nor model.safetensors.index.json is there",
                         checkpoint->directory);
    gb_free(single);
    gb_free(index);
    return status;
}

static void sort_tensors(gb_checkpoint *checkpoint) {
    if (checkpoint->tensor_count > 1)
        qsort(checkpoint->tensors, checkpoint->tensor_count, sizeof *checkpoint->tensors, compare_tensors);
}

/* Closes a checkpoint that could not be filled; returns the status. */
static gumbel_status finish(gumbel_status status, gb_checkpoint **checkpoint) {
    if (status == GUMBEL_OK)
        return GUMBEL_OK;
    gb_checkpoint_close(*checkpoint);
    *checkpoint = NULL;
    return status;
}

static gumbel_status create(const char *name, gb_checkpoint **checkpoint, gumbel_error *error) {
    gb_checkpoint *made = *checkpoint = gb_allocate(1, sizeof *made);
    if (made)
        made->directory = gb_copy_string(name, strlen(name));
    return finish(made && made->directory ? GUMBEL_OK : out_of_memory(error), checkpoint);
}

gumbel_status gb_checkpoint_open(const char *directory, gb_checkpoint **checkpoint, gumbel_error *error) {
    GB_TRY(create(directory, checkpoint, error));
    const gumbel_status status = open_weights(*checkpoint, error);
    sort_tensors(*checkpoint);
    return finish(status, checkpoint);
}

static gumbel_status add_parsed(gb_checkpoint *checkpoint, const uint8_t *data, size_t size,
                                gumbel_error *error) {
    shard *only = NULL;
    GB_TRY(append_shard(checkpoint, "", &only, error));
    GB_TRY(gb_safetensors_parse(checkpoint->directory, data, size, &only->file, error));
    for (size_t i = 0; i < only->file.tensor_count; i++) {
        only->file.tensors[i].is_in_memory = true;
        GB_TRY(add_tensor(checkpoint, &only->file.tensors[i], error));
    }
    sort_tensors(checkpoint);
    return GUMBEL_OK;
}

gumbel_status gb_checkpoint_parse(const char *name, const uint8_t *data, size_t size,
                                  gb_checkpoint **checkpoint, gumbel_error *error) {
    GB_TRY(create(name, checkpoint, error));
    return finish(add_parsed(*checkpoint, data, size, error), checkpoint);
}

static gumbel_status add_all(gb_checkpoint *checkpoint, const gb_tensor *tensors, size_t count,
                             gumbel_error *error) {
    for (size_t i = 0; i < count; i++)
        GB_TRY(add_tensor(checkpoint, &tensors[i], error));
    sort_tensors(checkpoint);
    for (size_t i = 1; i < checkpoint->tensor_count; i++)
        if (strcmp(checkpoint->tensors[i - 1]->name, checkpoint->tensors[i]->name) == 0)
            return gb_fail(error, GUMBEL_ERROR_FORMAT, "%s: tensor %s stands twice", checkpoint->directory,
                           checkpoint->tensors[i]->name);
    return GUMBEL_OK;
}

gumbel_status gb_checkpoint_of(const char *path, const gb_tensor *tensors, size_t count,
                               gb_file_name file_name, const void *user, gb_checkpoint **checkpoint,
                               gumbel_error *error) {
    GB_TRY(create(path, checkpoint, error));
    (*checkpoint)->file_name = file_name;
    (*checkpoint)->file_name_user = user;
    return finish(add_all(*checkpoint, tensors, count, error), checkpoint);
}

/* Copies the tensors of another checkpoint, with the prefix before their names. */
static gumbel_status rename_all(gb_checkpoint *checkpoint, const char *prefix, const gb_checkpoint *other,
                                gumbel_error *error) {
    const size_t count = other->tensor_count, prefix_size = strlen(prefix);
    size_t size = 1;
    for (size_t i = 0; i < count; i++)
        size += prefix_size + strlen(other->tensors[i]->name) + 1;
    checkpoint->renamed = gb_allocate(count + 1, sizeof *checkpoint->renamed);
    char *name = checkpoint->new_names = gb_allocate(size, 1);
    if (!checkpoint->renamed || !name)
        return out_of_memory(error);
    for (size_t i = 0; i < count; i++) {
        checkpoint->renamed[i] = *other->tensors[i];
        checkpoint->renamed[i].name = name;
        const size_t length = prefix_size + strlen(other->tensors[i]->name);
        snprintf(name, length + 1, "%s%s", prefix, other->tensors[i]->name);
        name += length + 1;
    }
    return GUMBEL_OK;
}

static gumbel_status join(gb_checkpoint *checkpoint, const gb_checkpoint *first, const char *prefix,
                          const gb_checkpoint *other, gumbel_error *error) {
    checkpoint->joined = first;
    checkpoint->file_name = first->file_name;
    checkpoint->file_name_user = first->file_name_user;
    for (size_t i = 0; i < first->tensor_count; i++)
        GB_TRY(add_tensor(checkpoint, first->tensors[i], error));
    GB_TRY(rename_all(checkpoint, prefix, other, error));
    return add_all(checkpoint, checkpoint->renamed, other->tensor_count, error);
}

gumbel_status gb_checkpoint_join(const gb_checkpoint *first, const char *prefix, const gb_checkpoint *other,
                                 gb_checkpoint **checkpoint, gumbel_error *error) {
    GB_TRY(create(first->directory, checkpoint, error));
    return finish(join(*checkpoint, first, prefix, other, error), checkpoint);
}

void gb_checkpoint_close(gb_checkpoint *checkpoint) {
    if (!checkpoint)
        return;
    gb_free(checkpoint->renamed);
    gb_free(checkpoint->new_names);
    for (size_t i = 0; i < checkpoint->shard_count; i++) {
        gb_safetensors_close(&checkpoint->shards[i].file);
        gb_free(checkpoint->shards[i].path);
    }
    gb_free(checkpoint->shards);
    gb_free(checkpoint->tensors);
    gb_free(checkpoint->directory);
    gb_free(checkpoint);
}

const gb_tensor *gb_checkpoint_find(const gb_checkpoint *checkpoint, const char *name) {
    return find_sorted(checkpoint->tensors, checkpoint->tensor_count, name);
}

/* "[8, 16]" */
static const char *shape_text(int32_t rank, const int64_t *dims, char text[static 200]) {
    size_t used = (size_t)snprintf(text, 200, "[");
    for (int32_t i = 0; i < rank && used < 200; i++)
        used += (size_t)snprintf(text + used, 200 - used, i ? ", %" PRId64 : "%" PRId64, dims[i]);
    if (used < 200)
        snprintf(text + used, 200 - used, "]");
    return text;
}

/* Whether shapes are equal but for dimensions of 1, which may stand anywhere: the elements' order is the
 * same.
 */
static bool has_shape(const gb_tensor *tensor, int32_t rank, const int64_t *dims) {
    int32_t i = 0, j = 0;
    for (;;) {
        while (i < tensor->rank && tensor->dims[i] == 1)
            i++;
        while (j < rank && dims[j] == 1)
            j++;
        if (i == tensor->rank || j == rank)
            return i == tensor->rank && j == rank;
        if (tensor->dims[i++] != dims[j++])
            return false;
    }
}

static gumbel_status check_shape(const gb_checkpoint *checkpoint, const gb_tensor *tensor,
                                 const char *file_name, int32_t rank, const int64_t *dims,
                                 gumbel_error *error) {
    char found[200], expected[200];
    if (has_shape(tensor, rank, dims))
        return GUMBEL_OK;
    return gb_fail(error, GUMBEL_ERROR_FORMAT, "%s: tensor %s has shape %s, expected %s",
                   checkpoint->directory, file_name, shape_text(tensor->rank, tensor->dims, found),
                   shape_text(rank, dims, expected));
}

gumbel_status gb_checkpoint_check_shape(const gb_checkpoint *checkpoint, const gb_tensor *tensor,
                                        int32_t rank, const int64_t *dims, gumbel_error *error) {
    return check_shape(checkpoint, tensor, tensor->name, rank, dims, error);
}

/* What else a matrix may be, of dtypes that only a quantization has. */
static const char *other_forms(const gb_tensor *tensor, bool is_matrix) {
    static const char *const codes[] = {"U8", "I8", "I32", "U32"};
    if (is_matrix && tensor->blocks)
        return ", or Q4_0 to Q8_0, Q2_K to Q6_K, IQ1_S to IQ4_XS, TQ1_0, TQ2_0, MXFP4 or NVFP4";
    if (is_matrix && strcmp(tensor->dtype_name, "F8_E4M3") == 0)
        return ", or F8_E4M3 with scales that quantization_config in config.json, or hf_quant_config.json "
               "beside it, tells of";
    for (size_t i = 0; is_matrix && i < sizeof codes / sizeof *codes; i++)
        if (strcmp(tensor->dtype_name, codes[i]) == 0)
            return ", or codes of a quantization that config.json (quantization_config, of MLX "
                   "quantization), or hf_quant_config.json beside it, tells of";
    return "";
}

/* Whether the graph can have a weight as its tensor is stored. */
static gumbel_status check_usable(const gb_checkpoint *checkpoint, const gb_tensor *tensor, bool is_matrix,
                                  const char *file_name, gumbel_error *error) {
    bool has_blocks = tensor->blocks && gb_block_find(tensor->blocks->number);
    if (gb_dtype_is_float(tensor->dtype) || (is_matrix && has_blocks))
        return GUMBEL_OK;
    return gb_fail(error, GUMBEL_ERROR_UNSUPPORTED, "%s: tensor %s has dtype %s, expected F32, F16 or BF16%s",
                   checkpoint->directory, file_name, tensor->dtype_name, other_forms(tensor, is_matrix));
}

const char *gb_checkpoint_file_name(const gb_checkpoint *checkpoint, const char *name,
                                    char text[GB_FILE_NAME]) {
    if (checkpoint->file_name && checkpoint->file_name(checkpoint->file_name_user, name, text, GB_FILE_NAME))
        return text;
    return name;
}

static gumbel_status get_tensor(const gb_checkpoint *checkpoint, const char *name, int32_t rank,
                                const int64_t *dims, bool is_matrix, const gb_tensor **tensor,
                                gumbel_error *error) {
    char expected_text[200], own_name[GB_FILE_NAME];
    const char *file_name = gb_checkpoint_file_name(checkpoint, name, own_name);
    const gb_tensor *found = gb_checkpoint_find(checkpoint, name);
    if (!found)
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "%s: tensor %s is missing, expected shape %s",
                       checkpoint->directory, file_name, shape_text(rank, dims, expected_text));
    GB_TRY(check_usable(checkpoint, found, is_matrix, file_name, error)); /* packed ones have other shapes */
    GB_TRY(check_shape(checkpoint, found, file_name, rank, dims, error));
    *tensor = found;
    return GUMBEL_OK;
}

gumbel_status gb_checkpoint_get(const gb_checkpoint *checkpoint, const char *name, int32_t rank,
                                const int64_t *dims, const gb_tensor **tensor, gumbel_error *error) {
    return get_tensor(checkpoint, name, rank, dims, false, tensor, error);
}

gumbel_status gb_checkpoint_get_matrix(const gb_checkpoint *checkpoint, const char *name, int32_t rank,
                                       const int64_t *dims, const gb_tensor **tensor, gumbel_error *error) {
    return get_tensor(checkpoint, name, rank, dims, true, tensor, error);
}

size_t gb_checkpoint_count(const gb_checkpoint *checkpoint) {
    return checkpoint->tensor_count;
}

const gb_tensor *gb_checkpoint_at(const gb_checkpoint *checkpoint, size_t index) {
    return checkpoint->tensors[index];
}

size_t gb_checkpoint_index(const gb_checkpoint *checkpoint, const gb_tensor *tensor) {
    const gb_tensor *const *found = find_place(checkpoint->tensors, checkpoint->tensor_count, tensor->name);
    return found && *found == tensor ? (size_t)(found - checkpoint->tensors) : checkpoint->tensor_count;
}

const char *gb_checkpoint_path(const gb_checkpoint *checkpoint) {
    return checkpoint->directory;
}

const char *gb_checkpoint_metadata(const gb_checkpoint *checkpoint, const char *key) {
    for (size_t i = 0; i < checkpoint->shard_count; i++) {
        const json_t *metadata = json_object_get(checkpoint->shards[i].file.header, "__metadata__");
        const char *text = json_string_value(json_object_get(metadata, key));
        if (text)
            return text;
    }
    return checkpoint->joined ? gb_checkpoint_metadata(checkpoint->joined, key) : NULL;
}
