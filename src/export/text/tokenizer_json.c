/* SPDX-License-Identifier: Apache-2.0 */
#include "export/text/tokenizer_json.h"

#include "base/file_map.h"
#include "base/memory.h"
#include "export/text/merges_json.h"
#include "export/text/vocabulary_json.h"
#include "text/base/load_json.h"
#include "text/tokenizer/splitter.h"
#include "text/tokenizer/tokenizer_data.h"
#include "text/tokenizer/vocabulary.h"

#include <string.h>

#define BROKEN(...) gb_fail(error, GUMBEL_ERROR_FORMAT, __VA_ARGS__)
#define REFUSED(...) gb_fail(error, GUMBEL_ERROR_UNSUPPORTED, __VA_ARGS__)

size_t gb_begin_part(gb_byte_buffer *bytes, uint32_t part) {
    gb_buffer_append_u32(bytes, part);
    gb_buffer_append_u32(bytes, 0);
    return bytes->size;
}

void gb_end_part(gb_byte_buffer *bytes, size_t begun) {
    if (!bytes->failed)
        gb_buffer_patch_u32(bytes, begun - 4, (uint32_t)(bytes->size - begun));
}

/* A key that must be absent, null, false, zero or empty. */
static bool is_off(const json_t *value) {
    return !value || json_is_null(value) || json_is_false(value) ||
           (json_is_number(value) && json_number_value(value) == 0.0) ||
           (json_is_string(value) && json_string_length(value) == 0);
}

static gumbel_status check_model(const json_t *model, gumbel_error *error) {
    if (!json_is_object(model))
        return BROKEN("model: not an object");
    const json_t *type = json_object_get(model, "type");
    if (type && (!json_is_string(type) || strcmp(json_string_value(type), "BPE") != 0))
        return REFUSED("model: the type \"%.40s\" is not supported (BPE is)",
                       json_is_string(type) ? json_string_value(type) : "");
    static const char *const unsupported[] = {"dropout", "continuing_subword_prefix", "end_of_word_suffix"};
    for (size_t i = 0; i < sizeof unsupported / sizeof unsupported[0]; i++)
        if (!is_off(json_object_get(model, unsupported[i])))
            return REFUSED("model: \"%s\" is not supported", unsupported[i]);
    return GUMBEL_OK;
}

static gumbel_status write_model(const json_t *model, const gb_json_vocabulary *vocabulary,
                                 gb_byte_buffer *bytes, gumbel_error *error) {
    static const struct {
        const char *key;
        uint32_t flag;
    } keys[] = {{"byte_fallback", GB_BPE_BYTE_FALLBACK},
                {"fuse_unk", GB_BPE_FUSE_UNKNOWN},
                {"ignore_merges", GB_BPE_IGNORE_MERGES}};
    uint32_t flags = vocabulary->bytes ? GB_BPE_BYTE_LEVEL : 0;
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        const json_t *value = json_object_get(model, keys[i].key);
        if (value && !json_is_boolean(value) && !json_is_null(value))
            return BROKEN("model: \"%s\" is not a boolean", keys[i].key);
        if (json_is_true(value))
            flags |= keys[i].flag;
    }
    if (flags & GB_BPE_BYTE_LEVEL && flags & GB_BPE_BYTE_FALLBACK)
        return REFUSED("model: \"byte_fallback\" beside a ByteLevel pre_tokenizer is not supported");
    const json_t *unknown = json_object_get(model, "unk_token");
    int32_t unknown_id = -1;
    if (json_is_string(unknown)) {
        unknown_id = gb_json_token_id(vocabulary, json_string_value(unknown), json_string_length(unknown));
        if (unknown_id < 0)
            return BROKEN("model: \"unk_token\" is not in the vocabulary");
    } else if (unknown && !json_is_null(unknown)) {
        return BROKEN("model: \"unk_token\" is not a string");
    }
    size_t part = gb_begin_part(bytes, GB_PART_MODEL);
    gb_buffer_append_u32(bytes, GB_MODEL_BPE);
    gb_buffer_append_u32(bytes, flags);
    gb_buffer_append_u32(bytes, (uint32_t)unknown_id);
    gb_end_part(bytes, part);
    return GUMBEL_OK;
}

static gumbel_status check_expressions(const gb_text_steps *steps, gumbel_error *error) {
    for (uint32_t i = 0; i < steps->count; i++) {
        gb_splitter *splitter;
        if (steps->items[i].kind != GB_SPLIT_EXPRESSION)
            continue;
        GB_TRY(gb_splitter_create(&steps->items[i], &splitter, error));
        gb_splitter_free(splitter);
    }
    return GUMBEL_OK;
}

/* The reader has the last word on what is valid. */
static gumbel_status check_section(const gb_byte_buffer *bytes, gumbel_error *error) {
    gb_tokenizer_data data;
    gb_blob blob = {bytes->data, bytes->size};
    GB_TRY(gb_tokenizer_parse(&blob, &data, error));
    GB_TRY(check_expressions(&data.pre_tokenizer, error));
    gb_vocabulary spellings;
    gumbel_status status = gb_vocabulary_create(&spellings, &data, error);
    gb_vocabulary_free(&spellings);
    return status;
}

static gumbel_status write_parts(const json_t *root, gb_json_vocabulary *vocabulary, gb_byte_buffer *bytes,
                                 gumbel_error *error) {
    const json_t *model = json_object_get(root, "model");
    GB_TRY(check_model(model, error));
    GB_TRY(gb_read_json_vocabulary(root, vocabulary, error));
    gb_buffer_append(bytes, GB_TOKENIZER_MAGIC, 4);
    gb_buffer_append_u32(bytes, GB_TOKENIZER_VERSION);
    GB_TRY(write_model(model, vocabulary, bytes, error));
    gb_write_vocabulary(vocabulary, bytes);
    GB_TRY(gb_write_merges(root, vocabulary, bytes, error));
    gb_write_added(vocabulary, bytes);
    GB_TRY(gb_write_text_steps(root, bytes, error));
    GB_TRY(gb_write_around(root, bytes, error));
    if (bytes->failed)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for the tokenizer section");
    return check_section(bytes, error);
}

gumbel_status gb_convert_tokenizer(const json_t *root, gb_byte_buffer *bytes, gumbel_error *error) {
    gb_json_vocabulary vocabulary = {0};
    gumbel_status status =
        json_is_object(root) ? write_parts(root, &vocabulary, bytes, error) : BROKEN("not a JSON object");
    gb_json_vocabulary_free(&vocabulary);
    return status;
}

gumbel_status gb_convert_tokenizer_json(const char *text, size_t length, const char *path,
                                        gb_byte_buffer *bytes, gumbel_error *error) {
    json_t *root;
    GB_TRY(gb_load_json(path, text, length, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &root, error));
    gumbel_status status = gb_convert_tokenizer(root, bytes, error);
    json_decref(root);
    return status == GUMBEL_OK ? GUMBEL_OK : gb_prefix(error, status, "%s", path);
}

gumbel_status gb_read_tokenizer_json(const char *path, gb_byte_buffer *bytes, gumbel_error *error) {
    enum { MAX_FILE = 1 << 29 };
    char *text;
    size_t size;
    GB_TRY(gb_read_file(path, MAX_FILE, &text, &size, error));
    gumbel_status status = gb_convert_tokenizer_json(text, size, path, bytes, error);
    gb_free(text);
    return status;
}
