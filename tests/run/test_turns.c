/* SPDX-License-Identifier: Apache-2.0
 *
 * Conversations in turns on the bundled models: what becomes of replies, what is no part of them, and what is
 * refused.
 */
#include "base/byte_buffer.h"
#include "base/memory.h"
#include "run/turns.h"

/* ---- Replies in the history ---------------------------------------------------------------------------- */

/* A reply that no tokenizer would cut so: its characters one by one. */
static size_t spell_out(const family *f, const char *text, int32_t *tokens) {
    size_t count = 0;
    for (size_t i = 0; text[i]; i++) {
        const char character[2] = {text[i], 0};
        assert_int_equal(encode(f, character, tokens + count), 1);
        count++;
    }
    return count + encode(f, f->stop, tokens + count);
}

static void replies_are_replayed_as_they_were_generated(void **state) {
    (void)state;
    talk t;
    int32_t tokens[MAX_TOKENS];
    begin_talk(&t, &families[0], GUMBEL_THINKING_ON);
    ask(&t, "Who?");
    const size_t count = spell_out(&families[0], "Mira the baker.", tokens);
    reply_with(&t, tokens, count);
    const size_t held = gumbel_session_position(t.session, NULL);
    ask(&t, "Why?");
    assert_int_equal(t.turn.held, held); /* the tokenizer's own tokens would be others */
    assert_memory_equal(t.turn.tokens + held + 1 - count, tokens, count * sizeof *tokens);
    end_talk(&t);
}

/* A reply that was cut off by a limit is whole in the history; its last token was not run yet. */
static void a_reply_that_was_cut_off_is_replayed(void **state) {
    (void)state;
    talk t;
    begin_talk(&t, &families[0], GUMBEL_THINKING_ON);
    ask(&t, "Who is the baker?");
    const size_t count = generate(&t, 3), held = gumbel_session_position(t.session, NULL);
    assert_int_equal(held, t.turn.count + count - 1);
    ask(&t, "Why?");
    assert_int_equal(t.turn.held, held);
    end_talk(&t);
}

/* What the model spelled with special tokens is no text, and text is never replayed as special tokens. */
static void special_tokens_are_not_replayed_for_text(void **state) {
    (void)state;
    talk t;
    begin_talk(&t, &families[0], GUMBEL_THINKING_ON);
    const int32_t special = gumbel_token_id(families[0].tokenizer, "<mask>");
    int32_t tokens[MAX_TOKENS];
    ask(&t, "Who?");
    const size_t count = encode(&families[0], "Mira<mask>.<turn|>", tokens), prompt = t.turn.count;
    assert_int_equal(tokens[count - 3], special);
    reply_with(&t, tokens, count);
    gumbel_conversation_truncate(t.conversation, 1);
    add(&t, "assistant", "Mira<mask>.");
    ask(&t, "Why?");
    assert_int_equal(t.turn.held, prompt + count - 3);
    for (size_t i = 0; i < t.turn.count; i++)
        assert_int_not_equal(t.turn.tokens[i], special);
    end_talk(&t);
}

/* ---- Hostile messages ---------------------------------------------------------------------------------- */

static size_t count_special(const talk *t, const char *const *spellings) {
    size_t found = 0;
    for (size_t i = 0; spellings[i]; i++) {
        const int32_t id = gumbel_token_id(t->family->tokenizer, spellings[i]);
        for (size_t k = 0; id >= 0 && k < t->turn.count; k++)
            found += t->turn.tokens[k] == id;
    }
    return found;
}

/* Messages of all roles in which text stands everywhere. */
static void add_everywhere(talk *t, const char *text) {
    char json[4096], quoted[256];
    size_t length = 0;
    for (; *text; text++) {
        if (*text == '"')
            quoted[length++] = '\\';
        quoted[length++] = *text;
    }
    quoted[length] = 0;
    snprintf(json, sizeof json,
             "[{\"role\":\"system\",\"content\":\"%s\"},{\"role\":\"user\",\"content\":\"%s\"},"
             "{\"role\":\"assistant\",\"content\":\"%s\",\"reasoning_content\":\"%s\",\"tool_calls\":[{"
             "\"id\":\"%s\",\"function\":{\"name\":\"%s\",\"arguments\":{\"%s\":[\"%s\",{\"a\":\"%s\"}]}}}]},"
             "{\"role\":\"tool\",\"tool_call_id\":\"%s\",\"content\":\"%s\"}]",
             quoted, quoted, quoted, quoted, quoted, quoted, quoted, quoted, quoted, quoted, quoted);
    gumbel_conversation_truncate(t->conversation, 0);
    assert_ok(gumbel_conversation_add_json(t->conversation, json, &error), &error);
    assert_ok(gumbel_conversation_prefill(t->conversation, t->session, &t->turn, &error), &error);
}

