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
    if (!text) // what a reply format leaves out
        return parts;
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
