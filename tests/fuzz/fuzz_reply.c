/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes as a reply, in pieces that bytes 0xFF cut, or as tokens. Taken apart in pieces it must say what
 * it says whole, and nothing of it may be lost. The first byte chooses the format: a known one, or the JSON
 * up to the first zero byte.
 */
#include "export/text/reply_formats.h"
#include "support/paths.h"
#include "support/reply_text.h"
#include "text/base/utf8.h"
#include "text/reply/use_format.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
    OWN = 2,
    FORMATS = 6,
    MORE = 3,
    IS_TOKENS = 8,
    IS_SHORT = 16,
    HAS_PROMPT = 32,
    IS_MORE = 64,
    MOST_INPUT = 8192
};

static const char TOOLS[] =
    "[{\"name\":\"f\",\"parameters\":{\"properties\":{\"a\":{\"type\":\"integer\"},\"b\":{\"type\":["
    "\"boolean\","
    "\"null\"]},\"c\":{\"anyOf\":[{\"type\":\"object\"},{\"type\":\"number\"}]},\"d\":{\"$ref\":\"#\"}}}}]";

static void require(gumbel_status status, const gumbel_error *error) {
    if (status == GUMBEL_OK)
        return;
    fprintf(stderr, "%s\n", error->message);
    abort();
}

static gumbel_tokenizer *tokenizer_once(void) {
    static gumbel_tokenizer *tokenizer;
    gumbel_error error;
    if (!tokenizer)
        require(gumbel_export_tokenizer(bundled_model("gemma4-tiny"), &tokenizer, &error), &error);
    return tokenizer;
}

/* Gives the tokenizer the format; *used is what of the bytes was its JSON. False: it is none. */
static bool use_format(gumbel_tokenizer *tokenizer, int which, const uint8_t *data, size_t size,
                       size_t *used) {
    static int last = -1;
    static const char *const names[FORMATS + MORE] = {"gemma4", "qwen3_5", "",      "qwen3",       "llama3",
                                                      "plain",  "harmony", "think", "muse_glimmer"};
    const char *known = which == OWN ? (const char *)data : gb_known_reply_format(names[which]);
    const size_t length = which == OWN ? strnlen(known, size) : strlen(known);
    *used = which == OWN ? length + (length < size) : 0;
    if (which == last && which != OWN)
        return true;
    last = which;
    return gb_tokenizer_use_reply_format(tokenizer, known, length, "format", NULL) == GUMBEL_OK;
}

static gumbel_reply *begin(const gumbel_tokenizer *tokenizer, int flags) {
    static const char prompt[] = "<|turn>model\n<|im_start|>assistant\n<think>\n";
    gumbel_reply *reply;
    gumbel_error error;
    const gumbel_reply_options options = {.size = sizeof options,
                                          .tools = TOOLS,
                                          .prompt_text = prompt,
                                          .prompt_text_length = flags & HAS_PROMPT ? strlen(prompt) : 0,
                                          .max_call_bytes = flags & IS_SHORT ? 40 : 0};
    require(gumbel_reply_create(tokenizer, &options, &reply, &error), &error);
    return reply;
}

static void finish(gumbel_reply *reply, joined_deltas *joined, const gb_byte_buffer *text,
                   gb_byte_buffer *description) {
    gumbel_error error;
    require(gumbel_reply_end(reply, &error), &error);
    join_deltas(reply, joined);
    describe_reply(reply, joined, (const char *)text->data, text->size, description);
    free_deltas(joined);
    gumbel_reply_destroy(reply);
}

static void add(gumbel_reply *reply, const uint8_t *data, size_t size, joined_deltas *joined) {
    gumbel_error error;
    require(gumbel_reply_add_text(reply, (const char *)data, size, &error), &error);
    join_deltas(reply, joined);
}

