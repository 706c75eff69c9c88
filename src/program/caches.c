/* SPDX-License-Identifier: Apache-2.0 */
#include "program/caches.h"

#include "base/memory.h"
#include "program/verify/verifier.h"
#include "tensor/cache_codes.h"

#include <stdio.h>
#include <string.h>
#include <xxhash.h>

/* Operands of attention by their place in ops.def. */
enum { KEY_CACHE = 5, VALUE_CACHE = 6 };

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
    GB_TRY(set_cache(program, node, KEY_CACHE, GB_ATTRIBUTE_ROTATION, dtype, changed, error));
    return set_cache(program, node, VALUE_CACHE, GB_ATTRIBUTE_VALUE_ROTATION, dtype, changed, error);
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

static gumbel_status set_all(gb_program *program, const gb_cache_choice *choice, gumbel_error *error) {
    bool changed = false;
    for (uint32_t i = 0; i < program->node_count; i++)
        if (program->nodes[i].op == GB_OP_ATTENTION)
            GB_TRY(set_node(program, &program->nodes[i], choice, &changed, error));
    if (!changed)
        return GUMBEL_OK;
    GB_TRY(gb_program_verify(program, error));
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

static void restore(gb_program *program, const originals *kept) {
    memcpy(program->nodes, kept->nodes, program->node_count * sizeof *kept->nodes);
    memcpy(program->id, kept->id, sizeof program->id);
    memcpy(program->values, kept->values, program->value_count * sizeof *kept->values);
    if (program->state_count > 0)
        memcpy(program->states, kept->states, program->state_count * sizeof *kept->states);
}

gumbel_status gb_program_set_caches(gb_program *program, const gb_cache_choice *choice, gumbel_error *error) {
    originals kept = {.nodes = copy_of(program->nodes, program->node_count, sizeof *kept.nodes),
                      .values = copy_of(program->values, program->value_count, sizeof *kept.values),
                      .states = copy_of(program->states, program->state_count, sizeof *kept.states)};
    memcpy(kept.id, program->id, sizeof kept.id);
    gumbel_status status =
        kept.nodes && kept.values && kept.states
            ? set_all(program, choice, error)
            : gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for changing the program's caches");
    if (status == GUMBEL_OK && program->head)
        status = gb_program_set_caches(program->head, choice, error);
    if (status != GUMBEL_OK && kept.nodes && kept.values && kept.states)
        restore(program, &kept);
    gb_free(kept.nodes);
    gb_free(kept.values);
    gb_free(kept.states);
    return status;
}
