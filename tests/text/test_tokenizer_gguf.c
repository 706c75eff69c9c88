/* SPDX-License-Identifier: Apache-2.0
 *
 * Tokenizers from GGUF metadata: the same section as from the tokenizer.json that it was made from, and bad
 * metadata.
 */
#include "golden.h"

#include "export/text/chat_template.h"
#include "export/text/tokenizer_gguf.h"
#include "support/assertions.h"
#include "support/checkpoints/gguf_writer.h"
#include "support/temporary.h"

#include <stdlib.h>

#define KEY(name) "tokenizer.ggml." name
enum { MAX_GOLDEN_TOKENS = 4096, NORMAL = 1, CONTROL = 3, USER_DEFINED = 4, UNUSED = 5, BYTE = 6 };

/* ---- Equal to tokenizer.json ---- */

/* The lists of a tokenizer.json as llama.cpp's converter writes them. */
static void add_tokenizer_json(gguf_writer *w, const json_t *root) {
    static const char *spellings[MAX_GOLDEN_TOKENS], *merges[MAX_GOLDEN_TOKENS];
    static int32_t types[MAX_GOLDEN_TOKENS];
    static char joined[MAX_GOLDEN_TOKENS][512];
    memset(spellings, 0, sizeof spellings);
    const json_t *model = json_object_get(root, "model"), *list = json_object_get(model, "merges");
    const char *spelling;
    json_t *value;
    size_t index, count = 0;
    json_object_foreach(json_object_get(model, "vocab"), spelling, value) {
        size_t id = (size_t)json_integer_value(value);
        assert_true(id < MAX_GOLDEN_TOKENS);
        spellings[id] = spelling;
        types[id] = NORMAL;
        count = id >= count ? id + 1 : count;
    }
    json_array_foreach(json_object_get(root, "added_tokens"), index, value) {
        size_t id = (size_t)json_integer_value(json_object_get(value, "id"));
        spelling = json_string_value(json_object_get(value, "content"));
        bool is_shown = strcmp(spelling, "<|channel>") == 0 || strcmp(spelling, "<channel|>") == 0;
        bool is_special = json_is_true(json_object_get(value, "special"));
        spellings[id] = spelling;
        types[id] = is_special && !is_shown ? CONTROL : USER_DEFINED;
        count = id >= count ? id + 1 : count;
    }
    json_array_foreach(list, index, value) {
        snprintf(joined[index], sizeof joined[index], "%s %s", json_string_value(json_array_get(value, 0)),
                 json_string_value(json_array_get(value, 1)));
        merges[index] = joined[index];
    }
    for (size_t id = 0; id < count; id++) {
        if (!spellings[id]) {
            spellings[id] = "[PAD]";
            types[id] = UNUSED;
        }
    }
    gguf_add_texts(w, KEY("tokens"), spellings, count);
    gguf_add_i32s(w, KEY("token_type"), types, count);
    gguf_add_texts(w, KEY("merges"), merges, json_array_size(list));
}

/* The file's section is that of the tokenizer.json. */
static void check_equal(gguf_writer *w, const json_t *root) {
    gb_byte_buffer expected = {0}, found = {0};
    gb_gguf file;
    gumbel_error error;
    size_t size = 0;
    add_tokenizer_json(w, root);
    uint8_t *bytes = gguf_finish(w, &size);
    assert_ok(gb_convert_tokenizer(root, &expected, &error), &error);
    assert_ok(gb_gguf_parse("file", bytes, size, &file, &error), &error);
    assert_ok(gb_read_gguf_tokenizer(&file, "file", &found, &error), &error);
    assert_int_equal(expected.size, found.size);
    assert_memory_equal(expected.data, found.data, found.size);
    gb_gguf_close(&file);
    gb_buffer_free(&expected);
    gb_buffer_free(&found);
    free(bytes);
}

static void equals_gemmas(void **state) {
    (void)state;
    json_t *root = load_json(DATA("gemma.tokenizer.json"));
    /* its last token is special and outside the vocabulary, which GGUF does not tell from one inside */
    json_t *added = json_object_get(root, "added_tokens");
    assert_int_equal(json_array_remove(added, json_array_size(added) - 1), 0);
    gguf_writer w = {.version = 3};
    const json_t *vocab = json_object_get(json_object_get(root, "model"), "vocab");
    gguf_add_text(&w, KEY("model"), "gemma4");
    gguf_add_u32(&w, KEY("bos_token_id"), (uint32_t)json_integer_value(json_object_get(vocab, "<bos>")));
    gguf_add_u32(&w, KEY("unknown_token_id"), (uint32_t)json_integer_value(json_object_get(vocab, "<unk>")));
    check_equal(&w, root);
    json_decref(root);
}

