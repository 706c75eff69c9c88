/* SPDX-License-Identifier: Apache-2.0
 *
 * Flags of other programs, in the commands as they are.
 */
#include "cli/command.h"
#include "cli/options/foreign.h"
#include "cli/options/option_table.h"
#include "cli/run/run.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static run_arguments parsed;
static gb_byte_buffer notes;
static gumbel_error error;

static int forget(void **state) {
    (void)state;
    cli_free_arguments(&cli_command_run, &parsed);
    gb_buffer_free(&notes);
    parsed = (run_arguments){0};
    return 0;
}

static cli_parsed parse(const char *const *words) {
    int count = 0;
    while (words[count])
        count++;
    forget(NULL);
    return cli_parse(&cli_command_run, count, (char *const *)(uintptr_t)words, &parsed, &notes, &error);
}

#define RUN(...) parse((const char *const[]){"p", __VA_ARGS__, NULL})

static void assert_note(const char *expected) {
    if (!expected != !notes.text || (expected && strcmp(notes.text, expected) != 0))
        fail_msg("the note is \"%s\", expected \"%s\"", notes.text ? notes.text : "",
                 expected ? expected : "");
}

static void assert_begins(const char *text, const char *beginning) {
    if (!text || strncmp(text, beginning, strlen(beginning)) != 0)
        fail_msg("\"%s\" does not begin with \"%s\"", text ? text : "", beginning);
}

static void assert_refused(cli_parsed result, const char *beginning) {
    assert_int_equal(result, CLI_WRONG);
    assert_begins(error.message, beginning);
}

static void assert_words(const char *expected) {
    gb_byte_buffer joined = {0};
    cli_words_join(&parsed.run.words, &joined);
    assert_string_equal(joined.text, expected);
    gb_buffer_free(&joined);
}

static void what_has_no_effect_is_noted_once(void **state) {
    (void)state;
    assert_int_equal(RUN("-ngl", "99"), CLI_PARSED);
    assert_note("without effect here: -ngl (--backend says where all layers run)\n");
    assert_false(parsed.run.max_new_tokens.given);
    assert_int_equal(parsed.run.words.count, 0);
    assert_int_equal(RUN("--jinja", "-fa", "--n_gpu_layers=all", "hi"), CLI_PARSED);
    assert_note("without effect here: --jinja (a program has the chat template of its checkpoint), "
                "-fa (attention is one fused step on every backend), --n_gpu_layers (--backend says where "
                "all layers run)\n");
    assert_words("hi");
    assert_int_equal(RUN("hi", "--temp", "0.5"), CLI_PARSED);
    assert_note(NULL);
}

/* A value that may be missing is taken when it is one. */
static void values_are_consumed(void **state) {
    (void)state;
    static const char *const taken[] = {"on", "off", "auto", "1", "0,1"};
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++) {
        assert_int_equal(RUN("-fa", taken[i], "hi"), CLI_PARSED);
        assert_words("hi");
    }
    static const char *const left[] = {"a", "online", "on,", ""};
    for (size_t i = 0; i < sizeof left / sizeof *left; i++) {
        assert_int_equal(RUN("-fa", left[i]), CLI_PARSED);
        assert_words(left[i]);
        assert_null(parsed.run.file);
    }
    assert_int_equal(RUN("-fa"), CLI_PARSED);
    assert_int_equal(RUN("-ub", "512", "-ngl", "99", "-sm", "none", "why", "-b", "2048"), CLI_PARSED);
    assert_words("why");
    assert_int_equal(RUN("--no-mmap", "why"), CLI_PARSED);
    assert_words("why");
}

