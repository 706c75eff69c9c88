/* SPDX-License-Identifier: Apache-2.0
 *
 * The streaming decoder. Tokens give their spelling with the decoder's replacements; byte tokens, and at byte
 * level all tokens, give bytes that gather until they are a character. Those that can no longer become part
 * of one give U+FFFD, one for each maximal subpart (Unicode 15, chapter 3.9). The `tokenizers` package gives
 * one for each byte of a run of byte tokens with a bad one, of which a stream has given out the beginning.
 */
#include "text/decode/detokenizer.h"

#include "base/memory.h"
#include "text/base/utf8.h"
#include "text/decode/stop_matcher.h"
#include "text/decode/token_bytes.h"
#include "text/reply/reasoning.h"
#include "text/tokenizer/tokenizer.h"

#include <string.h>

struct gumbel_detokenizer {
    const gumbel_tokenizer *tokenizer;
    bool show_special;
    char pending[4]; /* the first bytes of a character */
    size_t pending_size;
    gb_byte_buffer output, spare; /* have room for the longest output from the start */
    gb_stop_matcher *matcher;     /* NULL: no stop strings */
    int32_t *stop_tokens;         /* [stop_count] the special token spelled like the stop string, or -1 */
    size_t stop_count;
    gb_answer_start start; /* stop strings hold from there on */
};

/* Bytes that one token can give: its spelling after every replacement, and the pending bytes replaced. */
static uint64_t longest_output(const gb_tokenizer_data *data) {
    uint64_t longest = data->longest_token;
    for (uint32_t i = 0; i < data->decoder.count; i++)
        if (data->decoder.items[i].content_length > 1)
            longest *= data->decoder.items[i].content_length;
    if (gb_is_byte_level(data)) /* each of its bytes may be a broken one */
        longest *= strlen(GB_REPLACEMENT);
    return longest + sizeof(char[4]) * strlen(GB_REPLACEMENT);
}

gumbel_status gumbel_detokenizer_create(const gumbel_tokenizer *tokenizer, bool show_special,
                                        gumbel_detokenizer **detokenizer, gumbel_error *error) {
    uint64_t room = longest_output(&tokenizer->data);
    *detokenizer = NULL;
    gumbel_detokenizer *created = gb_allocate(1, sizeof *created);
    if (created && gb_grow((void **)&created->output.data, &created->output.capacity, room, 1) &&
        gb_grow((void **)&created->spare.data, &created->spare.capacity, room, 1)) {
        created->tokenizer = tokenizer;
        created->show_special = show_special;
        *detokenizer = created;
        return GUMBEL_OK;
    }
    gumbel_detokenizer_destroy(created);
    return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for a detokenizer");
}

void gumbel_detokenizer_destroy(gumbel_detokenizer *detokenizer) {
    if (!detokenizer)
        return;
    gb_buffer_free(&detokenizer->output);
    gb_buffer_free(&detokenizer->spare);
    gb_stop_matcher_destroy(detokenizer->matcher);
    gb_free(detokenizer->stop_tokens);
    gb_free(detokenizer);
}

/* ---- Stop strings -------------------------------------------------------------------------------------- */

static bool is_special(const gumbel_tokenizer *tokenizer, int32_t token) {
    return tokenizer->vocabulary.flags[token] & GB_ADDED_SPECIAL;
}

/* The special token that gives no text but is spelled just like the string, or -1. */
static int32_t hidden_token(const gumbel_detokenizer *detokenizer, const char *string) {
    int32_t token = detokenizer->show_special ? -1 : gumbel_token_id(detokenizer->tokenizer, string);
    return token >= 0 && is_special(detokenizer->tokenizer, token) ? token : -1;
}

gumbel_status gumbel_detokenizer_stop_at(gumbel_detokenizer *detokenizer, const char *const *strings,
                                         size_t count, bool included, gumbel_error *error) {
    gb_stop_matcher *matcher = NULL;
    int32_t *tokens = NULL;
    if (count > 0) {
        uint64_t longest = longest_output(&detokenizer->tokenizer->data);
        GB_TRY(gb_stop_matcher_create(strings, count, included, longest, &matcher, error));
        tokens = gb_allocate(count, sizeof *tokens);
        if (!tokens) {
            gb_stop_matcher_destroy(matcher);
            return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for %zu stop strings", count);
        }
    }
    for (size_t i = 0; i < count; i++)
        tokens[i] = hidden_token(detokenizer, strings[i]);
    gb_stop_matcher_destroy(detokenizer->matcher);
    gb_free(detokenizer->stop_tokens);
    detokenizer->matcher = matcher;
    detokenizer->stop_tokens = tokens;
    detokenizer->stop_count = count;
    detokenizer->pending_size = 0;
    detokenizer->start = (gb_answer_start){0};
    return GUMBEL_OK;
}

gumbel_status gumbel_detokenizer_stop_in_answer(gumbel_detokenizer *detokenizer, const int32_t *prompt,
                                                size_t count, gumbel_error *error) {
    return gb_await_answer(detokenizer->tokenizer, prompt, count, &detokenizer->start, error);
}

size_t gumbel_detokenizer_pending(const gumbel_detokenizer *detokenizer) {
    return detokenizer->pending_size;
}

int32_t gumbel_detokenizer_stopped(const gumbel_detokenizer *detokenizer) {
    return detokenizer->matcher ? gb_stop_matcher_found(detokenizer->matcher) : -1;
}

/* The number of the stop string that the token is by itself, or -1. */
static int32_t stop_of(const gumbel_detokenizer *detokenizer, int32_t token) {
    for (size_t i = 0; i < detokenizer->stop_count; i++)
        if (detokenizer->stop_tokens[i] == token)
            return (int32_t)i;
    return -1;
}

