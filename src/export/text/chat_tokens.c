/* SPDX-License-Identifier: Apache-2.0 */
#include "export/text/chat_tokens.h"

#include "text/base/utf8.h"
#include "text/chat/chat_render.h"
#include "text/tokenizer/tokenizer.h"

#include <string.h>

/* The special token that the text begins with, or -1; the longest of several. */
static int32_t special_at(const gumbel_tokenizer *tokenizer, const char *text, size_t length) {
    gb_literal_spans none = {0};
    const gb_added_tokens *const sets[] = {&tokenizer->raw_added, &tokenizer->normalized_added};
    for (size_t i = 0; i < 2; i++) {
        gb_added_cursor cursor = {0};
        gb_added_match match = gb_added_tokens_next(sets[i], text, length, &none, &cursor);
        if (match.id >= 0 && match.before.end == match.before.start)
            return match.id;
    }
    return -1;
}

/* Where the last part that comes from the messages ends: the answer. */
static size_t end_of_answer(const gb_jinja_output *output) {
    size_t end = output->taint ? output->length : 0;
    while (end > 0 && !output->taint[end - 1])
        end--;
    return end;
}

static void find_tokens(const gumbel_tokenizer *tokenizer, const gb_jinja_output *output, int32_t *first,
                        int32_t *stop) {
    const char *bos = json_string_value(json_object_get(tokenizer->chat.special_tokens, "bos_token"));
    size_t answer = end_of_answer(output), start = answer, end = output->length;
    if (bos && *bos && strncmp(output->text, bos, strlen(bos)) == 0)
        *first = gumbel_token_id(tokenizer, bos);
    gb_utf8_strip(output->text, &start, &end);
    if (answer > 0 && start < end)
        *stop = special_at(tokenizer, output->text + start, end - start);
}

gumbel_status gb_find_chat_tokens(const gumbel_tokenizer *tokenizer, int32_t *first, int32_t *stop,
                                  gumbel_error *error) {
    gumbel_message messages[] = {
        {.size = sizeof(gumbel_message), .role = "user", .content = "0"},
        {.size = sizeof(gumbel_message), .role = "assistant", .content = "0"},
    };
    gumbel_chat_options options = {.size = sizeof options, .no_generation_prompt = true};
    gb_jinja_output output = {0};
    *first = *stop = -1;
    gumbel_status status = gb_chat_render(&tokenizer->chat, messages, 2, &options, &output, error);
    if (status != GUMBEL_OK)
        return status == GUMBEL_ERROR_MEMORY ? status : GUMBEL_OK;
    find_tokens(tokenizer, &output, first, stop);
    gb_jinja_output_free(&output);
    return GUMBEL_OK;
}