/* Replaces the expression that texts are split by. */
static void set_expression(json_t *root, const char *expression) {
    json_t *steps = json_object_get(json_object_get(root, "pre_tokenizer"), "pretokenizers");
    json_t *pattern = json_object_get(json_array_get(steps, 0), "pattern");
    assert_int_equal(json_object_set_new(pattern, "Regex", json_string(expression)), 0);
}

/* Qwen's tokenizer, but for the normalizer, which no GGUF has. Control tokens are in the vocabulary there. */
static json_t *load_qwens(void) {
    json_t *root = load_json(DATA("qwen.tokenizer.json")), *value;
    json_t *vocab = json_object_get(json_object_get(root, "model"), "vocab");
    size_t index;
    json_object_del(root, "normalizer");
    json_array_foreach(json_object_get(root, "added_tokens"), index, value) {
        if (json_is_true(json_object_get(value, "special")))
            json_object_set(vocab, json_string_value(json_object_get(value, "content")),
                            json_object_get(value, "id"));
    }
    return root;
}

static void equals_qwens(void **state) {
    (void)state;
    static const char *const names[] = {"qwen35", "qwen2", "deepseek-r1-qwen"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        json_t *root = load_qwens();
        if (i > 0)
            set_expression(root, "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}|"
                                 " ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+");
        gguf_writer w = {.version = 3};
        gguf_add_text(&w, KEY("model"), "gpt2");
        gguf_add_text(&w, KEY("pre"), names[i]);
        check_equal(&w, root);
        json_decref(root);
    }
}

/* Whole tokens before merges, and a token before each text. */
static void check_whole_tokens(const char *pre, const char *expression) {
    json_t *root = load_qwens(), *model = json_object_get(root, "model");
    const json_t *bos = json_object_get(json_object_get(model, "vocab"), "<|endoftext|>");
    set_expression(root, expression);
    json_object_set_new(model, "ignore_merges", json_true());
    json_object_set_new(root, "post_processor",
                        json_pack("{s:s, s:[{s:{s:s}}, {s:{s:s}}], s:{s:{s:[I]}}}", "type",
                                  "TemplateProcessing", "single", "SpecialToken", "id", "<|endoftext|>",
                                  "Sequence", "id", "A", "special_tokens", "<|endoftext|>", "ids",
                                  json_integer_value(bos)));
    gguf_writer w = {.version = 3};
    gguf_add_text(&w, KEY("model"), "gpt2");
    gguf_add_text(&w, KEY("pre"), pre);
    gguf_add_u32(&w, KEY("bos_token_id"), (uint32_t)json_integer_value(bos));
    check_equal(&w, root);
    json_decref(root);
}

static void equals_llamas(void **state) {
    (void)state;
    check_whole_tokens("llama-bpe", "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}|"
                                    " ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+");
}

static void equals_mistrals(void **state) {
    (void)state;
    check_whole_tokens(
        "tekken", "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+|"
                  "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*|"
                  "\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+");
}

/* ---- A small one ---- */

enum { SMALL_TOKENS = 10 };
static const char *const SMALL[SMALL_TOKENS] = {"<unk>", "<bos>",  "<eos>",   "a",       "b",
                                                "ab",    "<0x41>", "<turn|>", "<|turn>", "<|\"|>"};
static const int32_t SMALL_TYPES[SMALL_TOKENS] = {CONTROL, CONTROL, CONTROL, NORMAL,  NORMAL,
                                                  NORMAL,  BYTE,    CONTROL, CONTROL, USER_DEFINED};
static const char *const SMALL_MERGES[] = {"a b"};

/* Writes the small tokenizer but for one key, which may be NULL. */
static void add_small(gguf_writer *w, const char *skipped) {
    skipped = skipped ? skipped : "";
    w->version = 3;
    if (strcmp(skipped, KEY("model")) != 0)
        gguf_add_text(w, KEY("model"), "gemma4");
    if (strcmp(skipped, KEY("tokens")) != 0)
        gguf_add_texts(w, KEY("tokens"), SMALL, SMALL_TOKENS);
    if (strcmp(skipped, KEY("token_type")) != 0)
        gguf_add_i32s(w, KEY("token_type"), SMALL_TYPES, SMALL_TOKENS);
    if (strcmp(skipped, KEY("merges")) != 0)
        gguf_add_texts(w, KEY("merges"), SMALL_MERGES, 1);
    if (strcmp(skipped, KEY("bos_token_id")) != 0)
        gguf_add_u32(w, KEY("bos_token_id"), 1);
    if (strcmp(skipped, KEY("unknown_token_id")) != 0)
        gguf_add_u32(w, KEY("unknown_token_id"), 0);
}

