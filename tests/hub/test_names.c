/* SPDX-License-Identifier: Apache-2.0
 *
 * Names of models on the hub, of GGUF files, and of paths that come from elsewhere.
 */
#include "hub/gguf_names.h"
#include "hub/names.h"
#include "support/assertions.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void reads_names(void **state) {
    (void)state;
    static const struct {
        const char *text, *repository, *quant, *file, *revision;
    } good[] = {
        {"org/name", "org/name", "", "", ""},      {"Qwen/Qwen3-0.6B", "Qwen/Qwen3-0.6B", "", "", ""},
        {"a/b@v1", "a/b", "", "", "v1"},           {"a/b@refs/pr/1", "a/b", "", "", "refs/pr/1"},
        {"a/b/c.gguf", "a/b", "", "c.gguf", ""},   {"a/b/Q8/c.gguf@v1", "a/b", "", "Q8/c.gguf", "v1"},
        {"a/b:Q4_K_M", "a/b", "Q4_K_M", "", ""},   {"a/b:UD-Q4_K_XL@v1", "a/b", "UD-Q4_K_XL", "", "v1"},
        {"hf.co/a/b:Q8_0", "a/b", "Q8_0", "", ""}, {"https://huggingface.co/a/b", "a/b", "", "", ""}};
    static const char *const bad[] = {"",
                                      "name",
                                      "/a/b",
                                      "a/",
                                      "a//b",
                                      "../a",
                                      "./a/b",
                                      "a/..",
                                      "a/-b",
                                      "a/b-",
                                      "a--b/c",
                                      "a/b/../../c",
                                      "a/b@",
                                      "a/b@../c",
                                      "a b/c",
                                      "~/a/b",
                                      "a/b/",
                                      "a/b@/c",
                                      "models/x.gumbel",
                                      "a/b..c",
                                      "a/b:",
                                      "a:b/c",
                                      "a/b:c/d",
                                      "a/b:c d",
                                      "a/b@x\ny",
                                      "a/b/c//d",
                                      "a/b/./c",
                                      "hf.co/a"};
    hub_name name;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_true(hub_parse_name(good[i].text, &name));
        assert_string_equal(name.repository, good[i].repository);
        assert_string_equal(name.quant, good[i].quant);
        assert_string_equal(name.file, good[i].file);
        assert_string_equal(name.revision, good[i].revision);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (hub_parse_name(bad[i], &name) || name.repository[0])
            fail_msg("\"%s\" was taken for a name", bad[i]);
}

static void finds_repositories_in_paths(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        {"/x/models--org--name", "org/name"},
        {"/x/models--org--a-b.c/snapshots/0123/model.gguf", "org/a-b.c"},
        {"/x/models--gpt2/blobs/0123", "gpt2"},
        {"/x/models--/y", NULL},
        {"/x/datasets--org--name", NULL},
        {"/x/models--a--b--c", NULL},
        {"/x/mymodels--a--b", NULL},
        {"/", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char found[HUB_REPOSITORY];
        assert_int_equal(hub_repository_of(cases[i][0], found), cases[i][1] != NULL);
        if (cases[i][1])
            assert_string_equal(found, cases[i][1]);
    }
}

static void paths_stay_below_their_folder(void **state) {
    (void)state;
    static const char *const good[] = {"a", "a/b", "a..b", "..a", ".a/b.c", "\xc3\xa4"};
    static const char *const bad[] = {"",     "/",    "/a",    "a/",       "a//b",  ".",   "..",
                                      "a/..", "../a", "a/./b", "a\x1b[2J", "a\x7f", "a\\b"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_true(hub_stays_below(good[i]));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(hub_stays_below(bad[i]));
    assert_true(hub_is_hash("0123456789abcdef", 16));
    assert_false(hub_is_hash("0123456789abcdeF", 16));
    assert_false(hub_is_hash("0123456789abcdef", 15));
}

static void knows_parts(void **state) {
    (void)state;
    assert_true(hub_is_same_gguf("a-00001-of-00002.gguf", "a-00002-of-00002.gguf"));
    assert_false(hub_is_same_gguf("a-00001-of-00002.gguf", "a-00001-of-00003.gguf"));
    assert_false(hub_is_same_gguf("a-00001-of-00002.gguf", "b-00001-of-00002.gguf"));
    assert_false(hub_is_same_gguf("a.gguf", "b.gguf"));
    assert_true(hub_is_first_part("a.gguf") && hub_is_first_part("a-00001-of-00002.gguf"));
    assert_false(hub_is_first_part("a-00002-of-00002.gguf"));
    assert_true(hub_is_gguf_model("a.gguf"));
    assert_false(hub_is_gguf_model("mmproj-F16.gguf") || hub_is_gguf_model("a.imatrix.gguf") ||
                 hub_is_gguf_model(".gguf"));
}

static void knows_quantizations(void **state) {
    (void)state;
    assert_true(hub_has_quant("m-Q4_K_M.gguf", "q4_k_m") && hub_has_quant("m.Q8_0.gguf", "Q8_0"));
    assert_true(hub_has_quant("Q8_0/m-00001-of-00002.gguf", "Q8_0"));
    assert_false(hub_has_quant("m-Q4_K_M.gguf", "Q4_K") || hub_has_quant("m-IQ4_XS.gguf", "Q4_XS"));
    assert_false(hub_has_quant("m.gguf", ""));
}

static void chooses_a_gguf(void **state) {
    (void)state;
    static const char *const names[] = {"m-Q8_0.gguf", "m-UD-Q4_K_M.gguf", "m-Q4_K_M.gguf", "n-BF16.gguf",
                                        "m-BF16.gguf"};
    assert_int_equal(hub_choose_gguf(names, 5, ""), 2);
    assert_int_equal(hub_choose_gguf(names, 5, "Q8_0"), 0);
    assert_int_equal(hub_choose_gguf(names, 5, "BF16"), HUB_SEVERAL_GGUFS);
    assert_int_equal(hub_choose_gguf(names, 5, "Q2_K"), HUB_NO_GGUF);
    assert_int_equal(hub_choose_gguf(names, 1, ""), 0);
    assert_int_equal(hub_choose_gguf(names, 0, ""), HUB_NO_GGUF);
    assert_int_equal(hub_choose_gguf(names + 3, 2, ""), HUB_SEVERAL_GGUFS);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_names),
        cmocka_unit_test(finds_repositories_in_paths),
        cmocka_unit_test(paths_stay_below_their_folder),
        cmocka_unit_test(knows_parts),
        cmocka_unit_test(knows_quantizations),
        cmocka_unit_test(chooses_a_gguf),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