/* ---- Decoding ------------------------------------------------------------------------------------------ */

/* Gives up the first size pending bytes, which are one maximal subpart. */
static void replace_pending(gumbel_detokenizer *detokenizer, size_t size) {
    if (size > 0)
        gb_buffer_append(&detokenizer->output, GB_REPLACEMENT, strlen(GB_REPLACEMENT));
    detokenizer->pending_size -= size;
    memmove(detokenizer->pending, detokenizer->pending + size, detokenizer->pending_size);
}

static void add_byte(gumbel_detokenizer *detokenizer, int byte) {
    detokenizer->pending[detokenizer->pending_size++] = (char)byte;
    while (detokenizer->pending_size > 0) {
        size_t size;
        gb_utf8_state state = gb_utf8_next(detokenizer->pending, detokenizer->pending_size, &size);
        if (state == GB_UTF8_PARTIAL)
            return;
        if (state == GB_UTF8_BROKEN) {
            replace_pending(detokenizer, size);
            continue;
        }
        gb_buffer_append(&detokenizer->output, detokenizer->pending, size);
        detokenizer->pending_size = 0;
    }
}

/* Gives the token's bytes. Most tokens are whole characters, which need not wait. */
static void add_bytes(gumbel_detokenizer *detokenizer, const char *text, size_t length) {
    if (detokenizer->pending_size == 0 && gb_utf8_is_valid(text, length)) {
        gb_buffer_append(&detokenizer->output, text, length);
        return;
    }
    for (size_t i = 0; i < length; i++)
        add_byte(detokenizer, (uint8_t)text[i]);
}

static bool is_shown(const gumbel_detokenizer *detokenizer, int32_t token) {
    return detokenizer->show_special || !is_special(detokenizer->tokenizer, token);
}

/* Adds the token's text to the output. */
static void add_token(gumbel_detokenizer *detokenizer, const char *spelling, size_t length) {
    const gb_tokenizer_data *data = &detokenizer->tokenizer->data;
    const int byte = gb_token_byte(data, spelling, length);
    if (gb_is_byte_level(data)) {
        add_bytes(detokenizer, spelling, length);
    } else if (byte >= 0) {
        add_byte(detokenizer, byte);
    } else {
        replace_pending(detokenizer, detokenizer->pending_size);
        gb_append_spelling(data, spelling, length, &detokenizer->output, &detokenizer->spare);
    }
}

/* Gives out the output, or what the stop strings let through of it. */
static void take_text(gumbel_detokenizer *detokenizer, const char **text, size_t *length) {
    if (detokenizer->matcher) {
        gb_stop_matcher_take(detokenizer->matcher, text, length);
        return;
    }
    *text = (const char *)detokenizer->output.data;
    *length = detokenizer->output.size;
}

/* Passes the output, which a token gave (-1: none did), on to the stop strings. */
static void match_output(gumbel_detokenizer *detokenizer, int32_t token) {
    const char *text = (const char *)detokenizer->output.data;
    const size_t length = detokenizer->output.size;
    if (!detokenizer->matcher)
        return;
    const size_t before = gb_before_answer(&detokenizer->start, token, text, length);
    gb_stop_matcher_pass(detokenizer->matcher, text, before);
    gb_stop_matcher_add(detokenizer->matcher, text + before, length - before);
}

/* Passes on what is pending as well: no more follows. */
static void end_output(gumbel_detokenizer *detokenizer, int32_t token) {
    replace_pending(detokenizer, detokenizer->pending_size);
    match_output(detokenizer, token);
    if (detokenizer->matcher)
        gb_stop_matcher_flush(detokenizer->matcher);
}

gumbel_status gb_detokenize(gumbel_detokenizer *detokenizer, int32_t token, bool is_last, const char **text,
                            size_t *length, gumbel_error *error) {
    const gb_tokenizer_data *data = &detokenizer->tokenizer->data;
    uint32_t id_limit = detokenizer->tokenizer->id_limit;
    if (token < 0 || (uint32_t)token >= id_limit)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "token %d is not in the vocabulary of %u", token,
                       id_limit);
    size_t spelling_length = 0;
    const char *spelling = "";
    if ((uint32_t)token < data->token_count)
        spelling = gb_token_text(data, token, &spelling_length);
    const bool reasons = detokenizer->start.is_awaited && detokenizer->start.reasons;
    const int32_t stop = reasons ? -1 : stop_of(detokenizer, token);
    detokenizer->output.size = 0;
    if (spelling_length > 0 && is_shown(detokenizer, token))
        add_token(detokenizer, spelling, spelling_length);
    if (is_last || stop >= 0)
        end_output(detokenizer, token);
    else
        match_output(detokenizer, token);
    if (stop >= 0)
        gb_stop_matcher_stop(detokenizer->matcher, stop, spelling, spelling_length);
    take_text(detokenizer, text, length);
    return GUMBEL_OK;
}

gumbel_status gumbel_detokenize(gumbel_detokenizer *detokenizer, int32_t token, const char **text,
                                size_t *length, gumbel_error *error) {
    return gb_detokenize(detokenizer, token, false, text, length, error);
}

void gumbel_detokenize_end(gumbel_detokenizer *detokenizer, const char **text, size_t *length) {
    detokenizer->output.size = 0;
    end_output(detokenizer, -1);
    take_text(detokenizer, text, length);
    if (detokenizer->matcher)
        gb_stop_matcher_restart(detokenizer->matcher);
}
