/* SPDX-License-Identifier: Apache-2.0 */
#include "export/weights.h"

#include "base/memory.h"

#include <string.h>

typedef enum source_kind { SOURCE_TENSOR, SOURCE_VALUES, SOURCE_RANDOM } source_kind;

typedef struct source {
    source_kind kind;
    const gb_tensor *tensor; /* TENSOR */
    float *values;           /* VALUES, owned */
    uint64_t stream;         /* RANDOM */
    gb_uniform uniform;
} source;

struct gb_weights {
    const gb_checkpoint *checkpoint; /* NULL: random */
    gb_dtype random_dtype;
    uint64_t seed;
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
    for (size_t i = 0; i < weights->count; i++)
        gb_free(weights->sources[i].values);
    gb_free(weights->sources);
    gb_free(weights);
}

bool gb_weights_has(const gb_weights *weights, const char *name) {
    return !weights->checkpoint || gb_checkpoint_find(weights->checkpoint, name);
}

static gumbel_status add(gb_weights *weights, source added, gumbel_error *error) {
    if (!gb_grow((void **)&weights->sources, &weights->capacity, weights->count + 1,
                 sizeof *weights->sources))
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for the list of weights");
    weights->sources[weights->count++] = added;
    return GUMBEL_OK;
}

gumbel_status gb_weights_add_tensor(gb_weights *weights, const char *name, int32_t rank, const int64_t *dims,
                                    gb_uniform uniform, gb_dtype *dtype, gumbel_error *error) {
    if (!weights->checkpoint) {
        *dtype = weights->random_dtype;
        return add(weights,
                   (source){.kind = SOURCE_RANDOM,
                            .stream = gb_random_stream(weights->seed, name),
                            .uniform = uniform},
                   error);
    }
    const gb_tensor *tensor = NULL;
    GB_TRY(gb_checkpoint_get(weights->checkpoint, name, rank, dims, &tensor, error));
    *dtype = tensor->dtype;
    return add(weights, (source){.kind = SOURCE_TENSOR, .tensor = tensor}, error);
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
    for (size_t i = 0; i < weights->count; i++)
        if (weights->sources[i].tensor == tensor)
            return true;
    return false;
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
