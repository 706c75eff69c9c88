/* SPDX-License-Identifier: Apache-2.0
 *
 * One model in several layouts: packed at export or afterwards it is the same file, it gives the same bits
 * whatever its layout, and what is laid out for the backend is used where it is mapped.
 */
#include "base/file_map.h"
#include "program/file/reader.h"
#include "support/paths.h"
#include "support/programs/random_program.h"
#include "support/temporary.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { VOCABULARY = 160, PROMPT = 24 };

static const char *const configs[] = {"small_groups.json", "qwen_groups.json"};
enum { CONFIGS = sizeof configs / sizeof *configs };

static gumbel_error error;

/* The path of a file of the test, which stays valid for a few calls. */
static const char *export_for(const char *config, const char *backend, const char *name) {
    const char *path = temporary_path(name);
    char source[512];
    gumbel_export_options options = {.size = sizeof options,
                                     .quantize = "int4",
                                     .backend = backend,
                                     .random_weights = true,
                                     .random_seed = 5};
    snprintf(source, sizeof source, "%s/run/%s", test_data_folder, config);
    assert_ok(gumbel_export(source, path, &options, &error), &error);
    return path;
}

static void assert_same_file(const char *path, const char *other) {
    gb_file_map a, b;
    assert_ok(gb_map_file(path, &a, &error), &error);
    assert_ok(gb_map_file(other, &b, &error), &error);
    assert_int_equal(a.size, b.size);
    assert_memory_equal(a.data, b.data, a.size);
    gb_unmap_file(&a);
    gb_unmap_file(&b);
}

static void pack_for(const char *backend, const char *from, const char *to) {
    gumbel_pack_options options = {.size = sizeof options, .backend = backend};
    assert_ok(gumbel_pack(from, to, &options, &error), &error);
}

static void packing_gives_the_file_of_an_export(void **state) {
    (void)state;
    for (size_t i = 0; i < CONFIGS; i++) {
        export_for(configs[i], "none", "canonical.gumbel");
        export_for(configs[i], "cpu", "cpu.gumbel");
        pack_for("cpu", temporary_path("canonical.gumbel"), temporary_path("out.gumbel"));
        assert_same_file(temporary_path("out.gumbel"), temporary_path("cpu.gumbel"));
        pack_for("cpu", temporary_path("cpu.gumbel"), temporary_path("out.gumbel"));
        assert_same_file(temporary_path("out.gumbel"), temporary_path("cpu.gumbel"));
        export_for(configs[i], "cuda", "cuda.gumbel");
        pack_for("cuda", temporary_path("cpu.gumbel"), temporary_path("out.gumbel"));
        assert_same_file(temporary_path("out.gumbel"), temporary_path("cuda.gumbel"));
        pack_for("mlx", temporary_path("out.gumbel"), temporary_path("out.gumbel")); /* in place */
        assert_same_file(temporary_path("out.gumbel"), temporary_path("canonical.gumbel"));
    }
}

static void weights_of_products_are_packed(void **state) {
    (void)state;
    gb_program *program;
    size_t packed = 0;
    export_for(configs[1], "cpu", "cpu.gumbel");
    assert_ok(gb_program_read(temporary_path("cpu.gumbel"), &program, &error), &error);
    assert_ok(gb_check_weights(program, &error), &error);
    for (uint32_t i = 0; i < program->constant_count; i++) {
        const gb_constant *constant = &program->constants[i];
        assert_true(constant->packing.block_rows == 0 || constant->format.kind != GB_FORMAT_DENSE);
        packed += constant->packing.block_rows > 0;
    }
    assert_true(packed >= 10);
    gb_program_destroy(program);
}

static bool stop_at_once(void *user, const char *what, uint64_t done, uint64_t total) {
    (void)user, (void)what, (void)total;
    return done == 0;
}

static void assert_no_file(const char *path) {
    FILE *file = fopen(path, "rb");
    assert_null(file);
}

