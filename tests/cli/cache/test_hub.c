/* SPDX-License-Identifier: Apache-2.0
 *
 * Repositories as Hugging Face's tools keep them, and folders with GGUF files: found, opened and named.
 */
#include "cli/cache/cache_fixture.h"
#include "support/paths.h"

#define COMMIT "2439f60ef33a0d46d85da5001d52aeda5b00ce9f"
#define OTHER_COMMIT "bbc77c8132af1cc5cf678da3f1ddf2de43606d48"

static char hub[4096];

/* The path of a file in the hub's folder, whose folders are made; valid until the next call. */
static const char *hub_path(const char *name) {
    static char path[PATH_BYTES], folder[PATH_BYTES];
    snprintf(path, sizeof path, "%.2000s/%.2000s", hub, name);
    snprintf(folder, sizeof folder, "%s", path);
    *strrchr(folder, '/') = '\0';
    run_plainly((const char *const[]){"/bin/mkdir", "-p", folder, NULL});
    return path;
}

/* Puts a file into a repository: its bytes under a hash, and a link to them in the commit's snapshot. */
static void add_file(const char *repository, const char *commit, const char *from, const char *name) {
    static int blobs;
    char blob[256], link[256], target[64];
    snprintf(target, sizeof target, "../../blobs/%039x",
             ++blobs); /* one digit less than a hash, which is verified */
    snprintf(blob, sizeof blob, "%s/blobs/%s", repository, strrchr(target, '/') + 1);
    snprintf(link, sizeof link, "%s/snapshots/%s/%s", repository, commit, name);
    run_plainly((const char *const[]){"/bin/cp", from, hub_path(blob), NULL});
    assert_int_equal(symlink(target, hub_path(link)), 0);
}

static void add_ref(const char *repository, const char *name, const char *commit) {
    char path[256];
    snprintf(path, sizeof path, "%s/refs/%s", repository, name);
    write_text(hub_path(path), commit);
}

static void add_model(const char *repository, const char *commit) {
    static const char *const names[] = {"config.json", "model.safetensors", "tokenizer.json",
                                        "tokenizer_config.json", "chat_template.jinja"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char from[4096];
        snprintf(from, sizeof from, "%s/gemma4-tiny/%s", test_models_folder, names[i]);
        add_file(repository, commit, from, names[i]);
    }
}

#define GGUF(name) test_data("export/gguf/" name)

static int set_up(void **state) {
    (void)state;
    snprintf(hub, sizeof hub, "%s", temporary_path("home/hub"));
    use_cache();
    assert_int_equal(setenv("HF_HUB_CACHE", hub, 1), 0);
    add_model("models--org--tiny", COMMIT);
    add_ref("models--org--tiny", "main", COMMIT);
    add_file("models--org--gguf", COMMIT, GGUF("qwen_dense.gguf"), "qwen.gguf");
    add_ref("models--org--gguf", "main", COMMIT "\n");
    add_file("models--org--several", COMMIT, GGUF("qwen_dense.gguf"), "dense.gguf");
    add_file("models--org--several", COMMIT, GGUF("qwen_experts.gguf"), "experts.gguf");
    add_ref("models--org--several", "main", COMMIT);
    return 0;
}

/* The name that the program has for people. */
static void assert_named(const char *model, const char *name) {
    char line[256];
    snprintf(line, sizeof line, "name               %s\n", name);
    char *summary = output_of(GUMBEL(NULL, "inspect", model));
    assert_has(summary, line);
    free(summary);
}

/* Whatever way it is named: one program, called by its repository. */
static void a_repository_is_a_checkpoint(void **state) {
    (void)state;
    static const char *const names[] = {"org/tiny", "org/tiny@main", ("org/tiny@" COMMIT)};
    static const char *const paths[] = {"models--org--tiny", "models--org--tiny/",
                                        ("models--org--tiny/snapshots/" COMMIT)};
    command_result first = answer(names[0]);
    assert_has(first.errors, "gumbel: exporting org/tiny with recipe none to ");
    assert_has(first.errors, "/gumbel/org--tiny-");
    assert_status(first, 0);
    free_result(&first);
    for (size_t i = 0; i < 3; i++) {
        char path[PATH_BYTES];
        snprintf(path, sizeof path, "%.2000s/%s", hub, paths[i]);
        command_result by_name = answer(names[i]), by_path = answer(path);
        assert_string_equal(by_name.output, by_path.output);
        assert_quiet(&by_name);
        assert_quiet(&by_path);
    }
    assert_int_equal(count_entries(), 1);
    assert_named("org/tiny", "org/tiny");
    char *list = output_of(GUMBEL(NULL, "cache", "rm", "org/tiny"));
    assert_has(list, "removed org--tiny-");
    free(list);
}

