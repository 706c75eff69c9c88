/* SPDX-License-Identifier: Apache-2.0
 *
 * gumbel run, logits and tokenize from one end to the other, on random weights.
 */
#include "cli/fixture.h"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *program, *logits_program;

static int set_up(void **state) {
    (void)state;
    program = export_program("model.gumbel", "256", false);
    logits_program = export_program("logits.gumbel", "256", true);
    return 0;
}

static size_t count_commas(const char *text) {
    size_t count = 0;
    for (; *text; text++)
        count += *text == ',';
    return count;
}

static void export_says_what_it_wrote(void **state) {
    (void)state;
    const char *path = temporary_path("said.gumbel");
    command_result result =
        GUMBEL(NULL, "export", checkpoint_directory(), "--random-weights", "7", "-o", path);
    assert_status(result, 0);
    assert_has(result.errors, "gumbel: wrote ");
    assert_has(result.errors, " MB in ");
    assert_null(strchr(result.errors, '\r'));
    free_result(&result);
    result = GUMBEL(NULL, "export", checkpoint_directory(), "--random-weights", "7", "-o", path, "--quiet");
    assert_status(result, 0);
    assert_true(!result.errors || result.errors[0] == '\0');
    free_result(&result);
    result = GUMBEL(NULL, "export", checkpoint_directory(), "--random-weights", "7", "-o", path, "--stats");
    assert_status(result, 0);
    static const char *const parts[] = {
        "read             0.0 MB", "written ", "% writing", " threads", "disk ", "MB/s", "peak memory "};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        assert_has(result.errors, parts[i]);
    free_result(&result);
    assert_int_equal(unlink(path), 0);
}

static void ids_in_one_line_of_ids_out(void **state) {
    (void)state;
    command_result result = GUMBEL(NULL, "run", program, "--tokens", "2,17,99", "--print-tokens", "-n", "12",
                                   "--temperature", "0", "--ignore-eos");
    assert_status(result, 0);
    assert_string_equal(result.errors, "gumbel: stopped at 12 tokens (-n)\n");
    assert_int_equal(count_commas(result.output), 11);
    assert_int_equal(strspn(result.output, "0123456789,"), result.output_length - 1);
    assert_int_equal(result.output[result.output_length - 1], '\n');
    free_result(&result);
}

static char *sample(const char *seed, const char *temperature) {
    return output_of(GUMBEL(NULL, "run", "-m", program, "--tokens", "2,17,99", "--print-tokens", "-n", "24",
                            "--temp", temperature, "-s", seed, "--ignore-eos"));
}

static void a_seed_repeats_its_tokens(void **state) {
    (void)state;
    char *first = sample("5", "1.5"), *again = sample("5", "1.5"), *other = sample("6", "1.5");
    assert_string_equal(first, again);
    assert_string_not_equal(first, other);
    free(first);
    free(again);
    free(other);
}

/* The note on standard error is enough to repeat a run whose seed was drawn. */
static void a_drawn_seed_is_reported(void **state) {
    (void)state;
    command_result drawn = GUMBEL(NULL, "run", program, "--tokens", "2,17", "--print-tokens", "-n", "24",
                                  "--temp", "1.5", "--ignore-eos");
    assert_status(drawn, 0);
    char seed[32];
    assert_int_equal(sscanf(drawn.errors, "gumbel: seed %31[0-9] (drawn)\n", seed), 1);
    char *again = output_of(GUMBEL(NULL, "run", program, "--tokens", "2,17", "--print-tokens", "-n", "24",
                                   "--temp", "1.5", "--ignore-eos", "--seed", seed));
    assert_int_equal(strncmp(drawn.output, again, strlen(again)), 0);
    free(again);
    free_result(&drawn);
}

static void stats_name_values_and_origins(void **state) {
    (void)state;
    command_result result = GUMBEL(NULL, "run", program, "--tokens", "2,17,99", "--print-tokens", "-n", "8",
                                   "--top-k", "20", "--seed", "42", "--ignore-eos", "--stats");
    assert_status(result, 0);
    static const char *const parts[] = {"engine           cpu",
                                        "temperature      0.8 (default)",
                                        "top-k            20 (flag)",
                                        "top-p            1 (default)",
                                        "seed             42 (flag)",
                                        "load ",
                                        "prompt           3 tokens",
                                        "first token ",
                                        "generated        8 tokens",
                                        "finish           length\n",
                                        "caches           ",
                                        " MB when the context is full\n",
                                        "peak memory "};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        assert_has(result.errors, parts[i]);
    free_result(&result);
}

