/* SPDX-License-Identifier: Apache-2.0 */
#include "export/text/gguf_vocabulary.h"

#include "base/byte_buffer.h"
#include "text/tokenizer/text_steps.h"
#include "text/tokenizer/tokenizer_data.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <strings.h>

#define KEY(name) "tokenizer.ggml." name
#define BROKEN(...) gb_fail(error, GUMBEL_ERROR_FORMAT, __VA_ARGS__)

/* One token of the file's lists. */
typedef struct entry {
    int64_t id, type;
    gb_gguf_value spelling;
} entry;

typedef struct lists {
    const gb_tokenizer_kind *kind;
    json_t *vocab, *repeated, *added; /* as in tokenizer.json */
    json_t *outside;                  /* spellings of added tokens that are not in vocab, and their ids */
    bool specials_strip;              /* special tokens take the white space behind them */
} lists;

static gumbel_status need_list(const gb_gguf *file, const char *key, gb_gguf_type item_type,
                               const gb_gguf_value **list, gumbel_error *error) {
    *list = gb_gguf_find(file, key);
    if (!*list)
        return BROKEN("%s: the key is missing", key);
    if ((*list)->type != GB_GGUF_ARRAY || (*list)->item_type != item_type)
        return BROKEN("%s: expected an array of %s, found %s of %s", key, gb_gguf_type_name(item_type),
                      gb_gguf_type_name((*list)->type),
                      gb_gguf_type_name((*list)->type == GB_GGUF_ARRAY ? (*list)->item_type : (*list)->type));
    return GUMBEL_OK;
}

/* A list with one item for each token. */
static gumbel_status need_list_of(const gb_gguf *file, const char *key, gb_gguf_type item_type,
                                  const gb_gguf_value *tokens, const gb_gguf_value **list,
                                  gumbel_error *error) {
    GB_TRY(need_list(file, key, item_type, list, error));
    if ((*list)->count != tokens->count)
        return BROKEN("%s: an array of %" PRIu64 ", expected one for each of %" PRIu64 " tokens", key,
                      (*list)->count, tokens->count);
    return GUMBEL_OK;
}

gumbel_status gb_gguf_need_tokens(const gb_gguf *file, const gb_gguf_value **tokens, gumbel_error *error) {
    GB_TRY(need_list(file, KEY("tokens"), GB_GGUF_STRING, tokens, error));
    if ((*tokens)->count == 0 || (*tokens)->count > GB_MAX_TOKENS)
        return BROKEN(KEY("tokens") ": %" PRIu64 " tokens, expected 1 to %d", (*tokens)->count,
                      GB_MAX_TOKENS);
    return GUMBEL_OK;
}

/* ---- Tokens -------------------------------------------------------------------------------------------- */

/* A token that the converter found beside the model's vocabulary: merges never make it. */
static bool is_outside(const lists *l, const entry *token) {
    return token->type == GB_GGUF_TOKEN_USER_DEFINED &&
           !gb_gguf_is_special(l->kind, token->type, &token->spelling);
}

/* Whether it is found in a text before anything else. */
static bool is_added(const entry *token) {
    return token->type == GB_GGUF_TOKEN_UNKNOWN || token->type == GB_GGUF_TOKEN_CONTROL ||
           token->type == GB_GGUF_TOKEN_USER_DEFINED;
}

static gumbel_status check_token(const entry *token, gumbel_error *error) {
    if (token->type < GB_GGUF_TOKEN_NORMAL || token->type > GB_GGUF_TOKEN_BYTE)
        return BROKEN(KEY("token_type") ": %" PRId64 " of token %" PRId64 ", expected 1 (normal) to 6 (byte)",
                      token->type, token->id);
    if (memchr(token->spelling.data, 0, (size_t)token->spelling.size))
        return BROKEN(KEY("tokens") ": token %" PRId64 " has a zero byte", token->id);
    return GUMBEL_OK;
}

