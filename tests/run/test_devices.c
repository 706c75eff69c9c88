/* SPDX-License-Identifier: Apache-2.0
 *
 * Programs on one device and on several: logits and tokens are the same. On the CPU those of all
 * architectures.
 */
#include "gumbel.h"
#include "support/assertions.h"
#include "support/backend.h"
#include "support/checkpoints/qwen35_gguf.h"
#include "support/paths.h"
#include "support/temporary.h"
#include "support/test_arguments.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST_PROMPT = 40, MOST_ANSWER = 24, MOST_NAMES = 256, MOST_VOCABULARY = 4096, MOST_DEVICES = 4 };

typedef struct answers {
    float logits[MOST_VOCABULARY];
    int32_t tokens[MOST_ANSWER];
} answers;

/* ---- Programs ------------------------------------------------------------------------------------------ */

static void folder_path(char path[512], const char *name) {
    snprintf(path, 512, "%s/export/agreement%s%s", test_data_folder, name ? "/" : "", name ? name : "");
}

static int compare_names(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool is_cpu(void) {
    return strcmp(GUMBEL_TEST_BACKEND, "cpu") == 0;
}

/* The configurations, without those of answers. */
static size_t list_names(char *names[MOST_NAMES]) {
    static const char *const few[] = {"released.json", "qwen_released.json", "qwen3_some_experts.json"};
    char path[512];
    size_t count = 0;
    for (; !is_cpu() && count < sizeof few / sizeof *few; count++)
        names[count] = strdup(few[count]);
    if (count > 0)
        return count;
    folder_path(path, NULL);
    DIR *folder = opendir(path);
    assert_non_null(folder);
    for (struct dirent *entry; (entry = readdir(folder));)
        if (strstr(entry->d_name, ".json") && !strstr(entry->d_name, ".golden.json") && count < MOST_NAMES)
            names[count++] = strdup(entry->d_name);
    closedir(folder);
    qsort(names, count, sizeof *names, compare_names);
    return count;
}

static gumbel_program *open_program(const char *name, const char *recipe) {
    char config[512];
    gumbel_error error;
    gumbel_program *program = NULL;
    folder_path(config, name);
    const gumbel_export_options options = {.size = sizeof options,
                                           .quantize = recipe,
                                           .activations = recipe ? NULL : "none",
                                           .random_weights = true,
                                           .random_seed = 5};
    const char *path = temporary_path("devices.gumbel");
    if (gumbel_export(config, path, &options, &error) != GUMBEL_OK)
        return NULL; /* rows that this recipe does not divide */
    assert_ok(gumbel_program_open(path, &program, &error), &error);
    return program;
}

/* ---- Running ------------------------------------------------------------------------------------------- */

/* On processes, or on devices; on a machine with fewer devices all ranks have the first. */
static gumbel_status new_engine(const gumbel_program *program, uint32_t devices, gumbel_engine **engine,
                                gumbel_error *error) {
    static const int numbers[MOST_DEVICES] = {0, 1, 2, 3}, same[MOST_DEVICES] = {0};
    gumbel_engine_options options = {.size = sizeof options,
                                     .backend = GUMBEL_TEST_BACKEND,
                                     .threads = 2,
                                     .slots = 2,
                                     .max_context = 96,
                                     .prefill_chunk = 16,
                                     .devices = numbers,
                                     .device_count = devices,
                                     .least_sharded_weights = 1};
#if defined(GUMBEL_TEST_PROCESSES)
    options.devices = NULL;
    options.device_count = 0;
    return engine_on_processes(program, &options, devices, engine, error);
#endif
    const gumbel_status status = gumbel_engine_create(program, &options, engine, error);
    if (status != GUMBEL_ERROR_ARGUMENT)
        return status;
    options.devices = same;
    return gumbel_engine_create(program, &options, engine, error);
}

static void run(gumbel_engine *engine, uint32_t vocabulary, answers *found) {
    static const gumbel_sampling sampling = {.size = sizeof sampling,
                                             .temperature = 1.2f,
                                             .top_k = 60,
                                             .top_p = 0.97f,
                                             .min_p = 0.001f,
                                             .repetition_penalty = 1.1f,
                                             .presence_penalty = 0.2f};
    gumbel_session *session = NULL;
    gumbel_error error;
    int32_t prompt[MOST_PROMPT];
    const uint32_t length = is_cpu() ? MOST_PROMPT : 21,
                   answer = is_cpu() ? (uint32_t)shortened(MOST_ANSWER, 8) : 6;
    for (uint32_t i = 0; i < length; i++)
        prompt[i] = (int32_t)((i * 2654435761u >> 7) % vocabulary);
    assert_ok(gumbel_session_create(engine, &session, &error), &error);
    gumbel_result result = {.size = sizeof result};
    assert_ok(gumbel_session_append(session, prompt, length - 1, &error), &error);
    gumbel_request request = {.size = sizeof request,
                              .session = session,
                              .tokens = &prompt[length - 1],
                              .token_count = 1,
                              .result = &result};
    assert_ok(gumbel_step(engine, &request, 1, &error), &error);
    memcpy(found->logits, result.logits, vocabulary * sizeof *found->logits);
    gumbel_session_reset(session);
    gumbel_session_set_seed(session, 11);
    const gumbel_generate_options options = {
        .size = sizeof options, .sampling = &sampling, .max_new_tokens = answer, .ignore_stop = true};
    assert_ok(gumbel_generate(session, prompt, length, &options, &error), &error);
    for (size_t i = 0; i < answer; i++) {
        gumbel_generated generated = {.size = sizeof generated};
        assert_ok(gumbel_next(session, &generated, &error), &error);
        found->tokens[i] = generated.token;
    }
    gumbel_session_destroy(session);
}

/* Whether it runs on so many. */
static bool check_devices(const gumbel_program *program, uint32_t devices, const char *name,
                          uint32_t vocabulary, const answers *expected) {
    static answers found;
    gumbel_engine *engine = NULL;
    gumbel_error error;
    const gumbel_status status = new_engine(program, devices, &engine, &error);
    if (status == GUMBEL_ERROR_UNSUPPORTED)
        return false;
    assert_ok(status, &error);
    run(engine, vocabulary, &found);
    if (memcmp(found.logits, expected->logits, vocabulary * sizeof *found.logits) != 0)
        fail_msg("%s on %u devices: other logits", name, devices);
    if (memcmp(found.tokens, expected->tokens, sizeof found.tokens) != 0)
        fail_msg("%s on %u devices: other tokens", name, devices);
    gumbel_engine_destroy(engine);
    return true;
}

/* Counts by numbers of devices how many programs ran on them. Closes the program; NULL is none. */
static void check_program(gumbel_program *program, const char *name, unsigned ran[MOST_DEVICES + 1]) {
    static answers expected;
    gumbel_engine *engine = NULL;
    gumbel_error error;
    gumbel_program_info info = {.size = sizeof info};
    if (!program)
        return;
    assert_ok(gumbel_program_get_info(program, &info, &error), &error);
    assert_true(info.vocab_size <= MOST_VOCABULARY);
    assert_ok(new_engine(program, 1, &engine, &error), &error);
    run(engine, info.vocab_size, &expected);
    gumbel_engine_destroy(engine);
    ran[1]++;
    for (uint32_t devices = 2; devices <= MOST_DEVICES; devices++)
        ran[devices] += check_devices(program, devices, name, info.vocab_size, &expected);
    gumbel_program_close(program);
}

static void check_recipe(const char *recipe) {
    char *names[MOST_NAMES];
    const size_t count = list_names(names);
    unsigned ran[MOST_DEVICES + 1] = {0};
    for (size_t i = 0; i < count; i++) {
        check_program(open_program(names[i], recipe), names[i], ran);
        free(names[i]);
    }
    print_message("%s: %u programs, on 2 devices %u, on 3 %u, on 4 %u\n", recipe ? recipe : "as they are",
                  ran[1], ran[2], ran[3], ran[4]);
    assert_true(ran[2] > ran[1] / 2);
    assert_true(ran[4] > 0);
}

static void floats(void **unused) {
    (void)unused;
    check_recipe(NULL);
}

/* With sums of integers and packed weights. */
static void exact_sums(void **unused) {
    (void)unused;
    check_recipe("int4");
}

static void groups(void **unused) {
    (void)unused;
    check_recipe("int4-affine");
}

/* Value heads that lie tile by tile over the key heads, as converters to GGUF have them: a rank has some of
 * every tile. */
static void tiled_heads(void **unused) {
    (void)unused;
    unsigned ran[MOST_DEVICES + 1] = {0};
    gumbel_program *program = NULL;
    gumbel_error error;
    char gguf[512];
    if (!is_cpu())
        skip();
    gb_program *weights = random_qwen35();
    snprintf(gguf, sizeof gguf, "%s", temporary_path("devices.gguf"));
    write_qwen35_blocks(weights, GB_BLOCK_Q8_0, false, gguf);
    gb_program_destroy(weights);
    const char *path = temporary_path("devices.gumbel");
    const gumbel_export_options options = {.size = sizeof options};
    assert_ok(gumbel_export(gguf, path, &options, &error), &error);
    assert_ok(gumbel_program_open(path, &program, &error), &error);
    check_program(program, "tiled heads", ran);
    print_message("tiled heads: on 2 devices %u, on 3 %u, on 4 %u\n", ran[2], ran[3], ran[4]);
    assert_int_equal(ran[2], 1);
}

/* Ranks that share a device do so with kernels that are loaded already. */
int main(void) {
    setenv("CUDA_MODULE_LOADING", "EAGER", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(floats),
        cmocka_unit_test(exact_sums),
        cmocka_unit_test(groups),
        cmocka_unit_test(tiled_heads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
