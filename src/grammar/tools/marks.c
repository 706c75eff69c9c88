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

/* Where the beginning is no token: bytes without it, or that do not begin so. Special tokens are not among
 * them. */
static gb_expression without_text(gb_expressions *expressions, gb_form_text begin, bool is_alone) {
    static const uint32_t every_byte[8] = {~0u, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u};
    const gb_expression any =
        gb_express_repeat(expressions, gb_express_byte_set(expressions, every_byte), 0, GB_NO_END);
    size_t size = begin.length;
    const char *line = memchr(begin.text, '\n', begin.length);
    if (line && line > begin.text)
        size = (size_t)(line - begin.text);
    const gb_expression before = is_alone ? gb_express_empty(expressions) : any;
    const gb_expression items[] = {before, gb_express_bytes(expressions, begin.text, size), any};
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
