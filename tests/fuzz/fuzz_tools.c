/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes as options and a list of tools, for both families: refused with a message, or followed without a
 * dead end; an answer of calls is read as calls.
 */
#include "gumbel.h"
#include "support/paths.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_STEPS = 64, MOST_WORDS = 256, MOST_BRACKETS = 48 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const gumbel_tokenizer *tokenizer_of(bool is_qwen) {
    static gumbel_tokenizer *tokenizers[2];
    gumbel_error error;
    const char *path = is_qwen ? bundled_model("qwen3_5-moe-tiny") : bundled_model("gemma4-tiny");
    if (!tokenizers[is_qwen] && gumbel_export_tokenizer(path, &tokenizers[is_qwen], &error) != GUMBEL_OK)
        abort();
    return tokenizers[is_qwen];
}

/* An allowed token from start on, around; -1: none is, or it is not known. */
static int32_t choose(gumbel_matcher *matcher, uint32_t start, bool *is_limited) {
    uint32_t words[MOST_WORDS];
    if (gumbel_matcher_mask(matcher, words, MOST_WORDS, NULL) != GUMBEL_OK) {
        *is_limited = true;
        return -1;
    }
    for (uint32_t i = 0; i < MOST_WORDS * 32; i++) {
        const uint32_t token = (start + i) % (MOST_WORDS * 32);
        if (words[token / 32] >> token % 32 & 1)
            return (int32_t)token;
    }
    return -1;
}

/* Calls alone, unless they are nested deeper than a reply reads. */
static void check_calls(gumbel_reply *reply) {
    gumbel_error error;
    size_t brackets = 0;
    if (gumbel_reply_end(reply, &error) != GUMBEL_OK || gumbel_reply_part_count(reply) == 0)
        abort();
    for (size_t i = 0; i < gumbel_reply_part_count(reply); i++) {
        gumbel_reply_part part = {.size = sizeof part};
        gumbel_reply_get_part(reply, i, &part, &error);
        for (size_t k = 0; k < part.raw_length; k++)
            brackets += part.raw[k] == '[' || part.raw[k] == '{';
        if (part.type != GUMBEL_PART_TOOL_CALL && brackets < MOST_BRACKETS) {
            fprintf(stderr, "%.*s\n", (int)part.raw_length, part.raw);
            abort();
        }
    }
}

static void follow(const gumbel_tokenizer *tokenizer, const gumbel_grammar *grammar, const char *tools,
                   bool is_required, const uint8_t *data, size_t size) {
    const gumbel_reply_options options = {.size = sizeof options, .tools = tools};
    gumbel_matcher *matcher;
    gumbel_reply *reply;
    gumbel_error error;
    if (gumbel_matcher_create(grammar, NULL, 0, &matcher, &error) != GUMBEL_OK)
        return;
    if (gumbel_reply_create(tokenizer, &options, &reply, &error) != GUMBEL_OK)
        abort();
    bool is_limited = false;
    size_t i = 0;
    for (; i < MOST_STEPS && !(i > 0 && gumbel_matcher_may_end(matcher) && data[i % size] % 2); i++) {
        const int32_t token = choose(matcher, (uint32_t)(data[i % size] * 37 + i), &is_limited);
        if (token < 0)
            break;
        if (gumbel_matcher_accept(matcher, token, &error) != GUMBEL_OK && error.status != GUMBEL_ERROR_LIMIT)
            abort();
        gumbel_reply_add_token(reply, token, &error);
    }
    if (i < MOST_STEPS && !is_limited && !gumbel_matcher_may_end(matcher))
        abort();
    if (is_required && i > 0 && gumbel_matcher_may_end(matcher))
        check_calls(reply);
    gumbel_reply_destroy(reply);
    gumbel_matcher_destroy(matcher);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0)
        return 0;
    char *tools = malloc(size);
    if (!tools)
        return 0;
    memcpy(tools, data + 1, size - 1);
    tools[size - 1] = '\0';
    const gumbel_tokenizer *tokenizer = tokenizer_of(data[0] & 1);
    const gumbel_grammar_options options = {.size = sizeof options,
                                            .kind = GUMBEL_GRAMMAR_TEXT,
                                            .tools = tools,
                                            .tool_choice = (gumbel_tool_choice)(data[0] >> 1 & 3),
                                            .single_call = data[0] & 8};
    gumbel_grammar *grammar;
    gumbel_error error = {0};
    const gumbel_status status = gumbel_grammar_create(tokenizer, &options, &grammar, &error);
    if (status != GUMBEL_OK && (error.status != status || !error.message[0] || grammar))
        abort();
    if (grammar)
        follow(tokenizer, grammar, tools, options.tool_choice == GUMBEL_TOOLS_REQUIRED, data, size);
    gumbel_grammar_destroy(grammar);
    free(tools);
    return 0;
}