/* The same prompt by every road gives the same tokens. */
static void prompts_from_everywhere(void **state) {
    (void)state;
    const char *path = temporary_path("prompt.txt"), *json = temporary_path("chat.json");
    write_text(path, "The cat sat.\n");
    write_text(json, "[{\"role\":\"user\",\"content\":\"The cat sat.\"}]");
#define ANSWER(input, ...)                                                                                   \
    output_of(GUMBEL(input, "run", program, "--print-tokens", "-n", "8", "--temp", "0", __VA_ARGS__))
    char *ids = output_of(GUMBEL(NULL, "tokenize", program, "--messages", json));
    char *expected = ANSWER(NULL, "--tokens", ids);
    char *answers[] = {ANSWER(NULL, "-p", "The cat sat."), ANSWER(NULL, "-f", path),
                       ANSWER("The cat sat.\n", "-p", "-"), ANSWER("The cat sat.", "--seed", "1")};
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        assert_string_equal(answers[i], expected);
        free(answers[i]);
    }
    free(ids);
    free(expected);
    ids = output_of(GUMBEL("The cat sat.", "tokenize", program, "--raw"));
    expected = ANSWER(NULL, "--tokens", ids);
    char *raw = ANSWER(NULL, "--raw", "-p", "The cat sat.");
    assert_string_equal(raw, expected);
    free(ids);
    free(expected);
    free(raw);
}

static void an_empty_prompt_is_refused(void **state) {
    (void)state;
    command_result result = GUMBEL(NULL, "run", program);
    assert_status(result, 1);
    assert_one_error_line(&result, "the prompt is empty");
    free_result(&result);
}

#define RUN_PROMPT(...)                                                                                      \
    GUMBEL(NULL, "run", program, "--tokens", "2,3,4,5,6,7,8,9,10", "--print-tokens", "-n", "6",              \
           "--temperature", "0", "--ignore-eos", __VA_ARGS__)

static void a_prompt_may_have_shorter_steps(void **state) {
    (void)state;
    char *usual = output_of(RUN_PROMPT("--prefill-chunk", "0")), *shorter = output_of(RUN_PROMPT("-ub", "4"));
    assert_string_equal(usual, shorter);
    free(usual);
    free(shorter);
    command_result result = RUN_PROMPT("--prefill-chunk", "65536");
    assert_status(result, 1);
    assert_one_error_line(&result, "prefill chunk of 65536 tokens: at most ");
    free_result(&result);
}

static void ids_outside_the_vocabulary_are_refused(void **state) {
    (void)state;
    command_result result = GUMBEL(NULL, "run", program, "--tokens", "2,9999999", "--print-tokens");
    assert_status(result, 1);
    assert_one_error_line(&result, "--tokens: 9999999: expected ids from 0 to ");
    free_result(&result);
    result = GUMBEL(NULL, "logits", program, "--tokens", "9999999", "-o", temporary_path("no.npy"));
    assert_status(result, 1);
    assert_one_error_line(&result, "--tokens: 9999999");
    free_result(&result);
}

static void text_stops_at_128_tokens_and_says_so(void **state) {
    (void)state;
    command_result result = GUMBEL(NULL, "run", program, "-p", "Hello", "--temp", "0", "--ignore-eos");
    assert_status(result, 0);
    assert_string_equal(result.errors, "gumbel: stopped at 128 tokens (-n); -n -1 sets no limit\n");
    assert_true(result.output_length > 1);
    assert_int_equal(result.output[result.output_length - 1], '\n');
    free_result(&result);
    result = GUMBEL(NULL, "run", program, "-p", "Hello", "--temp", "0", "--ignore-eos", "-n", "128");
    assert_status(result, 0);
    assert_string_equal(result.errors, "gumbel: stopped at 128 tokens (-n)\n");
    free_result(&result);
}

