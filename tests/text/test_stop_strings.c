/* SPDX-License-Identifier: Apache-2.0
 *
 * The detokenizer with stop strings: what tokens give as text ends where the definition says, however the
 * text was cut into tokens.
 */
#include "golden.h"

#include "support/assertions.h"
#include "support/naive_stops.h"
#include "support/paths.h"
#include "text/decode/detokenizer.h"

enum { MOST_TOKENS = 256, MOST_BYTES = 1024 };

static const char TEXT[] =
    "Gr\xC3\xBC\xC3\x9F Gott: 5 \xE2\x82\xAC, \xF0\x9F\x98\x80\xF0\x9F\x98\x81 the end.";

static gumbel_error error;

typedef struct result {
    char text[MOST_BYTES];
    size_t length;
    int32_t stop;
} result;

static void append(result *r, const char *text, size_t length) {
    assert_true(gb_utf8_is_valid(text, length));
    assert_true(r->length + length <= MOST_BYTES);
    memcpy(r->text + r->length, text, length);
    r->length += length;
}

/* By gumbel_detokenize and gumbel_detokenize_end. */
static void decode_and_end(gumbel_detokenizer *detokenizer, const int32_t *ids, size_t count, result *r) {
    const char *text;
    size_t length;
    *r = (result){.length = 0};
    for (size_t i = 0; i < count; i++) {
        assert_ok(gumbel_detokenize(detokenizer, ids[i], &text, &length, &error), &error);
        append(r, text, length);
    }
    r->stop = gumbel_detokenizer_stopped(detokenizer);
    gumbel_detokenize_end(detokenizer, &text, &length);
    append(r, text, length);
    assert_int_equal(gumbel_detokenizer_stopped(detokenizer), -1);
}

/* By the last token that says it is the last, as gumbel_next does it. */
static void decode_to_last(gumbel_detokenizer *detokenizer, const int32_t *ids, size_t count, result *r) {
    const char *text;
    size_t length;
    *r = (result){.length = 0};
    for (size_t i = 0; i < count; i++) {
        assert_ok(gb_detokenize(detokenizer, ids[i], i + 1 == count, &text, &length, &error), &error);
        append(r, text, length);
    }
    r->stop = gumbel_detokenizer_stopped(detokenizer);
    gumbel_detokenize_end(detokenizer, &text, &length);
    assert_int_equal(length, 0);
}

static void expect(const result *r, const char *const *strings, size_t count, bool included) {
    naive_stop expected = naive_find(strings, count, TEXT, sizeof TEXT - 1);
    assert_int_equal(r->stop, expected.string);
    assert_int_equal(r->length, included ? expected.end : expected.begin);
    assert_memory_equal(r->text, TEXT, r->length);
}

/* The text in tokens: its first bytes one by one, then whatever the tokenizer makes of the rest. */
static size_t cut(const gumbel_tokenizer *tokenizer, size_t bytes, int32_t ids[MOST_TOKENS]) {
    const gb_vocabulary *vocabulary = &tokenizer->vocabulary;
    const int32_t *byte_ids =
        gb_is_byte_level(&tokenizer->data) ? vocabulary->one_byte : vocabulary->byte_tokens;
    size_t count;
    for (size_t i = 0; i < bytes; i++)
        ids[i] = byte_ids[(uint8_t)TEXT[i]];
    assert_ok(gumbel_encode(tokenizer, TEXT + bytes, sizeof TEXT - 1 - bytes, NULL, ids + bytes,
                            MOST_TOKENS - bytes, &count, &error),
              &error);
    return bytes + count;
}

static void check(const gumbel_tokenizer *tokenizer, const char *const *strings, size_t count) {
    gumbel_detokenizer *detokenizer;
    int32_t ids[MOST_TOKENS];
    result r;
    assert_ok(gumbel_detokenizer_create(tokenizer, false, &detokenizer, &error), &error);
    for (int included = 0; included < 2; included++) {
        assert_ok(gumbel_detokenizer_stop_at(detokenizer, strings, count, included, &error), &error);
        for (size_t bytes = 0; bytes < sizeof TEXT; bytes++) {
            if (((uint8_t)TEXT[bytes] & 0xC0) == 0x80) /* the rest would not be text */
                continue;
            size_t tokens = cut(tokenizer, bytes, ids);
            decode_and_end(detokenizer, ids, tokens, &r);
            expect(&r, strings, count, included);
            decode_to_last(detokenizer, ids, tokens, &r);
            expect(&r, strings, count, included);
        }
    }
    gumbel_detokenizer_destroy(detokenizer);
}

#define CHECK(tokenizer, ...)                                                                                \
    check(tokenizer, (const char *const[]){__VA_ARGS__},                                                     \
          sizeof(const char *const[]){__VA_ARGS__} / sizeof(char *))

