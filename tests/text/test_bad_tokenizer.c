/* SPDX-License-Identifier: Apache-2.0
 *
 * Bad input: tokenizer.json and tokenizer sections that are cut, flipped, or break one rule.
 */
#include "golden.h"

#include "support/assertions.h"

#include <stdlib.h>

/* A small valid tokenizer.json, with the pieces that the tests replace. */
#define VOCAB "{\"<unk>\":0,\"a\":1,\"b\":2,\"ab\":3,\"<0x41>\":4}"
#define MERGES "[[\"a\",\"b\"]]"
#define MODEL                                                                                                \
    "{\"type\":\"BPE\",\"unk_token\":\"<unk>\",\"byte_fallback\":true,\"vocab\":" VOCAB                      \
    ",\"merges\":" MERGES "}"
#define FLAGS "\"special\":true,\"normalized\":false,\"lstrip\":false,\"rstrip\":false,\"single_word\":false"
#define ADDED "[{\"id\":0,\"content\":\"<unk>\"," FLAGS "},{\"id\":5,\"content\":\"<s>\"," FLAGS "}]"
#define NORMALIZER "{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":\"_\"}"
#define SPLIT                                                                                                \
    "{\"type\":\"Split\",\"pattern\":{\"String\":\" "                                                        \
    "\"},\"behavior\":\"MergedWithPrevious\",\"invert\":false}"
#define DECODER "{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"ByteFallback\"},{\"type\":\"Fuse\"}]}"
#define TEMPLATE                                                                                             \
    "{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{\"id\":\"<s>\"}},{\"Sequence\":{"       \
    "\"id\":\"A\"}}],"                                                                                       \
    "\"special_tokens\":{\"<s>\":{\"ids\":[5]}}}"
#define FILE_OF(model, added, normalizer, splitter, decoder, processor)                                      \
    "{\"model\":" model ",\"added_tokens\":" added ",\"normalizer\":" normalizer                             \
    ",\"pre_tokenizer\":" splitter ",\"decoder\":" decoder ",\"post_processor\":" processor "}"
#define WITH_MODEL(model) FILE_OF(model, ADDED, NORMALIZER, SPLIT, DECODER, TEMPLATE)
#define WITH_VOCAB(vocab, merges) WITH_MODEL("{\"vocab\":" vocab ",\"merges\":" merges "}")
#define WITH_ADDED(added) FILE_OF(MODEL, added, NORMALIZER, SPLIT, DECODER, "null")
#define WITH_STEPS(normalizer, splitter, decoder) FILE_OF(MODEL, ADDED, normalizer, splitter, decoder, "null")
#define WITH_PROCESSOR(processor) FILE_OF(MODEL, ADDED, NORMALIZER, SPLIT, DECODER, processor)
#define VALID WITH_MODEL(MODEL)

/* Converts, makes a tokenizer, and uses it: whatever is accepted has to work. */
static gumbel_status use_section(const uint8_t *data, size_t size, gumbel_error *error) {
    gumbel_tokenizer *tokenizer;
    gb_blob blob = {data, size};
    GB_TRY(gb_tokenizer_create(&blob, NULL, &tokenizer, error));
    gumbel_encode_options options = {.size = sizeof options, .parse_special = true, .add_special = true};
    int32_t ids[256];
    size_t count, length;
    const char *text = "ab <s>A\xFF the quick\n\n<unk>\xE2\x82\xAC <|turn> \xF0\x9F\x99\x82";
    GB_TRY(gumbel_encode(tokenizer, text, strlen(text), &options, ids, 256, &count, error));
    gumbel_detokenizer *detokenizer;
    assert_int_equal(gumbel_detokenizer_create(tokenizer, true, &detokenizer, NULL), GUMBEL_OK);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(gumbel_detokenize(detokenizer, ids[i], &text, &length, NULL), GUMBEL_OK);
    gumbel_detokenizer_destroy(detokenizer);
    gumbel_tokenizer_destroy(tokenizer);
    return GUMBEL_OK;
}

static gumbel_status use_json(const char *text, size_t length, gumbel_error *error) {
    gb_byte_buffer bytes = {0};
    gumbel_status status = gb_convert_tokenizer_json(text, length, "t.json", &bytes, error);
    if (status == GUMBEL_OK)
        status = use_section(bytes.data, bytes.size, error);
    gb_buffer_free(&bytes);
    return status;
}

static void expect(const char *text, gumbel_status status, const char *reason) {
    gumbel_error error;
    assert_fails(use_json(text, strlen(text), &error), status, &error, reason);
    assert_non_null(strstr(error.message, "t.json: "));
    assert_null(strchr(error.message, '\n'));
}

static void test_valid(void **state) {
    (void)state;
    gumbel_error error;
    assert_ok(use_json(VALID, strlen(VALID), &error), &error);
}

