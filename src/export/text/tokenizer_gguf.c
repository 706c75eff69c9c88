/* SPDX-License-Identifier: Apache-2.0 */
#include "export/text/tokenizer_gguf.h"

#include "base/memory.h"
#include "export/text/chat_template.h"
#include "export/text/gguf_tokenizer_kinds.h"
#include "export/text/tokenizer_json.h"
#include "text/base/load_json.h"
#include "text/tokenizer/tokenizer_data.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define KEY(name) "tokenizer.ggml." name
#define BROKEN(...) gb_fail(error, GUMBEL_ERROR_FORMAT, __VA_ARGS__)

/* Values of tokenizer.ggml.token_type, of those that change how a token is found. */
enum { TYPE_UNKNOWN = 2, TYPE_CONTROL = 3, TYPE_USER_DEFINED = 4, TYPE_UNUSED = 5 };

bool gb_gguf_has_tokenizer(const gb_gguf *file) {
    const gb_gguf_value *model = gb_gguf_find(file, KEY("model"));
    return model && !gb_gguf_is_text(model, "none") && !gb_gguf_is_text(model, "no_vocab");
}

/* ---- The file's lists ---- */

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

static gumbel_status no_memory(gumbel_error *error) {
    return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for the tokenizer");
}

static bool is_special(const gb_tokenizer_kind *kind, int64_t type, const gb_gguf_value *token) {
    if (type == TYPE_CONTROL || type == TYPE_UNKNOWN)
        return true;
    for (size_t i = 0; i < GB_KIND_TEXTS && kind->specials[i]; i++)
        if (gb_gguf_is_text(token, kind->specials[i]))
            return true;
    return false;
}

/* A token that the converter found beside the model's vocabulary: merges never make it. */
static bool is_outside(const gb_tokenizer_kind *kind, int64_t type, const gb_gguf_value *token) {
    return type == TYPE_USER_DEFINED && !is_special(kind, type, token);
}

/* model.vocab. An empty spelling is an id that nothing uses. */
static gumbel_status add_tokens(const gb_tokenizer_kind *kind, const gb_gguf_value *tokens,
                                const gb_gguf_value *types, json_t *vocab, gumbel_error *error) {
    gb_gguf_items items = gb_gguf_items_of(tokens), type_items = gb_gguf_items_of(types);
    gb_gguf_value token, type_value;
    for (uint64_t id = 0; gb_gguf_next(&items, &token) && gb_gguf_next(&type_items, &type_value); id++) {
        const char *text = (const char *)token.data;
        size_t length = (size_t)token.size;
        int64_t type = 0;
        gb_gguf_integer(&type_value, &type);
        bool is_padding = kind->unused_are_padding && type == TYPE_UNUSED;
        if (length == 0 || is_padding || is_outside(kind, type, &token))
            continue;
        if (memchr(text, 0, length))
            return BROKEN(KEY("tokens") ": token %" PRIu64 " has a zero byte", id);
        const json_t *same = json_object_getn(vocab, text, length);
        if (same)
            return BROKEN(KEY("tokens") ": token %" PRIu64 " is spelled as token %" JSON_INTEGER_FORMAT " is",
                          id, json_integer_value(same));
        if (json_object_setn_new(vocab, text, length, json_integer((json_int_t)id)) != 0)
            return BROKEN(KEY("tokens") ": token %" PRIu64 " is not UTF-8, or memory is short", id);
    }
    return GUMBEL_OK;
}

static gumbel_status add_merges(const gb_gguf_value *merges, json_t *list, gumbel_error *error) {
    gb_gguf_items items = gb_gguf_items_of(merges);
    gb_gguf_value merge;
    for (uint64_t i = 0; gb_gguf_next(&items, &merge); i++)
        if (json_array_append_new(list, json_stringn((const char *)merge.data, (size_t)merge.size)) != 0)
            return BROKEN(KEY("merges") ": merge %" PRIu64 " is not UTF-8, or memory is short", i);
    return GUMBEL_OK;
}

/* added_tokens: those that are found in a text before anything else. */
static gumbel_status add_added(const gb_tokenizer_kind *kind, const gb_gguf_value *tokens,
                               const gb_gguf_value *types, json_t *added, gumbel_error *error) {
    gb_gguf_items items = gb_gguf_items_of(tokens), type_items = gb_gguf_items_of(types);
    gb_gguf_value token, type_value;
    for (uint64_t id = 0; gb_gguf_next(&items, &token) && gb_gguf_next(&type_items, &type_value); id++) {
        int64_t type = 0;
        if (!gb_gguf_integer(&type_value, &type) || token.size == 0 ||
            (type != TYPE_UNKNOWN && type != TYPE_CONTROL && type != TYPE_USER_DEFINED))
            continue;
        json_t *entry =
            json_pack("{s:I, s:s%, s:b, s:b, s:b, s:b, s:b}", "id", (json_int_t)id, "content",
                      (const char *)token.data, (size_t)token.size, "special", is_special(kind, type, &token),
                      "normalized", false, "lstrip", false, "rstrip", false, "single_word", false);
        if (json_array_append_new(added, entry) != 0)
            return no_memory(error);
    }
    return GUMBEL_OK;
}

