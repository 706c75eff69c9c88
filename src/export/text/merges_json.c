/* SPDX-License-Identifier: Apache-2.0 */
#include "export/text/merges_json.h"

#include "base/memory.h"
#include "export/text/tokenizer_json.h"
#include "text/base/utf8.h"
#include "text/tokenizer/tokenizer_data.h"

#include <stdlib.h>
#include <string.h>

#define BROKEN(...) gb_fail(error, GUMBEL_ERROR_FORMAT, __VA_ARGS__)

/* ---- Listed ---- */

typedef struct merge_texts {
    const char *left, *right;
    size_t left_length, right_length;
} merge_texts;

/* A merge is ["a", "b"], or in older files "a b". */
static bool read_merge(const json_t *merge, merge_texts *texts) {
    if (json_is_string(merge)) {
        const char *text = json_string_value(merge);
        const char *space = strchr(text, ' ');
        if (!space || strchr(space + 1, ' ') || strlen(text) != json_string_length(merge))
            return false;
        *texts = (merge_texts){text, space + 1, (size_t)(space - text), strlen(space + 1)};
        return true;
    }
    const json_t *left = json_array_get(merge, 0), *right = json_array_get(merge, 1);
    if (json_array_size(merge) != 2 || !json_is_string(left) || !json_is_string(right))
        return false;
    *texts = (merge_texts){json_string_value(left), json_string_value(right), json_string_length(left),
                           json_string_length(right)};
    return true;
}

static gumbel_status write_merge(const json_t *merge, size_t rank, const gb_json_vocabulary *vocabulary,
                                 gb_byte_buffer *bytes, gumbel_error *error) {
    merge_texts texts;
    char joined[2 * GB_MAX_TOKEN_BYTES];
    if (!read_merge(merge, &texts))
        return BROKEN("model.merges: entry %zu is neither [\"a\", \"b\"] nor \"a b\"", rank);
    int32_t left = gb_json_token_id(vocabulary, texts.left, texts.left_length);
    int32_t right = gb_json_token_id(vocabulary, texts.right, texts.right_length);
    if (left < 0 || right < 0)
        return BROKEN("model.merges: the %s token of entry %zu is not in the vocabulary",
                      left < 0 ? "left" : "right", rank);
    memcpy(joined, texts.left, texts.left_length); /* both are tokens, and fit */
    memcpy(joined + texts.left_length, texts.right, texts.right_length);
    int32_t result = gb_json_token_id(vocabulary, joined, texts.left_length + texts.right_length);
    if (result < 0)
        return BROKEN("model.merges: the result of entry %zu (ids %d and %d) is not in the vocabulary", rank,
                      left, right);
    gb_buffer_append_u32(bytes, (uint32_t)left);
    gb_buffer_append_u32(bytes, (uint32_t)right);
    gb_buffer_append_u32(bytes, (uint32_t)result);
    return GUMBEL_OK;
}

static gumbel_status write_listed(const json_t *merges, const gb_json_vocabulary *vocabulary,
                                  gb_byte_buffer *bytes, gumbel_error *error) {
    if (!json_is_array(merges))
        return BROKEN("model.merges: not an array");
    size_t count = json_array_size(merges);
    if (count > GB_MAX_MERGES)
        return BROKEN("model.merges: %zu entries; at most %d are possible", count, GB_MAX_MERGES);
    gb_buffer_append_u32(bytes, (uint32_t)count);
    for (size_t i = 0; i < count; i++)
        GB_TRY(write_merge(json_array_get(merges, i), i, vocabulary, bytes, error));
    return GUMBEL_OK;
}

/* ---- By scores ---- */

typedef struct scored_merge {
    double score; /* of the result */
    gb_merge ids;
} scored_merge;

typedef struct scored_merges {
    const gb_json_vocabulary *vocabulary;
    scored_merge *items;
    size_t count, capacity;
} scored_merges;