static void every_cut_into_tokens(void **state) {
    gumbel_tokenizer *tokenizer = load_tokenizer(*state);
    CHECK(tokenizer, "Gott");
    CHECK(tokenizer, ": 5", "5 ", " ");
    CHECK(tokenizer, "\xE2\x82\xAC,");
    CHECK(tokenizer, "\xF0\x9F\x98\x81", "\xF0\x9F\x98\x80 ");
    CHECK(tokenizer, "the ends", "end.", "d.");
    CHECK(tokenizer, "nowhere", "end. ");
    for (size_t begin = 0; begin < sizeof TEXT - 1; begin += gb_utf8_size(TEXT[begin])) {
        char string[MOST_BYTES];
        size_t size = gb_utf8_size(TEXT[begin]);
        for (int characters = 1; characters <= 5 && begin + size < sizeof TEXT; characters++) {
            snprintf(string, sizeof string, "%.*s", (int)size, TEXT + begin);
            CHECK(tokenizer, string);
            size += gb_utf8_size(TEXT[begin + size]);
        }
    }
    gumbel_tokenizer_destroy(tokenizer);
}

/* An unfinished character is replaced at the end, and such a string can be looked for. */
static void broken_characters(void **state) {
    gumbel_tokenizer *tokenizer = load_tokenizer(*state);
    const int32_t *byte_ids = gb_is_byte_level(&tokenizer->data) ? tokenizer->vocabulary.one_byte
                                                                 : tokenizer->vocabulary.byte_tokens;
    const int32_t ids[] = {byte_ids['a'], byte_ids[0xE2]};
    gumbel_detokenizer *detokenizer;
    result r;
    assert_ok(gumbel_detokenizer_create(tokenizer, false, &detokenizer, &error), &error);
    assert_ok(gumbel_detokenizer_stop_at(detokenizer, (const char *const[]){"ab"}, 1, false, &error), &error);
    decode_to_last(detokenizer, ids, 2, &r);
    assert_int_equal(r.length, 4);
    assert_memory_equal(r.text, "a" GB_REPLACEMENT, 4);
    assert_ok(
        gumbel_detokenizer_stop_at(detokenizer, (const char *const[]){GB_REPLACEMENT}, 1, false, &error),
        &error);
    decode_to_last(detokenizer, ids, 2, &r);
    assert_int_equal(r.length, 1);
    assert_int_equal(r.stop, 0);
    gumbel_detokenizer_destroy(detokenizer);
    gumbel_tokenizer_destroy(tokenizer);
}

static int32_t special_token(const gumbel_tokenizer *tokenizer, char spelling[64]) {
    for (uint32_t i = 0; i < tokenizer->data.added_count; i++) {
        gb_added_token added = gb_added_at(&tokenizer->data, i);
        size_t length;
        const char *text = gb_token_text(&tokenizer->data, added.id, &length);
        if (!(added.flags & GB_ADDED_SPECIAL) || length >= 64)
            continue;
        snprintf(spelling, 64, "%.*s", (int)length, text);
        return added.id;
    }
    fail_msg("no special token");
    return -1;
}

/* Shown or not, the special token of that spelling ends the text; in plain text the spelling does. */
static void special_tokens(void **state) {
    gumbel_tokenizer *tokenizer = load_tokenizer(*state);
    char spelling[64], expected[80];
    const int32_t special = special_token(tokenizer, spelling);
    const int32_t *byte_ids = gb_is_byte_level(&tokenizer->data) ? tokenizer->vocabulary.one_byte
                                                                 : tokenizer->vocabulary.byte_tokens;
    const char *const strings[] = {"ab", spelling};
    const int32_t ids[] = {byte_ids['x'], byte_ids['a'], byte_ids[0xE2], special, byte_ids['b']};
    for (int kind = 0; kind < 4; kind++) {
        const bool shown = kind & 1, included = kind & 2;
        gumbel_detokenizer *detokenizer;
        result r;
        assert_ok(gumbel_detokenizer_create(tokenizer, shown, &detokenizer, &error), &error);
        assert_ok(gumbel_detokenizer_stop_at(detokenizer, strings, 2, included, &error), &error);
        decode_and_end(detokenizer, ids, 5, &r);
        assert_int_equal(r.stop, 1);
        snprintf(expected, sizeof expected, "xa" GB_REPLACEMENT "%s", included ? spelling : "");
        assert_int_equal(r.length, strlen(expected));
        assert_memory_equal(r.text, expected, r.length);
        gumbel_detokenizer_destroy(detokenizer);
    }
    gumbel_tokenizer_destroy(tokenizer);
}

