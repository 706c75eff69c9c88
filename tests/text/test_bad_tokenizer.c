/* SPDX-License-Identifier: Apache-2.0
 *
 * Bad input: tokenizer.json and tokenizer sections that are cut, flipped, or break one rule.
 */
#include "bad_input.h"

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
    expect(WITH_STEPS("null", "{\"type\":\"Metaspace\"}", DECODER), refused,
           "pre_tokenizer: the type \"Metaspace\"");
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

static void test_damaged_json(void **state) {
    (void)state;
    check_damaged_json(VALID);
}

static void test_damaged_section(void **state) {
    (void)state;
    check_damaged_section(VALID);
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

static void test_no_memory(void **state) {
    (void)state;
    check_no_memory(VALID);
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
