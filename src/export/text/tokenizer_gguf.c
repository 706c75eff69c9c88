/* SPDX-License-Identifier: Apache-2.0 */
#include "export/text/tokenizer_gguf.h"

#include "export/text/chat_template.h"
#include "export/text/gguf_tokenizer_kinds.h"
#include "export/text/gguf_vocabulary.h"
#include "export/text/tokenizer_json.h"
#include "text/tokenizer/tokenizer_data.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define KEY(name) "tokenizer.ggml." name
#define BROKEN(...) gb_fail(error, GUMBEL_ERROR_FORMAT, __VA_ARGS__)

bool gb_gguf_has_tokenizer(const gb_gguf *file) {
    const gb_gguf_value *model = gb_gguf_find(file, KEY("model"));
    return model && !gb_gguf_is_text(model, "none") && !gb_gguf_is_text(model, "no_vocab");
}

/* ---- Single tokens ---- */

/* The token whose id the key holds, or of the id fallback where it is absent, with its spelling; *id -1:
 * none.
 */
static gumbel_status named_token(const gb_gguf *file, const char *key, int64_t fallback, int64_t *id,
                                 gb_gguf_value *token, gumbel_error *error) {
    const gb_gguf_value *value = gb_gguf_find(file, key), *tokens;
    *id = fallback;
    if (!value && fallback < 0)
        return GUMBEL_OK;
    GB_TRY(gb_gguf_need_tokens(file, &tokens, error));
    if ((value && !gb_gguf_integer(value, id)) || *id < 0 || (uint64_t)*id >= tokens->count)
        return BROKEN("%s: expected an id below %" PRIu64, key, tokens->count);
    gb_gguf_items items = gb_gguf_items_of(tokens);
    for (int64_t i = 0; i <= *id && gb_gguf_next(&items, token); i++)
        ;
    return GUMBEL_OK;
}

static bool flag(const gb_gguf *file, const char *key, bool fallback) {
    const gb_gguf_value *value = gb_gguf_find(file, key);
    int64_t integer = 0;
    if (!value || value->type != GB_GGUF_BOOL || !gb_gguf_integer(value, &integer))
        return fallback;
    return integer != 0;
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
    return failed ? gb_no_memory(error, "the tokenizer") : GUMBEL_OK;
}

/* Whether texts begin with bos. */
static bool adds_bos(const gb_gguf *file, const gb_gguf_tokenizer *tokenizer) {
    const bool fallback = tokenizer->kind->adds_bos || (tokenizer->pre && tokenizer->pre->adds_bos);
    return tokenizer->kind->always_adds_bos || flag(file, KEY("add_bos_token"), fallback);
}

/* What no token spells becomes this one, which must be in the vocabulary; a default that is not there is
 * none.
 */
static gumbel_status add_unknown(const gb_gguf *file, const gb_gguf_value *token, json_t *root,
                                 gumbel_error *error) {
    json_t *model = json_object_get(root, "model");
    const char *text = (const char *)token->data;
    const size_t length = (size_t)token->size;
    if (!json_object_getn(json_object_get(model, "vocab"), text, length))
        return gb_gguf_find(file, KEY("unknown_token_id"))
                   ? BROKEN(KEY("unknown_token_id") ": the token is user-defined or unused, expected one of "
                                                    "the model's")
                   : GUMBEL_OK;
    return json_object_set_new(model, "unk_token", json_stringn(text, length)) == 0
               ? GUMBEL_OK
               : gb_no_memory(error, "the tokenizer");
}

static gumbel_status add_named(const gb_gguf *file, const gb_gguf_tokenizer *tokenizer, json_t *root,
                               gumbel_error *error) {
    int64_t bos, eos, unknown;
    gb_gguf_value token;
    GB_TRY(named_token(file, KEY("bos_token_id"), tokenizer->kind->bos, &bos, &token, error));
    GB_TRY(named_token(file, KEY("eos_token_id"), -1, &eos, &token, error));
    if (!adds_bos(file, tokenizer))
        bos = -1;
    if (!flag(file, KEY("add_eos_token"), false))
        eos = -1;
    GB_TRY(add_around(bos, eos, root, error));
    GB_TRY(named_token(file, KEY("unknown_token_id"), tokenizer->kind->unknown, &unknown, &token, error));
    return unknown < 0 || !tokenizer->kind->has_unknown ? GUMBEL_OK : add_unknown(file, &token, root, error);
}

/* ---- The whole ---- */

static gumbel_status convert_with(const gb_gguf *file, const gb_gguf_tokenizer *tokenizer, json_t *root,
                                  gb_byte_buffer *bytes, gumbel_error *error) {
    GB_TRY(gb_gguf_add_vocabulary(file, tokenizer->kind, root, error));
    GB_TRY(add_named(file, tokenizer, root, error));
    return gb_convert_tokenizer(root, bytes, error);
}

static gumbel_status convert(const gb_gguf *file, gb_byte_buffer *bytes, gumbel_error *error) {
    gb_gguf_tokenizer tokenizer;
    GB_TRY(gb_gguf_tokenizer_need(file, &tokenizer, error));
    const bool has_prefix = flag(file, KEY("add_space_prefix"), tokenizer.kind->has_space_prefix);
    json_t *root = gb_gguf_tokenizer_rules(&tokenizer, tokenizer.kind->has_space_prefix && has_prefix);
    const gumbel_status status =
        root ? convert_with(file, &tokenizer, root, bytes, error) : gb_no_memory(error, "the tokenizer");
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
    GB_TRY(named_token(file, key, -1, &id, &token, error));
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
    const gb_gguf_value *types = gb_gguf_find(file, KEY("token_type")), *tokens;
    gb_gguf_tokenizer tokenizer;
    if (!gb_gguf_tokenizer_find(file, &tokenizer) || gb_gguf_need_tokens(file, &tokens, NULL) != GUMBEL_OK ||
        !types || types->type != GB_GGUF_ARRAY)
        return 0;
    size_t count = 0;
    gb_gguf_items items = gb_gguf_items_of(tokens), type_items = gb_gguf_items_of(types);
    gb_gguf_value token, type_value;
    for (int32_t id = 0;
         count < GB_GGUF_MAX_STOPS && gb_gguf_next(&items, &token) && gb_gguf_next(&type_items, &type_value);
         id++) {
        int64_t type = 0;
        gb_gguf_integer(&type_value, &type);
        if (gb_gguf_is_stop(tokenizer.kind, type, &token))
            ids[count++] = id;
    }
    return count;
}