static void a_full_context_ends_the_answer(void **state) {
    (void)state;
    command_result result = GUMBEL(NULL, "run", program, "--tokens", "2,17,99", "--print-tokens", "-n", "-1",
                                   "--temp", "0", "--ignore-eos", "-c", "20");
    assert_status(result, 0);
    assert_int_equal(count_commas(result.output) + 1, 18); /* 17 run after the prompt, one that is not */
    assert_one_error_line(&result, "the context of 20 positions is full");
    free_result(&result);
    result = GUMBEL(NULL, "run", program, "--tokens", "1,2,3,4", "--print-tokens", "-c", "3");
    assert_status(result, 1);
    free_result(&result);
}

static void programs_without_a_sampler(void **state) {
    (void)state;
#define GREEDY(path)                                                                                         \
    output_of(GUMBEL(NULL, "run", path, "--tokens", "2,17,99", "--print-tokens", "-n", "12", "--temp", "0",  \
                     "--ignore-eos"))
    char *inside = GREEDY(program), *outside = GREEDY(logits_program);
    assert_string_equal(inside, outside);
    free(outside);
    static const char *const refused[][2] = {{"--top-k", "5"}, {"--top-p", "0.5"}, {"--seed", "3"}};
    for (size_t i = 0; i < 3; i++) {
        command_result result = GUMBEL(NULL, "run", logits_program, "--tokens", "2", "--print-tokens",
                                       refused[i][0], refused[i][1]);
        assert_status(result, 1);
        assert_one_error_line(&result, refused[i][0]);
        free_result(&result);
    }
    command_result drawn =
        GUMBEL(NULL, "run", logits_program, "--tokens", "2", "--print-tokens", "--temp", "1.5", "-n", "9");
    assert_status(drawn, 0);
    char seed[32];
    assert_int_equal(sscanf(drawn.errors, "gumbel: seed %31[0-9] (drawn)\n", seed), 1);
    char *same = output_of(GUMBEL(NULL, "run", program, "--tokens", "2", "--print-tokens", "--temp", "1.5",
                                  "-n", "9", "--top-k", "0", "--top-p", "1", "--seed", seed));
    assert_int_equal(strncmp(drawn.output, same, strlen(same)), 0);
    free(same);
    free(inside);
    free_result(&drawn);
}

/* The largest logit is the token that a greedy run begins with. */
/* It changes no token, and one that cannot guess is refused. */
static void another_program_guesses(void **state) {
    (void)state;
    char *alone = sample("5", "1.5");
    char *guessed =
        output_of(GUMBEL(NULL, "run", "-m", program, "--tokens", "2,17,99", "--print-tokens", "-n", "24",
                         "--temp", "1.5", "-s", "5", "--ignore-eos", "--draft", program));
    assert_string_equal(alone, guessed);
    free(alone);
    free(guessed);
    command_result result = GUMBEL(NULL, "run", program, "--tokens", "2", "--draft", "heads");
    assert_status(result, 1);
    assert_has(result.errors, "the program has no heads that guess: export it with --draft-head");
    free_result(&result);
    result = GUMBEL(NULL, "run", program, "--tokens", "2", "--draft", "lokup");
    assert_status(result, 1);
    assert_has(result.errors, "--draft lokup: neither auto, lookup, heads nor off, and no program: ");
    free_result(&result);
    result = GUMBEL(NULL, "run", program, "--tokens", "2", "--draft", logits_program);
    assert_status(result, 1);
    assert_has(result.errors, "draft_engine: its program was exported with --logits and draws no tokens");
    free_result(&result);
}

static void logits_of_the_last_token(void **state) {
    (void)state;
    const char *path = temporary_path("row.npy");
    char *nothing = output_of(GUMBEL(NULL, "logits", logits_program, "--tokens", "2,17,99", "-o", path));
    assert_string_equal(nothing, "");
    free(nothing);
    static float row[2048];
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fseek(file, 128, SEEK_SET), 0);
    assert_int_equal(fread(row, sizeof *row, 2048, file), 2048);
    assert_int_equal(fgetc(file), EOF);
    fclose(file);
    int best = 0;
    for (int i = 1; i < 2048; i++)
        best = row[i] > row[best] ? i : best;
    char *first = output_of(
        GUMBEL(NULL, "run", program, "--tokens", "2,17,99", "--print-tokens", "-n", "1", "--temp", "0"));
    assert_int_equal(atoi(first), best);
    free(first);
}