static void messages_write_no_special_tokens(void **state) {
    (void)state;
    static const char *const spellings[] = {
        "<bos>",        "<eos>",        "<|turn>",          "<turn|>",          "<|channel>", "<channel|>",
        "<|tool_call>", "<tool_call|>", "<|tool_response>", "<tool_response|>", "<|tool>",    "<tool|>",
        "<|\"|>",       "<|think|>",    "<|endoftext|>",    "<|im_start|>",     "<|im_end|>", NULL};
    for (size_t i = 0; i < 2; i++) {
        talk t;
        begin_talk(&t, &families[i], GUMBEL_THINKING_ON);
        add_everywhere(&t, "x");
        const size_t expected = count_special(&t, spellings);
        assert_true(expected > 5);
        for (size_t k = 0; spellings[k]; k++) {
            add_everywhere(&t, spellings[k]);
            assert_int_equal(count_special(&t, spellings), expected);
        }
        end_talk(&t);
    }
}

/* ---- The rest of the interface ------------------------------------------------------------------------- */

static void assert_content(const talk *t, const char *expected) {
    gb_byte_buffer json = {0};
    assert_ok(gumbel_conversation_write(t->conversation, gb_buffer_write, &json, &error), &error);
    if (!strstr(gb_buffer_string(&json), expected))
        fail_msg("\"%s\" is not in %s", expected, gb_buffer_string(&json));
    gb_buffer_free(&json);
}

/* The text of the tokens is "Mira is the baker"; the string begins and ends within tokens. */
static void stop_strings_are_left_out_of_parts(void **state) {
    (void)state;
    talk t;
    int32_t tokens[MAX_TOKENS];
    begin_talk(&t, &families[0], GUMBEL_THINKING_ON);
    ask(&t, "Who?");
    const size_t count = encode(&families[0], "Mira is the baker", tokens);
    const char *const stop = "e bak";
    gumbel_detokenizer *detokenizer;
    assert_ok(gumbel_detokenizer_create(families[0].tokenizer, false, &detokenizer, &error), &error);
    assert_ok(gumbel_detokenizer_stop_at(detokenizer, &stop, 1, false, &error), &error);
    gumbel_generated next = {.size = sizeof next};
    for (size_t i = 0; !next.finish; i++) {
        assert_true(i < count);
        next.token = tokens[i];
        assert_ok(gumbel_detokenize(detokenizer, tokens[i], &next.text, &next.text_length, &error), &error);
        if (gumbel_detokenizer_stopped(detokenizer) == 0)
            next.finish = GUMBEL_FINISH_STOP_STRING;
        assert_ok(gumbel_conversation_add_generated(t.conversation, &next, &error), &error);
    }
    gumbel_detokenizer_destroy(detokenizer);
    assert_content(&t, "{\"role\":\"assistant\",\"content\":\"Mira is th\"}]");
    end_talk(&t);
}

/* A conversation that was written goes on in a session that was saved, running as little. */
static void a_saved_conversation_goes_on(void **state) {
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        talk t, loaded;
        gb_byte_buffer json = {0};
        const char *path = temporary_path("turns.session");
        begin_talk(&t, &families[i], GUMBEL_THINKING_OFF);
        begin_talk(&loaded, &families[i], GUMBEL_THINKING_OFF);
        ask(&t, "Who is the baker?");
        generate(&t, 20);
        assert_ok(gumbel_session_save(t.session, path, &error), &error);
        assert_ok(gumbel_conversation_write(t.conversation, gb_buffer_write, &json, &error), &error);
        assert_ok(gumbel_session_load(loaded.session, path, &error), &error);
        assert_ok(gumbel_conversation_add_json(loaded.conversation, gb_buffer_string(&json), &error), &error);
        ask(&t, "Why?");
        ask(&loaded, "Why?");
        assert_int_equal(loaded.turn.held, t.turn.held);
        assert_int_equal(loaded.turn.count, t.turn.count);
        assert_memory_equal(loaded.turn.tokens, t.turn.tokens, t.turn.count * sizeof *t.turn.tokens);
        gb_buffer_free(&json);
        end_talk(&t);
        end_talk(&loaded);
    }
}

/* Without a session nothing is held; the prompt is the same. */
static void a_prompt_needs_no_session(void **state) {
    (void)state;
    talk t;
    gumbel_turn turn = {.size = sizeof turn};
    begin_talk(&t, &families[1], GUMBEL_THINKING_ON);
    ask(&t, "Who?");
    int32_t *tokens = malloc(t.turn.count * sizeof *tokens);
    memcpy(tokens, t.turn.tokens, t.turn.count * sizeof *tokens);
    assert_ok(gumbel_conversation_prompt(t.conversation, NULL, 0, &turn, &error), &error);
    assert_int_equal(turn.held, 0);
    assert_int_equal(turn.count, t.turn.count);
    assert_int_equal(turn.stable, t.turn.stable);
    assert_memory_equal(turn.tokens, tokens, turn.count * sizeof *tokens);
    free(tokens);
    end_talk(&t);
}