static gumbel_status add_lists(const gb_gguf *file, const gb_tokenizer_kind *kind, json_t *root,
                               gumbel_error *error) {
    const gb_gguf_value *tokens, *merges, *types;
    GB_TRY(need_list(file, KEY("tokens"), GB_GGUF_STRING, &tokens, error));
    GB_TRY(need_list(file, KEY("merges"), GB_GGUF_STRING, &merges, error));
    GB_TRY(need_list(file, KEY("token_type"), GB_GGUF_INT32, &types, error));
    if (tokens->count == 0 || tokens->count > GB_MAX_TOKENS)
        return BROKEN(KEY("tokens") ": %" PRIu64 " tokens, expected 1 to %d", tokens->count, GB_MAX_TOKENS);
    if (types->count != tokens->count)
        return BROKEN(KEY("token_type") ": an array of %" PRIu64 ", expected one for each of %" PRIu64
                                        " tokens",
                      types->count, tokens->count);
    json_t *model = json_object_get(root, "model");
    json_t *vocab = json_object(), *merge_list = json_array(), *added = json_array();
    if (json_object_set_new(model, "vocab", vocab) != 0 ||
        json_object_set_new(model, "merges", merge_list) != 0 ||
        json_object_set_new(root, "added_tokens", added) != 0)
        return no_memory(error);
    GB_TRY(add_tokens(kind, tokens, types, vocab, error));
    GB_TRY(add_merges(merges, merge_list, error));
    return add_added(kind, tokens, types, added, error);
}

/* ---- Single tokens ---- */

/* The token whose id the key holds, with its spelling; *id is -1 when the key is absent. */
static gumbel_status named_token(const gb_gguf *file, const char *key, int64_t *id, gb_gguf_value *token,
                                 gumbel_error *error) {
    const gb_gguf_value *value = gb_gguf_find(file, key), *tokens;
    *id = -1;
    if (!value)
        return GUMBEL_OK;
    GB_TRY(need_list(file, KEY("tokens"), GB_GGUF_STRING, &tokens, error));
    if (!gb_gguf_integer(value, id) || *id < 0 || (uint64_t)*id >= tokens->count)
        return BROKEN("%s: expected an id below %" PRIu64, key, tokens->count);
    gb_gguf_items items = gb_gguf_items_of(tokens);
    for (int64_t i = 0; i <= *id && gb_gguf_next(&items, token); i++)
        ;
    return GUMBEL_OK;
}

static bool flag(const gb_gguf *file, const char *key) {
    const gb_gguf_value *value = gb_gguf_find(file, key);
    int64_t integer = 0;
    return value && value->type == GB_GGUF_BOOL && gb_gguf_integer(value, &integer) && integer;
}

/* post_processor: the tokens before and after a text; -1 is none. */
static gumbel_status add_around(int64_t bos, int64_t eos, json_t *root, gumbel_error *error) {
    json_t *single = json_array(), *tokens = json_object();
    const struct {
        const char *name;
        int64_t id;
    } pieces[] = {{"bos", bos}, {NULL, 0}, {"eos", eos}};
    bool failed = false;
    for (size_t i = 0; i < sizeof pieces / sizeof pieces[0]; i++) {
        const char *name = pieces[i].name;
        if (!name)
            failed |= json_array_append_new(single, json_pack("{s:{s:s}}", "Sequence", "id", "A")) != 0;
        if (!name || pieces[i].id < 0)
            continue;
        failed |= json_array_append_new(single, json_pack("{s:{s:s}}", "SpecialToken", "id", name)) != 0;
        failed |=
            json_object_set_new(tokens, name, json_pack("{s:[I]}", "ids", (json_int_t)pieces[i].id)) != 0;
    }
    json_t *processor = json_pack("{s:s, s:o, s:o}", "type", "TemplateProcessing", "single", single,
                                  "special_tokens", tokens);
    failed |= json_object_set_new(root, "post_processor", processor) != 0;
    return failed ? no_memory(error) : GUMBEL_OK;
}

static gumbel_status add_named(const gb_gguf *file, const gb_tokenizer_kind *kind, json_t *root,
                               gumbel_error *error) {
    int64_t bos, eos, unknown;
    gb_gguf_value token;
    GB_TRY(named_token(file, KEY("bos_token_id"), &bos, &token, error));
    GB_TRY(named_token(file, KEY("eos_token_id"), &eos, &token, error));
    if (!kind->adds_bos && !flag(file, KEY("add_bos_token")))
        bos = -1;
    if (!flag(file, KEY("add_eos_token")))
        eos = -1;
    GB_TRY(add_around(bos, eos, root, error));
    GB_TRY(named_token(file, KEY("unknown_token_id"), &unknown, &token, error));
    if (unknown < 0)
        return GUMBEL_OK;
    json_t *spelling = json_stringn((const char *)token.data, (size_t)token.size);
    return json_object_set_new(json_object_get(root, "model"), "unk_token", spelling) == 0 ? GUMBEL_OK
                                                                                           : no_memory(error);
}

