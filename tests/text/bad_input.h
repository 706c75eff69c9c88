/* SPDX-License-Identifier: Apache-2.0
 *
 * Gives damaged tokenizers to the converter and the reader, and uses what they accept.
 */
#ifndef GUMBEL_TESTS_TEXT_BAD_INPUT_H
#define GUMBEL_TESTS_TEXT_BAD_INPUT_H

#include "golden.h"

#include "support/assertions.h"

/* Encodes a text of many kinds of characters and decodes the tokens. */
static inline gumbel_status use_tokenizer(const gumbel_tokenizer *tokenizer, gumbel_error *error) {
    gumbel_encode_options options = {.size = sizeof options, .parse_special = true, .add_special = true};
    int32_t ids[256];
    size_t count, length;
    const char *text = "ab <s>A\xFF the quick\n\n<unk>\xE2\x82\xAC e\u0301\u0323 <|turn> \xF0\x9F\x99\x82";
    GB_TRY(gumbel_encode(tokenizer, text, strlen(text), &options, ids, 256, &count, error));
    gumbel_detokenizer *detokenizer;
    GB_TRY(gumbel_detokenizer_create(tokenizer, true, &detokenizer, error));
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(gumbel_detokenize(detokenizer, ids[i], &text, &length, NULL), GUMBEL_OK);
        assert_true(gb_utf8_is_valid(text, length));
    }
    gumbel_detokenizer_destroy(detokenizer);
    return GUMBEL_OK;
}

/* Makes a tokenizer and uses it. */
static inline gumbel_status use_section(const uint8_t *data, size_t size, gumbel_error *error) {
    gumbel_tokenizer *tokenizer;
    gb_blob blob = {data, size};
    GB_TRY(gb_tokenizer_create(&blob, NULL, &tokenizer, error));
    gumbel_status status = use_tokenizer(tokenizer, error);
    gumbel_tokenizer_destroy(tokenizer);
    return status;
}

/* The same from a tokenizer.json. */
static inline gumbel_status use_json(const char *text, size_t length, gumbel_error *error) {
    gb_byte_buffer bytes = {0};
    gumbel_status status = gb_convert_tokenizer_json(text, length, "t.json", &bytes, error);
    if (status == GUMBEL_OK)
        status = use_section(bytes.data, bytes.size, error);
    gb_buffer_free(&bytes);
    return status;
}

/* Expects an error of one line that names the file and the reason. */
static inline void expect(const char *text, gumbel_status status, const char *reason) {
    gumbel_error error;
    assert_fails(use_json(text, strlen(text), &error), status, &error, reason);
    assert_non_null(strstr(error.message, "t.json: "));
    assert_null(strchr(error.message, '\n'));
}

/* Every truncation of a valid file is an error of one line; every flipped bit is one, or another valid file.
 */
static inline void check_damaged_json(const char *valid) {
    size_t length = strlen(valid);
    char *text = gb_copy_string(valid, length);
    for (size_t i = 0; i < length; i++) {
        gumbel_error error = {0};
        char *cut = gb_allocate(i, 1);
        memcpy(cut, text, i);
        assert_int_equal(use_json(cut, i, &error), GUMBEL_ERROR_FORMAT);
        assert_null(strchr(error.message, '\n'));
        gb_free(cut);
        for (int bit = 0; bit < 8; bit++) {
            text[i] = (char)(text[i] ^ 1 << bit);
            (void)use_json(text, length, NULL);
            text[i] = (char)(text[i] ^ 1 << bit);
        }
    }
    gb_free(text);
}

/* The same for the section that the valid file becomes. */
static inline void check_damaged_section(const char *valid) {
    gb_byte_buffer bytes = {0};
    assert_int_equal(gb_convert_tokenizer_json(valid, strlen(valid), "t.json", &bytes, NULL), GUMBEL_OK);
    for (size_t i = 0; i < bytes.size; i++) {
        gumbel_error error = {0};
        uint8_t *cut = gb_allocate(i, 1); /* of its own size, so that reading past the end shows */
        memcpy(cut, bytes.data, i);
        assert_int_equal(use_section(cut, i, &error), GUMBEL_ERROR_FORMAT);
        gb_free(cut);
        static const uint8_t flips[] = {1, 2, 4, 8, 16, 32, 64, 128, 255};
        for (size_t flip = 0; flip < sizeof flips; flip++) {
            bytes.data[i] ^= flips[flip];
            (void)use_section(bytes.data, bytes.size, NULL);
            bytes.data[i] ^= flips[flip];
        }
    }
    gb_buffer_free(&bytes);
}

static inline bool fail_at(void *user, size_t bytes) {
    (void)bytes;
    int *left = user;
    return (*left)-- != 0;
}

/* Creating the valid file's tokenizer and using it, the n-th allocation fails, for every n. */
static inline void check_no_memory(const char *valid) {
    gb_byte_buffer bytes = {0};
    assert_int_equal(gb_convert_tokenizer_json(valid, strlen(valid), "t.json", &bytes, NULL), GUMBEL_OK);
    gumbel_status status = GUMBEL_ERROR_MEMORY;
    int n = 0;
    for (; status != GUMBEL_OK; n++) {
        int left = n;
        gb_set_allocation_hook(fail_at, &left);
        status = use_section(bytes.data, bytes.size, NULL);
        gb_set_allocation_hook(NULL, NULL);
        assert_true(status == GUMBEL_OK || status == GUMBEL_ERROR_MEMORY);
    }
    assert_true(n > 10);
    gb_buffer_free(&bytes);
}

#endif