static void what_cannot_be_packed_leaves_no_file(void **state) {
    (void)state;
    gumbel_pack_options options = {.size = sizeof options, .backend = "tpu"};
    const char *path = export_for(configs[0], "cpu", "damaged.gumbel"), *out = temporary_path("none.gumbel");
    assert_fails(gumbel_pack(path, out, &options, &error), GUMBEL_ERROR_ARGUMENT, &error, "backend: \"tpu\"");
    options = (gumbel_pack_options){.size = sizeof options, .progress = stop_at_once};
    assert_fails(gumbel_pack(path, out, &options, &error), GUMBEL_ERROR_CANCELLED, &error, "cancelled");
    assert_fails(gumbel_pack(path, out, &(gumbel_pack_options){0}, &error), GUMBEL_ERROR_ARGUMENT, &error,
                 "size");
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, 5000, SEEK_SET), 0); /* weights begin at byte 4096 */
    int byte = fgetc(file);
    assert_int_equal(fseek(file, 5000, SEEK_SET), 0);
    assert_int_equal(fputc(byte ^ 1, file), byte ^ 1);
    fclose(file);
    assert_fails(gumbel_pack(path, out, NULL, &error), GUMBEL_ERROR_FORMAT, &error,
                 "damaged.gumbel: the checksum of the constant");
    assert_no_file(out);
}

/* ---- Running ------------------------------------------------------------------------------------------- */

typedef struct notices {
    int count;
    char last[512];
} notices;

static void note(void *user, gumbel_log_level level, const char *line) {
    notices *n = user;
    (void)level;
    n->count++;
    snprintf(n->last, sizeof n->last, "%s", line);
}

/* Logits after the prompt, run in two chunks and a single token. */
static void run(const char *path, int threads, const char *instruction_set, notices *told,
                float logits[VOCABULARY]) {
    static const size_t pieces[] = {8, 8, 7, 1};
    gumbel_program *program;
    gumbel_engine *engine;
    gumbel_session *session;
    gumbel_engine_options options = {.size = sizeof options,
                                     .threads = threads,
                                     .cpu_isa = instruction_set,
                                     .log = note,
                                     .log_user = told};
    int32_t tokens[PROMPT];
    random_tokens(3, VOCABULARY, tokens, PROMPT);
    assert_ok(gumbel_program_open(path, &program, &error), &error);
    assert_ok(gumbel_engine_create(program, &options, &engine, &error), &error);
    assert_ok(gumbel_session_create(engine, &session, &error), &error);
    gumbel_result result = {.size = sizeof result};
    gumbel_request request = {.size = sizeof request, .session = session, .tokens = tokens};
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        request.token_count = pieces[i];
        request.result = i + 1 == sizeof pieces / sizeof *pieces ? &result : NULL;
        assert_ok(gumbel_step(engine, &request, 1, &error), &error);
        request.tokens += pieces[i];
    }
    memcpy(logits, result.logits, VOCABULARY * sizeof *logits);
    gumbel_engine_destroy(engine);
    gumbel_program_close(program);
}

static void layouts_give_the_same_bits(void **state) {
    (void)state;
    static const char *const backends[] = {"none", "cpu", "cuda"}, *const sets[] = {"portable", NULL};
    for (size_t i = 0; i < CONFIGS; i++) {
        float expected[VOCABULARY], found[VOCABULARY];
        notices told = {0};
        run(export_for(configs[i], "none", "canonical.gumbel"), 1, "portable", &told, expected);
        for (size_t b = 0; b < 3; b++)
            for (size_t s = 0; s < 2; s++)
                for (int threads = 1; threads <= 3; threads += 2) {
                    run(export_for(configs[i], backends[b], "packed.gumbel"), threads, sets[s], &told, found);
                    assert_memory_equal(found, expected, sizeof expected);
                }
    }
}

/* ---- Memory -------------------------------------------------------------------------------------------- */

/* Bytes of this process that lie in memory and in no file; 0 where the system does not say. */
static uint64_t anonymous_bytes(void) {
    FILE *file = fopen("/proc/self/status", "r");
    char line[256];
    unsigned long long kilobytes = 0;
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "RssAnon: %llu kB", &kilobytes) == 1)
            break;
    if (file)
        fclose(file);
    return kilobytes * 1024;
}

