/* SPDX-License-Identifier: Apache-2.0 */
#define PCRE2_CODE_UNIT_WIDTH 8

#include "text/tokenizer/splitter.h"

#include "base/memory.h"
#include "text/base/utf8.h"
#include "text/tokenizer/expressions.h"
#include "text/tokenizer/newer_characters.h"

#include <pcre2.h>
#include <string.h>

/* Matching a piece of ordinary text takes few steps, so most matches get few. One that needs more, such as a
 * long run of spaces, takes them from a budget, which grows with the length of the texts. */
enum {
    FIRST_STEPS = 256,
    MORE_STEPS = 8, /* times as many in the next attempt */
    BUDGET_BASE = 1 << 20,
    BUDGET_PER_BYTE = 256,
    MAX_DEPTH = 100000,
    MAX_HEAP_KIBIBYTES = 32 << 10
};

struct gb_splitter {
    pcre2_general_context *memory;
    pcre2_code *code;
    char expression[GB_MAX_EXPRESSION_BYTES + 1];
    size_t expression_length;
    bool names_characters; /* beyond ASCII */
};

struct gb_cutting {
    const gb_splitter *splitter;
    pcre2_match_data *match;
    pcre2_match_context *limits;
    gb_byte_buffer represented; /* the text with older characters in place of newer ones, where it has any */
    const char *subject;        /* the text or represented */
    size_t length;
    size_t at;                     /* the next piece begins here */
    size_t match_start, match_end; /* the match that ends the piece, or is the next one */
    size_t search;                 /* matches are looked for from here on */
    uint64_t budget;
};

/* ---- Compiling ---- */

static void *allocate(size_t size, void *user) {
    (void)user;
    return gb_allocate(size, 1);
}

static void release(void *block, void *user) {
    (void)user;
    gb_free(block);
}

/* Anchored: looking for a match then counts its steps anew at each character. */
static gumbel_status compile(gb_splitter *splitter, gumbel_error *error) {
    const uint32_t options =
        PCRE2_UTF | PCRE2_UCP | PCRE2_ANCHORED | PCRE2_NEVER_BACKSLASH_C | PCRE2_NO_AUTO_CAPTURE;
    int code;
    size_t offset;
    splitter->memory = pcre2_general_context_create(allocate, release, NULL);
    pcre2_compile_context *context = splitter->memory ? pcre2_compile_context_create(splitter->memory) : NULL;
    if (!context)
        return gb_no_memory(error, "the splitting expression");
    pcre2_set_newline(context, PCRE2_NEWLINE_LF);
    splitter->code = pcre2_compile((PCRE2_SPTR)splitter->expression, splitter->expression_length, options,
                                   &code, &offset, context);
    pcre2_compile_context_free(context);
    if (splitter->code)
        return GUMBEL_OK;
    if (code == PCRE2_ERROR_HEAP_FAILED)
        return gb_no_memory(error, "the splitting expression");
    char reason[128] = "";
    pcre2_get_error_message(code, (PCRE2_UCHAR *)reason, sizeof reason);
    return gb_fail(error, GUMBEL_ERROR_FORMAT,
                   "tokenizer: the splitting expression \"%.200s\" does not compile: at byte %zu, %s",
                   splitter->expression, offset, reason);
}

static bool names_characters(const char *expression) {
    for (const char *at = expression; *at; at++)
        if ((unsigned char)*at >= 0x80)
            return true;
    return strstr(expression, "\\x{") != NULL;
}

gumbel_status gb_splitter_create(const gb_text_step *step, gb_splitter **splitter, gumbel_error *error) {
    *splitter = NULL;
    gb_splitter *created = gb_allocate(1, sizeof *created);
    if (!created)
        return gb_no_memory(error, "the splitting expression");
    memcpy(created->expression, step->pattern, step->pattern_length);
    created->expression_length = step->pattern_length;
    created->names_characters = names_characters(created->expression);
    gumbel_status status = compile(created, error);
    if (status != GUMBEL_OK) {
        gb_splitter_free(created);
        return status;
    }
    /* Machine code counts hardly any of its steps; other expressions are interpreted, which counts every one.
     */
    if (gb_split_expression_is_linear(gb_split_expression_find(step->pattern, step->pattern_length)))
        pcre2_jit_compile(created->code, PCRE2_JIT_COMPLETE); /* where it fails, matching interprets */
    *splitter = created;
    return GUMBEL_OK;
}

void gb_splitter_free(gb_splitter *splitter) {
    if (!splitter)
        return;
    pcre2_code_free(splitter->code);
    pcre2_general_context_free(splitter->memory);
    gb_free(splitter);
}

/* ---- Matching ---- */

gumbel_status gb_cutting_create(const gb_splitter *splitter, gb_cutting **cutting, gumbel_error *error) {
    *cutting = NULL;
    gb_cutting *created = gb_allocate(1, sizeof *created);
    if (!created)
        return gb_no_memory(error, "the splitting expression");
    created->splitter = splitter;
    created->budget = BUDGET_BASE;
    created->match = pcre2_match_data_create(1, splitter->memory);
    created->limits = pcre2_match_context_create(splitter->memory);
    if (!created->match || !created->limits) {
        gb_cutting_free(created);
        return gb_no_memory(error, "the splitting expression");
    }
    pcre2_set_depth_limit(created->limits, MAX_DEPTH);
    pcre2_set_heap_limit(created->limits, MAX_HEAP_KIBIBYTES);
    *cutting = created;
    return GUMBEL_OK;
}

