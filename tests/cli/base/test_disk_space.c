/* SPDX-License-Identifier: Apache-2.0
 *
 * A program that no disk holds is refused before it is begun.
 */
#include "cli/fixture.h"

/* A Gemma 4 of more bytes than a machine has disks for. */
static void write_huge_config(const char *path) {
    enum { LAYERS = 500 };
    static char kinds[LAYERS * 20], text[sizeof kinds + 1024];
    for (int i = 0; i < LAYERS; i++)
        strcat(kinds, i ? ",\"full_attention\"" : "\"full_attention\"");
    snprintf(text, sizeof text,
             "{\"model_type\":\"gemma4_text\",\"dtype\":\"float32\",\"vocab_size\":262144,"
             "\"hidden_size\":524288,\"intermediate_size\":1048576,\"num_hidden_layers\":%d,"
             "\"num_attention_heads\":64,\"num_key_value_heads\":1,\"num_global_key_value_heads\":1,"
             "\"head_dim\":512,\"global_head_dim\":512,\"hidden_size_per_layer_input\":0,"
             "\"num_kv_shared_layers\":0,\"max_position_embeddings\":512,\"layer_types\":[%s]}",
             LAYERS, kinds);
    write_text(path, text);
}

static void says_what_is_needed_and_free(void **state) {
    (void)state;
    const char *config = temporary_path("config.json"), *program = temporary_path("output/huge.gumbel");
    write_huge_config(config);
    command_result result = GUMBEL(NULL, "export", config, "--random-weights", "1", "-o", program);
    assert_status(result, 1);
    assert_one_error_line(&result, "huge.gumbel: it needs 3.4 PB, and its disk has ");
    assert_has(result.errors, " free\n");
    free_result(&result);
    assert_int_equal(count_files(temporary_path("output")), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(says_what_is_needed_and_free)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