static const char *write_small(gguf_writer *w, const char *skipped) {
    const char *path = temporary_path("small.gguf");
    add_small(w, skipped);
    gguf_write(w, path);
    return path;
}

static void opens_a_vocabulary_alone(void **state) {
    (void)state;
    gumbel_tokenizer *tokenizer = NULL;
    gumbel_error error;
    gguf_writer w = {0};
    gguf_add_bool(&w, KEY("add_bos_token"), false); /* overruled for this kind */
    assert_ok(gumbel_export_tokenizer(write_small(&w, NULL), &tokenizer, &error), &error);
    gumbel_encode_options options = {.size = sizeof options, .add_special = true, .parse_special = true};
    int32_t ids[16];
    size_t count = 0;
    static const int32_t expected[] = {1, 5, 6, 9, 7};
    static const char text[] = "abA<|\"|><turn|>";
    assert_ok(gumbel_encode(tokenizer, text, strlen(text), &options, ids, 16, &count, &error), &error);
    assert_int_equal(count, 5);
    assert_memory_equal(ids, expected, sizeof expected);
    gumbel_tokenizer_destroy(tokenizer);
}

static void finds_stops(void **state) {
    (void)state;
    gguf_writer w = {0};
    gb_gguf file;
    gumbel_error error;
    int32_t ids[GB_GGUF_MAX_STOPS];
    assert_ok(gb_gguf_open(write_small(&w, NULL), &file, &error), &error);
    assert_int_equal(gb_gguf_find_stops(&file, ids), 2);
    assert_int_equal(ids[0], 2);
    assert_int_equal(ids[1], 7);
    gb_gguf_close(&file);
    assert_ok(gb_gguf_open(write_small(&(gguf_writer){0}, KEY("tokens")), &file, &error), &error);
    assert_int_equal(gb_gguf_find_stops(&file, ids), 0);
    gb_gguf_close(&file);
}

static void reads_the_chat_template(void **state) {
    (void)state;
    gguf_writer w = {0};
    gb_gguf file;
    gb_chat_section chat;
    gumbel_error error;
    const char *text;
    gguf_add_text(&w, "tokenizer.chat_template", "{{ bos_token }}");
    gguf_add_text(&w, "tokenizer.chat_template.tool_use", "T");
    assert_ok(gb_gguf_open(write_small(&w, NULL), &file, &error), &error);
    assert_ok(gb_read_gguf_chat_templates(&file, "file", &chat, &error), &error);
    assert_ok(gb_chat_section_choose(&chat, NULL, false, &text, &error), &error);
    assert_string_equal(text, "{{ bos_token }}");
    assert_ok(gb_chat_section_choose(&chat, NULL, true, &text, &error), &error);
    assert_string_equal(text, "T");
    assert_string_equal(json_string_value(json_object_get(chat.special_tokens, "bos_token")), "<bos>");
    gb_chat_section_free(&chat);
    gb_gguf_close(&file);
}

/* ---- Bad metadata ---- */

static void refuses(gguf_writer *w, const char *skipped, gumbel_status status, const char *part) {
    gumbel_tokenizer *tokenizer = NULL;
    gumbel_error error;
    assert_fails(gumbel_export_tokenizer(write_small(w, skipped), &tokenizer, &error), status, &error, part);
    assert_non_null(strstr(error.message, "small.gguf: "));
    assert_null(strchr(error.message, '\n'));
    assert_null(tokenizer);
}

