/* SPDX-License-Identifier: Apache-2.0 */
#include "export/unused_tensors.h"

#include "base/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_PARTS = 8 };

typedef struct part {
    const char *name; /* not terminated */
    size_t length, count;
} part;

/* The part ends at the first character that no name of a module has. */
static part part_of(const gb_tensor *tensor) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
    const char *name = strncmp(tensor->name, "model.", 6) == 0 ? tensor->name + 6 : tensor->name;
    return (part){.name = name, .length = strspn(name, letters)};
}

/* Counts one tensor of that part. When the parts are too many the last one takes the rest. */
static void count_part(part parts[MAX_PARTS], size_t *part_count, part added) {
    size_t at = 0;
    while (at < *part_count &&
           (parts[at].length != added.length || memcmp(parts[at].name, added.name, added.length) != 0))
        at++;
    if (at == *part_count && at < MAX_PARTS) {
        parts[at] = added;
        ++*part_count;
    }
    if (at == MAX_PARTS) {
        at = MAX_PARTS - 1;
        parts[at].name = "others";
        parts[at].length = strlen("others");
    }
    parts[at].count++;
}

/* Whether the configuration lets the tensor of that index be left out. */
static bool is_left_scale(const gb_checkpoint *checkpoint, const gb_quantization *packing, size_t index) {
    const char *point = strrchr(gb_checkpoint_at(checkpoint, index)->name, '.');
    return packing && point && gb_quantization_leaves(packing, point + 1);
}

size_t gb_count_left_scales(const gb_checkpoint *checkpoint, const gb_quantization *packing,
                            const gb_weights *weights) {
    size_t count = 0;
    for (size_t i = 0; checkpoint && i < gb_checkpoint_count(checkpoint); i++)
        count += !gb_weights_uses(weights, i) && is_left_scale(checkpoint, packing, i);
    return count;
}

size_t gb_describe_unused(const gb_checkpoint *checkpoint, const gb_quantization *packing,
                          const gb_weights *weights, char *text, size_t text_size) {
    part parts[MAX_PARTS];
    size_t part_count = 0, total = 0, used = 0;
    for (size_t i = 0; checkpoint && i < gb_checkpoint_count(checkpoint); i++) {
        if (gb_weights_uses(weights, i) || is_left_scale(checkpoint, packing, i))
            continue;
        count_part(parts, &part_count, part_of(gb_checkpoint_at(checkpoint, i)));
        total++;
    }
    text[0] = '\0';
    for (size_t i = 0; i < part_count && used < text_size; i++)
        used += (size_t)snprintf(text + used, text_size - used, "%s%.*s %zu", i ? ", " : "",
                                 (int)(parts[i].length < 64 ? parts[i].length : 64), parts[i].name,
                                 parts[i].count);
    return total;
}

/* ---- Companions of a weight ---------------------------------------------------------------------------- */

/* The names of used tensors, sorted: a checkpoint may have as many scales as weights, tens of thousands. */
typedef struct used_names {
    char **names; /* owned */
    size_t count;
} used_names;