static void text_to_ids_and_back(void **state) {
    (void)state;
    static const char text[] = "The little cat sat by the window.";
    char *ids = output_of(GUMBEL(NULL, "tokenize", program, text));
    char *from_checkpoint = output_of(GUMBEL(text, "tokenize", checkpoint_directory(), "-f", "-"));
    assert_string_equal(ids, from_checkpoint);
    char *around = output_of(GUMBEL(NULL, "tokenize", program, text, "--add-special"));
    assert_string_equal(strchr(around, ',') + 1, ids); /* bos comes first */
    char *back = output_of(GUMBEL(NULL, "tokenize", program, "--decode", ids));
    assert_string_equal(back, text);
    char *shown = output_of(GUMBEL(NULL, "tokenize", program, "--show", "--raw", "a\nb"));
    assert_has(shown, "\"a\"");
    assert_has(shown, "\"\\n\"");
    free(ids);
    free(from_checkpoint);
    free(around);
    free(back);
    free(shown);
}

static void special_tokens_in_text_are_text(void **state) {
    (void)state;
    char *plain = output_of(GUMBEL(NULL, "tokenize", program, "--raw", "<turn|>"));
    char *parsed = output_of(GUMBEL(NULL, "tokenize", program, "--raw", "--parse-special", "<turn|>"));
    assert_non_null(strchr(plain, ','));
    assert_null(strchr(parsed, ','));
    free(plain);
    free(parsed);
}

static void interrupt_ends_the_answer(void **state) {
    (void)state;
    const char *path = export_program("long.gumbel", "60000", false);
    running_command started;
    start_command(&started,
                  (const char *const[]){gumbel_command_path, "run", path, "--tokens", "2,17",
                                        "--print-tokens", "-n", "-1", "--temp", "0", "--ignore-eos", NULL});
    feed_command(&started, NULL);
    await_output(&started, 40, 60);
    assert_int_equal(kill(started.process, SIGINT), 0);
    command_result result = finish_command(&started, 60);
    assert_status(result, 130);
    assert_int_equal(strspn(result.output, "0123456789,"), result.output_length - 1);
    assert_int_equal(result.output[result.output_length - 1], '\n');
    assert_true(!result.errors || result.errors[0] == '\0');
    free_result(&result);
}

static void inspect_prints_every_part(void **state) {
    (void)state;
    static const char *const parts[][2] = {
        {NULL, "gemma4"}, {"--graph", "rms_norm"}, {"--json", "{"}, {"--plan", "sample"}};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        char *text = output_of(GUMBEL(NULL, "inspect", program, parts[i][0]));
        assert_has(text, parts[i][1]);
        free(text);
    }
    command_result result = GUMBEL(NULL, "inspect", program, "--plan", "--backend", "mlx");
    assert_int_not_equal(result.status, 0);
    assert_has(result.errors, "backend mlx has no plan of its own");
    free_result(&result);
    result = GUMBEL(NULL, "inspect", program, "--backend", "cpu");
    assert_int_not_equal(result.status, 0);
    assert_has(result.errors, "--plan");
    free_result(&result);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(export_says_what_it_wrote),
        cmocka_unit_test(ids_in_one_line_of_ids_out),
        cmocka_unit_test(a_seed_repeats_its_tokens),
        cmocka_unit_test(a_drawn_seed_is_reported),
        cmocka_unit_test(stats_name_values_and_origins),
        cmocka_unit_test(prompts_from_everywhere),
        cmocka_unit_test(an_empty_prompt_is_refused),
        cmocka_unit_test(a_prompt_may_have_shorter_steps),
        cmocka_unit_test(ids_outside_the_vocabulary_are_refused),
        cmocka_unit_test(text_stops_at_128_tokens_and_says_so),
        cmocka_unit_test(a_full_context_ends_the_answer),
        cmocka_unit_test(programs_without_a_sampler),
        cmocka_unit_test(another_program_guesses),
        cmocka_unit_test(logits_of_the_last_token),
        cmocka_unit_test(text_to_ids_and_back),
        cmocka_unit_test(special_tokens_in_text_are_text),
        cmocka_unit_test(interrupt_ends_the_answer),
        cmocka_unit_test(inspect_prints_every_part),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