static gumbel_status not_utf8(int64_t id, gumbel_error *error) {
    return BROKEN(KEY("tokens") ": token %" PRId64 " is not UTF-8, or memory is short", id);
}

/* SentencePiece's own spelling of spaces is that of a normalized text; added tokens are looked for before. */
static json_t *added_spelling(const lists *l, const entry *token) {
    const gb_text_step spaces = {
        .pattern = "\xE2\x96\x81", .pattern_length = 3, .content = " ", .content_length = 1};
    gb_byte_buffer replaced = {0};
    if (!l->kind->has_scores || !is_outside(l, token))
        return json_stringn((const char *)token->spelling.data, (size_t)token->spelling.size);
    gb_replace(&spaces, (const char *)token->spelling.data, (size_t)token->spelling.size, &replaced);
    json_t *spelling = replaced.failed ? NULL : json_stringn((const char *)replaced.data, replaced.size);
    gb_buffer_free(&replaced);
    return spelling;
}

/* Phi-3's own files say so of each token, which GGUF cannot; llama.cpp knows the model by its name. */
static bool is_phi3(const gb_gguf *file) {
    static const char *const names[] = {"phi-3", "phi3"};
    const gb_gguf_value *name = gb_gguf_find(file, "general.name");
    for (size_t i = 0; name && name->type == GB_GGUF_STRING && i < 2; i++)
        for (size_t at = 0; at + strlen(names[i]) <= name->size; at++)
            if (strncasecmp((const char *)name->data + at, names[i], strlen(names[i])) == 0)
                return true;
    return false;
}

static bool strips_right(const lists *l, const entry *token) {
    return l->specials_strip && is_added(token) && !gb_gguf_is_text(&token->spelling, "<unk>") &&
           !gb_gguf_is_text(&token->spelling, "<s>") && !gb_gguf_is_text(&token->spelling, "<|endoftext|>");
}

static gumbel_status add_added(const lists *l, const entry *token, gumbel_error *error) {
    json_t *spelling = added_spelling(l, token);
    if (!spelling)
        return not_utf8(token->id, error);
    json_t *added =
        json_pack("{s:I, s:o, s:b, s:b, s:b, s:b, s:b}", "id", (json_int_t)token->id, "content", spelling,
                  "special", gb_gguf_is_special(l->kind, token->type, &token->spelling), "normalized", false,
                  "lstrip", false, "rstrip", strips_right(l, token), "single_word", false);
    return json_array_append_new(l->added, added) == 0 ? GUMBEL_OK : gb_no_memory(error, "the tokenizer");
}

/* Of tokens that are spelled alike the first one is meant by the spelling; the others only decode. */
static gumbel_status add_spelling(const lists *l, const entry *token, gumbel_error *error) {
    const char *text = (const char *)token->spelling.data;
    const size_t length = (size_t)token->spelling.size;
    json_t *list = is_outside(l, token) ? l->outside : l->vocab;
    if (json_object_getn(l->vocab, text, length) || json_object_getn(l->outside, text, length)) {
        json_t *again = json_pack("[I, s%]", (json_int_t)token->id, text, length);
        return json_array_append_new(l->repeated, again) == 0 ? GUMBEL_OK
                                                              : gb_no_memory(error, "the tokenizer");
    }
    return json_object_setn_new(list, text, length, json_integer((json_int_t)token->id)) == 0
               ? GUMBEL_OK
               : not_utf8(token->id, error);
}

/* An empty spelling is an id that nothing uses. */
static gumbel_status add_token(const lists *l, const entry *token, gumbel_error *error) {
    GB_TRY(check_token(token, error));
    if (token->spelling.size == 0 || (l->kind->unused_are_padding && token->type == GB_GGUF_TOKEN_UNUSED))
        return GUMBEL_OK;
    GB_TRY(add_spelling(l, token, error));
    return is_added(token) ? add_added(l, token, error) : GUMBEL_OK;
}