static int compare_names(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Names are compared as the file has them, where a bias or a scale stands beside its weight. */
static const char *file_name_at(const gb_checkpoint *checkpoint, size_t index, char text[GB_FILE_NAME]) {
    return gb_checkpoint_file_name(checkpoint, gb_checkpoint_at(checkpoint, index)->name, text);
}

static bool add_name(used_names *used, const char *name) {
    char *copy = gb_copy_string(name, strlen(name));
    if (copy)
        used->names[used->count++] = copy;
    return copy;
}

static gumbel_status list_used(const gb_checkpoint *checkpoint, const gb_weights *weights, used_names *used,
                               gumbel_error *error) {
    char text[GB_FILE_NAME];
    const size_t count = gb_checkpoint_count(checkpoint);
    used->names = gb_allocate(count, sizeof *used->names);
    if (!used->names)
        return gb_no_memory(error, "the names of used tensors");
    for (size_t i = 0; i < count; i++)
        if (gb_weights_uses(weights, i) && !add_name(used, file_name_at(checkpoint, i, text)))
            return gb_no_memory(error, "the names of used tensors");
    if (used->count > 1)
        qsort(used->names, used->count, sizeof *used->names, compare_names);
    return GUMBEL_OK;
}

static void free_used(used_names *used) {
    for (size_t i = 0; i < used->count; i++)
        gb_free(used->names[i]);
    gb_free(used->names);
}

/* Those that begin with the first `length` characters of name follow each other from here. */
static size_t first_within(const used_names *used, const char *name, size_t length) {
    size_t low = 0, high = used->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (strncmp(used->names[middle], name, length) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool is_within(const used_names *used, size_t index, const char *name, size_t length) {
    return index < used->count && strncmp(used->names[index], name, length) == 0;
}

/* ---- Quantization -------------------------------------------------------------------------------------- */

/* What methods of quantization call their numbers, as parts of the last component of a name. */
static const char *const WORDS[] = {"scale", "zero_point", "absmax", "SCB", "qzeros", "g_idx"};

static bool is_scale(const char *component) {
    for (size_t i = 0; i < sizeof WORDS / sizeof *WORDS; i++)
        if (strstr(component, WORDS[i]))
            return true;
    return false;
}

/* What has the name before the last component, or is within the module of that name. */
static const char *find_scaled(const used_names *used, const char *name, size_t length) {
    const size_t module = first_within(used, name, length), inner = first_within(used, name, length + 1);
    if (is_within(used, module, name, length) && used->names[module][length] == '\0')
        return used->names[module];
    return is_within(used, inner, name, length + 1) ? used->names[inner] : NULL;
}

/* ---- Biases -------------------------------------------------------------------------------------------- */

/* The head's weight may be the embedding table, which has another name, wherever it stands and however it is
 * packed. */
static const char *find_tied(const used_names *used, const char *bias) {
    static const struct {
        const char *bias, *weight;
    } heads[] = {{"output.bias", "token_embd."},
                 {"lm_head.bias", "embed_tokens."},
                 {"language_model.lm_head.bias", "embed_tokens."}};
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
        for (size_t k = 0; strcmp(bias, heads[i].bias) == 0 && k < used->count; k++)
            if (strstr(used->names[k], heads[i].weight))
                return used->names[k];
    return NULL;
}

/* Adding it changes no result; AutoGPTQ wrote one beside each matrix. */
static bool is_all_zero(const gb_tensor *bias) {
    uint64_t i = 0;
    while (i < bias->size && bias->data[i] == 0)
        i++;
    return i == bias->size;
}

/* The weight of the module before the bias's point, whole or packed. */
static const char *find_biased(const used_names *used, const char *name, size_t length) {
    for (size_t i = first_within(used, name, length + 1); is_within(used, i, name, length + 1); i++) {
        const char *component = used->names[i] + length + 1;
        if (strncmp(component, "weight", 6) == 0 || strncmp(component, "_weight", 7) == 0 ||
            strcmp(component, "qweight") == 0)
            return used->names[i];
    }
    return find_tied(used, name);
}

/* ---- Both ---------------------------------------------------------------------------------------------- */

static gumbel_status refuse_scale(const char *path, const char *name, const char *weight,
                                  gumbel_error *error) {
    return gb_fail(error, GUMBEL_ERROR_UNSUPPORTED,
                   "%s: tensor %s is not used: %s would be read without it. This quantization is not "
                   "supported in this version; take the model unquantized, or as GGUF, MLX, GPTQ, AWQ, "
                   "compressed-tensors or torchao with 4 to 8 bits",
                   path, name, weight);
}

static gumbel_status refuse_bias(const char *path, const char *name, const char *weight,
                                 gumbel_error *error) {
    return gb_fail(error, GUMBEL_ERROR_UNSUPPORTED,
                   "%s: tensor %s is not used: the results of %s would be computed without it; biases there "
                   "are not supported in this version for this architecture",
                   path, name, weight);
}

static gumbel_status check_unused(const char *path, const used_names *used, const gb_tensor *tensor,
                                  const char *name, gumbel_error *error) {
    const char *point = strrchr(name, '.');
    if (!point)
        return GUMBEL_OK;
    const size_t length = (size_t)(point - name);
    const bool is_bias = strcmp(point, ".bias") == 0;
    if (is_bias && is_all_zero(tensor))
        return GUMBEL_OK;
    const char *weight = is_bias           ? find_biased(used, name, length)
                         : is_scale(point) ? find_scaled(used, name, length)
                                           : NULL;
    if (!weight)
        return GUMBEL_OK;
    return is_bias ? refuse_bias(path, name, weight, error) : refuse_scale(path, name, weight, error);
}

gumbel_status gb_refuse_unused_companions(const gb_checkpoint *checkpoint, const gb_quantization *packing,
                                          const gb_weights *weights, gumbel_error *error) {
    char text[GB_FILE_NAME];
    used_names used = {0};
    if (!checkpoint)
        return GUMBEL_OK;
    gumbel_status status = list_used(checkpoint, weights, &used, error);
    for (size_t i = 0; i < gb_checkpoint_count(checkpoint) && status == GUMBEL_OK; i++)
        if (!gb_weights_uses(weights, i) && !is_left_scale(checkpoint, packing, i))
            status = check_unused(gb_checkpoint_path(checkpoint), &used, gb_checkpoint_at(checkpoint, i),
                                  file_name_at(checkpoint, i, text), error);
    free_used(&used);
    return status;
}