/* The bytes without cuts, as the reply is to have them. */
static gb_byte_buffer join_pieces(const uint8_t *data, size_t size) {
    gb_byte_buffer bytes = {0}, text = {0};
    for (size_t i = 0; i < size; i++)
        if (data[i] != 0xFF)
            gb_buffer_append(&bytes, data + i, 1);
    gb_utf8_append_repaired(&text, bytes.data ? (const char *)bytes.data : "", bytes.size);
    gb_buffer_free(&bytes);
    return text;
}

static void compare(const gb_byte_buffer *a, const gb_byte_buffer *b) {
    if (a->size == b->size && (a->size == 0 || memcmp(a->data, b->data, a->size) == 0))
        return;
    fprintf(stderr, "in pieces:\n%.*s\nwhole:\n%.*s\n", (int)a->size, (const char *)a->data, (int)b->size,
            (const char *)b->data);
    abort();
}

static void read_text(const gumbel_tokenizer *tokenizer, int flags, const uint8_t *data, size_t size,
                      bool is_known) {
    static joined_deltas joined;
    gb_byte_buffer text = join_pieces(data, size), pieces = {0}, whole = {0};
    gumbel_reply *reply = begin(tokenizer, flags);
    for (size_t at = 0; at < size;) {
        const uint8_t *cut = memchr(data + at, 0xFF, size - at);
        const size_t length = cut ? (size_t)(cut - data) - at : size - at;
        add(reply, data + at, length, &joined);
        at += length + 1;
    }
    finish(reply, &joined, &text, &pieces);
    if (is_known) { /* the steps that a search may take depend on the pieces */
        reply = begin(tokenizer, flags);
        add(reply, text.data ? text.data : (const uint8_t *)"", text.size, &joined);
        finish(reply, &joined, &text, &whole);
        compare(&pieces, &whole);
    }
    gb_buffer_free(&text);
    gb_buffer_free(&pieces);
    gb_buffer_free(&whole);
}

static void append_piece(gb_byte_buffer *text, const char *piece, size_t length) {
    gb_buffer_append(text, piece, length);
}

static void read_tokens(const gumbel_tokenizer *tokenizer, int flags, const uint8_t *data, size_t size) {
    static joined_deltas joined;
    gb_byte_buffer text = {0}, description = {0};
    gumbel_reply *reply = begin(tokenizer, flags);
    gumbel_detokenizer *detokenizer;
    gumbel_error error;
    const char *piece;
    size_t length;
    require(gumbel_detokenizer_create(tokenizer, true, &detokenizer, &error), &error);
    for (size_t i = 0; i + 1 < size; i += 2) {
        /* Small numbers are special tokens. */
        const uint32_t number = data[i] < 128 ? data[i + 1] % 20U : data[i] * 256U + data[i + 1];
        const int32_t token = (int32_t)(number % tokenizer->data.token_count);
        require(gumbel_detokenize(detokenizer, token, &piece, &length, &error), &error);
        append_piece(&text, piece, length);
        require(gumbel_reply_add_token(reply, token, &error), &error);
        if (data[i] & 1)
            join_deltas(reply, &joined);
    }
    gumbel_detokenize_end(detokenizer, &piece, &length);
    append_piece(&text, piece, length);
    finish(reply, &joined, &text, &description);
    gumbel_detokenizer_destroy(detokenizer);
    gb_buffer_free(&text);
    gb_buffer_free(&description);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 1 || size > MOST_INPUT)
        return 0;
    gumbel_tokenizer *tokenizer = tokenizer_once();
    const int flags = data[0], which = flags & IS_MORE ? FORMATS + (flags & 7) % MORE : (flags & 7) % FORMATS;
    size_t used;
    if (!use_format(tokenizer, which, data + 1, size - 1, &used))
        return 0;
    if (flags & IS_TOKENS)
        read_tokens(tokenizer, flags, data + 1 + used, size - 1 - used);
    else
        read_text(tokenizer, flags, data + 1 + used, size - 1 - used, which != OWN);
    return 0;
}
