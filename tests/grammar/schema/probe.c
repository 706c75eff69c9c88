/* SPDX-License-Identifier: Apache-2.0
 *
 * Answers questions about schemas, one JSON object a line, for tests in Python:
 *   {"schema": ..., "options": {"space": "flexible"|"none"|"single", "longest_space": n, "in_order": b,
 *    "one_of_as_any_of": b, "strict": b}, "texts": [...], "walks": n, "seed": n, "masks": b}
 * It writes {"error": text}, or {"accepted": [bool, a text], "walks": [text], "masks": [[hex, a prefix], a
 * text]}: a walk takes any byte that is allowed until it may end; a mask is 256 bits, bit 0 of byte 0 the
 * first, and a 257th in a last digit for the end.
 */
#include "base/byte_buffer.h"
#include "grammar/matcher.h"
#include "grammar/schema/schema.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST_WALK = 4000 };

typedef struct subject {
    gb_grammar *grammar;
    gb_matcher *matcher;
    uint64_t random;
} subject;

static gb_schema_options read_options(const json_t *json) {
    const char *space = json_string_value(json_object_get(json, "space"));
    return (gb_schema_options){.space = space && !strcmp(space, "none")     ? GB_SPACE_NONE
                                        : space && !strcmp(space, "single") ? GB_SPACE_SINGLE
                                                                            : GB_SPACE_FLEXIBLE,
                               .longest_space =
                                   (uint32_t)json_integer_value(json_object_get(json, "longest_space")),
                               .in_order = json_is_true(json_object_get(json, "in_order")),
                               .one_of_as_any_of = json_is_true(json_object_get(json, "one_of_as_any_of")),
                               .strict = json_is_true(json_object_get(json, "strict"))};
}

static gumbel_status open_probe(subject *probe, const json_t *question, gumbel_error *error) {
    const gb_schema_options options = read_options(json_object_get(question, "options"));
    gb_expressions *expressions = gb_expressions_create();
    const gb_expression root =
        gb_schema_express(expressions, json_object_get(question, "schema"), &options, error);
    gumbel_status status = root ? gb_grammar_compile(expressions, root, NULL, &probe->grammar, error)
                                : gb_expressions_error(expressions, error);
    gb_expressions_destroy(expressions);
    if (status == GUMBEL_OK)
        status = gb_matcher_create(probe->grammar, NULL, NULL, &probe->matcher, error);
    return status;
}

static void close_probe(subject *probe) {
    gb_matcher_destroy(probe->matcher);
    gb_grammar_destroy(probe->grammar);
}

static uint32_t draw(subject *probe, uint32_t count) {
    probe->random = probe->random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(probe->random >> 33) % count;
}

static void start_again(subject *probe) {
    gumbel_error error;
    gb_matcher_destroy(probe->matcher);
    if (gb_matcher_create(probe->grammar, NULL, NULL, &probe->matcher, &error) != GUMBEL_OK) {
        fprintf(stderr, "%s\n", error.message);
        exit(1);
    }
}

static bool accepts(subject *probe, const char *text, size_t length) {
    start_again(probe);
    for (size_t i = 0; i < length; i++)
        if (!gb_matcher_accept_byte(probe->matcher, (uint8_t)text[i]))
            return false;
    return gb_matcher_may_end(probe->matcher);
}

static size_t list_allowed(subject *probe, uint8_t allowed[256]) {
    size_t count = 0;
    for (unsigned byte = 0; byte < 256; byte++)
        if (gb_matcher_accept_byte(probe->matcher, (uint8_t)byte)) {
            gb_matcher_rollback(probe->matcher, 1);
            allowed[count++] = (uint8_t)byte;
        }
    return count;
}

/* Bytes that end something are preferred as the walk gets longer. */
static uint8_t choose(subject *probe, const uint8_t *allowed, size_t count, size_t length) {
    for (size_t i = 0; i < count && draw(probe, 100) < length; i++)
        if (strchr("\"]},:", allowed[i]) && draw(probe, 3))
            return allowed[i];
    return allowed[draw(probe, (uint32_t)count)];
}