static void test_vocabulary(void **state) {
    (void)state;
    const gumbel_status bad = GUMBEL_ERROR_FORMAT;
    expect("", bad, "line 1");
    expect("[]", bad, "not a JSON object");
    expect("{}", bad, "model: not an object");
    expect(WITH_MODEL("{}"), bad, "model.vocab");
    expect(WITH_VOCAB("[]", MERGES), bad, "model.vocab");
    expect(FILE_OF("{\"vocab\":{},\"merges\":[]}", "[]", "null", "null", DECODER, "null"), bad, "0 tokens");
    expect(WITH_VOCAB("{\"a\":\"0\"}", "[]"), bad, "not an integer");
    expect(WITH_VOCAB("{\"a\":-1}", "[]"), bad, "is -1");
    expect(WITH_VOCAB("{\"a\":99999999}", "[]"), bad, "99999999");
    expect(WITH_VOCAB("{\"a\":9223372036854775807}", "[]"), bad, "9223372036854775807");
    expect(WITH_VOCAB("{\"a\":1,\"b\":1}", "[]"), bad, "another token");
    expect(WITH_VOCAB("{\"a\":1,\"a\":2}", "[]"), bad, "duplicate");
    expect(WITH_VOCAB("{\"\":1}", "[]"), bad, "0 bytes");
    expect(WITH_MODEL("{\"unk_token\":\"no\",\"vocab\":" VOCAB ",\"merges\":[]}"), bad, "unk_token");
    expect(WITH_MODEL("{\"byte_fallback\":1,\"vocab\":" VOCAB ",\"merges\":[]}"), bad, "byte_fallback");
    expect(WITH_MODEL("{\"type\":\"Unigram\"}"), GUMBEL_ERROR_UNSUPPORTED, "Unigram");
    expect(WITH_MODEL("{\"dropout\":0.1}"), GUMBEL_ERROR_UNSUPPORTED, "dropout");
    expect(WITH_MODEL("{\"end_of_word_suffix\":\"</w>\"}"), GUMBEL_ERROR_UNSUPPORTED, "end_of_word_suffix");
}

static void test_merges(void **state) {
    (void)state;
    const gumbel_status bad = GUMBEL_ERROR_FORMAT;
    expect(WITH_VOCAB(VOCAB, "{}"), bad, "model.merges");
    expect(WITH_VOCAB(VOCAB, "[[\"a\"]]"), bad, "entry 0");
    expect(WITH_VOCAB(VOCAB, "[[\"a\",\"b\",\"c\"]]"), bad, "entry 0");
    expect(WITH_VOCAB(VOCAB, "[[\"a\",\"b\"],[\"a\",3]]"), bad, "entry 1");
    expect(WITH_VOCAB(VOCAB, "[\"ab\"]"), bad, "entry 0");
    expect(WITH_VOCAB(VOCAB, "[\"a b c\"]"), bad, "entry 0");
    expect(WITH_VOCAB(VOCAB, "[[\"a\",\"x\"]]"), bad, "right token");
    expect(WITH_VOCAB(VOCAB, "[[\"b\",\"a\"]]"), bad, "result");
}

static void test_added_tokens(void **state) {
    (void)state;
    const gumbel_status bad = GUMBEL_ERROR_FORMAT;
    expect(WITH_ADDED("{}"), bad, "added_tokens");
    expect(WITH_ADDED("[1]"), bad, "content");
    expect(WITH_ADDED("[{\"id\":9,\"content\":\"x\"}]"), bad, "special");
    expect(WITH_ADDED("[{\"id\":9,\"content\":\"\"," FLAGS "}]"), bad, "0 bytes");
    expect(WITH_ADDED("[{\"id\":1e9,\"content\":\"x\"," FLAGS "}]"), bad, "not an integer");
    expect(WITH_ADDED("[{\"id\":2,\"content\":\"a\"," FLAGS "}]"), bad, "1 in model.vocab");
    expect(WITH_ADDED("[{\"id\":2,\"content\":\"x\"," FLAGS "}]"), bad, "another token");
    expect(WITH_ADDED("[{\"id\":1,\"content\":\"a\"," FLAGS "},{\"id\":1,\"content\":\"a\"," FLAGS "}]"), bad,
           "twice");
    expect(WITH_ADDED("[{\"id\":8,\"content\":\"x\"," FLAGS "},{\"id\":9,\"content\":\"x\"," FLAGS "}]"), bad,
           "same spelling");
}

static void test_steps(void **state) {
    (void)state;
    const gumbel_status bad = GUMBEL_ERROR_FORMAT, refused = GUMBEL_ERROR_UNSUPPORTED;
    expect(WITH_STEPS("{\"type\":\"NFKC\"}", "null", DECODER), refused, "normalizer: the type \"NFKC\"");
    expect(WITH_STEPS("[]", "null", DECODER), bad, "normalizer");
    expect(WITH_STEPS("{\"type\":\"Sequence\"}", "null", DECODER), bad, "normalizers");
    expect(
        WITH_STEPS("{\"type\":\"Replace\",\"pattern\":{\"Regex\":\"a\"},\"content\":\"\"}", "null", DECODER),
        refused, "regular expression");
    expect(
        WITH_STEPS("{\"type\":\"Replace\",\"pattern\":{\"String\":\"\"},\"content\":\"\"}", "null", DECODER),
        bad, "0 bytes");
    expect(WITH_STEPS("null", "{\"type\":\"ByteLevel\"}", DECODER), refused,
           "pre_tokenizer: the type \"ByteLevel\"");
    expect(WITH_STEPS("null", "{\"type\":\"Split\",\"pattern\":{\"String\":\" \"},\"behavior\":\"Isolated\"}",
                      DECODER),
           refused, "Isolated");
    expect(WITH_STEPS("null", "null", "null"), refused, "decoder");
    expect(WITH_STEPS("null", "null", "{\"type\":\"Metaspace\"}"), refused,
           "decoder: the type \"Metaspace\"");
    expect(
        WITH_STEPS(
            "null", "null",
            "{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"ByteFallback\"},{\"type\":\"ByteFallback\"}]}"),
        bad, "last step");
}

