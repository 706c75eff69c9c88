/* SPDX-License-Identifier: Apache-2.0 */
#include "program/caches.h"

#include "base/memory.h"
#include "program/verify/verifier.h"
#include "tensor/cache_codes.h"

#include <stdio.h>
#include <string.h>
#include <xxhash.h>

/* Where a node that attends has its cache of keys among its operands, as ops.def has it; that of values is
 * the next. 0: it does not attend. */
static uint32_t key_cache_of(const gb_node *node) {
    return node->op == GB_OP_ATTENTION ? 5 : node->op == GB_OP_ATTEND ? 3 : 0;
}

static const gb_cache_choice CHOICES[] = {
    {"float32", " f32 fp32 ", GB_F32, GB_F32},
    {"bfloat16", " bf16 ", GB_BF16, GB_BF16},
    {"q8", " q8_0 int8 8 ", GB_Q8, GB_Q8},
    {"q4", " q4_0 int4 4 ", GB_Q4, GB_Q8},
    {"q4-all", " ", GB_Q4, GB_Q4},
};
enum { CHOICE_COUNT = sizeof CHOICES / sizeof *CHOICES };

static bool has_word(const char *words, const char *word) {
    char spaced[24];
    const int length = snprintf(spaced, sizeof spaced, " %s ", word);
    return length > 2 && (size_t)length < sizeof spaced && !strchr(word, ' ') && strstr(words, spaced);
}

gumbel_status gb_cache_find(const char *name, const gb_cache_choice **choice, gumbel_error *error) {
    for (size_t i = 0; i < CHOICE_COUNT; i++) {
        *choice = &CHOICES[i];
        if (strcmp(name, CHOICES[i].name) == 0 || has_word(CHOICES[i].aliases, name))
            return GUMBEL_OK;
    }
    if (has_word(" float16 f16 fp16 ", name))
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT,
                       "cache: \"%s\": caches of 16 bits are bfloat16, whose range is that of float32", name);
    return gb_fail(error, GUMBEL_ERROR_ARGUMENT,
                   "cache: \"%s\", expected float32, bfloat16, q8, q4 (q8 in layers with a window) or q4-all",
                   name);
}

/* ---- One attention node -------------------------------------------------------------------------------- */

static void set_attribute(gb_node *node, gb_attribute_key key, int64_t value) {
    uint32_t i = 0;
    while (i < node->attribute_count && node->attributes[i].key != key)
        i++;
    if (i == node->attribute_count)
        node->attribute_count++;
    node->attributes[i] = gb_int(key, value);
}

static int64_t rotation_of(gb_dtype dtype, int64_t size) {
    int64_t rotation = gb_dtype_has_codes(dtype) ? GB_MAX_ROTATION : 0;
    while (rotation > 0 && size % rotation != 0)
        rotation /= 2;
    return rotation;
}

/* A cache of the node. */
static gumbel_status set_cache(gb_program *program, gb_node *node, uint32_t operand, gb_attribute_key key,
                               gb_dtype dtype, bool *changed, gumbel_error *error) {
    gb_value *value = &program->values[node->operands[operand]];
    gb_state *state = &program->states[value->index];
    const int64_t size = state->type.shape.dims[2], rotation = rotation_of(dtype, size);
    if (state->type.dtype == dtype && gb_node_int(node, key) == rotation)
        return GUMBEL_OK;
    if (gb_dtype_has_codes(dtype) && (size % GB_CODE_GROUP != 0 || size > GB_MAX_CODED_HEAD))
        return gb_fail(
            error, GUMBEL_ERROR_UNSUPPORTED,
            "cache: state %s has heads of %lld elements; %s takes a multiple of %d, at most %d: use "
            "bfloat16",
            state->name, (long long)size, gb_dtype_name(dtype), (int)GB_CODE_GROUP, (int)GB_MAX_CODED_HEAD);
    state->type.dtype = value->type.dtype = dtype;
    set_attribute(node, key, rotation);
    *changed = true;
    return GUMBEL_OK;
}

