/* SPDX-License-Identifier: Apache-2.0
 *
 * GGUF files on the command line: tokenize with a vocabulary alone, and errors of export.
 */
#include "cli/fixture.h"

#include "support/checkpoints/gguf_writer.h"
#include "support/paths.h"

static const char *vocabulary;

static int write_vocabulary(void **state) {
    static const char *const tokens[] = {"<unk>", "<bos>", "a", "b", "ab", "<|turn>"};
    static const int32_t types[] = {3, 3, 1, 1, 1, 3};
    static const char *const merges[] = {"a b"};
    static char path[4096];
    (void)state;
    gguf_writer w = {.version = 3};
    gguf_add_text(&w, "general.architecture", "gemma4");
    gguf_add_text(&w, "tokenizer.ggml.model", "gemma4");
    gguf_add_texts(&w, "tokenizer.ggml.tokens", tokens, 6);
    gguf_add_i32s(&w, "tokenizer.ggml.token_type", types, 6);
    gguf_add_texts(&w, "tokenizer.ggml.merges", merges, 1);
    gguf_add_u32(&w, "tokenizer.ggml.bos_token_id", 1);
    gguf_add_u32(&w, "tokenizer.ggml.unknown_token_id", 0);
    snprintf(path, sizeof path, "%s", temporary_path("vocabulary.gguf"));
    gguf_write(&w, path);
    vocabulary = path;
    return 0;
}

static void tokenizes(void **state) {
    (void)state;
    char *ids = output_of(GUMBEL(NULL, "tokenize", vocabulary, "aab"));
    assert_string_equal(ids, "2,4");
    free(ids);
    ids =
        output_of(GUMBEL("ab<|turn>", "tokenize", vocabulary, "-f", "-", "--add-special", "--parse-special"));
    assert_string_equal(ids, "1,4,5");
    free(ids);
    ids = output_of(GUMBEL(NULL, "tokenize", test_data("export/gguf/qwen_dense.gguf"), "the other"));
    assert_string_equal(ids, "257,220,78,257,81");
    free(ids);
}

static void assert_failure(command_result result, const char *part) {
    assert_status(result, 1);
    assert_one_error_line(&result, part);
    free_result(&result);
}

static void names_what_is_wrong(void **state) {
    (void)state;
    const char *program = temporary_path("none.gumbel"), *bad = temporary_path("bad.gguf");
    assert_failure(GUMBEL(NULL, "export", vocabulary, "-o", program),
                   "vocabulary.gguf: it has no tensors, only a vocabulary");
    write_text(bad, "GGUF\3");
    assert_failure(GUMBEL(NULL, "export", bad, "-o", program), "bad.gguf: the header is cut short");
    assert_failure(GUMBEL(NULL, "tokenize", bad, "a"), "bad.gguf: the header is cut short");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokenizes),
        cmocka_unit_test(names_what_is_wrong),
    };
    return cmocka_run_group_tests(tests, write_vocabulary, NULL);
}
