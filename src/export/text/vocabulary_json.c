/* SPDX-License-Identifier: Apache-2.0 */
#include "export/text/vocabulary_json.h"

#include "base/memory.h"
#include "export/text/byte_level.h"
#include "export/text/tokenizer_json.h"
#include "text/tokenizer/tokenizer_data.h"

#include <string.h>

#define BROKEN(...) gb_fail(error, GUMBEL_ERROR_FORMAT, __VA_ARGS__)

/* Ids that may be unused: more than that is a mistake, and would make a large table of nothing. */
static uint32_t allowed_ids(size_t entries) {
    size_t allowed = 2 * entries + 65536;
    return allowed < GB_MAX_TOKENS ? (uint32_t)allowed : GB_MAX_TOKENS;
}

static gumbel_status check_id(const json_t *value, size_t entries, const char *what, size_t index,
                              gumbel_error *error) {
    if (!json_is_integer(value))
        return BROKEN("%s: the id of entry %zu is not an integer", what, index);
    json_int_t id = json_integer_value(value);
    if (id < 0 || id >= allowed_ids(entries))
        return BROKEN("%s: the id of entry %zu is %" JSON_INTEGER_FORMAT ", with %zu tokens in all", what,
                      index, id, entries);
    return GUMBEL_OK;
}

static gumbel_status check_spelling(const char *what, size_t index, size_t length, gumbel_error *error) {
    if (length == 0 || length > GB_MAX_TOKEN_BYTES)
        return BROKEN("%s: entry %zu is spelled in %zu bytes; 1 to %d are possible", what, index, length,
                      GB_MAX_TOKEN_BYTES);
    return GUMBEL_OK;
}

static gumbel_status set_token(gb_json_vocabulary *vocabulary, json_int_t id, gb_json_token token,
                               const char *what, size_t index, gumbel_error *error) {
    if (vocabulary->tokens[id].text)
        return BROKEN("%s: entry %zu has the id %" JSON_INTEGER_FORMAT ", which another token has", what,
                      index, id);
    vocabulary->tokens[id] = token;
    if (id >= vocabulary->count)
        vocabulary->count = (uint32_t)id + 1;
    return GUMBEL_OK;
}

/* json_object_foreach wants a mutable object. */
static json_t *mutable_json(const json_t *value) {
    return (json_t *)(uintptr_t)value;
}

/* Room for what the spellings stand for, which is never longer than they are. */
static gumbel_status allocate_bytes(const json_t *vocab, const json_t *repeated, char **bytes,
                                    gumbel_error *error) {
    const char *key;
    json_t *value;
    size_t total = 0, index;
    json_object_foreach(mutable_json(vocab), key, value) total += strlen(key);
    json_array_foreach(repeated, index, value) total += json_string_length(json_array_get(value, 1));
    *bytes = gb_allocate(total, 1);
    return *bytes ? GUMBEL_OK
                  : gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for %zu bytes of tokens", total);
}

/* Adds a token of the model; at byte level *next is where its bytes go. */
static gumbel_status read_token(const char *what, size_t index, const char *spelling, const json_t *id,
                                size_t entries, char **next, gb_json_vocabulary *vocabulary,
                                gumbel_error *error) {
    const size_t length = strlen(spelling);
    gb_json_token token = {.text = spelling, .length = length};
    GB_TRY(check_id(id, entries, what, index, error));
    GB_TRY(check_spelling(what, index, length, error));
    if (*next) {
        if (!gb_read_byte_level(spelling, length, *next, &token.length))
            token.length = 0; /* an added token, perhaps */
        token.text = *next;
        *next += token.length;
    }
    return set_token(vocabulary, json_integer_value(id), token, what, index, error);
}

