/* SPDX-License-Identifier: Apache-2.0
 *
 * What the tests of conversations share: the bundled models, and a conversation with its session. Most
 * replies are scripted, since so small a model calls no tools: their tokens are run as generated ones are.
 */
#ifndef GUMBEL_TESTS_RUN_TURNS_H
#define GUMBEL_TESTS_RUN_TURNS_H

#include "support/assertions.h"
#include "support/paths.h"
#include "support/temporary.h"
#include "support/test_arguments.h"

enum { MAX_TOKENS = 512, TURNS = 20 };

static gumbel_error error;

typedef struct family {
    const char *name, *path;
    bool opens_thought;                /* so that a reply begins in one */
    const char *thought, *call, *stop; /* as the model writes them; a call has %d twice: its number */
    gumbel_program *program;
    gumbel_tokenizer *tokenizer;
} family;

static family families[] = {
    {"gemma4-tiny", "turns-gemma.gumbel", false, "<|channel>thought\nI look.\n<channel|>",
     "<|tool_call>call:t%d{k:<|\"|>v%d<|\"|>}<tool_call|>", "<turn|>", NULL, NULL},
    {"qwen3_5-moe-tiny", "turns-qwen.gumbel", true, "I look.\n</think>\n\n",
     "<tool_call>\n<function=t%d>\n<parameter=k>\nv%d\n</parameter>\n</function>\n</tool_call>", "<|im_end|>",
     NULL, NULL},
};

static const char tools[] = "[{\"type\":\"function\",\"function\":{\"name\":\"t1\",\"parameters\":{}}},"
                            "{\"type\":\"function\",\"function\":{\"name\":\"t2\",\"parameters\":{}}}]";

static inline int set_up(void **state) {
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        char checkpoint[512];
        family *f = &families[i];
        snprintf(checkpoint, sizeof checkpoint, "%s/%s", test_models_folder, f->name);
        const char *path = temporary_path(f->path);
        assert_ok(gumbel_export(checkpoint, path, NULL, &error), &error);
        assert_ok(gumbel_program_open(path, &f->program, &error), &error);
        assert_ok(gumbel_tokenizer_create(f->program, &f->tokenizer, &error), &error);
    }
    return 0;
}

static inline int tear_down(void **state) {
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        gumbel_tokenizer_destroy(families[i].tokenizer);
        gumbel_program_close(families[i].program);
    }
    return 0;
}

/* ---- A conversation with its session --------------------------------------------------------------------
 */

typedef struct talk {
    const family *family;
    gumbel_engine *engine;
    gumbel_session *session;
    gumbel_conversation *conversation;
    gumbel_turn turn;
} talk;

static inline void begin_talk(talk *t, const family *f, gumbel_thinking thinking) {
    gumbel_engine_options options = {.size = sizeof options, .threads = 2, .snapshots = true};
    gumbel_chat_options chat = {.size = sizeof chat, .tools = tools, .thinking = thinking};
    *t = (talk){.family = f, .turn = {.size = sizeof t->turn}};
    assert_ok(gumbel_engine_create(f->program, &options, &t->engine, &error), &error);
    assert_ok(gumbel_session_create(t->engine, &t->session, &error), &error);
    assert_ok(gumbel_conversation_create(f->tokenizer, &t->conversation, &error), &error);
    assert_ok(gumbel_conversation_set_chat(t->conversation, &chat, &error), &error);
}

static inline void end_talk(talk *t) {
    gumbel_conversation_destroy(t->conversation);
    gumbel_engine_destroy(t->engine);
}

static inline void add(talk *t, const char *role, const char *content) {
    const gumbel_message message = {.size = sizeof message, .role = role, .content = content};
    assert_ok(gumbel_conversation_add(t->conversation, &message, 1, &error), &error);
}

static inline void ask(talk *t, const char *question) {
    add(t, "user", question);
    assert_ok(gumbel_conversation_prefill(t->conversation, t->session, &t->turn, &error), &error);
}

/* Gives the last reply's n-th call its result. */
static inline void answer_call(talk *t, int number) {
    char id[64] = "", name[8];
    const gumbel_reply *reply = gumbel_conversation_reply(t->conversation);
    gumbel_reply_part part = {.size = sizeof part};
    for (size_t i = 0; i < gumbel_reply_part_count(reply); i++) {
        assert_ok(gumbel_reply_get_part(reply, i, &part, &error), &error);
        if (part.type == GUMBEL_PART_TOOL_CALL && part.call == number)
            snprintf(id, sizeof id, "%s", part.id), snprintf(name, sizeof name, "%s", part.name);
    }
    assert_true(id[0] != 0);
    const gumbel_message result = {
        .size = sizeof result, .role = "tool", .content = "ok", .tool_call_id = id, .name = name};
    assert_ok(gumbel_conversation_add(t->conversation, &result, 1, &error), &error);
}

static inline size_t encode(const family *f, const char *text, int32_t *tokens) {
    const gumbel_encode_options options = {.size = sizeof options, .parse_special = true};
    size_t count;
    assert_ok(gumbel_encode(f->tokenizer, text, strlen(text), &options, tokens, MAX_TOKENS, &count, &error),
              &error);
    return count;
}

/* Runs the rest of the prompt and these tokens but for the last one, as generating them would. */
static inline void reply_with(talk *t, const int32_t *tokens, size_t count) {
    const size_t left = t->turn.count - t->turn.begin;
    assert_ok(gumbel_session_append(t->session, t->turn.tokens + t->turn.begin, left, &error), &error);
    for (size_t i = 0; i < count; i++) {
        const gumbel_generated generated = {.size = sizeof generated,
                                            .token = tokens[i],
                                            .finish =
                                                i + 1 == count ? GUMBEL_FINISH_STOP : GUMBEL_FINISH_NONE};
        if (i + 1 < count)
            assert_ok(gumbel_session_append(t->session, &tokens[i], 1, &error), &error);
        assert_ok(gumbel_conversation_add_generated(t->conversation, &generated, &error), &error);
    }
}

/* Lets the model write a few tokens; those that were run are one less. */
static inline size_t generate(talk *t, uint32_t most) {
    const gumbel_sampling greedy = {.size = sizeof greedy, .top_p = 1};
    const gumbel_generate_options options = {.size = sizeof options,
                                             .sampling = &greedy,
                                             .max_new_tokens = most,
                                             .tokenizer = t->family->tokenizer};
    gumbel_generated next = {.size = sizeof next};
    size_t count = 0;
    assert_ok(gumbel_generate(t->session, t->turn.tokens + t->turn.begin, t->turn.count - t->turn.begin,
                              &options, &error),
              &error);
    for (; !next.finish; count++) {
        assert_ok(gumbel_next(t->session, &next, &error), &error);
        assert_ok(gumbel_conversation_add_generated(t->conversation, &next, &error), &error);
    }
    return count;
}

#endif
