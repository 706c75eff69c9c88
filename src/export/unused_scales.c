/* SPDX-License-Identifier: Apache-2.0 */
#include "export/unused_scales.h"

#include "base/memory.h"

#include <string.h>

/* What methods of quantization call their numbers, as parts of the last component of a name. */
static const char *const WORDS[] = {"scale", "zero_point", "absmax", "SCB", "qzeros", "g_idx"};

/* The name's last component, if it is one of a quantization. */
static const char *find_scale(const char *name) {
    const char *point = strrchr(name, '.');
    for (size_t i = 0; point && i < sizeof WORDS / sizeof *WORDS; i++)
        if (strstr(point, WORDS[i]))
            return point;
    return NULL;
}

/* Whether the tensor is the module, or one within it, of the first `length` characters of name. */
static bool is_beside(const char *tensor, const char *name, size_t length) {
    return strncmp(tensor, name, length) == 0 && (tensor[length] == '\0' || tensor[length] == '.');
}

typedef struct used_tensors {
    const gb_tensor **tensors;
    size_t count;
} used_tensors;

static gumbel_status list_used(const gb_checkpoint *checkpoint, const gb_weights *weights, used_tensors *used,
                               gumbel_error *error) {
    const size_t count = gb_checkpoint_count(checkpoint);
    used->tensors = gb_allocate(count, sizeof *used->tensors);
    if (!used->tensors)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for %zu tensors", count);
    for (size_t i = 0; i < count; i++)
        if (gb_weights_uses(weights, gb_checkpoint_at(checkpoint, i)))
            used->tensors[used->count++] = gb_checkpoint_at(checkpoint, i);
    return GUMBEL_OK;
}

/* Names are compared as the file has them, where a scale stands beside its weight. */
static gumbel_status check_scale(const gb_checkpoint *checkpoint, const used_tensors *used,
                                 const gb_tensor *tensor, gumbel_error *error) {
    char own[GB_FILE_NAME], other[GB_FILE_NAME];
    const char *name = gb_checkpoint_file_name(checkpoint, tensor->name, own);
    const char *end = find_scale(name);
    for (size_t i = 0; end && i < used->count; i++) {
        const char *weight = gb_checkpoint_file_name(checkpoint, used->tensors[i]->name, other);
        if (is_beside(weight, name, (size_t)(end - name)))
            return gb_fail(error, GUMBEL_ERROR_UNSUPPORTED,
                           "%s: tensor %s is not used: %s would be read without it. This quantization is not "
                           "supported in this version; take the model unquantized, or as GGUF, MLX, "
                           "compressed-tensors or torchao with 4 to 8 bits",
                           gb_checkpoint_path(checkpoint), name, weight);
    }
    return GUMBEL_OK;
}

gumbel_status gb_refuse_unused_scales(const gb_checkpoint *checkpoint, const gb_weights *weights,
                                      gumbel_error *error) {
    used_tensors used = {0};
    if (!checkpoint)
        return GUMBEL_OK;
    gumbel_status status = list_used(checkpoint, weights, &used, error);
    for (size_t i = 0; i < gb_checkpoint_count(checkpoint) && status == GUMBEL_OK; i++) {
        const gb_tensor *tensor = gb_checkpoint_at(checkpoint, i);
        if (find_scale(tensor->name) && !gb_weights_uses(weights, tensor))
            status = check_scale(checkpoint, &used, tensor, error);
    }
    gb_free(used.tensors);
    return status;
}