static json_t *walk(subject *probe) {
    gb_byte_buffer text = {0};
    uint8_t allowed[256];
    start_again(probe);
    while (text.size < LONGEST_WALK) {
        const size_t count = list_allowed(probe, allowed);
        const bool may_end = gb_matcher_may_end(probe->matcher);
        if (count == 0 || (may_end && draw(probe, 4) == 0))
            break;
        const uint8_t byte = choose(probe, allowed, count, text.size);
        gb_matcher_accept_byte(probe->matcher, byte);
        gb_buffer_append(&text, &byte, 1);
    }
    const bool is_whole = gb_matcher_may_end(probe->matcher);
    json_t *result =
        json_pack("[b, o]", is_whole, json_stringn(text.data ? (char *)text.data : "", text.size));
    gb_buffer_free(&text);
    return result ? result : json_pack("[b, s]", 0, "");
}

static json_t *mask(subject *probe) {
    uint8_t allowed[256], bits[32] = {0};
    char text[66];
    const size_t count = list_allowed(probe, allowed);
    for (size_t i = 0; i < count; i++)
        bits[allowed[i] / 8] |= (uint8_t)(1 << allowed[i] % 8);
    for (size_t i = 0; i < sizeof bits; i++)
        snprintf(text + 2 * i, 3, "%02x", bits[i]);
    text[64] = gb_matcher_may_end(probe->matcher) ? '1' : '0';
    text[65] = 0;
    return json_string(text);
}

/* Of each prefix of the text, as far as it is allowed. */
static json_t *masks(subject *probe, const char *text, size_t length) {
    json_t *list = json_array();
    start_again(probe);
    json_array_append_new(list, mask(probe));
    for (size_t i = 0; i < length && gb_matcher_accept_byte(probe->matcher, (uint8_t)text[i]); i++)
        json_array_append_new(list, mask(probe));
    return list;
}

static json_t *answer(const json_t *question) {
    subject probe = {.random = (uint64_t)json_integer_value(json_object_get(question, "seed"))};
    gumbel_error error;
    if (open_probe(&probe, question, &error) != GUMBEL_OK) {
        close_probe(&probe);
        return json_pack("{s:i, s:s}", "status", (int)error.status, "error", error.message);
    }
    json_t *result = json_pack("{s:[], s:[], s:[]}", "accepted", "walks", "masks");
    const json_t *texts = json_object_get(question, "texts");
    for (size_t i = 0; i < json_array_size(texts); i++) {
        const json_t *text = json_array_get(texts, i);
        const char *bytes = json_string_value(text);
        const size_t length = json_string_length(text);
        json_array_append_new(json_object_get(result, "accepted"),
                              json_boolean(accepts(&probe, bytes, length)));
        if (json_is_true(json_object_get(question, "masks")))
            json_array_append_new(json_object_get(result, "masks"), masks(&probe, bytes, length));
    }
    for (json_int_t i = json_integer_value(json_object_get(question, "walks")); i > 0; i--)
        json_array_append_new(json_object_get(result, "walks"), walk(&probe));
    close_probe(&probe);
    return result;
}

int main(void) {
    char *line = NULL;
    size_t capacity = 0;
    ssize_t length;
    while ((length = getline(&line, &capacity, stdin)) > 0) {
        json_error_t reason;
        json_t *question = json_loadb(line, (size_t)length, JSON_ALLOW_NUL | JSON_DECODE_ANY, &reason);
        json_t *result = question ? answer(question) : json_pack("{s:s}", "error", reason.text);
        json_dumpf(result, stdout, JSON_COMPACT);
        putchar('\n');
        fflush(stdout);
        json_decref(question);
        json_decref(result);
    }
    free(line);
    return 0;
}
