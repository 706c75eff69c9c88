/* SPDX-License-Identifier: Apache-2.0 */
#include "export/weights.h"

#include "base/file_map.h"
#include "base/memory.h"
#include "export/checkpoint/ggml_types.h"
#include "export/quantize/widths.h"
#include "tensor/convert.h"

#include <string.h>

typedef enum source_kind { SOURCE_TENSOR, SOURCE_PACKED, SOURCE_VALUES, SOURCE_RANDOM } source_kind;

typedef struct source {
    source_kind kind;
    gb_matrix_source matrix; /* TENSOR, PACKED; owned */
    uint64_t columns;        /* TENSOR: of a row, where a file's own dims may have others of 1 */
    float *values;           /* VALUES, owned */
    uint64_t stream;         /* RANDOM */
    uint64_t first_element;  /* RANDOM: of a part of a tensor */
    gb_uniform uniform;
    gb_quantize_method method;           /* of a quantized constant */
    gb_product_input input;              /* of products with it */
    bool is_product;                     /* quantized, and a product's weight */
    const gb_correlations *correlations; /* of what products with it take in; NULL: not known */
} source;

struct gb_weights {
    const gb_checkpoint *checkpoint; /* NULL: random */
    gb_dtype random_dtype;
    uint64_t seed;
    const gb_quantization *packing; /* NULL: the checkpoint has nothing packed */
    gb_recipe *recipe;              /* NULL: nothing is quantized */
    uint64_t layer_count;
    gumbel_calibration *calibration; /* NULL: none */
    const bool *is_wide;             /* of each constant; NULL: of none */
    const gb_weights *head;          /* the draft head's; NULL: there is none */
    source *sources;                 /* one for each constant of the graph, in its order */
    size_t count, capacity;
    size_t unstacked;
    bool *is_used; /* of each tensor of the checkpoint, in its order: whether a source has it */
};

gb_weights *gb_weights_create(const gb_checkpoint *checkpoint, gb_dtype random_dtype, uint64_t seed) {
    gb_weights *weights = gb_allocate(1, sizeof *weights);
    if (!weights)
        return NULL;
    *weights = (gb_weights){.checkpoint = checkpoint, .random_dtype = random_dtype, .seed = seed};
    if (!checkpoint)
        return weights;
    weights->is_used = gb_allocate(gb_checkpoint_count(checkpoint), sizeof *weights->is_used);
    if (weights->is_used)
        return weights;
    gb_free(weights);
    return NULL;
}

void gb_weights_destroy(gb_weights *weights) {
    if (!weights)
        return;
    for (size_t i = 0; i < weights->count; i++) {
        gb_free(weights->sources[i].values);
        gb_matrix_source_free(&weights->sources[i].matrix);
    }
    gb_free(weights->sources);
    gb_free(weights->is_used);
    gb_free(weights);
}

void gb_weights_use_quantization(gb_weights *weights, const gb_quantization *packing) {
    weights->packing = packing;
}

void gb_weights_use_recipe(gb_weights *weights, gb_recipe *recipe, uint64_t layer_count) {
    weights->recipe = recipe;
    weights->layer_count = layer_count;
}

void gb_weights_use_calibration(gb_weights *weights, gumbel_calibration *calibration) {
    weights->calibration = calibration;
}

void gb_weights_widen(gb_weights *weights, const bool *is_wide) {
    weights->is_wide = is_wide;
}

void gb_weights_attach_head(gb_weights *weights, const gb_weights *head) {
    weights->head = head;
}

const gb_weights *gb_weights_head(const gb_weights *weights) {
    return weights->head;
}

gb_calibrated_count gb_weights_count_calibrated(const gb_weights *weights) {
    gb_calibrated_count count = {0};
    if (weights->head)
        count = gb_weights_count_calibrated(weights->head);
    for (size_t i = 0; i < weights->count; i++) {
        count.known += weights->sources[i].correlations != NULL;
        count.others += weights->sources[i].is_product && !weights->sources[i].correlations;
    }
    return count;
}

