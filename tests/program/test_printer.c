/* SPDX-License-Identifier: Apache-2.0
 *
 * What inspect shows of a program.
 */
#include "base/byte_buffer.h"
#include "base/text_sink.h"
#include "program/draft_head.h"
#include "program/print/printer.h"
#include "program/setting_kinds.h"
#include "support/programs/tiny_program.h"

#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void assert_contains(gb_byte_buffer *printed, const char *part) {
    if (!strstr(gb_buffer_string(printed), part))
        fail_msg("\"%s\" is not in:\n%s", part, gb_buffer_string(printed));
}

static void the_summary_has_limits_memory_and_ops(void **state) {
    (void)state;
    gb_program *program = tiny_program_build(true);
    gb_byte_buffer printed = {0};
    gb_text_sink sink = {gb_buffer_write, &printed};
    gb_print_summary(program, &(gb_summary_sizes){0}, &sink);
    assert_null(strstr(gb_buffer_string(&printed), "scratch"));
    gb_print_summary(program, &(gb_summary_sizes){.scratch = 3 << 20}, &sink);
    char in_all[40];
    sprintf(in_all, "in all             %d\n", TINY_NODES);
    const char *const parts[] = {
        "architecture       tiny\n",
        "ends in            its sampler\n",
        "vocabulary         48\n",
        "context            64\n",
        "prefill chunk      4\n",
        "temperature        1 (recommended)\n",
        "top-p              0.95 (reco",
        "stop tokens        1,7\n",
        "bos token          2\n",
        "scratch            3.0 MiB (3145728 bytes)\n",
        "attention          2\n",
        "linear             15\n",
        in_all,
        "state per session  5.0 KiB (5120 bytes)\n",
        "tokenizer          no\n",
        "same bits\n  cpu ",
    };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        assert_contains(&printed, parts[i]);
    gb_buffer_free(&printed);
    gb_program_destroy(program);
}