static void every_command_takes_it(void **state) {
    (void)state;
    const char *program = temporary_path("tiny.gumbel"), *row = temporary_path("row.npy");
    char *ids = output_of(GUMBEL(NULL, "tokenize", "org/tiny", "The cat sat."));
    assert_true(strlen(ids) > 4);
    free(ids);
    command_result result = GUMBEL(NULL, "export", "org/tiny", "-o", program, "-q");
    assert_quiet(&result);
    assert_named(program, "org/tiny");
    result = GUMBEL("/exit\n", "chat", "org/tiny", "--seed", "1");
    assert_says(&result, "exporting org/tiny");
    result = GUMBEL(NULL, "logits", "org/tiny", "--tokens", "2,17", "-o", row);
    assert_quiet(&result);
    result = GUMBEL("The cat sat.", "perplexity", "org/tiny", "-f", "-", "--against", "org/tiny");
    assert_has(result.output, "top-1 agreement 100.00 +- 0.00 %");
    assert_quiet(&result);
}

/* A new commit is another snapshot; the program of the one before is left to those who name that. */
static void revisions_have_programs_of_their_own(void **state) {
    (void)state;
    command_result result = answer("org/tiny");
    assert_says(&result, "exporting ");
    add_model("models--org--tiny", OTHER_COMMIT);
    add_ref("models--org--tiny", "refs/pr/1", OTHER_COMMIT);
    result = answer("org/tiny@refs/pr/1");
    assert_says(&result, "exporting org/tiny@refs/pr/1 ");
    assert_int_equal(count_entries(), 2);
    result = answer("org/tiny@" OTHER_COMMIT);
    assert_quiet(&result);
    result = answer("org/tiny");
    assert_quiet(&result);
}

static void a_gguf_is_named_by_its_repository(void **state) {
    (void)state;
    char path[PATH_BYTES];
    command_result result = answer("org/gguf");
    assert_has(result.errors, "exporting org/gguf with recipe none");
    assert_says(&result, "/gumbel/org--gguf-");
    snprintf(path, sizeof path, "%.2000s/models--org--gguf/snapshots/" COMMIT "/qwen.gguf", hub);
    result = answer(path);
    assert_quiet(&result);
    result = answer("org/gguf/qwen.gguf");
    assert_quiet(&result);
    assert_int_equal(count_entries(), 1);
    assert_named("org/gguf", "org/gguf");
}

static void several_models_are_listed(void **state) {
    (void)state;
    assert_refuses(answer("org/several"),
                   "org/several has 2 models: dense.gguf, experts.gguf; name one of them, "
                   "as in org/several/dense.gguf");
    command_result dense = answer("org/several/dense.gguf"),
                   experts = answer("org/several/experts.gguf@main");
    assert_status(dense, 0);
    assert_status(experts, 0);
    assert_string_not_equal(dense.output, experts.output);
    free_result(&dense);
    free_result(&experts);
    assert_refuses(answer("org/several/none.gguf"), "get it with: gumbel pull org/several/none.gguf");
}

static void says_how_to_get_what_is_missing(void **state) {
    (void)state;
    char place[PATH_BYTES];
    snprintf(place, sizeof place, "%.2000s/models--org--none; get it with: gumbel pull org/none", hub);
    assert_refuses(answer("org/none"), "org/none: no such file, and the hub's cache has no ");
    assert_refuses(answer("org/none"), place);
    assert_refuses(GUMBEL(NULL, "tokenize", "org/none", "a"), place);
    assert_refuses(GUMBEL(NULL, "export", "org/none", "-o", temporary_path("none.gumbel")), place);
    assert_refuses(answer("org/none@v2"), "gumbel pull org/none@v2");
    assert_refuses(answer("org/tiny@v2"), "no revision v2, only " COMMIT);
    assert_refuses(answer("org/none.gumbel"), "gumbel: org/none.gumbel: No such file or directory");
    assert_refuses(answer("none"), "gumbel: none: No such file or directory");
    add_file("models--org--half", COMMIT, bundled_model("gemma4-tiny/config.json"), "config.json");
    command_result result = answer("org/half");
    assert_status(result, 1);
    assert_has(result.errors,
               "neither model.safetensors nor model.safetensors.index.json is there; get it with: "
               "gumbel pull org/half");
    free_result(&result);
}