void gb_cutting_free(gb_cutting *cutting) {
    if (!cutting)
        return;
    pcre2_match_data_free(cutting->match);
    pcre2_match_context_free(cutting->limits);
    gb_buffer_free(&cutting->represented);
    gb_free(cutting);
}

/* An older character of the same class and size, or NULL. An expression that names characters might mean the
 * newer one; it keeps all but the Mongolian vowel separator, which only pcre2 takes for white space. */
static const char *representative(const gb_splitter *splitter, const char *text, size_t size) {
    const uint32_t c = gb_utf8_code_point(text, size);
    return (splitter->names_characters && c != 0x180E) ? NULL : gb_representative(c, size);
}

/* Offsets stay what they are. */
static void represent(gb_cutting *cutting, const char *text, size_t length) {
    gb_byte_buffer *represented = &cutting->represented;
    size_t copied = 0;
    represented->size = 0;
    for (size_t at = 0, size; at < length; at += size) {
        size = gb_utf8_size(text[at]);
        const char *old = size == 1 ? NULL : representative(cutting->splitter, text + at, size);
        if (!old)
            continue;
        gb_buffer_append(represented, text + copied, at - copied);
        gb_buffer_append(represented, old, size);
        copied = at + size;
    }
    if (copied > 0)
        gb_buffer_append(represented, text + copied, length - copied);
    cutting->subject = copied > 0 ? (const char *)represented->data : text;
}

gumbel_status gb_cutting_begin(gb_cutting *cutting, const char *text, size_t length, gumbel_error *error) {
    represent(cutting, text, length);
    if (cutting->represented.failed)
        return gb_no_memory(error, "the splitting expression");
    cutting->length = length;
    cutting->at = cutting->search = cutting->match_start = cutting->match_end = 0;
    cutting->budget += (uint64_t)BUDGET_PER_BYTE * length;
    return GUMBEL_OK;
}

static gumbel_status refuse(const gb_cutting *cutting, int code, gumbel_error *error) {
    if (code == PCRE2_ERROR_NOMEMORY)
        return gb_no_memory(error, "the splitting expression");
    char reason[128] = "";
    pcre2_get_error_message(code, (PCRE2_UCHAR *)reason, sizeof reason);
    return gb_fail(error, GUMBEL_ERROR_FORMAT,
                   "tokenizer: the splitting expression \"%.200s\" fails at byte %zu of %zu: %s",
                   cutting->splitter->expression, cutting->search, cutting->length, reason);
}

static int match_in_steps(gb_cutting *cutting, uint64_t steps, uint32_t options) {
    pcre2_set_match_limit(cutting->limits, steps < UINT32_MAX ? (uint32_t)steps : UINT32_MAX);
    return pcre2_match(cutting->splitter->code, (PCRE2_SPTR)cutting->subject, cutting->length,
                       cutting->search, options | PCRE2_NO_UTF_CHECK, cutting->match, cutting->limits);
}

/* pcre2_match at `search`, within the limits. */
static int match_within_limits(gb_cutting *cutting) {
    for (uint64_t steps = FIRST_STEPS;;) {
        int code = match_in_steps(cutting, steps, 0);
        if (code == PCRE2_ERROR_JIT_STACKLIMIT)
            code = match_in_steps(cutting, steps, PCRE2_NO_JIT);
        if (steps > FIRST_STEPS)
            cutting->budget -= steps;
        if (code != PCRE2_ERROR_MATCHLIMIT || cutting->budget <= steps)
            return code;
        steps = steps * MORE_STEPS < cutting->budget ? steps * MORE_STEPS : cutting->budget;
    }
}

/* Looks for the next match and sets match_start and match_end; both are the text's end when there is none. An
 * empty match cuts the text, too; the next is then looked for one character on. */
static gumbel_status find_match(gb_cutting *cutting, gumbel_error *error) {
    while (cutting->search < cutting->length) {
        int code = match_within_limits(cutting);
        size_t next = cutting->search + gb_utf8_size(cutting->subject[cutting->search]);
        if (code == PCRE2_ERROR_NOMATCH) {
            cutting->search = next;
            continue;
        }
        if (code < 0)
            return refuse(cutting, code, error);
        const size_t *bounds = pcre2_get_ovector_pointer(cutting->match);
        if (bounds[0] < cutting->search || bounds[1] < bounds[0]) /* \K can do that */
            return refuse(cutting, PCRE2_ERROR_BADOFFSET, error);
        cutting->match_start = bounds[0];
        cutting->match_end = bounds[1];
        cutting->search = bounds[1] > cutting->search ? bounds[1] : next;
        return GUMBEL_OK;
    }
    cutting->match_start = cutting->match_end = cutting->length;
    return GUMBEL_OK;
}

gumbel_status gb_cutting_next(gb_cutting *cutting, size_t *size, gumbel_error *error) {
    while (cutting->at == cutting->match_end && cutting->at < cutting->length)
        GB_TRY(find_match(cutting, error));
    size_t end = cutting->at < cutting->match_start ? cutting->match_start : cutting->match_end;
    *size = end - cutting->at;
    cutting->at = end;
    return GUMBEL_OK;
}