/* The masks of roles.def, each of the one before it, and the nodes after them. */
static void assert_masks_and_draw(gb_byte_buffer *printed) {
    char expected[4096];
    int used = 0, kept = 63, next = 67;
#define GB_SETTING(number, NAME, name, dtype, neutral, metadata, kind, ...)                                  \
    GB_OF_MASKS(kind)                                                                                        \
    ({                                                                                                       \
        used += sprintf(expected + used,                                                                     \
                        "      %%%d = " #name "_mask(%%66, %%%d, " #name ") : bool[B,48]\n", next, kept);    \
        kept = next++;                                                                                       \
    })
#include "program/roles.def"
    sprintf(expected + used,
            "      %%%d = random_bits(seed) {count = 48} : u32[B,48]\n"
            "      %%%d = gumbel_noise(%%%d) : f32[B,48]\n"
            "      %%%d = add(%%66, %%%d) : f32[B,48]\n"
            "      %%%d = argmax(%%%d, %%%d) : i32[B]\n"
            "      %%%d = argmax(%%59) : i32[B]\n"
            "      %%%d = choose_token(%%60, %%%d, %%%d) : i32[B]\n"
            "      yield %%%d\n"
            "    else:\n"
            "      %%%d = argmax(%%59) : i32[B]\n"
            "      yield %%%d\n"
            "  }\n"
            "outputs\n"
            "  next: %%62\n"
            "  logprob: %%54\n"
            "  top_ids: %%52\n"
            "  top_logprobs: %%55\n",
            next, next + 1, next, next + 2, next + 1, next + 3, next + 2, kept, next + 4, next + 5, next + 4,
            next + 3, next + 5, next + 6, next + 6);
    assert_contains(printed, expected);
}

static void the_graph_is_readable(void **state) {
    (void)state;
    gb_program *program = tiny_program_build(true);
    gb_byte_buffer printed = {0};
    gb_text_sink sink = {gb_buffer_write, &printed};
    assert_int_equal(gb_print_graph(program, &sink, NULL), GUMBEL_OK);
    static const char *const parts[] = {
        "program tiny { vocab 48, context 64, prefill chunk 4 }\n",
        "inputs\n  tokens: i32[N]\n",
        "states\n  layers.0.key_cache: ring f32[12,1,8] window 8\n",
        "  layers.1.key_cache: cache f32[64,1,8]\n",
        "body\n  %0 = embedding(embedding, tokens) {scale = 4} : f32[N,16]\n",
        "  %1 = rms_norm(%0, layers.0.norm) {epsilon = 1e-06} : f32[N,16]\n",
        " positions, slots, layers.0.key_cache, layers.0.value_cache) {scale = 1, window = 8} : f32[N,2,8]\n",
        "  %51 = log_normalizer(%50, want_logprobs) : f32[B,2]\n"
        "  %52 = top_ids(%50, want_logprobs) {count = 5} : i32[B,5]\n"
        "  %53 = argmax(%50) : i32[B]\n"
        "  %54 = log_probability(%50, %51, %53) : f32[B]\n"
        "  %55 = log_probability(%50, %51, %52) : f32[B,5]\n"
        "  %56 = apply_bias(%50, bias_ids, bias_values) : f32[B,48]\n"
        "  %57 = count_tokens(tokens, positions, slots, rows, generated_from, sampler.tokens) : i32[B,64,3]\n"
        "  %58 = penalize(%56, %57, repetition_penalty, frequency_penalty, presence_penalty, "
        "penalize_prompt) : f32[B,48]\n"
        "  %59 = apply_mask(%58, masked, mask) : f32[B,48]\n"
        "  %60 = is_zero(temperature) : bool[B]\n"
        "  %61 = any_false(%60) : bool[]\n"
        "  %62 = if(%61) : i32[B] {\n"
        "    then:\n"
        "      %63 = candidates(%59) : bool[B,48]\n"
        "      %64 = fill_like(temperature) {value = 1} : f32[B]\n"
        "      %65 = select(%60, %64, temperature) : f32[B]\n"
        "      %66 = apply_temperature(%59, %65) : f32[B,48]\n"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        assert_contains(&printed, parts[i]);
    assert_masks_and_draw(&printed);
    gb_buffer_free(&printed);
    gb_program_destroy(program);
}

static void several_results_are_printed(void **state) {
    (void)state;
    gb_program *program = tiny_recurrent_build(false);
    gb_byte_buffer printed = {0};
    gb_text_sink sink = {gb_buffer_write, &printed};
    assert_int_equal(gb_print_graph(program, &sink, NULL), GUMBEL_OK);
    assert_contains(&printed, "states\n  tail: recurrent f32[2,32]\n  memory: recurrent f32[2,8,8]\n");
    assert_contains(&printed, "  %21 = add_bias(%20, router_bias) : f32[N,5]\n"
                              "  %22, %23 = route_top_k(%21) {count = 2} : i32[N,2], f32[N,2]\n"
                              "  %24 = expert_linear(%19, up, %22) : f32[N,2,32]\n");
    gb_buffer_free(&printed);
    gb_program_destroy(program);
}

static void tensors_are_a_table(void **state) {
    (void)state;
    gb_program *program = tiny_program_build(true);
    gb_byte_buffer printed = {0};
    gb_text_sink sink = {gb_buffer_write, &printed};
    gb_print_tensors(program, &sink);
    assert_int_equal(strncmp(gb_buffer_string(&printed), "name ", 5), 0);
    assert_contains(&printed, "embedding                   f32                    32.000  [48,16]            "
                              "                 3072");
    assert_contains(&printed, "\n27 tensors, 21936 bytes\n");
    gb_buffer_free(&printed);
    gb_program_destroy(program);
}

/* ---- JSON ---------------------------------------------------------------------------------------------- */

static json_t *parse_printed(const gb_program *program, uint64_t scratch_bytes) {
    gb_byte_buffer printed = {0};
    gb_text_sink sink = {gb_buffer_write, &printed};
    gb_print_json(program, scratch_bytes, &sink);
    json_error_t error;
    json_t *root = json_loadb(gb_buffer_string(&printed), printed.size, JSON_REJECT_DUPLICATES, &error);
    if (!root)
        fail_msg("%s at %d:\n%s", error.text, error.position, gb_buffer_string(&printed));
    gb_buffer_free(&printed);
    return root;
}

static json_int_t number_at(const json_t *root, const char *object, const char *key) {
    const json_t *value = json_object_get(json_object_get(root, object), key);
    assert_true(json_is_integer(value));
    return json_integer_value(value);
}

static size_t count_nodes(const json_t *nodes) {
    size_t count = json_array_size(nodes), index, region_index;
    const json_t *node, *region;
    json_array_foreach(nodes, index, node) {
        json_array_foreach(json_object_get(node, "regions"), region_index, region) {
            count += count_nodes(json_object_get(region, "nodes"));
        }
    }
    return count;
}

static void the_json_has_it_all(void **state) {
    (void)state;
    gb_program *program = tiny_program_build(true);
    json_t *root = parse_printed(program, 99);
    const json_t *metadata = json_object_get(root, "metadata");
    assert_string_equal(json_string_value(json_object_get(metadata, "name")), "tiny \"program\"");
    assert_true(json_is_true(json_object_get(metadata, "use_sampling")));
    assert_true(json_number_value(json_object_get(metadata, "top_p")) == 0.95);
    assert_int_equal(json_array_size(json_object_get(metadata, "stop_tokens")), 2);
    assert_null(json_object_get(metadata, "recipe"));
    assert_int_equal(number_at(root, "metadata", "vocab_size"), 48);
    assert_int_equal(number_at(root, "memory", "weights"), 21936);
    assert_int_equal(number_at(root, "memory", "scratch"), 99);
    assert_int_equal(number_at(root, "ops", "linear"), 15);
    assert_int_equal(json_array_size(json_object_get(root, "inputs")), program->input_count);
    assert_int_equal(json_array_size(json_object_get(root, "constants")), program->constant_count);
    assert_int_equal(json_array_size(json_object_get(root, "states")), program->state_count);
    assert_int_equal(count_nodes(json_object_get(root, "nodes")), program->node_count);
    const json_t *first = json_array_get(json_object_get(root, "nodes"), 0);
    const json_t *table = json_array_get(json_object_get(first, "operands"), 0);
    assert_string_equal(json_string_value(json_object_get(table, "constant")), "embedding");
    const json_t *result = json_array_get(json_object_get(first, "results"), 0);
    assert_string_equal(json_string_value(json_array_get(json_object_get(result, "shape"), 0)), "N");
    json_decref(root);
    gb_program_destroy(program);
}

/* Names and metadata of a hostile file: commands to a terminal, forged lines, hidden directions. */
static gb_program *hostile_program(void) {
    gb_program *program = tiny_program_build(true);
    program->metadata.architecture = "tiny\x1b[2J";
    program->metadata.name = "safe\n  id                 0123";
    program->metadata.source = "\xe2\x80\xaegpj.\xff";
    program->constants[0].name = "embedding\xc2\x9b"
                                 "31m";
    program->states[0].name = "\x1b]52;c;aGk=\a";
    return program;
}

static void assert_prints(gb_byte_buffer *printed, const char *const *parts, size_t count) {
    for (size_t i = 0; i < count; i++)
        assert_contains(printed, parts[i]);
    for (size_t i = 0; i < printed->size; i++) {
        unsigned char byte = (unsigned char)printed->text[i];
        if ((byte < 0x20 && byte != '\n') || byte >= 0x7f)
            fail_msg("byte %02x at %zu of:\n%s", byte, i, gb_buffer_string(printed));
    }
}

static void text_never_commands_the_terminal(void **state) {
    (void)state;
    gb_program *program = hostile_program();
    gb_byte_buffer printed = {0};
    gb_text_sink sink = {gb_buffer_write, &printed};
    gb_print_summary(program, &(gb_summary_sizes){0}, &sink);
    assert_int_equal(gb_print_graph(program, &sink, NULL), GUMBEL_OK);
    gb_print_tensors(program, &sink);
    static const char *const parts[] = {
        "architecture       tiny\\x1b[2J\n",     "name               safe\\n  id                 0123\n",
        "source             \\u202egpj.\\xff\n", "program tiny\\x1b[2J { vocab 48",
        "  \\x1b]52;c;aGk=\\x07: ring f32",      "embedding(embedding\\u009b31m, tokens)",
        "\nembedding\\u009b31m          f32  ",
    };
    assert_prints(&printed, parts, sizeof parts / sizeof *parts);
    gb_buffer_free(&printed);
    gb_program_destroy(program);
}

static void json_never_commands_the_terminal(void **state) {
    (void)state;
    gb_program *program = hostile_program();
    gb_byte_buffer printed = {0};
    gb_text_sink sink = {gb_buffer_write, &printed};
    static const char *const parts[] = {"\"embedding\\u009b31m\"", "\"tiny\\u001b[2J\""};
    program->metadata.source = ""; /* its ill-formed byte is U+FFFD, which is harmless */
    gb_print_json(program, 0, &sink);
    assert_prints(&printed, parts, sizeof parts / sizeof *parts);
    json_t *root = parse_printed(program, 0);
    assert_string_equal(json_string_value(json_object_get(json_object_get(root, "metadata"), "architecture")),
                        "tiny\x1b[2J");
    json_decref(root);
    gb_buffer_free(&printed);
    gb_program_destroy(program);
}

/* One name of any length must not spoil the table. */
static void a_long_name_does_not_widen_the_table(void **state) {
    (void)state;
    static char name[6001];
    gb_program *program = tiny_program_build(true);
    memset(name, 'n', sizeof name - 1);
    program->constants[0].name = name;
    gb_byte_buffer printed = {0};
    gb_text_sink sink = {gb_buffer_write, &printed};
    gb_print_tensors(program, &sink);
    assert_contains(&printed, "nnn  f32 ");
    size_t lines = 0;
    for (size_t i = 0; i < printed.size; i++)
        lines += printed.text[i] == '\n';
    assert_int_equal(lines, program->constant_count + 2);
    gb_buffer_free(&printed);
    gb_program_destroy(program);
}

static void names_are_escaped(void **state) {
    (void)state;
    gb_program *program = tiny_program_build(false);
    program->constants[0].name = "a\"b\\c\xff";
    json_t *root = parse_printed(program, 0);
    const json_t *constant = json_array_get(json_object_get(root, "constants"), 0);
    assert_string_equal(json_string_value(json_object_get(constant, "name")), "a\"b\\c\xef\xbf\xbd");
    assert_null(json_object_get(json_object_get(root, "memory"), "scratch"));
    json_decref(root);
    gb_program_destroy(program);
}

/* Caches grow up to the context, rings up to their capacity. */
static void lengths_of_conversations(void **state) {
    (void)state;
    gb_program *program = tiny_program_build(true);
    gb_byte_buffer printed = {0};
    gb_text_sink sink = {gb_buffer_write, &printed};
    const gb_summary_sizes sizes = {.machine = 1 << 20};
    for (uint32_t i = 0; i < program->state_count; i++)
        if (program->states[i].kind == GB_STATE_CACHE)
            program->states[i].type.shape.dims[0] = 2048;
    program->metadata.max_context = 2048;
    gb_print_summary(program, &sizes, &sink);
    uint64_t bytes = gb_program_state_bytes_at(program, 1024), all = gb_program_state_bytes(program);
    const uint64_t weights = gb_program_weight_bytes(program);
    assert_true(bytes < all && gb_program_state_bytes_at(program, 9999) == all);
    char line[64];
    snprintf(line, sizeof line, "(%llu bytes)\n", (unsigned long long)bytes);
    assert_contains(&printed, "at 1024 tokens     ");
    assert_contains(&printed, line);
    snprintf(line, sizeof line, " %llu sessions beside the weights\n",
             (unsigned long long)(((1 << 20) - weights) / bytes));
    assert_contains(&printed, line);
    assert_null(strstr(gb_buffer_string(&printed), "at 8192 tokens"));
    gb_buffer_free(&printed);
    gb_program_destroy(program);
}

static void a_draft_head_is_printed(void **state) {
    (void)state;
    gb_program *program = tiny_pair_build();
    gb_byte_buffer printed = {0};
    gb_text_sink sink = {gb_buffer_write, &printed};
    gb_print_summary(program, &(gb_summary_sizes){0}, &sink);
    char line[96];
    snprintf(line, sizeof line, "draft head\n  ops                %u\n  own weights ",
             (unsigned)program->head->node_count);
    assert_contains(&printed, line);
    gb_buffer_free(&printed);
    json_t *root = parse_printed(program, 0);
    const json_t *head = json_object_get(root, "draft_head");
    const uint64_t own = (uint64_t)json_integer_value(json_object_get(head, "own_weights"));
    assert_int_equal(own, gb_head_own_bytes(program));
    assert_true(own > 0 && own < gb_program_weight_bytes(program->head));
    assert_int_equal(json_array_size(json_object_get(head, "constants")), program->head->constant_count);
    json_decref(root);
    gb_program_destroy(program);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_summary_has_limits_memory_and_ops),
        cmocka_unit_test(lengths_of_conversations),
        cmocka_unit_test(a_draft_head_is_printed),
        cmocka_unit_test(the_graph_is_readable),
        cmocka_unit_test(several_results_are_printed),
        cmocka_unit_test(tensors_are_a_table),
        cmocka_unit_test(the_json_has_it_all),
        cmocka_unit_test(text_never_commands_the_terminal),
        cmocka_unit_test(json_never_commands_the_terminal),
        cmocka_unit_test(a_long_name_does_not_widen_the_table),
        cmocka_unit_test(names_are_escaped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