/* A refusal changes nothing, an empty list ends it. */
static void strings_can_be_changed(void **state) {
    gumbel_tokenizer *tokenizer = load_tokenizer(*state);
    gumbel_detokenizer *detokenizer;
    int32_t ids[MOST_TOKENS];
    result r;
    const char *const gott[] = {"Gott"}, *const empty[] = {"end", ""};
    const size_t count = cut(tokenizer, 0, ids);
    assert_ok(gumbel_detokenizer_create(tokenizer, false, &detokenizer, &error), &error);
    assert_ok(gumbel_detokenizer_stop_at(detokenizer, gott, 1, false, &error), &error);
    assert_fails(gumbel_detokenizer_stop_at(detokenizer, empty, 2, false, &error), GUMBEL_ERROR_ARGUMENT,
                 &error, "stop string 1 of 2 is empty");
    decode_and_end(detokenizer, ids, count, &r);
    expect(&r, gott, 1, false);
    assert_ok(gumbel_detokenizer_stop_at(detokenizer, NULL, 0, false, &error), &error);
    decode_and_end(detokenizer, ids, count, &r);
    expect(&r, NULL, 0, false);
    assert_int_equal(r.stop, -1);
    gumbel_detokenizer_destroy(detokenizer);
    gumbel_tokenizer_destroy(tokenizer);
}

/* The text of a reply of Gemma 4's with a thought, up to the stop string; *stop: which one. */
static void decode_reply(const char *string, bool in_answer, char *text, int32_t *stop) {
    static const char reply[] = "<|channel>thought\nOne. Two.<channel|>\n Three. One.";
    const gumbel_encode_options parse = {.size = sizeof parse, .parse_special = true};
    gumbel_tokenizer *tokenizer;
    gumbel_detokenizer *detokenizer;
    int32_t ids[MOST_TOKENS];
    size_t count, length, used = 0;
    const char *piece;
    assert_ok(gumbel_export_tokenizer(bundled_model("gemma4-tiny"), &tokenizer, &error), &error);
    assert_ok(gumbel_encode(tokenizer, reply, sizeof reply - 1, &parse, ids, MOST_TOKENS, &count, &error),
              &error);
    assert_ok(gumbel_detokenizer_create(tokenizer, false, &detokenizer, &error), &error);
    assert_ok(gumbel_detokenizer_stop_at(detokenizer, &string, 1, false, &error), &error);
    if (in_answer)
        assert_ok(gumbel_detokenizer_stop_in_answer(detokenizer, ids, 0, &error), &error);
    for (size_t i = 0; i < count && gumbel_detokenizer_stopped(detokenizer) < 0; i++) {
        assert_ok(gumbel_detokenize(detokenizer, ids[i], &piece, &length, &error), &error);
        memcpy(text + used, piece, length);
        used += length;
    }
    *stop = gumbel_detokenizer_stopped(detokenizer);
    gumbel_detokenize_end(detokenizer, &piece, &length);
    memcpy(text + used, piece, *stop < 0 ? length : 0);
    text[used + (*stop < 0 ? length : 0)] = 0;
    gumbel_detokenizer_destroy(detokenizer);
    gumbel_tokenizer_destroy(tokenizer);
}

/* Not in reasoning, not in the white space behind it, and not at its mark. */
static void strings_hold_for_the_answer(void **state) {
    (void)state;
    static const struct {
        const char *string, *anywhere, *in_answer;
    } cases[] = {
        {"One.", "thought\n", "thought\nOne. Two.\n Three. "},
        {"\n", "thought", "thought\nOne. Two.\n Three. One."},
        {"<channel|>", "thought\nOne. Two.", "thought\nOne. Two.\n Three. One."},
        {" Three", "thought\nOne. Two.\n",
         "thought\nOne. Two.\n Three. One."}, /* the blank is no part of it */
        {"Three", "thought\nOne. Two.\n ", "thought\nOne. Two.\n "},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[MOST_BYTES];
        int32_t stop;
        decode_reply(cases[i].string, false, text, &stop);
        assert_string_equal(text, cases[i].anywhere);
        decode_reply(cases[i].string, true, text, &stop);
        assert_string_equal(text, cases[i].in_answer);
    }
}

#define FOR_BOTH(test)                                                                                       \
    cmocka_unit_test_prestate(test, (void *)(uintptr_t)DATA("gemma.tokenizer.json")),                        \
        cmocka_unit_test_prestate(test, (void *)(uintptr_t)DATA("qwen.tokenizer.json"))

int main(void) {
    const struct CMUnitTest tests[] = {
        FOR_BOTH(every_cut_into_tokens),
        FOR_BOTH(broken_characters),
        FOR_BOTH(special_tokens),
        FOR_BOTH(strings_can_be_changed),
        cmocka_unit_test(strings_hold_for_the_answer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