static void refuses_models(void **state) {
    (void)state;
    gguf_writer w = {0};
    refuses(&w, KEY("model"), GUMBEL_ERROR_FORMAT, "the file has no tokenizer");
    gguf_add_text(&w, KEY("model"), "none");
    refuses(&w, KEY("model"), GUMBEL_ERROR_FORMAT, "the file has no tokenizer");
    gguf_add_text(&w, KEY("model"), "rwkv\n");
    refuses(&w, KEY("model"), GUMBEL_ERROR_UNSUPPORTED,
            "tokenizer.ggml.model: \"rwkv\\n\" is not supported in this version; known are gemma4, gpt2, "
            "llama, whitespace");
    gguf_add_u32(&w, KEY("model"), 1);
    refuses(&w, KEY("model"), GUMBEL_ERROR_FORMAT, "tokenizer.ggml.model: expected a string, found uint32");
    gguf_add_text(&w, KEY("model"), "gpt2");
    refuses(&w, KEY("model"), GUMBEL_ERROR_FORMAT, "tokenizer.ggml.pre: expected a string, found nothing");
    gguf_add_text(&w, KEY("model"), "gpt2");
    gguf_add_text(&w, KEY("pre"), "gpt-9");
    refuses(
        &w, KEY("model"), GUMBEL_ERROR_UNSUPPORTED,
        "tokenizer.ggml.pre: \"gpt-9\" is not supported in this version; export the model's own directory, "
        "whose tokenizer.json says how it splits texts, or set the key to the name of a tokenizer that "
        "splits alike; known are gpt-2, phi-2, ");
}

static void refuses_missing_lists(void **state) {
    (void)state;
    refuses(&(gguf_writer){0}, KEY("tokens"), GUMBEL_ERROR_FORMAT,
            "tokenizer.ggml.tokens: the key is missing");
    refuses(&(gguf_writer){0}, KEY("merges"), GUMBEL_ERROR_FORMAT,
            "tokenizer.ggml.merges: the key is missing");
    refuses(&(gguf_writer){0}, KEY("token_type"), GUMBEL_ERROR_FORMAT,
            "tokenizer.ggml.token_type: the key is missing");
}

static void refuses_tokens(const char *const *tokens, size_t count, const char *part) {
    gguf_writer w = {0};
    gguf_add_texts(&w, KEY("tokens"), tokens, count);
    refuses(&w, KEY("tokens"), GUMBEL_ERROR_FORMAT, part);
}

static void refuses_bad_lists(void **state) {
    (void)state;
    const char *tokens[SMALL_TOKENS];
    memcpy(tokens, SMALL, sizeof tokens);
    refuses_tokens(tokens, 9, "tokenizer.ggml.token_type: an array of 10, expected one for each of 9");
    refuses_tokens(tokens, 0, "tokenizer.ggml.tokens: 0 tokens");
    tokens[4] = "\xC0\x80";
    refuses_tokens(tokens, SMALL_TOKENS, "tokenizer.ggml.tokens: token 4 is not UTF-8");
    tokens[4] = "c";
    refuses_tokens(tokens, SMALL_TOKENS, "model.merges: the right token of entry 0 is not in the vocabulary");
    gguf_writer w = {0};
    gguf_add_i32s(&w, KEY("tokens"), SMALL_TYPES, SMALL_TOKENS);
    refuses(&w, KEY("tokens"), GUMBEL_ERROR_FORMAT,
            "tokenizer.ggml.tokens: expected an array of string, found array of int32");
    gguf_add_texts(&w, KEY("merges"), (const char *const[]){"a b c"}, 1);
    refuses(&w, KEY("merges"), GUMBEL_ERROR_FORMAT, "model.merges: entry 0 is neither");
}

static void refuses_bad_ids(void **state) {
    (void)state;
    gguf_writer w = {0};
    gguf_add_u32(&w, KEY("bos_token_id"), SMALL_TOKENS);
    refuses(&w, KEY("bos_token_id"), GUMBEL_ERROR_FORMAT,
            "tokenizer.ggml.bos_token_id: expected an id below 10");
    gguf_add_text(&w, KEY("unknown_token_id"), "<unk>");
    refuses(&w, KEY("unknown_token_id"), GUMBEL_ERROR_FORMAT,
            "tokenizer.ggml.unknown_token_id: expected an id below 10");
    gguf_add_u32(&w, "tokenizer.chat_template", 1);
    refuses(&w, NULL, GUMBEL_ERROR_FORMAT, "tokenizer.chat_template: expected a string");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_gemmas),
        cmocka_unit_test(equals_qwens),
        cmocka_unit_test(equals_llamas),
        cmocka_unit_test(equals_mistrals),
        cmocka_unit_test(opens_a_vocabulary_alone),
        cmocka_unit_test(finds_stops),
        cmocka_unit_test(reads_the_chat_template),
        cmocka_unit_test(refuses_models),
        cmocka_unit_test(refuses_missing_lists),
        cmocka_unit_test(refuses_bad_lists),
        cmocka_unit_test(refuses_bad_ids),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