static int compare_ids(int32_t a, int32_t b) {
    return (a > b) - (a < b);
}

/* The highest score first; the result's splits in the order of their tokens. */
static int compare_merges(const void *left, const void *right) {
    const scored_merge *a = left, *b = right;
    if (a->score != b->score)
        return a->score < b->score ? 1 : -1;
    int order = compare_ids(a->ids.result, b->ids.result);
    order = order ? order : compare_ids(a->ids.left, b->ids.left);
    return order ? order : compare_ids(a->ids.right, b->ids.right);
}

/* Whether merges make the token, or go on from it. */
static bool is_mergeable(const gb_json_vocabulary *vocabulary, int32_t id) {
    if (id < 0)
        return false;
    const gb_json_token *token = &vocabulary->tokens[id];
    return token->text && !token->is_added && !token->is_repeated &&
           gb_byte_of_spelling(token->text, token->length) < 0;
}

static gumbel_status add_split(scored_merges *merges, int32_t result, double score, size_t at,
                               gumbel_error *error) {
    const gb_json_vocabulary *vocabulary = merges->vocabulary;
    const gb_json_token *token = &vocabulary->tokens[result];
    const int32_t left = gb_json_token_id(vocabulary, token->text, at),
                  right = gb_json_token_id(vocabulary, token->text + at, token->length - at);
    if (!is_mergeable(vocabulary, left) || !is_mergeable(vocabulary, right))
        return GUMBEL_OK;
    if (merges->count == GB_MAX_MERGES)
        return BROKEN("model.scores: more than %d merges follow from the vocabulary", GB_MAX_MERGES);
    if (!gb_grow((void **)&merges->items, &merges->capacity, merges->count + 1, sizeof *merges->items))
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for the tokenizer's merges");
    merges->items[merges->count++] = (scored_merge){score, {left, right, result}};
    return GUMBEL_OK;
}

static gumbel_status gather(scored_merges *merges, const json_t *scores, gumbel_error *error) {
    for (uint32_t id = 0; id < merges->vocabulary->count; id++) {
        const gb_json_token *token = &merges->vocabulary->tokens[id];
        const double score = json_number_value(json_array_get(scores, id));
        if (!is_mergeable(merges->vocabulary, (int32_t)id))
            continue;
        for (size_t at = gb_utf8_size(token->text[0]); at < token->length;
             at += gb_utf8_size(token->text[at]))
            GB_TRY(add_split(merges, (int32_t)id, score, at, error));
    }
    return GUMBEL_OK;
}

static gumbel_status write_scored(const json_t *scores, const gb_json_vocabulary *vocabulary,
                                  gb_byte_buffer *bytes, gumbel_error *error) {
    scored_merges merges = {.vocabulary = vocabulary};
    const gumbel_status status = gather(&merges, scores, error);
    if (merges.count > 0)
        qsort(merges.items, merges.count, sizeof *merges.items, compare_merges);
    gb_buffer_append_u32(bytes, (uint32_t)merges.count);
    for (size_t i = 0; i < merges.count; i++) {
        gb_buffer_append_u32(bytes, (uint32_t)merges.items[i].ids.left);
        gb_buffer_append_u32(bytes, (uint32_t)merges.items[i].ids.right);
        gb_buffer_append_u32(bytes, (uint32_t)merges.items[i].ids.result);
    }
    gb_free(merges.items);
    return status;
}

gumbel_status gb_write_merges(const json_t *root, const gb_json_vocabulary *vocabulary, gb_byte_buffer *bytes,
                              gumbel_error *error) {
    const json_t *model = json_object_get(root, "model"), *scores = json_object_get(model, "scores");
    const size_t part = gb_begin_part(bytes, GB_PART_MERGES);
    GB_TRY(scores ? write_scored(scores, vocabulary, bytes, error)
                  : write_listed(json_object_get(model, "merges"), vocabulary, bytes, error));
    gb_end_part(bytes, part);
    return GUMBEL_OK;
}