static gumbel_status set_node(gb_program *program, gb_node *node, const gb_cache_choice *choice,
                              bool *changed, gumbel_error *error) {
    const gb_dtype dtype = gb_node_int(node, GB_ATTRIBUTE_WINDOW) > 0 ? choice->window : choice->full;
    const uint32_t keys = key_cache_of(node);
    GB_TRY(set_cache(program, node, keys, GB_ATTRIBUTE_ROTATION, dtype, changed, error));
    return set_cache(program, node, keys + 1, GB_ATTRIBUTE_VALUE_ROTATION, dtype, changed, error);
}

/* ---- All of them --------------------------------------------------------------------------------------- */

static void change_id(gb_program *program, const gb_cache_choice *choice) {
    char text[sizeof program->id + 16] = {0};
    memcpy(text, program->id, sizeof program->id);
    snprintf(text + sizeof program->id, 16, "%s", choice->name);
    XXH128_canonical_t id;
    XXH128_canonicalFromHash(&id, XXH3_128bits(text, sizeof text));
    memcpy(program->id, id.digest, sizeof program->id);
}

static gumbel_status set_nodes(gb_program *program, const gb_cache_choice *choice, gumbel_error *error) {
    bool changed = false;
    for (uint32_t i = 0; i < program->node_count; i++)
        if (key_cache_of(&program->nodes[i]) > 0)
            GB_TRY(set_node(program, &program->nodes[i], choice, &changed, error));
    if (changed)
        change_id(program, choice);
    return GUMBEL_OK;
}

/* What a change touches, as it was. */
typedef struct originals {
    gb_node *nodes;
    gb_value *values;
    gb_state *states;
    uint8_t id[16];
} originals;

static void *copy_of(const void *from, size_t count, size_t size) {
    void *copy = gb_allocate(count + 1, size);
    if (copy && count > 0)
        memcpy(copy, from, count * size);
    return copy;
}

static bool keep(const gb_program *program, originals *kept) {
    kept->nodes = copy_of(program->nodes, program->node_count, sizeof *kept->nodes);
    kept->values = copy_of(program->values, program->value_count, sizeof *kept->values);
    kept->states = copy_of(program->states, program->state_count, sizeof *kept->states);
    memcpy(kept->id, program->id, sizeof kept->id);
    return kept->nodes && kept->values && kept->states;
}

static void restore(gb_program *program, const originals *kept) {
    memcpy(program->nodes, kept->nodes, program->node_count * sizeof *kept->nodes);
    memcpy(program->id, kept->id, sizeof program->id);
    memcpy(program->values, kept->values, program->value_count * sizeof *kept->values);
    if (program->state_count > 0)
        memcpy(program->states, kept->states, program->state_count * sizeof *kept->states);
}

static void forget(originals *kept) {
    gb_free(kept->nodes);
    gb_free(kept->values);
    gb_free(kept->states);
}

/* A head may have states of its program, so both are changed before either is verified. */
static gumbel_status set_both(gb_program *program, const gb_cache_choice *choice, gumbel_error *error) {
    GB_TRY(set_nodes(program, choice, error));
    if (program->head)
        GB_TRY(set_nodes(program->head, choice, error));
    return gb_program_verify(program, error);
}

gumbel_status gb_program_set_caches(gb_program *program, const gb_cache_choice *choice, gumbel_error *error) {
    originals own = {0}, of_head = {0};
    const bool has_memory = keep(program, &own) && (!program->head || keep(program->head, &of_head));
    gumbel_status status =
        has_memory ? set_both(program, choice, error)
                   : gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for changing the program's caches");
    if (status != GUMBEL_OK && has_memory) {
        restore(program, &own);
        if (program->head)
            restore(program->head, &of_head);
    }
    forget(&own);
    forget(&of_head);
    return status;
}