/* A model whose products have several megabytes of weights. */
static const char *export_large(const char *backend) {
    static const char large[] =
        "{\"model_type\": \"gemma4_text\", \"dtype\": \"bfloat16\", \"vocab_size\": 160, \"hidden_size\": "
        "1024, "
        "\"intermediate_size\": 4096, \"num_hidden_layers\": 2, \"num_attention_heads\": 8, "
        "\"num_key_value_heads\": 4, \"num_global_key_value_heads\": 2, \"head_dim\": 64, "
        "\"global_head_dim\": 128, \"attention_k_eq_v\": true, \"num_kv_shared_layers\": 0, "
        "\"hidden_size_per_layer_input\": 0, \"enable_moe_block\": false, \"use_double_wide_mlp\": false, "
        "\"hidden_activation\": \"gelu_pytorch_tanh\", \"sliding_window\": 8, "
        "\"layer_types\": [\"sliding_attention\", \"full_attention\"], \"final_logit_softcapping\": 30.0, "
        "\"max_position_embeddings\": 128, \"rms_norm_eps\": 1e-06, \"tie_word_embeddings\": true, "
        "\"attention_bias\": false, \"pad_token_id\": 0, \"eos_token_id\": 1, \"bos_token_id\": 2}";
    const char *config = temporary_path("large/config.json"), *path = temporary_path("large.gumbel");
    write_file(config, large, sizeof large - 1);
    gumbel_export_options options = {
        .size = sizeof options, .quantize = "int4", .backend = backend, .random_weights = true};
    assert_ok(gumbel_export(config, path, &options, &error), &error);
    return path;
}

/* What an engine adds to the process's own memory, with the prompt run. */
static uint64_t memory_of_engine(const char *path, notices *told, uint64_t *weights) {
    gumbel_program *program;
    gumbel_engine *engine;
    gumbel_session *session;
    gumbel_engine_options options = {
        .size = sizeof options, .threads = 2, .prefill_chunk = 8, .log = note, .log_user = told};
    int32_t tokens[PROMPT];
    gb_file_map map;
    random_tokens(3, VOCABULARY, tokens, PROMPT);
    assert_ok(gb_map_file(path, &map, &error), &error);
    *weights = map.size;
    gb_unmap_file(&map);
    uint64_t before = anonymous_bytes();
    assert_ok(gumbel_program_open(path, &program, &error), &error);
    assert_ok(gumbel_engine_create(program, &options, &engine, &error), &error);
    assert_ok(gumbel_session_create(engine, &session, &error), &error);
    assert_ok(gumbel_session_append(session, tokens, PROMPT, &error), &error);
    uint64_t after = anonymous_bytes();
    gumbel_engine_destroy(engine);
    gumbel_program_close(program);
    return after > before ? after - before : 0;
}

static void packed_weights_are_used_where_they_are_mapped(void **state) {
    (void)state;
    if (anonymous_bytes() == 0)
        skip();
    notices told = {0};
    uint64_t weights, packed = memory_of_engine(export_large("cpu"), &told, &weights);
    assert_int_equal(told.count, 0);
    assert_true(weights > 8 << 20);
    assert_true(packed < weights / 2);
    uint64_t canonical = memory_of_engine(export_large("none"), &told, &weights);
    assert_true(canonical > packed + weights / 2);
    assert_int_equal(told.count, 1);
    assert_non_null(strstr(told.last, "MB of weights for the cpu backend"));
    assert_non_null(strstr(told.last, "gumbel pack"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packing_gives_the_file_of_an_export),
        cmocka_unit_test(weights_of_products_are_packed),
        cmocka_unit_test(what_cannot_be_packed_leaves_no_file),
        cmocka_unit_test(layouts_give_the_same_bits),
        cmocka_unit_test(packed_weights_are_used_where_they_are_mapped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