static gumbel_status add_tokens(const lists *l, const gb_gguf_value *tokens, const gb_gguf_value *types,
                                gumbel_error *error) {
    gb_gguf_items items = gb_gguf_items_of(tokens), type_items = gb_gguf_items_of(types);
    gb_gguf_value type;
    entry token = {0};
    for (; gb_gguf_next(&items, &token.spelling) && gb_gguf_next(&type_items, &type); token.id++) {
        gb_gguf_integer(&type, &token.type);
        GB_TRY(add_token(l, &token, error));
    }
    return GUMBEL_OK;
}

/* ---- Merges and scores --------------------------------------------------------------------------------- */

static gumbel_status add_merges(const gb_gguf *file, json_t *model, gumbel_error *error) {
    const gb_gguf_value *merges;
    json_t *list = json_array();
    if (json_object_set_new(model, "merges", list) != 0)
        return gb_no_memory(error, "the tokenizer");
    GB_TRY(need_list(file, KEY("merges"), GB_GGUF_STRING, &merges, error));
    gb_gguf_items items = gb_gguf_items_of(merges);
    gb_gguf_value merge;
    for (uint64_t i = 0; gb_gguf_next(&items, &merge); i++)
        if (json_array_append_new(list, json_stringn((const char *)merge.data, (size_t)merge.size)) != 0)
            return BROKEN(KEY("merges") ": merge %" PRIu64 " is not UTF-8, or memory is short", i);
    return GUMBEL_OK;
}

static gumbel_status add_scores(const gb_gguf *file, const gb_gguf_value *tokens, json_t *model,
                                gumbel_error *error) {
    const gb_gguf_value *scores;
    json_t *list = json_array();
    if (json_object_set_new(model, "scores", list) != 0)
        return gb_no_memory(error, "the tokenizer");
    GB_TRY(need_list_of(file, KEY("scores"), GB_GGUF_FLOAT32, tokens, &scores, error));
    gb_gguf_items items = gb_gguf_items_of(scores);
    gb_gguf_value item;
    for (uint64_t i = 0; gb_gguf_next(&items, &item); i++) {
        double score = NAN;
        gb_gguf_number(&item, &score);
        if (!isfinite(score))
            return BROKEN(KEY("scores") ": that of token %" PRIu64 " is not a finite number", i);
        if (json_array_append_new(list, json_real(score)) != 0)
            return gb_no_memory(error, "the tokenizer");
    }
    return GUMBEL_OK;
}

/* ---- The whole ----------------------------------------------------------------------------------------- */

static gumbel_status fill(const gb_gguf *file, const lists *l, json_t *model, gumbel_error *error) {
    const gb_gguf_value *tokens, *types;
    GB_TRY(gb_gguf_need_tokens(file, &tokens, error));
    GB_TRY(need_list_of(file, KEY("token_type"), GB_GGUF_INT32, tokens, &types, error));
    GB_TRY(l->kind->has_scores ? add_scores(file, tokens, model, error) : add_merges(file, model, error));
    return add_tokens(l, tokens, types, error);
}

gumbel_status gb_gguf_add_vocabulary(const gb_gguf *file, const gb_tokenizer_kind *kind, json_t *root,
                                     gumbel_error *error) {
    json_t *model = json_object_get(root, "model");
    const lists l = {.kind = kind,
                     .vocab = json_object(),
                     .repeated = json_array(),
                     .added = json_array(),
                     .outside = json_object(),
                     .specials_strip = is_phi3(file)};
    const bool is_whole = json_object_set_new(model, "vocab", l.vocab) == 0 &&
                          json_object_set_new(model, "repeated", l.repeated) == 0 &&
                          json_object_set_new(root, "added_tokens", l.added) == 0 && l.outside;
    const gumbel_status status =
        is_whole ? fill(file, &l, model, error) : gb_no_memory(error, "the tokenizer");
    json_decref(l.outside);
    return status;
}