static void what_is_ours_by_another_name_works(void **state) {
    (void)state;
    assert_int_equal(RUN("--mlock"), CLI_PARSED);
    assert_string_equal(parsed.model.lock, "all");
    assert_note(NULL);
    assert_int_equal(RUN("-lm", "mmap+mlock"), CLI_PARSED);
    assert_string_equal(parsed.model.lock, "all");
    assert_int_equal(RUN("-lm", "dio"), CLI_PARSED);
    assert_null(parsed.model.lock);
    assert_begins(notes.text, "without effect here: -lm (");
    assert_int_equal(RUN("-cnv"), CLI_PARSED);
    assert_true(parsed.run.interactive);
    assert_int_equal(RUN("-cnv", "-st"), CLI_PARSED);
    assert_true(parsed.run.single_turn);
    assert_int_equal(RUN("-no-cnv"), CLI_PARSED);
    assert_true(parsed.run.plain);
    assert_int_equal(RUN("--ignore-chat-template"), CLI_PARSED);
    assert_true(parsed.run.plain);
    assert_int_equal(RUN("-rea", "on"), CLI_PARSED);
    assert_int_equal(parsed.template.thinking, GUMBEL_THINKING_ON);
    assert_int_equal(RUN("-rea", "off"), CLI_PARSED);
    assert_int_equal(parsed.template.thinking, GUMBEL_THINKING_OFF);
    assert_int_equal(RUN("--reasoning-budget=0"), CLI_PARSED);
    assert_true(parsed.reasoning.budget.given && parsed.reasoning.budget.value == 0);
    assert_int_equal(RUN("--max-model-len", "512"), CLI_PARSED);
    assert_int_equal(parsed.model.max_context.value, 512);
    assert_int_equal(RUN("--num-draft-tokens", "5", "--spec-type", "ngram-mod"), CLI_PARSED);
    assert_true(parsed.draft.most.value == 5 && cli_drafting(&parsed.draft) == GUMBEL_DRAFTING_LOOKUP);
    assert_int_equal(RUN("--spec-type", "none"), CLI_PARSED);
    assert_int_equal(cli_draft_tokens(&parsed.draft, 1), 0);
    assert_int_equal(RUN("-md", "small.gumbel", "--spec-type", "draft-simple"), CLI_PARSED);
    assert_string_equal(cli_draft_model(&parsed.draft), "small.gumbel");
    assert_int_equal(cli_drafting(&parsed.draft), GUMBEL_DRAFTING_AUTO);
    assert_int_equal(RUN("--draft-model", "small.gumbel"), CLI_PARSED); /* mlx-lm's */
    assert_string_equal(cli_draft_model(&parsed.draft), "small.gumbel");
    assert_int_equal(RUN("--spec-type", "draft-mtp"), CLI_PARSED);
    assert_int_equal(cli_drafting(&parsed.draft), GUMBEL_DRAFTING_MODEL);
    assert_null(cli_draft_model(&parsed.draft));
    assert_int_equal(RUN("-md", "small.gumbel", "--draft", "lookup"), CLI_PARSED);
    assert_null(cli_draft_model(&parsed.draft));
    assert_int_equal(RUN("-ub", "2048"), CLI_PARSED);
    assert_int_equal(parsed.model.prefill_chunk.value, 2048);
    assert_int_equal(RUN("--max-num-batched-tokens", "8192"), CLI_PARSED);
    assert_int_equal(parsed.model.prefill_chunk.value, 8192);
    assert_refused(RUN("--max-model-len", "x"), "--max-model-len x: expected an integer in");
    assert_refused(RUN("--max-model-len"), "--max-model-len needs a value: --max-model-len N");
    assert_int_equal(RUN("--perf", "--log-disable"), CLI_PARSED);
    assert_true(parsed.run.stats && parsed.run.quiet);
    assert_int_equal(RUN("-ctk", "q8_0"), CLI_PARSED);
    assert_string_equal(parsed.model.source.cache, "q8_0");
    assert_int_equal(RUN("--kv-bits", "4"), CLI_PARSED);
    assert_string_equal(parsed.model.source.cache, "4");
    assert_int_equal(RUN("-jf", "a.json", "--grammar-file", "b.gbnf"), CLI_PARSED);
    assert_string_equal(parsed.grammar.schema, "a.json");
    assert_string_equal(parsed.grammar.grammar, "b.gbnf");
    assert_int_equal(RUN("-l", "15043+1", "--logit-bias", "17-inf,5=-2"), CLI_PARSED);
    assert_int_equal(parsed.sampling.bias.count, 3);
    assert_true(parsed.sampling.bias.list[0].token == 15043 && parsed.sampling.bias.list[0].value == 1);
    assert_true(parsed.sampling.bias.list[2].value == -2);
}

static void what_is_missing_says_what_to_use(void **state) {
    (void)state;
    static const char *const refused[][2] = {
        {"-hff", "-hff: the file stands behind the repository"},
        {"-sysf", "-sysf: --system \"$(cat FILE)\""},
        {"--kv-group-size", "--kv-group-size: codes of --cache q8 and q4 have a scale for 32 of them"},
        {"--mirostat", "--mirostat: the sampler has no such filter"},
        {"-devd", "-devd: a draft model runs as the program does"},
        {"--lora", "--lora: adapters are not read"},
        {"--list-devices", "--list-devices: gumbel inspect --backends"},
        {"--quantized-kv-start", "--quantized-kv-start: with --cache q8 or q4 all positions are codes"},
    };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        assert_refused(RUN(refused[i][0], "7"), refused[i][1]);
    assert_int_equal(RUN("--mirostat", "0", "--typical", "1.0"), CLI_PARSED);
    assert_begins(notes.text, "without effect here: --mirostat (it is always off), --typical (");
}

