/* SPDX-License-Identifier: Apache-2.0
 *
 * Stop strings on the bundled models, as an embedder meets them: a story told with a stop string is the story
 * told without it, with the same seed, up to where the string stands first.
 */
#include "support/assertions.h"
#include "support/naive_stops.h"
#include "support/paths.h"
#include "support/temporary.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { STORY_TOKENS = 40, STORY_BYTES = 1024, PROMPT_TOKENS = 64, SEED = 3 };

typedef struct storyteller {
    gumbel_program *program;
    gumbel_tokenizer *tokenizer;
    gumbel_engine *engine;
    gumbel_session *session;
    int32_t prompt[PROMPT_TOKENS];
    size_t prompt_count;
} storyteller;

static gumbel_error error;

static void open_storyteller(storyteller *s, const char *model) {
    static const char begin[] = "Once upon a time";
    const gumbel_encode_options plain = {.size = sizeof plain, .add_special = true};
    char checkpoint[512];
    const char *path = temporary_path("bundled.gumbel");
    snprintf(checkpoint, sizeof checkpoint, "%s/%s", test_models_folder, model);
    assert_ok(gumbel_export(checkpoint, path, NULL, &error), &error);
    assert_ok(gumbel_program_open(path, &s->program, &error), &error);
    assert_ok(gumbel_tokenizer_create(s->program, &s->tokenizer, &error), &error);
    assert_ok(gumbel_engine_create(s->program, NULL, &s->engine, &error), &error);
    assert_ok(gumbel_session_create(s->engine, &s->session, &error), &error);
    assert_ok(gumbel_encode(s->tokenizer, begin, sizeof begin - 1, &plain, s->prompt, PROMPT_TOKENS,
                            &s->prompt_count, &error),
              &error);
}

static void close_storyteller(storyteller *s) {
    gumbel_engine_destroy(s->engine);
    gumbel_tokenizer_destroy(s->tokenizer);
    gumbel_program_close(s->program);
    empty_temporary_directory();
}

typedef struct story {
    char text[STORY_BYTES];
    size_t length;
    gumbel_generated last;
} story;

static void tell(storyteller *s, const char *stop, bool included, story *told) {
    gumbel_generate_options options = {.size = sizeof options,
                                       .max_new_tokens = STORY_TOKENS,
                                       .tokenizer = s->tokenizer,
                                       .stop_strings = &stop,
                                       .stop_string_count = stop ? 1 : 0,
                                       .include_stop_string = included};
    gumbel_session_reset(s->session);
    gumbel_session_set_seed(s->session, SEED);
    *told = (story){.last = {.size = sizeof told->last}};
    assert_ok(gumbel_generate(s->session, s->prompt, s->prompt_count, &options, &error), &error);
    while (!told->last.finish) {
        assert_ok(gumbel_next(s->session, &told->last, &error), &error);
        assert_true(told->length + told->last.text_length < STORY_BYTES);
        memcpy(told->text + told->length, told->last.text, told->last.text_length);
        told->length += told->last.text_length;
    }
}

/* Pieces of many lengths from all over the story, so that they begin and end within tokens and between them.
 */
static void stories_end_before_the_string(void **state) {
    storyteller s = {0};
    story whole, cut;
    char stop[STORY_BYTES];
    open_storyteller(&s, *state);
    tell(&s, NULL, false, &whole);
    assert_true(whole.length > 2 * STORY_TOKENS);
    for (size_t begin = 0; begin < whole.length; begin += 3) {
        size_t left = whole.length - begin, size = 1 + begin * 7 % 23;
        snprintf(stop, sizeof stop, "%.*s", (int)(size < left ? size : left), whole.text + begin);
        const char *const stops[] = {stop};
        naive_stop expected = naive_find(stops, 1, whole.text, whole.length);
        const bool included = begin % 2;
        tell(&s, stop, included, &cut);
        assert_int_equal(cut.last.finish, GUMBEL_FINISH_STOP_STRING);
        assert_int_equal(cut.length, included ? expected.end : expected.begin);
        assert_memory_equal(cut.text, whole.text, cut.length);
    }
    close_storyteller(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(stories_end_before_the_string, "gemma4-tiny"),
        cmocka_unit_test_prestate(stories_end_before_the_string, "qwen3_5-moe-tiny"),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