/* HF_HUB_CACHE, HF_HOME, XDG_CACHE_HOME and HOME count in this order. */
static void looks_where_the_tools_put_it(void **state) {
    (void)state;
    char home[PATH_BYTES], before[PATH_BYTES];
    snprintf(home, sizeof home, "%s", temporary_path("home"));
    snprintf(before, sizeof before, "%s", getenv("HOME") ? getenv("HOME") : "/");
    setenv("HF_HOME", "/nowhere", 1);
    command_result result = answer("org/gguf");
    assert_says(&result, "exporting org/gguf");
    unsetenv("HF_HUB_CACHE");
    assert_refuses(answer("org/gguf"), "has no /nowhere/hub/models--org--gguf;");
    setenv("HF_HOME", home, 1);
    result = answer("org/gguf");
    assert_quiet(&result);
    unsetenv("HF_HOME");
    assert_refuses(answer("org/gguf"), "caches/huggingface/hub/models--org--gguf;");
    setenv("HOME", home, 1);
    setenv("HF_HUB_CACHE", "~/hub", 1);
    result = answer("org/gguf");
    assert_quiet(&result);
    setenv("HOME", before, 1);
    setenv("HF_HUB_CACHE", hub, 1);
}

/* In a folder that has org/gguf, that is what is meant. */
static void a_path_wins_over_a_name(void **state) {
    (void)state;
    char before[PATH_BYTES];
    assert_non_null(getcwd(before, sizeof before));
    write_text(temporary_path("org/gguf"), "no program");
    assert_int_equal(chdir(temporary_directory()), 0);
    assert_refuses(answer("org/gguf"), "org/gguf: 10 bytes, too short for a gumbel program");
    assert_int_equal(chdir(before), 0);
}

static void a_folder_with_a_gguf_is_a_checkpoint(void **state) {
    (void)state;
    const char *folder = temporary_path("plain"), *model = temporary_path("plain/model-Q8.gguf");
    run_plainly((const char *const[]){"/bin/cp", GGUF("qwen_dense.gguf"), model, NULL});
    write_text(temporary_path("plain/mmproj-F16.gguf"), "a projector of images");
    write_text(temporary_path("plain/README.md"), "a model");
    command_result result = answer(folder);
    assert_says(&result, "/gumbel/model-Q8-");
    result = answer(model);
    assert_quiet(&result);
    assert_int_equal(count_entries(), 1);
    char *ids = output_of(GUMBEL(NULL, "tokenize", folder, "the"));
    assert_string_equal(ids, "257");
    free(ids);
}

/* One model in parts is one model; beside another one it counts once. */
static void parts_are_one_model(void **state) {
    (void)state;
    const char *folder = temporary_path("parts");
    write_text(temporary_path("parts/a-00001-of-00002.gguf"), "GGUF");
    write_text(temporary_path("parts/a-00002-of-00002.gguf"), "GGUF");
    command_result result = answer(folder);
    assert_status(result, 1);
    assert_has(result.errors, "a-00001-of-00002.gguf: the header is cut short");
    free_result(&result);
    write_text(temporary_path("parts/b.gguf"), "GGUF");
    assert_refuses(answer(folder), "parts has 2 models: a-00001-of-00002.gguf, b.gguf; name one");
}

static void a_gguf_in_a_folder_below_is_found(void **state) {
    (void)state;
    add_file("models--org--below", COMMIT, GGUF("qwen_dense.gguf"), "model.gguf");
    char folder[PATH_BYTES], file[PATH_BYTES + 16], below[PATH_BYTES + 32];
    snprintf(folder, sizeof folder, "%s", hub_path("models--org--below/snapshots/" COMMIT));
    snprintf(file, sizeof file, "%s/model.gguf", folder);
    snprintf(below, sizeof below, "%s/Q8", folder);
    mkdir(below, 0777);
    strcat(below, "/model.gguf");
    run_plainly((const char *const[]){"/bin/cp", "-L", file, below, NULL});
    assert_int_equal(unlink(file), 0);
    command_result result = answer("org/below");
    assert_says(&result, "/gumbel/org--below-");
    result = answer("org/below/Q8");
    assert_quiet(&result);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_repository_is_a_checkpoint, empty_cache),
        cmocka_unit_test_setup(every_command_takes_it, empty_cache),
        cmocka_unit_test_setup(a_gguf_is_named_by_its_repository, empty_cache),
        cmocka_unit_test_setup(several_models_are_listed, empty_cache),
        cmocka_unit_test_setup(says_how_to_get_what_is_missing, empty_cache),
        cmocka_unit_test_setup(looks_where_the_tools_put_it, empty_cache),
        cmocka_unit_test_setup(a_path_wins_over_a_name, empty_cache),
        cmocka_unit_test_setup(revisions_have_programs_of_their_own, empty_cache),
        cmocka_unit_test_setup(a_folder_with_a_gguf_is_a_checkpoint, empty_cache),
        cmocka_unit_test_setup(parts_are_one_model, empty_cache),
        cmocka_unit_test_setup(a_gguf_in_a_folder_below_is_found, empty_cache),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
