/* SPDX-License-Identifier: Apache-2.0
 *
 * A conversation when memory is short: each allocation of the library fails once. The template opens a
 * thought, and the model, being random, repeats its last token when it is greedy: a reply is one long
 * thought.
 */
#include "cli/chat/conversation.h"

#include "base/memory.h"
#include "cli/fixture.h"
#include "support/assertions.h"
#include "support/paths.h"

#include <fcntl.h>
#include <unistd.h>

static cli_model model;
static int terminal = -1; /* standard output, which replies would be printed on */

static int set_up(void **state) {
    (void)state;
    gumbel_error error;
    cli_model_options options = {.source.path = export_program("thought.gumbel", "256", false)};
    assert_ok(cli_model_open(&options, true, &model, &error), &error);
    fflush(stdout);
    terminal = dup(STDOUT_FILENO);
    int nowhere = open("/dev/null", O_WRONLY);
    return dup2(nowhere, STDOUT_FILENO) < 0 || close(nowhere);
}

static int tear_down(void **state) {
    (void)state;
    cli_model_close(&model);
    fflush(stdout);
    return dup2(terminal, STDOUT_FILENO) < 0 || close(terminal);
}

static cli_sampling_options temperature_zero(void) {
    cli_sampling_options options = {0};
    const gumbel_setting *setting;
    for (size_t i = 0; (setting = gumbel_setting_at(i)); i++)
        if (strcmp(setting->name, "temperature") == 0)
            options.settings[i].number = (cli_number){.given = true, .value = 0};
    return options;
}

static cli_conversation new_conversation(void) {
    gumbel_error error;
    cli_conversation conversation = {.model = &model, .generator = {.model = &model}, .max_new_tokens = 5};
    const cli_sampling_options greedy = temperature_zero();
    assert_ok(cli_settle_sampling(&greedy, &model, &conversation.sampling, &error), &error);
    cli_template_options template = {.file = test_data("cli/thinks.jinja")};
    assert_ok(cli_template_read(&template, model.tokenizer, &conversation.template, &error), &error);
    assert_ok(cli_output_open(&conversation.output, model.tokenizer, &error), &error);
    assert_ok(cli_conversation_apply(&conversation, &error), &error);
    return conversation;
}

static void end_conversation(cli_conversation *conversation) {
    cli_conversation_reset(conversation);
    cli_conversation_free(conversation);
}

/* Lets the allocation of that number fail. */
typedef struct failure {
    size_t number, count;
} failure;

static bool allow(void *user, size_t bytes) {
    (void)bytes;
    failure *wanted = user;
    return wanted->count++ != wanted->number;
}

typedef gumbel_status (*turn)(cli_conversation *conversation, gumbel_error *error);

static gumbel_status say_why(cli_conversation *conversation, gumbel_error *error) {
    return cli_converse(conversation, "Why?", 4, error);
}

/* Takes the turn with each of its allocations failing, until none is left to fail. Whatever fails is
 * reported, and the conversation goes on. */
static void fail_each_allocation(turn take, size_t at_least) {
    gumbel_status status = GUMBEL_ERROR_MEMORY;
    size_t failed = 0;
    for (failure wanted = {0}; status != GUMBEL_OK || wanted.count > wanted.number; wanted.number++) {
        gumbel_error error = {0};
        cli_conversation conversation = new_conversation();
        assert_ok(cli_converse(&conversation, "Hello", 5, &error), &error);
        wanted.count = 0;
        gb_set_allocation_hook(allow, &wanted);
        status = take(&conversation, &error);
        gb_set_allocation_hook(NULL, NULL);
        failed += status != GUMBEL_OK;
        if (status != GUMBEL_OK)
            assert_fails(status, GUMBEL_ERROR_MEMORY, &error, "memory");
        assert_ok(say_why(&conversation, &error), &error);
        end_conversation(&conversation);
    }
    assert_in_range(failed, at_least, 1000);
}

static void a_turn_survives_each_failed_allocation(void **state) {
    (void)state;
    fail_each_allocation(say_why, 8);
}

static void another_reply_survives_each_failed_allocation(void **state) {
    (void)state;
    fail_each_allocation(cli_regenerate, 5);
}

/* A message with a zero byte is refused, and leaves no trace; plain text keeps it. */
static void zero_bytes_are_text_and_no_message(void **state) {
    (void)state;
    gumbel_error error;
    cli_conversation conversation = new_conversation();
    assert_fails(cli_converse(&conversation, "a\0b", 3, &error), GUMBEL_ERROR_ARGUMENT, &error, "zero byte");
    assert_int_equal(gumbel_session_position(model.session, NULL), 0);
    assert_int_equal(gumbel_conversation_count(conversation.messages), 0);
    conversation.format.raw = true;
    assert_ok(cli_conversation_apply(&conversation, &error), &error);
    const int32_t *with, *without;
    assert_ok(cli_converse(&conversation, "ab", 2, &error), &error);
    uint32_t count = gumbel_session_position(model.session, &without);
    cli_conversation_reset(&conversation);
    assert_ok(cli_converse(&conversation, "a\0b", 3, &error), &error);
    assert_true(gumbel_session_position(model.session, &with) > count);
    end_conversation(&conversation);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_turn_survives_each_failed_allocation),
        cmocka_unit_test(another_reply_survives_each_failed_allocation),
        cmocka_unit_test(zero_bytes_are_text_and_no_message),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