gb_product_input gb_weights_input(const gb_weights *weights, uint32_t index) {
    return weights->sources[index].input;
}

bool gb_weights_has(const gb_weights *weights, const char *name) {
    return !weights->checkpoint || gb_matrix_source_exists(weights->checkpoint, weights->packing, name);
}

bool gb_weights_has_shape(const gb_weights *weights, const char *name, int32_t rank, const int64_t *dims) {
    const gb_tensor *found = weights->checkpoint ? gb_checkpoint_find(weights->checkpoint, name) : NULL;
    return found && found->rank == rank && memcmp(found->dims, dims, (size_t)rank * sizeof *dims) == 0;
}

bool gb_weights_is_packed(const gb_weights *weights, const char *name) {
    return weights->checkpoint && weights->packing &&
           gb_packed_has(weights->packing, weights->checkpoint, name);
}

static void mark_used(void *user, const gb_tensor *tensor) {
    gb_weights *weights = user;
    const size_t index = gb_checkpoint_index(weights->checkpoint, tensor);
    if (index < gb_checkpoint_count(weights->checkpoint))
        weights->is_used[index] = true;
}

static gumbel_status add(gb_weights *weights, source added, gumbel_error *error) {
    if (!gb_grow((void **)&weights->sources, &weights->capacity, weights->count + 1,
                 sizeof *weights->sources))
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for the list of weights");
    weights->sources[weights->count++] = added;
    gb_matrix_source_visit(&added.matrix, mark_used, weights);
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
    source added = {.kind = SOURCE_TENSOR, .columns = (uint64_t)dims[rank - 1]};
    gumbel_status status = gb_matrix_source_of(tensor, &added.matrix, error);
    if (status == GUMBEL_OK)
        status = add(weights, added, error);
    if (status != GUMBEL_OK)
        gb_matrix_source_free(&added.matrix);
    return status;
}

/* Finds what a request names. *is_found is false where its tensors cannot be stacked. */
static gumbel_status find(const gb_weights *weights, const gb_matrix_request *request,
                          gb_matrix_source *found, bool *is_found, gumbel_error *error) {
    *found = (gb_matrix_source){0};
    *is_found = true;
    return weights->checkpoint
               ? gb_matrix_source_find(weights->checkpoint, weights->packing, request, found, is_found, error)
               : GUMBEL_OK;
}

static gb_stored stored_as(const gb_weights *weights, const gb_quantize_choice *choice,
                           const gb_matrix_source *found) {
    gb_dtype dense = found->tensor_count > 0 ? gb_matrix_source_dtype(found) : weights->random_dtype;
    return (gb_stored){.dtype = choice->format.kind == GB_FORMAT_DENSE ? dense : GB_QUANTIZED,
                       .format = choice->format};
}

static gb_recipe_activations inputs_of(const gb_weights *weights) {
    return weights->recipe ? gb_recipe_inputs(weights->recipe) : GB_RECIPE_INPUTS_AS_THEY_ARE;
}

/* Chooses what becomes of a matrix. What is quantized already stays as it is: quantizing it once more would
 * lose more than it saves. */