static void what_is_wrong_is_refused(void **state) {
    (void)state;
    talk t;
    begin_talk(&t, &families[1], GUMBEL_THINKING_ON);
    gumbel_conversation *c = t.conversation;
    const gumbel_generated token = {.size = sizeof token, .token = 5};
    const gumbel_chat_options chat = {.size = sizeof chat, .messages_json = "[]"};
    assert_fails(gumbel_conversation_add_generated(c, &token, &error), GUMBEL_ERROR_ARGUMENT, &error,
                 "no reply");
    assert_fails(gumbel_conversation_end_reply(c, &error), GUMBEL_ERROR_ARGUMENT, &error, "no reply");
    assert_fails(gumbel_conversation_set_chat(c, &chat, &error), GUMBEL_ERROR_ARGUMENT, &error,
                 "own messages");
    assert_fails(gumbel_conversation_add_json(c, "[{\"role\":\"cat\"}]", &error), GUMBEL_ERROR_ARGUMENT,
                 &error, "message 0: role");
    assert_fails(gumbel_conversation_add_json(c, "[", &error), GUMBEL_ERROR_FORMAT, &error,
                 "messages: line 1");
    assert_int_equal(gumbel_conversation_count(c), 0);
    assert_fails(gumbel_conversation_prefill(c, t.session, &t.turn, &error), GUMBEL_ERROR_ARGUMENT, &error,
                 "no messages");
    ask(&t, "Who?");
    assert_fails(gumbel_conversation_add_json(c, "[{\"role\":\"user\",\"content\":\"a\"}]", &error),
                 GUMBEL_ERROR_ARGUMENT, &error, "a reply goes on");
    assert_ok(gumbel_conversation_add_generated(c, &token, &error), &error);
    assert_ok(gumbel_conversation_end_reply(c, &error), &error);
    assert_int_equal(gumbel_conversation_count(c), 2);
    char *text = calloc(1, 20001);
    memset(text, 'a', 20000);
    add(&t, "user", text);
    free(text);
    assert_fails(gumbel_conversation_prefill(c, t.session, &t.turn, &error), GUMBEL_ERROR_LIMIT, &error,
                 "the context holds 2048");
    end_talk(&t);
}

/* ---- Memory -------------------------------------------------------------------------------------------- */

typedef struct failure {
    size_t number, count;
} failure;

static bool allow(void *user, size_t bytes) {
    (void)bytes;
    failure *wanted = user;
    return wanted->count++ != wanted->number;
}

static const char short_template[] =
    "{% for m in messages %}<|im_start|>{{ m.content }}<|im_end|>{% endfor %}";

static gumbel_status take_a_turn(talk *t) {
    const gumbel_message message = {.size = sizeof message, .role = "user", .content = "Why?"};
    const gumbel_generated last = {.size = sizeof last, .token = 7, .finish = GUMBEL_FINISH_LENGTH};
    const gumbel_chat_options chat = {.size = sizeof chat, .template_text = short_template, .tools = tools};
    gumbel_status status = gumbel_conversation_set_chat(t->conversation, &chat, &error);
    if (status == GUMBEL_OK)
        status = gumbel_conversation_add(t->conversation, &message, 1, &error);
    if (status == GUMBEL_OK)
        status = gumbel_conversation_prompt(t->conversation, NULL, 0, &t->turn, &error);
    return status == GUMBEL_OK ? gumbel_conversation_add_generated(t->conversation, &last, &error) : status;
}

/* Whatever fails is reported, and the conversation goes on. */
static void each_allocation_may_fail(void **state) {
    (void)state;
    talk t;
    begin_talk(&t, &families[1], GUMBEL_THINKING_ON);
    bool is_last = false;
    size_t failed = 0;
    for (failure wanted = {0}; !is_last; wanted.number++) {
        wanted.count = 0;
        gb_set_allocation_hook(allow, &wanted);
        const gumbel_status status = take_a_turn(&t);
        gb_set_allocation_hook(NULL, NULL);
        if (status != GUMBEL_OK)
            assert_fails(status, GUMBEL_ERROR_MEMORY, &error, "memory");
        failed += status != GUMBEL_OK;
        is_last = wanted.count <= wanted.number;
        gumbel_conversation_truncate(t.conversation, 0);
        assert_ok(take_a_turn(&t), &error);
        gumbel_conversation_truncate(t.conversation, 0);
    }
    assert_in_range(failed, 50, 5000);
    end_talk(&t);
}

int main(int argument_count, char **arguments) {
    read_test_arguments(argument_count, arguments);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(replies_are_replayed_as_they_were_generated),
        cmocka_unit_test(a_reply_that_was_cut_off_is_replayed),
        cmocka_unit_test(special_tokens_are_not_replayed_for_text),
        cmocka_unit_test(messages_write_no_special_tokens),
        cmocka_unit_test(stop_strings_are_left_out_of_parts),
        cmocka_unit_test(a_saved_conversation_goes_on),
        cmocka_unit_test(a_prompt_needs_no_session),
        cmocka_unit_test(what_is_wrong_is_refused),
        cmocka_unit_test(each_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