/* What follows a short option's letter is its value only when it can be nothing else. */
static void clusters_are_no_flags_of_others(void **state) {
    (void)state;
    assert_int_equal(RUN("-n12", "-c4096", "-s7", "-t2", "-fnotes.txt"), CLI_PARSED);
    assert_int_equal(parsed.run.max_new_tokens.value, 12);
    assert_int_equal(parsed.model.max_context.value, 4096);
    assert_string_equal(parsed.run.file, "notes.txt");
    assert_refused(RUN("-nx"), "run has no option -nx (see gumbel help run)");
    assert_refused(RUN("-temp", "1"), "run has no option -temp; did you mean --temp?");
    assert_refused(RUN("-prompt", "x"), "run has no option -prompt; did you mean --prompt?");
    assert_refused(RUN("-model", "x"), "run has no option -model; did you mean --model?");
    assert_refused(RUN("-ngx", "x"), "run has no option -ngx (see gumbel help run)");
}

static const cli_foreign rows[] = {
#define CLI_FOREIGN(names, value, kind, text) {names, value, CLI_FOREIGN_##kind, text},
#include "cli/options/foreign_flags.def"
#undef CLI_FOREIGN
};

/* Whether the row stands for a flag that the command has. */
static bool is_ours(const cli_foreign *row, const cli_command *command, void *arguments) {
    cli_target found;
    return row->kind == CLI_FOREIGN_OURS &&
           cli_find_option(command->groups, arguments, row->text, strcspn(row->text, " "), &found);
}

static bool stands_for_one(const char *flag, const cli_command *command, void *arguments) {
    const cli_foreign *row = NULL;
    while ((row = cli_next_foreign(row, flag, strlen(flag))) != NULL)
        if (is_ours(row, command, arguments))
            return true;
    return false;
}

/* A flag that is not the command's own does what one of ours does, or is named in an error or a note: it is
 * never read as a short option with a value. */
static void assert_met(const cli_command *command, const cli_foreign *row, const char *flag) {
    char value[CLI_OPTION_NAME];
    const char *choices = row->value + (row->value[0] == '=');
    snprintf(value, sizeof value, "%.*s", (int)strcspn(choices, " "), choices);
    bool takes_value = row->value[0] && row->value[0] != '[';
    const char *words[] = {"p", flag, value};
    void *arguments = cli_allocate(1, command->arguments_size);
    gb_byte_buffer said = {0};
    cli_target own;
    if (!cli_find_option(command->groups, arguments, flag, strlen(flag), &own)) {
        cli_parsed result = cli_parse(command, takes_value ? 3 : 2, (char *const *)(uintptr_t)words,
                                      arguments, &said, &error);
        const char *says = result == CLI_WRONG ? error.message : said.text;
        if (!(says && strstr(says, flag)) && !stands_for_one(flag, command, arguments))
            fail_msg("gumbel %s %s: \"%s\"", command->name, flag, says ? says : "");
    }
    gb_buffer_free(&said);
    cli_free_arguments(command, arguments);
    free(arguments);
}

static void every_row_is_met_by_every_command(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *names = rows[i].names, *name;
        bool has_target = rows[i].kind != CLI_FOREIGN_OURS;
        for (size_t n; (n = cli_next_name(&names, &name)) > 0;) {
            char flag[CLI_OPTION_NAME];
            assert_true(n < sizeof flag && name[0] == '-');
            snprintf(flag, sizeof flag, "%.*s", (int)n, name);
            for (const cli_command *const *command = cli_commands; *command; command++)
                assert_met(*command, &rows[i], flag);
        }
        for (const cli_command *const *command = cli_commands; *command; command++)
            has_target = has_target || is_ours(&rows[i], *command, &parsed);
        if (!has_target)
            fail_msg("%s: no command has %s", rows[i].names, rows[i].text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_has_no_effect_is_noted_once),
        cmocka_unit_test(values_are_consumed),
        cmocka_unit_test(what_is_ours_by_another_name_works),
        cmocka_unit_test(what_is_missing_says_what_to_use),
        cmocka_unit_test(clusters_are_no_flags_of_others),
        cmocka_unit_test(every_row_is_met_by_every_command),
    };
    return cmocka_run_group_tests(tests, NULL, forget);
}
