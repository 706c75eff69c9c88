/* SPDX-License-Identifier: Apache-2.0 */
#define PCRE2_CODE_UNIT_WIDTH 8

#include "text/reply/pattern.h"

#include "base/byte_buffer.h"
#include "base/memory.h"
#include "base/status.h"

#include <pcre2.h>
#include <string.h>

/* Of one start of a match. A lazy group takes about a step for each byte: of a delimiter a few thousand, of a
 * call a megabyte. */
enum { MAX_GROWING_STEPS = 1 << 16, MAX_STEPS = 4 << 20, MAX_DEPTH = 100000, MAX_HEAP_KIBIBYTES = 64 << 10 };

struct gb_text_pattern {
    pcre2_code *code;
    char *plain; /* the expression without backslashes */
    size_t plain_length;
    const uint8_t *names; /* the code's table of group names */
    uint32_t name_count, name_size;
};

struct gb_pattern_matcher {
    pcre2_match_data *match;
    pcre2_match_context *limits;
};

/* ---- Compiling ----------------------------------------------------------------------------------------- */

static gumbel_status compile(const char *expression, const char *what, gb_text_pattern *pattern,
                             gumbel_error *error) {
    const uint32_t options = PCRE2_UTF | PCRE2_UCP | PCRE2_DOTALL | PCRE2_NEVER_BACKSLASH_C;
    int code;
    size_t offset;
    pcre2_compile_context *context = pcre2_compile_context_create(NULL);
    if (!context)
        return gb_no_memory(error, what);
    pcre2_set_newline(context, PCRE2_NEWLINE_LF);
    pattern->code =
        pcre2_compile((PCRE2_SPTR)expression, PCRE2_ZERO_TERMINATED, options, &code, &offset, context);
    pcre2_compile_context_free(context);
    if (pattern->code)
        return GUMBEL_OK;
    if (code == PCRE2_ERROR_HEAP_FAILED)
        return gb_no_memory(error, what);
    char reason[128] = "";
    pcre2_get_error_message(code, (PCRE2_UCHAR *)reason, sizeof reason);
    return gb_fail(error, GUMBEL_ERROR_FORMAT, "%s: \"%.200s\" does not compile: at byte %zu, %s", what,
                   expression, offset, reason);
}

static gumbel_status read_groups(gb_text_pattern *pattern, const char *what, gumbel_error *error) {
    uint32_t groups = 0;
    pcre2_pattern_info(pattern->code, PCRE2_INFO_CAPTURECOUNT, &groups);
    pcre2_pattern_info(pattern->code, PCRE2_INFO_NAMECOUNT, &pattern->name_count);
    pcre2_pattern_info(pattern->code, PCRE2_INFO_NAMEENTRYSIZE, &pattern->name_size);
    pcre2_pattern_info(pattern->code, PCRE2_INFO_NAMETABLE, &pattern->names);
    return groups < GB_MAX_REPLY_GROUPS
               ? GUMBEL_OK
               : gb_fail(error, GUMBEL_ERROR_FORMAT, "%s: %u groups, expected at most %d", what, groups,
                         GB_MAX_REPLY_GROUPS - 1);
}

static gumbel_status fill(const char *expression, const char *what, gb_text_pattern *pattern,
                          gumbel_error *error) {
    size_t length = strlen(expression);
    if (length > GB_MAX_REPLY_EXPRESSION)
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "%s: %zu bytes, expected at most %d", what, length,
                       GB_MAX_REPLY_EXPRESSION);
    pattern->plain = gb_copy_string(expression, length);
    if (!pattern->plain)
        return gb_no_memory(error, what);
    for (size_t i = 0; i < length; i++)
        if (expression[i] != '\\')
            pattern->plain[pattern->plain_length++] = expression[i];
    GB_TRY(compile(expression, what, pattern, error));
    return read_groups(pattern, what, error);
}

