/* SPDX-License-Identifier: Apache-2.0 */
#include "export/weights.h"

#include "base/file_map.h"
#include "base/memory.h"
#include "export/checkpoint/ggml_types.h"
#include "export/quantize/import_blocks.h"

#include <string.h>

typedef enum source_kind { SOURCE_TENSOR, SOURCE_PACKED, SOURCE_VALUES, SOURCE_RANDOM } source_kind;

typedef struct source {
    source_kind kind;
    const gb_tensor *tensor; /* TENSOR */
    gb_packed *packed;       /* PACKED, owned */
    float *values;           /* VALUES, owned */
    uint64_t stream;         /* RANDOM */
    gb_uniform uniform;
    gb_quantize_method method; /* of a quantized constant */
} source;

struct gb_weights {
    const gb_checkpoint *checkpoint; /* NULL: random */
    gb_dtype random_dtype;
    uint64_t seed;
    const gb_quantization *packing; /* NULL: the checkpoint has nothing packed */
    gb_recipe *recipe;              /* NULL: nothing is quantized */
    uint64_t layer_count;
    source *sources; /* one for each constant of the graph, in its order */
    size_t count, capacity;
};

gb_weights *gb_weights_create(const gb_checkpoint *checkpoint, gb_dtype random_dtype, uint64_t seed) {
    gb_weights *weights = gb_allocate(1, sizeof *weights);
    if (weights)
        *weights = (gb_weights){.checkpoint = checkpoint, .random_dtype = random_dtype, .seed = seed};
    return weights;
}

void gb_weights_destroy(gb_weights *weights) {
    if (!weights)
        return;
    for (size_t i = 0; i < weights->count; i++) {
        gb_free(weights->sources[i].values);
        if (weights->sources[i].packed)
            gb_packed_free(weights->sources[i].packed);
        gb_free(weights->sources[i].packed);
    }
    gb_free(weights->sources);
    gb_free(weights);
}

void gb_weights_use_quantization(gb_weights *weights, const gb_quantization *packing) {
    weights->packing = packing;
}

void gb_weights_use_recipe(gb_weights *weights, gb_recipe *recipe, uint64_t layer_count) {
    weights->recipe = recipe;
    weights->layer_count = layer_count;
}

gb_activation gb_weights_activation(const gb_weights *weights) {
    return weights->recipe && gb_recipe_has_int8_activations(weights->recipe) ? GB_ACTIVATION_INT8_PER_GROUP
                                                                              : GB_ACTIVATION_NONE;
}

bool gb_weights_has(const gb_weights *weights, const char *name) {
    return !weights->checkpoint || gb_checkpoint_find(weights->checkpoint, name) ||
           gb_weights_is_packed(weights, name);
}

bool gb_weights_has_shape(const gb_weights *weights, const char *name, int32_t rank, const int64_t *dims) {
    const gb_tensor *found = weights->checkpoint ? gb_checkpoint_find(weights->checkpoint, name) : NULL;
    return found && found->rank == rank && memcmp(found->dims, dims, (size_t)rank * sizeof *dims) == 0;
}

bool gb_weights_is_packed(const gb_weights *weights, const char *name) {
    return weights->checkpoint && weights->packing &&
           gb_packed_has(weights->packing, weights->checkpoint, name);
}

static gumbel_status add(gb_weights *weights, source added, gumbel_error *error) {
    if (!gb_grow((void **)&weights->sources, &weights->capacity, weights->count + 1,
                 sizeof *weights->sources))
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for the list of weights");
    weights->sources[weights->count++] = added;
    return GUMBEL_OK;
}

static source random_source(const gb_weights *weights, const char *name, gb_uniform uniform) {
    return (source){
        .kind = SOURCE_RANDOM, .stream = gb_random_stream(weights->seed, name), .uniform = uniform};
}

gumbel_status gb_weights_add_tensor(gb_weights *weights, const char *name, int32_t rank, const int64_t *dims,
                                    gb_uniform uniform, gb_dtype *dtype, gumbel_error *error) {
    if (!weights->checkpoint) {
        *dtype = weights->random_dtype;
        return add(weights, random_source(weights, name, uniform), error);
    }
    const gb_tensor *tensor = NULL;
    GB_TRY(gb_checkpoint_get(weights->checkpoint, name, rank, dims, &tensor, error));
    *dtype = tensor->dtype;
    return add(weights, (source){.kind = SOURCE_TENSOR, .tensor = tensor}, error);
}