static gumbel_status choose(gb_weights *weights, const gb_matrix_request *request,
                            const gb_matrix_source *found, gb_quantize_choice *choice, gumbel_error *error) {
    char text[GB_FORMAT_TEXT];
    *choice = (gb_quantize_choice){.format.kind = GB_FORMAT_DENSE};
    if (weights->recipe)
        GB_TRY(gb_recipe_choose(weights->recipe, request->rule_name ? request->rule_name : request->name,
                                (uint64_t)request->dims[request->rank - 1], weights->layer_count, choice,
                                error));
    if (request->is_table)
        choice->input.rotation = 0;
    if (weights->is_wide && weights->is_wide[weights->count])
        gb_widen(choice);
    const gb_block_info *info = gb_matrix_source_blocks(found);
    const gb_format *own = info ? &info->format : found->is_packed ? &found->packed.format : NULL;
    if (own && choice->format.kind != GB_FORMAT_DENSE)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT,
                       "recipe %s: %s is quantized already, as %s; expected no recipe or one that keeps it",
                       gb_recipe_name(weights->recipe), request->name,
                       info ? info->name : gb_format_text(own, text));
    if (own)
        choice->format = *own;
    if (own && inputs_of(weights) == GB_RECIPE_INPUTS_INT8)
        choice->input.activation = GB_ACTIVATION_INT8_PER_GROUP;
    const bool is_bfloat16 =
        !request->is_table && !request->is_gate && stored_as(weights, choice, found).dtype == GB_BF16;
    if (is_bfloat16 && inputs_of(weights) == GB_RECIPE_INPUTS_BFLOAT16)
        choice->input.activation = GB_ACTIVATION_BFLOAT16;
    return GUMBEL_OK;
}

/* A head that is made from the embedding's table was that table where the calibration ran. */
static const gb_correlations *find_correlations(const gb_weights *weights, const gb_matrix_request *request) {
    const uint64_t columns = (uint64_t)request->dims[request->rank - 1];
    if (!weights->calibration || request->is_table)
        return NULL;
    const gb_correlations *found = gb_calibration_find(weights->calibration, request->name, columns);
    return found ? found : gb_calibration_find(weights->calibration, request->tensors[0], columns);
}

/* Takes what found owns, unless it fails. */
static gumbel_status add_found(gb_weights *weights, const gb_matrix_request *request,
                               const gb_matrix_source *found, gb_uniform uniform,
                               const gb_quantize_choice *choice, gumbel_error *error) {
    source added = random_source(weights, request->tensors[0], uniform);
    added.first_element = (uint64_t)(request->first_row * request->dims[request->rank - 1]);
    if (found->is_packed || found->tensor_count > 0)
        added = (source){.kind = found->is_packed ? SOURCE_PACKED : SOURCE_TENSOR, .matrix = *found};
    added.columns = (uint64_t)request->dims[request->rank - 1];
    added.method = choice->method;
    added.input = choice->input;
    added.is_product = choice->format.kind != GB_FORMAT_DENSE && !request->is_table;
    added.correlations = added.is_product ? find_correlations(weights, request) : NULL;
    return add(weights, added, error);
}

gumbel_status gb_weights_add_matrix(gb_weights *weights, const gb_matrix_request *request, gb_uniform uniform,
                                    gb_stored *stored, bool *is_added, gumbel_error *error) {
    gb_quantize_choice choice;
    gb_matrix_source found;
    gumbel_status status = find(weights, request, &found, is_added, error);
    if (status == GUMBEL_OK && !*is_added) {
        weights->unstacked++;
        return GUMBEL_OK;
    }
    if (status == GUMBEL_OK)
        status = choose(weights, request, &found, &choice, error);
    if (status == GUMBEL_OK)
        status = add_found(weights, request, &found, uniform, &choice, error);
    if (status != GUMBEL_OK)
        gb_matrix_source_free(&found);
    else
        *stored = stored_as(weights, &choice, &found);
    return status;
}

