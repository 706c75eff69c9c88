/* SPDX-License-Identifier: Apache-2.0
 *
 * The hub's list of files: read, refused, and what is chosen of it.
 */
#include "hub/listing.h"
#include "support/assertions.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define COMMIT "0123456789abcdef0123456789abcdef01234567"
#define SHA256 "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define LARGE(name) "{\"rfilename\": \"" name "\", \"lfs\": {\"sha256\": \"" SHA256 "\", \"size\": 7}}"
#define SMALL(name) "{\"rfilename\": \"" name "\", \"size\": 5, \"blobId\": \"" COMMIT "\"}"
#define LISTING(files) "{\"sha\": \"" COMMIT "\", \"siblings\": [" files "]}"

static hub_listing listing;
static gumbel_error error;

static gumbel_status parse(const char *text) {
    hub_listing_free(&listing);
    return hub_parse_listing(text, strlen(text), "org/name", &listing, &error);
}

/* The names that are chosen, with a blank after each. */
static const char *chosen(const char *text, const char *name) {
    static char names[512];
    hub_name parsed;
    names[0] = '\0';
    assert_true(hub_parse_name(name, &parsed));
    assert_ok(parse(text), &error);
    assert_ok(hub_select(&listing, &parsed, &error), &error);
    for (size_t i = 0; i < listing.count; i++)
        sprintf(names + strlen(names), "%s ", listing.files[i].name);
    return names;
}

static void refuses(const char *text, const char *name, const char *part) {
    hub_name parsed;
    assert_true(hub_parse_name(name, &parsed));
    assert_ok(parse(text), &error);
    assert_fails(hub_select(&listing, &parsed, &error), GUMBEL_ERROR_ARGUMENT, &error, part);
}

static void reads_files(void **state) {
    (void)state;
    assert_ok(parse(LISTING(LARGE("a.gguf") "," SMALL("config.json"))), &error);
    assert_string_equal(listing.commit, COMMIT);
    assert_int_equal(listing.count, 2);
    assert_true(listing.files[0].size == 7 && strcmp(listing.files[0].hash, SHA256) == 0);
    assert_true(listing.files[1].size == 5 && strcmp(listing.files[1].hash, COMMIT) == 0);
}

static void leaves_out_names_that_leave_their_folder(void **state) {
    (void)state;
    assert_ok(parse(LISTING(LARGE("../a.gguf") "," LARGE("/a.gguf") "," LARGE("a\\u0000.gguf") "," LARGE(
                  "a\\u001b.gguf") "," SMALL("b"))),
              &error);
    assert_int_equal(listing.count, 1);
    assert_string_equal(listing.files[0].name, "b");
}

static void refuses_what_is_no_listing(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        {"", "list of files: line"},
        {"[]", "sha: the commit"},
        {"{\"sha\": \"../x\"}", "sha: the commit"},
        {"{\"sha\": \"" COMMIT "\"}", "siblings: the files"},
        {LISTING("7"), "rfilename: expected a text"},
        {LISTING("{\"rfilename\": \"a\"}"), "a: size: expected a number of bytes"},
        {LISTING("{\"rfilename\": \"a\", \"size\": 1}"), "a: blobId: expected 40"},
        {LISTING("{\"rfilename\": \"a\", \"size\": 1125899906842625}"), "a: size:"},
        {LISTING("{\"rfilename\": \"a\", \"size\": 1, \"lfs\": {\"sha256\": \"" COMMIT "\"}}"),
         "a: lfs.sha256: expected 64"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_fails(parse(cases[i][0]), GUMBEL_ERROR_FORMAT, &error, cases[i][1]);
}

static void chooses_a_checkpoint(void **state) {
    (void)state;
    const char *text = LISTING(
        SMALL("config.json") "," LARGE("model.safetensors") "," LARGE("consolidated.safetensors") "," LARGE("pytorch_model.bin") "," LARGE(
            "original/x.safetensors") "," SMALL("chat_template.jinja") "," SMALL("additional_chat_templates/"
                                                                                 "a.jinja") "," SMALL("README"
                                                                                                      ".md") "," LARGE("m-Q8_0.gguf"));
    assert_string_equal(chosen(text, "org/name"), "config.json model.safetensors chat_template.jinja "
                                                  "additional_chat_templates/a.jinja ");
    assert_string_equal(chosen(text, "org/name:Q8_0"), "m-Q8_0.gguf ");
    assert_string_equal(chosen(text, "org/name/README.md"), "README.md ");
    refuses(text, "org/name/none", "org/name has no file none");
}

static void chooses_a_gguf_with_its_parts(void **state) {
    (void)state;
    const char *text =
        LISTING(LARGE("a-Q8_0-00001-of-00002.gguf") "," LARGE("a-Q8_0-00002-of-00002.gguf") "," LARGE(
            "a-Q4_K_M.gguf") "," LARGE("mmproj-F16.gguf") "," SMALL("config.json"));
    assert_string_equal(chosen(text, "org/name"), "a-Q4_K_M.gguf ");
    assert_string_equal(chosen(text, "org/name:q8_0"),
                        "a-Q8_0-00001-of-00002.gguf a-Q8_0-00002-of-00002.gguf ");
    assert_string_equal(chosen(text, "org/name/a-Q8_0-00001-of-00002.gguf"),
                        "a-Q8_0-00001-of-00002.gguf a-Q8_0-00002-of-00002.gguf ");
    refuses(text, "org/name:Q2_K",
            "which model of Q2_K? There are a-Q8_0-00001-of-00002.gguf, a-Q4_K_M.gguf; name one");
    refuses(LISTING(LARGE("pytorch_model.bin")), "org/name", "org/name has no model that gumbel reads");
    refuses(LISTING(""), "org/name", "org/name has no model");
}

static int tear_down(void **state) {
    (void)state;
    hub_listing_free(&listing);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_files),
        cmocka_unit_test(leaves_out_names_that_leave_their_folder),
        cmocka_unit_test(refuses_what_is_no_listing),
        cmocka_unit_test(chooses_a_checkpoint),
        cmocka_unit_test(chooses_a_gguf_with_its_parts),
    };
    return cmocka_run_group_tests(tests, NULL, tear_down);
}