static gumbel_status read_vocab(const json_t *vocab, const json_t *repeated, size_t entries,
                                gb_json_vocabulary *vocabulary, gumbel_error *error) {
    char *next = vocabulary->bytes;
    const char *key;
    json_t *value;
    size_t index = 0;
    json_object_foreach(mutable_json(vocab), key, value) {
        GB_TRY(read_token("model.vocab", index, key, value, entries, &next, vocabulary, error));
        index++;
    }
    json_array_foreach(repeated, index, value) {
        const char *spelling = json_string_value(json_array_get(value, 1));
        const json_t *id = json_array_get(value, 0);
        GB_TRY(read_token("model.repeated", index, spelling ? spelling : "", id, entries, &next, vocabulary,
                          error));
        vocabulary->tokens[json_integer_value(id)].is_repeated = true;
    }
    return GUMBEL_OK;
}

static gumbel_status read_flags(const json_t *added, size_t index, uint32_t *flags, gumbel_error *error) {
    static const struct {
        const char *key;
        uint32_t flag;
    } keys[] = {{"special", GB_ADDED_SPECIAL},
                {"normalized", GB_ADDED_NORMALIZED},
                {"lstrip", GB_ADDED_LEFT_STRIP},
                {"rstrip", GB_ADDED_RIGHT_STRIP},
                {"single_word", GB_ADDED_SINGLE_WORD}};
    *flags = 0;
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        const json_t *value = json_object_get(added, keys[i].key);
        if (!json_is_boolean(value))
            return BROKEN("added_tokens: entry %zu has no boolean \"%s\"", index, keys[i].key);
        if (json_is_true(value))
            *flags |= keys[i].flag;
    }
    return GUMBEL_OK;
}

static gumbel_status read_added_token(const json_t *added, size_t index, size_t entries,
                                      gb_json_vocabulary *vocabulary, gumbel_error *error) {
    const json_t *content = json_object_get(added, "content");
    const json_t *id_value = json_object_get(added, "id");
    if (!json_is_string(content))
        return BROKEN("added_tokens: entry %zu has no string \"content\"", index);
    GB_TRY(check_id(id_value, entries, "added_tokens", index, error));
    json_int_t id = json_integer_value(id_value);
    gb_json_token token = {
        .text = json_string_value(content), .length = json_string_length(content), .is_added = true};
    GB_TRY(check_spelling("added_tokens", index, token.length, error));
    GB_TRY(read_flags(added, index, &token.flags, error));
    int32_t in_model = gb_json_token_id(vocabulary, token.text, token.length);
    if (vocabulary->tokens[id].is_repeated) {
        token.flags |= GB_ADDED_OUTSIDE;
        vocabulary->tokens[id] = token;
        return GUMBEL_OK;
    }
    if (in_model < 0) {
        token.flags |= GB_ADDED_OUTSIDE;
        return set_token(vocabulary, id, token, "added_tokens", index, error);
    }
    if (in_model != id)
        return BROKEN("added_tokens: entry %zu has the id %" JSON_INTEGER_FORMAT ", but %d in model.vocab",
                      index, id, in_model);
    const gb_json_token *model_token = &vocabulary->tokens[id];
    if (model_token->is_added)
        return BROKEN("added_tokens: entry %zu (id %" JSON_INTEGER_FORMAT ") stands twice", index, id);
    if (model_token->length > 0 &&
        (model_token->length != token.length || memcmp(model_token->text, token.text, token.length) != 0))
        return gb_fail(error, GUMBEL_ERROR_UNSUPPORTED,
                       "added_tokens: entry %zu (id %" JSON_INTEGER_FORMAT
                       ") is spelled as a token of model.vocab that stands for other bytes",
                       index, id);
    vocabulary->tokens[id] = token;
    return GUMBEL_OK;
}