/* What holds the tensor's blocks, or NULL where it has none. */
static const gb_block_info *blocks_of(const gb_tensor *tensor) {
    return tensor && tensor->blocks ? gb_block_find(tensor->blocks->number) : NULL;
}

/* A matrix in the checkpoint: a tensor, a packed matrix, or, when weights are random, neither. */
typedef struct found_matrix {
    const gb_tensor *tensor;
    bool is_packed;
    gb_packed packed;
} found_matrix;

static gumbel_status find_matrix(const gb_weights *weights, const char *tensor, int32_t rank,
                                 const int64_t *dims, found_matrix *found, gumbel_error *error) {
    *found = (found_matrix){0};
    if (weights->checkpoint && weights->packing)
        GB_TRY(gb_packed_find(weights->packing, weights->checkpoint, tensor, rank, dims, &found->packed,
                              &found->is_packed, error));
    if (weights->checkpoint && !found->is_packed)
        GB_TRY(gb_checkpoint_get_matrix(weights->checkpoint, tensor, rank, dims, &found->tensor, error));
    return GUMBEL_OK;
}

/* Finds a matrix and chooses what becomes of it. What is quantized already stays as it is: quantizing it once
 * more would lose more than it saves. */
static gumbel_status plan_matrix(gb_weights *weights, const char *name, const char *tensor, int32_t rank,
                                 const int64_t *dims, gb_quantize_choice *choice, found_matrix *found,
                                 gumbel_error *error) {
    char text[GB_FORMAT_TEXT];
    *choice = (gb_quantize_choice){.format.kind = GB_FORMAT_DENSE};
    GB_TRY(find_matrix(weights, tensor, rank, dims, found, error));
    if (weights->recipe)
        GB_TRY(gb_recipe_choose(weights->recipe, name, (uint64_t)dims[rank - 1], weights->layer_count, choice,
                                error));
    const gb_block_info *info = blocks_of(found->tensor);
    const gb_format *own = info ? &info->format : found->is_packed ? &found->packed.format : NULL;
    if (own && choice->format.kind != GB_FORMAT_DENSE)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT,
                       "recipe %s: %s is quantized already, as %s; expected no recipe or one that keeps it",
                       gb_recipe_name(weights->recipe), name, info ? info->name : gb_format_text(own, text));
    if (own)
        choice->format = *own;
    return GUMBEL_OK;
}

static gb_stored stored_as(const gb_weights *weights, const gb_quantize_choice *choice,
                           const gb_tensor *tensor) {
    gb_dtype dense = tensor ? tensor->dtype : weights->random_dtype;
    return (gb_stored){.dtype = choice->format.kind == GB_FORMAT_DENSE ? dense : GB_QUANTIZED,
                       .format = choice->format};
}

/* Takes what packed owns, unless it fails. */
static gumbel_status add_packed(gb_weights *weights, const gb_packed *packed, gumbel_error *error) {
    gb_packed *copy = gb_allocate(1, sizeof *copy);
    if (!copy)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for the list of weights");
    *copy = *packed;
    gumbel_status status = add(weights, (source){.kind = SOURCE_PACKED, .packed = copy}, error);
    if (status != GUMBEL_OK)
        gb_free(copy);
    return status;
}

gumbel_status gb_weights_plan_matrix(gb_weights *weights, const char *name, const char *tensor, int32_t rank,
                                     const int64_t *dims, gb_stored *stored, gumbel_error *error) {
    gb_quantize_choice choice;
    found_matrix found;
    gumbel_status status = plan_matrix(weights, name, tensor, rank, dims, &choice, &found, error);
    if (status == GUMBEL_OK)
        *stored = stored_as(weights, &choice, found.tensor);
    gb_packed_free(&found.packed);
    return status;
}

