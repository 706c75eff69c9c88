/* SPDX-License-Identifier: Apache-2.0 */
#include "text/reply/use_format.h"

#include "base/file_map.h"
#include "base/memory.h"
#include "text/reply/marked_text.h"
#include "text/reply/reply_format.h"

/* Whether a text that is spelled so can only be meant as this token: a special one, or one in brackets. White
 * space that is an added token may also be spelled by others. */
static bool is_mark(const char *text, size_t length, uint32_t flags) {
    const bool has_brackets = length > 2 && ((text[0] == '<' && text[length - 1] == '>') ||
                                             (text[0] == '[' && text[length - 1] == ']'));
    return length > 0 && ((flags & GB_ADDED_SPECIAL) || has_brackets);
}

static gumbel_status find_marks(const gb_tokenizer_data *data, const gb_reply_format *format, gb_mark **marks,
                                size_t *count, gumbel_error *error) {
    *count = 0;
    *marks = gb_allocate(data->added_count ? data->added_count : 1, sizeof **marks);
    if (!*marks)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for a reply format");
    for (uint32_t i = 0; i < data->added_count; i++) {
        const gb_added_token added = gb_added_at(data, i);
        size_t length;
        const char *text = gb_token_text(data, added.id, &length);
        if (is_mark(text, length, added.flags) && gb_reply_format_mentions(format, text, length))
            (*marks)[(*count)++] = (gb_mark){text, length, added.id};
    }
    return GUMBEL_OK;
}

gumbel_status gb_tokenizer_use_reply_format(gumbel_tokenizer *tokenizer, const char *json, size_t length,
                                            const char *name, gumbel_error *error) {
    gb_reply_format *format;
    gb_mark *marks;
    size_t count;
    GB_TRY(gb_reply_format_create(json, length, name, &format, error));
    gumbel_status status = find_marks(&tokenizer->data, format, &marks, &count, error);
    if (status != GUMBEL_OK) {
        gb_reply_format_destroy(format);
        return status;
    }
    gb_tokenizer_drop_reply_format(tokenizer);
    tokenizer->reply_format = format;
    tokenizer->reply_marks = marks;
    tokenizer->reply_mark_count = count;
    return GUMBEL_OK;
}

void gb_tokenizer_drop_reply_format(gumbel_tokenizer *tokenizer) {
    gb_reply_format_destroy(tokenizer->reply_format);
    gb_free(tokenizer->reply_marks);
    tokenizer->reply_format = NULL;
    tokenizer->reply_marks = NULL;
    tokenizer->reply_mark_count = 0;
}

gumbel_status gumbel_reply_format_load(gumbel_tokenizer *tokenizer, const char *path, gumbel_error *error) {
    char *text;
    size_t size;
    GB_TRY(gb_read_file(path, GB_MAX_REPLY_FORMAT, &text, &size, error));
    gumbel_status status = gb_tokenizer_use_reply_format(tokenizer, text, size, path, error);
    gb_free(text);
    return status;
}