size_t gb_weights_unstacked_count(const gb_weights *weights) {
    return weights->unstacked + (weights->head ? weights->head->unstacked : 0);
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

static float element_of(const gb_tensor *tensor, size_t index) {
    float value;
    uint16_t half;
    if (tensor->dtype == GB_F32) {
        memcpy(&value, tensor->data + index * sizeof value, sizeof value);
        return value;
    }
    memcpy(&half, tensor->data + index * sizeof half, sizeof half);
    return gb_widen_half(half, tensor->dtype);
}

gumbel_status gb_weights_add_in_turns(gb_weights *weights, const char *name, bool is_second,
                                      const int64_t dims[2], gumbel_error *error) {
    const gb_tensor *tensor = NULL;
    const int64_t whole[] = {dims[0], 2 * dims[1]};
    GB_TRY(gb_checkpoint_get(weights->checkpoint, name, 2, whole, &tensor, error));
    const size_t count = (size_t)(dims[0] * dims[1]);
    source added = {.kind = SOURCE_VALUES, .values = gb_allocate(count, sizeof *added.values)};
    if (!added.values)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for half of %s", name);
    for (size_t i = 0; i < count; i++)
        added.values[i] = element_of(tensor, 2 * i + is_second);
    mark_used(weights, tensor);
    const gumbel_status status = add(weights, added, error);
    if (status != GUMBEL_OK)
        gb_free(added.values);
    return status;
}

size_t gb_weights_count(const gb_weights *weights) {
    return weights->count;
}

bool gb_weights_uses(const gb_weights *weights, size_t index) {
    return weights->is_used[index] || (weights->head && weights->head->is_used[index]);
}

uint64_t gb_weights_source_bytes(const gb_weights *weights) {
    uint64_t bytes = 0;
    size_t count = weights->checkpoint ? gb_checkpoint_count(weights->checkpoint) : 0;
    for (size_t i = 0; i < count; i++)
        bytes += gb_weights_uses(weights, i) ? gb_checkpoint_at(weights->checkpoint, i)->size : 0;
    return bytes;
}

static gb_stacked_bytes bytes_of(const source *from) {
    return (gb_stacked_bytes){.parts = from->matrix.parts, .stacking = from->matrix.stacking};
}

static const gb_tensor *first_tensor(const source *from) {
    return from->matrix.tensors[0];
}

static bool is_stacked(const source *from) {
    return from->matrix.stacking.parts > 1;
}

static uint64_t row_bytes_of(const source *from) {
    return from->columns * gb_dtype_size(first_tensor(from)->dtype);
}

/* Copies bytes of stacked rows. */
static void gather_rows(const source *from, uint64_t offset, uint64_t size, uint8_t *to) {
    const gb_stacked_bytes bytes = bytes_of(from);
    const uint64_t row_bytes = row_bytes_of(from);
    while (size > 0) {
        uint64_t within = offset % row_bytes, left = row_bytes - within, part = left < size ? left : size;
        memcpy(to, gb_stacked_row(&bytes, offset / row_bytes, row_bytes) + within, (size_t)part);
        to += part;
        offset += part;
        size -= part;
    }
}

static gb_fp8_tensors fp8_of(const source *from) {
    return (gb_fp8_tensors){from->matrix.fp8, from->matrix.tensor_count};
}

/* count elements of 8-bit floats from element `first` on, as bfloat16. */
static void widen_fp8(const source *from, uint64_t first, uint64_t count, uint8_t *to) {
    enum { CHUNK = 256 };
    const gb_stacked_bytes codes = bytes_of(from);
    const gb_fp8_tensors fp8 = fp8_of(from);
    const uint64_t columns = from->columns;
    float values[CHUNK];
    while (count > 0) {
        const uint64_t column = first % columns, left = columns - column, most = left < CHUNK ? left : CHUNK;
        const uint64_t part = most < count ? most : count;
        gb_fp8_read(&fp8, &codes, columns, first / columns, column, part, values);
        for (uint64_t i = 0; i < part; i++, to += 2) {
            const uint16_t half = gb_bf16_from_float(values[i]);
            memcpy(to, &half, sizeof half);
        }
        first += part;
        count -= part;
    }
}

/* Rows that are stacked, in pairs or a part of a tensor have other numbers than in the file. */
const char *gb_weights_name(const gb_weights *weights, uint32_t index, const char *name,
                            char text[GB_FILE_NAME]) {
    const source *from = &weights->sources[index];
    if (from->kind != SOURCE_TENSOR || is_stacked(from) || from->matrix.parts[0] != first_tensor(from)->data)
        return name;
    return gb_checkpoint_file_name(weights->checkpoint, first_tensor(from)->name, text);
}

void gb_weights_read(const gb_weights *weights, uint32_t index, const gb_constant *constant, uint64_t offset,
                     uint64_t size, void *scratch, const void **data) {
    const source *from = &weights->sources[index];
    if (from->kind == SOURCE_TENSOR && from->matrix.fp8) {
        widen_fp8(from, offset / 2, size / 2, scratch);
        *data = scratch;
    } else if (from->kind == SOURCE_TENSOR && is_stacked(from)) {
        gather_rows(from, offset, size, scratch);
        *data = scratch;
    } else if (from->kind == SOURCE_TENSOR) {
        *data = from->matrix.parts[0] + offset;
    } else if (from->kind == SOURCE_VALUES) {
        *data = (const uint8_t *)from->values + offset;
    } else {
        uint64_t element = gb_dtype_size(constant->type.dtype);
        gb_random_fill(from->stream, from->uniform, constant->type.dtype,
                       from->first_element + offset / element, size / element, scratch);
        *data = scratch;
    }
}

void gb_weights_release(const gb_weights *weights, uint32_t index, uint64_t offset, uint64_t size) {
    const source *from = &weights->sources[index];
    if (from->kind != SOURCE_TENSOR || first_tensor(from)->is_in_memory)
        return;
    const gb_stacked_bytes bytes = bytes_of(from);
    if (from->matrix.fp8) { /* offset and size are of bfloat16 */
        const uint64_t columns = from->columns, begin = offset / 2 / columns;
        gb_release_stacked(&bytes, begin, (offset + size) / 2 / columns - begin,
                           gb_fp8_row_bytes(from->matrix.fp8, columns));
        return;
    }
    const uint64_t row_bytes = is_stacked(from) ? row_bytes_of(from) : 1;
    const uint64_t first = offset / row_bytes;
    gb_release_stacked(&bytes, first, (offset + size) / row_bytes - first, row_bytes);
}

bool gb_weights_has_blocks(const gb_weights *weights, uint32_t index, gb_block_type *type,
                           gb_stacked_bytes *blocks) {
    const source *from = &weights->sources[index];
    if (!gb_matrix_source_blocks(&from->matrix))
        return false;
    *type = (gb_block_type)first_tensor(from)->blocks->number;
    *blocks = bytes_of(from);
    return true;
}

const gb_packed *gb_weights_packed(const gb_weights *weights, uint32_t index) {
    const gb_matrix_source *matrix = &weights->sources[index].matrix;
    return matrix->is_packed ? &matrix->packed : NULL;
}

gb_quantized_source gb_weights_plain_source(const gb_weights *weights, uint32_t index) {
    const source *from = &weights->sources[index];
    gb_quantized_source made = {.method = from->method,
                                .rotation = from->input.rotation,
                                .stream = from->stream + from->first_element, /* parts are unlike */
                                .half_width = from->uniform.high};
    if (from->kind != SOURCE_TENSOR)
        return made;
    made.data = bytes_of(from);
    made.dtype = gb_matrix_source_dtype(&from->matrix);
    made.fp8 = fp8_of(from);
    made.is_mapped = !first_tensor(from)->is_in_memory;
    return made;
}

const gb_correlations *gb_weights_correlations(const gb_weights *weights, uint32_t index) {
    return weights->sources[index].correlations;
}

gumbel_status gb_weights_quantized_source(const gb_weights *weights, uint32_t index,
                                          gb_quantized_source *made, gumbel_error *error) {
    const gb_correlations *correlations = gb_weights_correlations(weights, index);
    *made = gb_weights_plain_source(weights, index);
    if (!made->data.parts || !correlations)
        return GUMBEL_OK;
    made->feedback = gb_calibration_feedback(weights->calibration, correlations, made->rotation);
    return made->feedback
               ? GUMBEL_OK
               : gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for the feedback of a product of %llu inputs",
                         (unsigned long long)correlations->columns);
}