gumbel_status gb_weights_add_matrix(gb_weights *weights, const char *name, const char *tensor, int32_t rank,
                                    const int64_t *dims, gb_uniform uniform, gb_stored *stored,
                                    gumbel_error *error) {
    gb_quantize_choice choice;
    found_matrix found;
    gumbel_status status = plan_matrix(weights, name, tensor, rank, dims, &choice, &found, error);
    if (status == GUMBEL_OK && found.is_packed)
        status = add_packed(weights, &found.packed, error);
    if (status != GUMBEL_OK)
        gb_packed_free(&found.packed);
    GB_TRY(status);
    *stored = stored_as(weights, &choice, found.tensor);
    if (found.is_packed)
        return GUMBEL_OK;
    source added = found.tensor ? (source){.kind = SOURCE_TENSOR, .tensor = found.tensor}
                                : random_source(weights, tensor, uniform);
    added.method = choice.method;
    return add(weights, added, error);
}

gumbel_status gb_weights_add_values(gb_weights *weights, const float *values, size_t count,
                                    gumbel_error *error) {
    float *copy = gb_allocate(count, sizeof *copy);
    if (!copy)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for a constant of %zu values", count);
    memcpy(copy, values, count * sizeof *copy);
    gumbel_status status = add(weights, (source){.kind = SOURCE_VALUES, .values = copy}, error);
    if (status != GUMBEL_OK)
        gb_free(copy);
    return status;
}

size_t gb_weights_count(const gb_weights *weights) {
    return weights->count;
}

bool gb_weights_uses(const gb_weights *weights, const gb_tensor *tensor) {
    for (size_t i = 0; i < weights->count; i++) {
        const source *from = &weights->sources[i];
        if (from->tensor == tensor || (from->packed && gb_packed_uses(from->packed, tensor)))
            return true;
    }
    return false;
}

uint64_t gb_weights_source_bytes(const gb_weights *weights) {
    uint64_t bytes = 0;
    size_t count = weights->checkpoint ? gb_checkpoint_count(weights->checkpoint) : 0;
    for (size_t i = 0; i < count; i++) {
        const gb_tensor *tensor = gb_checkpoint_at(weights->checkpoint, i);
        bytes += gb_weights_uses(weights, tensor) ? tensor->size : 0;
    }
    return bytes;
}

void gb_weights_read(const gb_weights *weights, uint32_t index, const gb_constant *constant, uint64_t offset,
                     uint64_t size, void *scratch, const void **data) {
    const source *from = &weights->sources[index];
    if (from->kind == SOURCE_TENSOR) {
        *data = from->tensor->data + offset;
    } else if (from->kind == SOURCE_VALUES) {
        *data = (const uint8_t *)from->values + offset;
    } else {
        uint64_t element = gb_dtype_size(constant->type.dtype);
        gb_random_fill(from->stream, from->uniform, constant->type.dtype, offset / element, size / element,
                       scratch);
        *data = scratch;
    }
}

void gb_weights_release(const gb_weights *weights, uint32_t index, uint64_t offset, uint64_t size) {
    const source *from = &weights->sources[index];
    if (from->kind == SOURCE_TENSOR && !from->tensor->is_in_memory)
        gb_release_pages(from->tensor->data + offset, size);
}

bool gb_weights_has_blocks(const gb_weights *weights, uint32_t index, gb_block_type *type,
                           const uint8_t **blocks) {
    const gb_tensor *tensor = weights->sources[index].tensor;
    if (!blocks_of(tensor))
        return false;
    *type = (gb_block_type)tensor->blocks->number;
    *blocks = tensor->data;
    return true;
}

const gb_packed *gb_weights_packed(const gb_weights *weights, uint32_t index) {
    return weights->sources[index].packed;
}

gb_quantized_source gb_weights_quantized_source(const gb_weights *weights, uint32_t index) {
    const source *from = &weights->sources[index];
    gb_quantized_source made = {
        .method = from->method, .stream = from->stream, .half_width = from->uniform.high};
    if (from->kind == SOURCE_TENSOR) {
        made.data = from->tensor->data;
        made.dtype = from->tensor->dtype;
        made.is_mapped = !from->tensor->is_in_memory;
    }
    return made;
}