static void test_post_processor(void **state) {
    (void)state;
    const gumbel_status bad = GUMBEL_ERROR_FORMAT, refused = GUMBEL_ERROR_UNSUPPORTED;
    expect(WITH_PROCESSOR("{\"type\":\"BertProcessing\"}"), refused, "BertProcessing");
    expect(WITH_PROCESSOR("{\"type\":\"TemplateProcessing\"}"), bad, "single");
    expect(WITH_PROCESSOR("{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{\"id\":\"x\"}}]}"),
           bad, "special_tokens");
    expect(WITH_PROCESSOR("{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{\"id\":\"x\"}},"
                          "{\"Sequence\":{\"id\":\"A\"}}],\"special_tokens\":{\"x\":{\"ids\":[77]}}}"),
           bad, "token 77");
}

/* Every truncation and every flipped byte is an error of one line, or another valid file. */
static void test_damaged_json(void **state) {
    (void)state;
    size_t length = strlen(VALID);
    char *text = gb_copy_string(VALID, length);
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

static void test_damaged_section(void **state) {
    (void)state;
    gb_byte_buffer bytes = {0};
    assert_int_equal(gb_convert_tokenizer_json(VALID, strlen(VALID), "t.json", &bytes, NULL), GUMBEL_OK);
    for (size_t i = 0; i < bytes.size; i++) {
        gumbel_error error = {0};
        uint8_t *cut = gb_allocate(i, 1);
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

/* The larger file, at many places. */
static void test_damaged_gemma(void **state) {
    (void)state;
    char *text;
    size_t length;
    assert_int_equal(gb_read_file(DATA("gemma.tokenizer.json"), 1 << 24, &text, &length, NULL), GUMBEL_OK);
    uint64_t numbers = 1;
    for (int i = 0; i < 200; i++) {
        size_t at = below(&numbers, length);
        char kept = text[at];
        text[at] = (char)below(&numbers, 256);
        (void)use_json(text, length, NULL);
        text[at] = kept;
        assert_int_not_equal(use_json(text, below(&numbers, length - 1), NULL), GUMBEL_OK);
    }
    gb_free(text);
}

static bool fail_at(void *user, size_t bytes) {
    (void)bytes;
    int *left = user;
    return (*left)-- != 0;
}

/* The n-th allocation fails, for every n. */
static void test_no_memory(void **state) {
    (void)state;
    gb_byte_buffer bytes = {0};
    assert_int_equal(gb_convert_tokenizer_json(VALID, strlen(VALID), "t.json", &bytes, NULL), GUMBEL_OK);
    gumbel_tokenizer *tokenizer = NULL;
    gb_blob blob = {bytes.data, bytes.size};
    int n = 0;
    for (gumbel_status status = GUMBEL_ERROR_MEMORY; status != GUMBEL_OK; n++) {
        int left = n;
        gb_set_allocation_hook(fail_at, &left);
        status = gb_tokenizer_create(&blob, NULL, &tokenizer, NULL);
        gb_set_allocation_hook(NULL, NULL);
        assert_true(status == GUMBEL_OK || status == GUMBEL_ERROR_MEMORY);
    }
    assert_true(n > 4);
    n = 0;
    for (gumbel_status status = GUMBEL_ERROR_MEMORY; status != GUMBEL_OK; n++) {
        int left = n;
        int32_t ids[64];
        size_t count;
        gb_set_allocation_hook(fail_at, &left);
        status = gumbel_encode(tokenizer, "ab\xFF <s> ab", 10, NULL, ids, 64, &count, NULL);
        gb_set_allocation_hook(NULL, NULL);
        assert_true(status == GUMBEL_OK || status == GUMBEL_ERROR_MEMORY);
    }
    assert_true(n > 3);
    gumbel_tokenizer_destroy(tokenizer);
    gb_buffer_free(&bytes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_valid),         cmocka_unit_test(test_vocabulary),
        cmocka_unit_test(test_merges),        cmocka_unit_test(test_added_tokens),
        cmocka_unit_test(test_steps),         cmocka_unit_test(test_post_processor),
        cmocka_unit_test(test_damaged_json),  cmocka_unit_test(test_damaged_section),
        cmocka_unit_test(test_damaged_gemma), cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
