/* SPDX-License-Identifier: Apache-2.0
 *
 * Texts of reply formats, in which special tokens stand.
 */
#include "base/memory.h"
#include "grammar/tools/tools.h"
#include "text/reply/reply_format.h"
#include "text/tokenizer/tokenizer.h"

#include <string.h>

enum { LONGEST_MARK = 64 };

int32_t gb_find_mark(const gumbel_tokenizer *tokenizer, const char *text, size_t length, size_t *size) {
    const gb_vocabulary *vocabulary = &tokenizer->vocabulary;
    for (*size = length < LONGEST_MARK ? length : LONGEST_MARK; *size > 0; --*size) {
        const int32_t token = gb_vocabulary_find(vocabulary, text, *size);
        if (token >= 0 && !gb_is_ordinary(vocabulary, token))
            return token;
    }
    return -1;
}

gb_expression gb_express_marked(const gb_tool_writer *writer, const char *text, size_t length) {
    gb_expressions *expressions = writer->expressions;
    gb_expression parts = gb_express_empty(expressions);
    size_t plain = 0, size;
    for (size_t at = 0; at <= length; at += size ? size : 1) {
        const int32_t mark = gb_find_mark(writer->tokenizer, text + at, length - at, &size);
        if (mark < 0 && at < length)
            continue;
        const gb_expression items[] = {parts, gb_express_bytes(expressions, text + plain, at - plain),
                                       mark < 0 ? gb_express_empty(expressions)
                                                : gb_express_token(expressions, (uint32_t)mark)};
        parts = gb_express_sequence(expressions, items, 3);
        plain = at + size;
    }
    return parts;
}

static gb_expression any_of(gb_expressions *expressions, const char *bytes) {
    uint32_t set[8] = {0};
    for (; *bytes; bytes++)
        set[(uint8_t)*bytes / 32] |= UINT32_C(1) << (uint8_t)*bytes % 32;
    return gb_express_repeat(expressions, gb_express_byte_set(expressions, set), 0, GB_NO_END);
}

/* The beginning of a JSON value, with white space where there may be some. */
static gb_expression spaced(gb_expressions *expressions, gb_form_text text) {
    const gb_expression space = any_of(expressions, " \t\r\n");
    gb_expression all = gb_express_empty(expressions);
    bool is_string = false;
    for (size_t i = 0; i < text.length; i++) {
        const bool is_space = strchr(" \t\r\n", text.text[i]) != NULL;
        if (is_space && !is_string)
            continue;
        const gb_expression items[] = {all, is_string ? gb_express_empty(expressions) : space,
                                       gb_express_bytes(expressions, text.text + i, 1)};
        all = gb_express_sequence(expressions, items, 3);
        is_string ^= text.text[i] == '"';
    }
    return all;
}

/* Up to its first line's end, which need not follow. */
static gb_expression first_line(gb_expressions *expressions, gb_form_text text) {
    const char *line = memchr(text.text, '\n', text.length);
    return gb_express_bytes(expressions, text.text,
                            line && line > text.text ? (size_t)(line - text.text) : text.length);
}

/* Where the beginning is no token: bytes without it, or that do not begin so. Special tokens are not among
 * them. */
static gb_expression without_text(gb_expressions *expressions, gb_form_text begin, bool is_alone) {
    static const uint32_t every_byte[8] = {~0u, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u};
    const gb_expression any =
        gb_express_repeat(expressions, gb_express_byte_set(expressions, every_byte), 0, GB_NO_END);
    const gb_expression items[] = {is_alone ? gb_express_empty(expressions) : any,
                                   is_alone ? spaced(expressions, begin) : first_line(expressions, begin),
                                   any};
    return gb_express_except(expressions, any, gb_express_sequence(expressions, items, 3));
}

gb_expression gb_express_free_text(const gb_tool_writer *writer) {
    const gb_form_text begin = writer->field->written.call[0];
    size_t size;
    const int32_t mark = gb_find_mark(writer->tokenizer, begin.text, begin.length, &size);
    if (mark < 0)
        return without_text(writer->expressions, begin, writer->field->written.is_alone);
    return gb_express_repeat(writer->expressions, gb_express_other_token(writer->expressions, (uint32_t)mark),
                             0, GB_NO_END);
}