/* ---- The whole ---- */

static gumbel_status convert(const gb_gguf *file, gb_byte_buffer *bytes, gumbel_error *error) {
    const gb_tokenizer_kind *kind;
    GB_TRY(gb_tokenizer_kind_need(file, &kind, error));
    json_t *root;
    GB_TRY(gb_load_json("its tokenizer's rules", kind->json, strlen(kind->json), 0, &root, error));
    gumbel_status status = add_lists(file, kind, root, error);
    if (status == GUMBEL_OK)
        status = add_named(file, kind, root, error);
    if (status == GUMBEL_OK)
        status = gb_convert_tokenizer(root, bytes, error);
    json_decref(root);
    return status;
}

gumbel_status gb_read_gguf_tokenizer(const gb_gguf *file, const char *path, gb_byte_buffer *bytes,
                                     gumbel_error *error) {
    gumbel_status status = convert(file, bytes, error);
    return status == GUMBEL_OK ? GUMBEL_OK : gb_prefix(error, status, "%s", path);
}

/* A template is given the spellings of the tokens that it may write. */
static gumbel_status add_spelling(const gb_gguf *file, const char *key, const char *name,
                                  gb_chat_section *chat, gumbel_error *error) {
    int64_t id;
    gb_gguf_value token;
    GB_TRY(named_token(file, key, &id, &token, error));
    return id < 0
               ? GUMBEL_OK
               : gb_chat_section_add_token(chat, name, (const char *)token.data, (size_t)token.size, error);
}

static gumbel_status add_template(const char *key, const char *name, const gb_gguf_value *value,
                                  gb_chat_section *chat, gumbel_error *error) {
    if (value->type != GB_GGUF_STRING)
        return BROKEN("%s: expected a string, found %s", key, gb_gguf_type_name(value->type));
    gumbel_status status =
        gb_chat_section_add_template(chat, name, (const char *)value->data, (size_t)value->size, error);
    return status == GUMBEL_OK ? GUMBEL_OK : gb_prefix(error, status, "%s", key);
}

static gumbel_status read_templates(const gb_gguf *file, gb_chat_section *chat, gumbel_error *error) {
    static const char KEY_NAME[] = "tokenizer.chat_template";
    const gb_gguf_value *value = gb_gguf_find(file, KEY_NAME);
    size_t length = sizeof KEY_NAME - 1;
    if (value)
        GB_TRY(add_template(KEY_NAME, "default", value, chat, error));
    for (size_t i = 0; i < file->key_count; i++) {
        const char *key = file->keys[i].name;
        if (strncmp(key, KEY_NAME, length) == 0 && key[length] == '.')
            GB_TRY(add_template(key, key + length + 1, &file->keys[i].value, chat, error));
    }
    if (json_object_size(chat->templates) == 0)
        return GUMBEL_OK;
    GB_TRY(add_spelling(file, KEY("bos_token_id"), "bos_token", chat, error));
    return add_spelling(file, KEY("eos_token_id"), "eos_token", chat, error);
}

gumbel_status gb_read_gguf_chat_templates(const gb_gguf *file, const char *path, gb_chat_section *chat,
                                          gumbel_error *error) {
    GB_TRY(gb_chat_section_create(chat, error));
    gumbel_status status = read_templates(file, chat, error);
    return status == GUMBEL_OK ? GUMBEL_OK : gb_prefix(error, status, "%s", path);
}

size_t gb_gguf_find_stops(const gb_gguf *file, int32_t ids[GB_GGUF_MAX_STOPS]) {
    const gb_tokenizer_kind *kind = gb_tokenizer_kind_find(file);
    const gb_gguf_value *tokens = gb_gguf_find(file, KEY("tokens"));
    if (!kind || !tokens || tokens->type != GB_GGUF_ARRAY || tokens->item_type != GB_GGUF_STRING ||
        tokens->count > GB_MAX_TOKENS)
        return 0;
    size_t count = 0;
    gb_gguf_items items = gb_gguf_items_of(tokens);
    gb_gguf_value token;
    for (int32_t id = 0; count < GB_GGUF_MAX_STOPS && gb_gguf_next(&items, &token); id++)
        for (size_t i = 0; i < GB_KIND_TEXTS && kind->stops[i]; i++)
            if (gb_gguf_is_text(&token, kind->stops[i])) {
                ids[count++] = id;
                break;
            }
    return count;
}