gumbel_status gb_read_json_vocabulary(const json_t *root, gb_json_vocabulary *vocabulary,
                                      gumbel_error *error) {
    const json_t *model = json_object_get(root, "model"), *vocab = json_object_get(model, "vocab");
    const json_t *repeated = json_object_get(model, "repeated");
    const json_t *added = json_object_get(root, "added_tokens");
    *vocabulary = (gb_json_vocabulary){.model_vocab = vocab};
    if (!json_is_object(vocab))
        return BROKEN("model.vocab: not an object of tokens and ids");
    if (added && !json_is_array(added) && !json_is_null(added))
        return BROKEN("added_tokens: not an array");
    size_t entries = json_object_size(vocab) + json_array_size(repeated) + json_array_size(added);
    if (entries == 0 || entries > GB_MAX_TOKENS)
        return BROKEN("model.vocab: %zu tokens; 1 to %d are possible", entries, GB_MAX_TOKENS);
    vocabulary->tokens = gb_allocate(allowed_ids(entries), sizeof *vocabulary->tokens);
    if (!vocabulary->tokens)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for %zu tokens", entries);
    if (gb_json_has_byte_level(json_object_get(root, "pre_tokenizer"), "pretokenizers"))
        GB_TRY(allocate_bytes(vocab, repeated, &vocabulary->bytes, error));
    GB_TRY(read_vocab(vocab, repeated, entries, vocabulary, error));
    for (size_t i = 0; i < json_array_size(added); i++)
        GB_TRY(read_added_token(json_array_get(added, i), i, entries, vocabulary, error));
    for (uint32_t id = 0; id < vocabulary->count; id++)
        if (vocabulary->tokens[id].text && vocabulary->tokens[id].length == 0)
            return gb_fail(error, GUMBEL_ERROR_UNSUPPORTED,
                           "model.vocab: token %u is not spelled in the alphabet of ByteLevel", id);
    return GUMBEL_OK;
}

void gb_json_vocabulary_free(gb_json_vocabulary *vocabulary) {
    gb_free(vocabulary->tokens);
    gb_free(vocabulary->bytes);
    *vocabulary = (gb_json_vocabulary){0};
}

int32_t gb_json_token_id(const gb_json_vocabulary *vocabulary, const char *text, size_t length) {
    const json_t *id = json_object_getn(vocabulary->model_vocab, text, length);
    return id ? (int32_t)json_integer_value(id) : -1;
}

void gb_write_vocabulary(const gb_json_vocabulary *vocabulary, gb_byte_buffer *bytes) {
    size_t part = gb_begin_part(bytes, GB_PART_VOCABULARY);
    size_t total = 0;
    for (uint32_t id = 0; id < vocabulary->count; id++)
        total += vocabulary->tokens[id].length;
    bytes->failed |= total > INT32_MAX;
    gb_buffer_append_u32(bytes, vocabulary->count);
    gb_buffer_append_u32(bytes, (uint32_t)total);
    uint32_t offset = 0;
    for (uint32_t id = 0; id < vocabulary->count; id++) {
        gb_buffer_append_u32(bytes, offset);
        offset += (uint32_t)vocabulary->tokens[id].length;
    }
    gb_buffer_append_u32(bytes, offset);
    for (uint32_t id = 0; id < vocabulary->count; id++)
        gb_buffer_append(bytes, vocabulary->tokens[id].text, vocabulary->tokens[id].length);
    gb_end_part(bytes, part);
}

void gb_write_added(const gb_json_vocabulary *vocabulary, gb_byte_buffer *bytes) {
    size_t part = gb_begin_part(bytes, GB_PART_ADDED);
    uint32_t count = 0;
    for (uint32_t id = 0; id < vocabulary->count; id++)
        count += vocabulary->tokens[id].is_added;
    gb_buffer_append_u32(bytes, count);
    for (uint32_t id = 0; id < vocabulary->count; id++) {
        if (!vocabulary->tokens[id].is_added)
            continue;
        gb_buffer_append_u32(bytes, id);
        gb_buffer_append_u32(bytes, vocabulary->tokens[id].flags);
    }
    gb_end_part(bytes, part);
}