gumbel_status gb_pattern_create(const char *expression, const char *what, gb_text_pattern **pattern,
                                gumbel_error *error) {
    *pattern = NULL;
    gb_text_pattern *created = gb_allocate(1, sizeof *created);
    if (!created)
        return gb_no_memory(error, what);
    gumbel_status status = fill(expression, what, created, error);
    if (status == GUMBEL_OK)
        *pattern = created;
    else
        gb_pattern_destroy(created);
    return status;
}

/* ---- Literals ------------------------------------------------------------------------------------------ */

static void append_escaped(gb_byte_buffer *expression, const char *literal) {
    for (const char *c = literal; *c; c++) {
        const bool is_word = (*c >= '0' && *c <= '9') || (*c >= 'A' && *c <= 'Z') ||
                             (*c >= 'a' && *c <= 'z') || (uint8_t)*c >= 0x80;
        if (!is_word)
            gb_buffer_append(expression, "\\", 1);
        gb_buffer_append(expression, c, 1);
    }
}

static const json_t *literal_at(const json_t *literals, size_t i) {
    return json_is_array(literals) ? json_array_get(literals, i) : literals;
}

static gumbel_status check_literals(const json_t *literals, size_t count, const char *what,
                                    gumbel_error *error) {
    if (count == 0)
        return gb_fail(error, GUMBEL_ERROR_FORMAT, "%s: an empty list", what);
    for (size_t i = 0; i < count; i++) {
        const json_t *literal = literal_at(literals, i);
        if (!json_is_string(literal) || json_string_length(literal) == 0)
            return gb_fail(error, GUMBEL_ERROR_FORMAT,
                           "%s: expected a string that is not empty, or a list of them", what);
    }
    return count <= GB_MAX_REPLY_EXPRESSION
               ? GUMBEL_OK
               : gb_fail(error, GUMBEL_ERROR_FORMAT, "%s: %zu strings are too many", what, count);
}

/* The longest literal of at most `limit` bytes behind number `after` of those as long as `limit`; -1: none.
 */
static int next_longest(const json_t *literals, size_t count, size_t limit, int after) {
    int best = -1;
    size_t best_length = 0;
    for (size_t i = 0; i < count; i++) {
        const size_t length = json_string_length(literal_at(literals, i));
        const bool follows = length < limit || (length == limit && (int)i > after);
        if (follows && length > best_length) {
            best = (int)i;
            best_length = length;
        }
    }
    return best;
}

gumbel_status gb_pattern_create_literals(const json_t *literals, const char *what, gb_text_pattern **pattern,
                                         gumbel_error *error) {
    const size_t count = json_is_array(literals) ? json_array_size(literals) : 1;
    *pattern = NULL;
    GB_TRY(check_literals(literals, count, what, error));
    gb_byte_buffer expression = {0};
    size_t limit = SIZE_MAX;
    for (int i = -1; (i = next_longest(literals, count, limit, i)) >= 0;) {
        const json_t *literal = literal_at(literals, (size_t)i);
        limit = json_string_length(literal);
        if (expression.size > 0)
            gb_buffer_append(&expression, "|", 1);
        append_escaped(&expression, json_string_value(literal));
    }
    gb_buffer_append(&expression, "", 1);
    gumbel_status status = expression.failed
                               ? gb_no_memory(error, what)
                               : gb_pattern_create((const char *)expression.data, what, pattern, error);
    gb_buffer_free(&expression);
    return status;
}

void gb_pattern_destroy(gb_text_pattern *pattern) {
    if (!pattern)
        return;
    pcre2_code_free(pattern->code);
    gb_free(pattern->plain);
    gb_free(pattern);
}

bool gb_pattern_mentions(const gb_text_pattern *pattern, const char *text, size_t length) {
    for (size_t i = 0; length > 0 && i + length <= pattern->plain_length; i++)
        if (memcmp(pattern->plain + i, text, length) == 0)
            return true;
    return false;
}

/* ---- Searching ----------------------------------------------------------------------------------------- */

gumbel_status gb_pattern_matcher_create(gb_pattern_matcher **matcher, gumbel_error *error) {
    *matcher = gb_allocate(1, sizeof **matcher);
    if (*matcher) {
        (*matcher)->match = pcre2_match_data_create(GB_MAX_REPLY_GROUPS, NULL);
        (*matcher)->limits = pcre2_match_context_create(NULL);
        if ((*matcher)->match && (*matcher)->limits) {
            pcre2_set_depth_limit((*matcher)->limits, MAX_DEPTH);
            pcre2_set_heap_limit((*matcher)->limits, MAX_HEAP_KIBIBYTES);
            return GUMBEL_OK;
        }
    }
    gb_pattern_matcher_destroy(*matcher);
    *matcher = NULL;
    return gb_no_memory(error, "a matcher");
}

void gb_pattern_matcher_destroy(gb_pattern_matcher *matcher) {
    if (!matcher)
        return;
    pcre2_match_data_free(matcher->match);
    pcre2_match_context_free(matcher->limits);
    gb_free(matcher);
}

gb_text_match gb_pattern_find(const gb_text_pattern *pattern, gb_pattern_matcher *matcher, const char *text,
                              size_t length, size_t from, gb_search search) {
    static const uint32_t options[] = {[GB_SEARCH_WHOLE] = 0,
                                       [GB_SEARCH_GROWING] = PCRE2_PARTIAL_HARD,
                                       [GB_SEARCH_HERE] = PCRE2_ANCHORED,
                                       [GB_SEARCH_HERE_GROWING] = PCRE2_ANCHORED | PCRE2_PARTIAL_HARD};
    const bool grows = search == GB_SEARCH_GROWING || search == GB_SEARCH_HERE_GROWING;
    pcre2_set_match_limit(matcher->limits, grows ? MAX_GROWING_STEPS : MAX_STEPS);
    int code = pcre2_match(pattern->code, (PCRE2_SPTR)(text ? text : ""), length, from,
                           options[search] | PCRE2_NO_UTF_CHECK, matcher->match, matcher->limits);
    if (code == PCRE2_ERROR_NOMATCH)
        return (gb_text_match){GB_MATCH_NONE, length, length};
    if (code < 0 && code != PCRE2_ERROR_PARTIAL)
        return (gb_text_match){GB_MATCH_FAILED, length, length};
    const size_t *bounds = pcre2_get_ovector_pointer(matcher->match);
    if (bounds[0] < from || bounds[1] < bounds[0]) /* \K can do that */
        return (gb_text_match){GB_MATCH_FAILED, length, length};
    return (gb_text_match){code < 0 ? GB_MATCH_PENDING : GB_MATCH_FOUND, bounds[0], bounds[1]};
}

static const uint8_t *name_entry(const gb_text_pattern *pattern, uint32_t i) {
    return pattern->names + (size_t)i * pattern->name_size;
}

const char *gb_pattern_group_name(const gb_text_pattern *pattern, uint32_t i) {
    return i < pattern->name_count ? (const char *)name_entry(pattern, i) + 2 : NULL;
}

bool gb_pattern_group(const gb_text_pattern *pattern, const gb_pattern_matcher *matcher, const char *name,
                      gb_text_match *group) {
    const size_t *bounds = pcre2_get_ovector_pointer(matcher->match);
    for (uint32_t i = 0; i < pattern->name_count; i++) {
        const uint8_t *entry = name_entry(pattern, i);
        const size_t number = (size_t)entry[0] << 8 | entry[1];
        if (strcmp((const char *)entry + 2, name) != 0)
            continue;
        if (bounds[2 * number] == PCRE2_UNSET || bounds[2 * number + 1] < bounds[2 * number])
            return false;
        *group = (gb_text_match){GB_MATCH_FOUND, bounds[2 * number], bounds[2 * number + 1]};
        return true;
    }
    return false;
}
