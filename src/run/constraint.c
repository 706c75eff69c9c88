/* SPDX-License-Identifier: Apache-2.0 */
#include "run/constraint.h"

#include "base/memory.h"
#include "grammar/api.h"
#include "text/reply/reply.h"
#include "text/reply/reply_format.h"
#include "text/tokenizer/tokenizer.h"

#include <string.h>

enum { MOST_MARKS = 8, PLACE = 400 };

/* Tokens that open something, or close it. */
typedef struct mark_list {
    int32_t tokens[MOST_MARKS];
    size_t count;
} mark_list;

typedef enum gb_constraint_phase {
    AT_THE_BEGINNING, /* the first token may open reasoning */
    IN_REASONING,
    IN_THE_ANSWER,
    ENDED
} gb_constraint_phase;

struct gb_constraint {
    gumbel_matcher *matcher; /* NULL: any answer will do */
    gb_constraint_phase phase;
    mark_list open, close; /* of reasoning */
    mark_list calls;       /* open calls of tools, also within reasoning */
    int32_t closing;       /* the one that is drawn where the budget is spent; -1: none */
    bool has_budget;
    uint32_t budget;     /* what is left of it */
    bool may_call;       /* the answer may begin with a call */
    bool is_free_text;   /* as in the grammar */
    bool is_free;        /* any token may be drawn */
    int32_t *end_tokens; /* [end_token_count] */
    size_t end_token_count;
    size_t row_words, word_count; /* of a mask in a step; of one that the grammar makes, at least as many */
    uint32_t *words;              /* [word_count] */
    gumbel_error error;           /* of the mask that was made last */
};

/* ---- Reasoning ----------------------------------------------------------------------------------------- */

static bool has(const mark_list *list, int32_t token) {
    for (size_t i = 0; i < list->count; i++)
        if (list->tokens[i] == token)
            return true;
    return false;
}

/* Adds the tokens that a delimiter is spelled with. */
static void add_marks(const gumbel_tokenizer *tokenizer, const gb_text_pattern *delimiter, mark_list *list) {
    for (size_t i = 0; delimiter && i < tokenizer->reply_mark_count && list->count < MOST_MARKS; i++) {
        const gb_mark *mark = &tokenizer->reply_marks[i];
        if (gb_pattern_mentions(delimiter, mark->text, mark->length))
            list->tokens[list->count++] = mark->token;
    }
}

/* The first of the texts that close the field, where it is a token; otherwise any token that does. */
static int32_t closing_of(const gumbel_tokenizer *tokenizer, const gb_reply_field *field,
                          const mark_list *close) {
    const json_t *fields = json_object_get(tokenizer->reply_format->source, "fields");
    const json_t *texts = json_object_get(json_object_get(fields, field->name), "close");
    const char *first = json_string_value(json_is_array(texts) ? json_array_get(texts, 0) : texts);
    for (size_t i = 0; first && i < tokenizer->reply_mark_count; i++) {
        const gb_mark *mark = &tokenizer->reply_marks[i];
        if (mark->length == strlen(first) && memcmp(mark->text, first, mark->length) == 0)
            return mark->token;
    }
    return close->count > 0 ? close->tokens[0] : -1;
}

static gumbel_status find_marks(const gumbel_tokenizer *tokenizer, gb_constraint *constraint,
                                gumbel_error *error) {
    const gb_reply_format *format = tokenizer->reply_format;
    for (int i = 0; format && i < format->field_count; i++) {
        const gb_reply_field *field = &format->fields[i];
        if (field->type == GUMBEL_PART_TOOL_CALL)
            add_marks(tokenizer, field->open, &constraint->calls);
        if (field->type != GUMBEL_PART_REASONING)
            continue;
        add_marks(tokenizer, field->open, &constraint->open);
        add_marks(tokenizer, field->close, &constraint->close);
        constraint->closing = closing_of(tokenizer, field, &constraint->close);
        if (constraint->has_budget && constraint->closing < 0)
            return gb_fail(error, GUMBEL_ERROR_UNSUPPORTED,
                           "reasoning_budget: no token of the program's tokenizer closes reasoning");
    }
    return GUMBEL_OK;
}

static bool is_spent(const gb_constraint *constraint) {
    return constraint->has_budget && constraint->budget == 0;
}

/* Whether any token may be drawn, which is known without the mask. */
static bool is_free(const gb_constraint *constraint) {
    const gumbel_matcher *matcher = constraint->matcher;
    if (is_spent(constraint))
        return constraint->phase != IN_REASONING && !matcher && constraint->open.count == 0;
    if (!matcher)
        return true;
    return gumbel_matcher_may_end(matcher) &&
           (constraint->phase == IN_REASONING ? constraint->may_call : constraint->is_free_text);
}

/* Whether the answer may begin with a call. */
static bool may_call(const gb_constraint *constraint) {
    if (constraint->calls.count == 0)
        return true;
    if (!constraint->matcher ||
        gumbel_matcher_accept(constraint->matcher, constraint->calls.tokens[0], NULL) != GUMBEL_OK)
        return false;
    return gumbel_matcher_rollback(constraint->matcher, 1, NULL) == GUMBEL_OK;
}

/* Whether the prompt ends within reasoning. */
static gumbel_status find_phase(const gumbel_tokenizer *tokenizer, const gb_constraint_options *options,
                                gb_constraint *constraint, gumbel_error *error) {
    constraint->phase = options->reasons && constraint->open.count > 0 ? AT_THE_BEGINNING : IN_THE_ANSWER;
    if (constraint->close.count == 0)
        return GUMBEL_OK;
    const gumbel_reply_options of_prompt = {
        .size = sizeof of_prompt, .prompt = options->prompt, .prompt_count = options->prompt_count};
    gumbel_reply *reply;
    GB_TRY(gumbel_reply_create(tokenizer, &of_prompt, &reply, error));
    if (reply->field >= 0 && reply->format->fields[reply->field].type == GUMBEL_PART_REASONING)
        constraint->phase = IN_REASONING;
    gumbel_reply_destroy(reply);
    return GUMBEL_OK;
}

/* ---- Masks --------------------------------------------------------------------------------------------- */

static void fill_words(gb_constraint *constraint, int byte) {
    memset(constraint->words, byte, constraint->word_count * sizeof *constraint->words);
}

static void set_words(gb_constraint *constraint, const int32_t *tokens, size_t count, bool is_allowed) {
    for (size_t i = 0; i < count; i++) {
        const uint32_t token = (uint32_t)tokens[i], bit = UINT32_C(1) << token % 32;
        constraint->words[token / 32] &= ~bit;
        constraint->words[token / 32] |= is_allowed ? bit : 0;
    }
}

/* Reasoning neither ends the answer nor calls where what follows it may not. */
static void mask_reasoning(gb_constraint *constraint) {
    if (is_spent(constraint)) {
        fill_words(constraint, 0);
        set_words(constraint, &constraint->closing, 1, true);
        return;
    }
    fill_words(constraint, 0xFF);
    if (!gumbel_matcher_may_end(constraint->matcher))
        set_words(constraint, constraint->end_tokens, constraint->end_token_count, false);
    if (!constraint->may_call)
        set_words(constraint, constraint->calls.tokens, constraint->calls.count, false);
}

static gumbel_status mask_answer(gb_constraint *constraint, gumbel_error *error) {
    if (constraint->matcher)
        GB_TRY(gumbel_matcher_mask(constraint->matcher, constraint->words, constraint->word_count, error));
    else
        fill_words(constraint, 0xFF);
    if (is_spent(constraint) || constraint->phase == AT_THE_BEGINNING)
        set_words(constraint, constraint->open.tokens, constraint->open.count, !is_spent(constraint));
    return GUMBEL_OK;
}

static gumbel_status make_mask(gb_constraint *constraint, gumbel_error *error) {
    if (constraint->phase != IN_REASONING)
        return mask_answer(constraint, error);
    mask_reasoning(constraint);
    return GUMBEL_OK;
}

static void make_row(void *user, uint32_t *words) {
    gb_constraint *constraint = user;
    const size_t bytes = constraint->row_words * sizeof *words;
    constraint->error.status = make_mask(constraint, &constraint->error);
    if (constraint->error.status == GUMBEL_OK)
        memcpy(words, constraint->words, bytes);
    else
        memset(words, 0, bytes);
}

gb_mask_source gb_constraint_mask(gb_constraint *constraint) {
    return (gb_mask_source){constraint->is_free ? NULL : make_row, constraint};
}

gumbel_status gb_constraint_explain(const gb_constraint *constraint, gumbel_error *error) {
    char place[PLACE];
    if (constraint->error.status != GUMBEL_OK)
        return gb_fail(error, constraint->error.status, "%s", constraint->error.message);
    if (!constraint->matcher)
        return gb_fail(error, GUMBEL_ERROR_NUMERIC,
                       "no token may be drawn: the reasoning budget is spent, and biases ban its end");
    gb_describe_matcher(constraint->matcher, place, sizeof place);
    return gb_fail(error, GUMBEL_ERROR_NUMERIC, "no token may be drawn %s", place);
}

/* ---- Making -------------------------------------------------------------------------------------------- */

static gumbel_status check(const gb_constraint_options *options, gumbel_error *error) {
    const gumbel_grammar *grammar = options->grammar;
    if (!grammar && !options->tokenizer)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT,
                       "reasoning_budget: needs a tokenizer to find the end of reasoning by");
    if (grammar && grammar->trie->token_count < options->vocab_size)
        return gb_fail(
            error, GUMBEL_ERROR_ARGUMENT,
            "grammar: it is for a tokenizer of %u ids, the program has %llu; gumbel_tokenizer_create "
            "makes the program's own",
            grammar->trie->token_count, (unsigned long long)options->vocab_size);
    return GUMBEL_OK;
}

static gumbel_status fill(const gb_constraint_options *options, gb_constraint *constraint,
                          gumbel_error *error) {
    const gumbel_grammar *grammar = options->grammar;
    const gumbel_tokenizer *tokenizer = grammar ? grammar->tokenizer : options->tokenizer;
    const size_t words = (size_t)(options->vocab_size + 31) / 32,
                 own = grammar ? grammar->trie->word_count : 0;
    GB_TRY(check(options, error));
    constraint->row_words = words;
    constraint->word_count = words > own ? words : own;
    constraint->words = gb_allocate(constraint->word_count, sizeof *constraint->words);
    constraint->end_tokens = gb_allocate(options->end_token_count + 1, sizeof *constraint->end_tokens);
    if (!constraint->words || !constraint->end_tokens)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for a grammar's masks");
    for (size_t i = 0; i < options->end_token_count; i++)
        constraint->end_tokens[constraint->end_token_count++] = options->end_tokens[i];
    constraint->closing = -1;
    constraint->has_budget = options->has_reasoning_budget;
    constraint->budget = options->reasoning_budget;
    GB_TRY(find_marks(tokenizer, constraint, error));
    GB_TRY(find_phase(tokenizer, options, constraint, error));
    if (grammar)
        GB_TRY(gumbel_matcher_create(grammar, options->end_tokens, options->end_token_count,
                                     &constraint->matcher, error));
    constraint->is_free_text = grammar && grammar->is_free_text;
    constraint->may_call = may_call(constraint);
    constraint->is_free = is_free(constraint);
    return constraint->is_free ? GUMBEL_OK : make_mask(constraint, error);
}

gumbel_status gb_constraint_create(const gb_constraint_options *options, gb_constraint **constraint,
                                   gumbel_error *error) {
    *constraint = NULL;
    gb_constraint *made = gb_allocate(1, sizeof *made);
    if (!made)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for a grammar's masks");
    const gumbel_status status = fill(options, made, error);
    if (status == GUMBEL_OK)
        *constraint = made;
    else
        gb_constraint_destroy(made);
    return status;
}

void gb_constraint_destroy(gb_constraint *constraint) {
    if (!constraint)
        return;
    gumbel_matcher_destroy(constraint->matcher);
    gb_free(constraint->end_tokens);
    gb_free(constraint->words);
    gb_free(constraint);
}

/* ---- Going on ------------------------------------------------------------------------------------------ */

static bool is_end(const gb_constraint *constraint, int32_t token) {
    for (size_t i = 0; i < constraint->end_token_count; i++)
        if (constraint->end_tokens[i] == token)
            return true;
    return false;
}

static gumbel_status take_answer(gb_constraint *constraint, int32_t token, gumbel_error *error) {
    const bool may_reason = constraint->phase == AT_THE_BEGINNING || constraint->is_free;
    if (may_reason && has(&constraint->open, token)) {
        constraint->phase = IN_REASONING;
        return GUMBEL_OK;
    }
    constraint->phase = IN_THE_ANSWER;
    if (!constraint->matcher)
        return GUMBEL_OK;
    GB_TRY(gumbel_matcher_accept(constraint->matcher, token, error));
    constraint->phase = is_end(constraint, token) ? ENDED : IN_THE_ANSWER;
    return GUMBEL_OK;
}

/* A call, and the end of the answer, end reasoning without a mark. */
static gumbel_status take_token(gb_constraint *constraint, int32_t token, gumbel_error *error) {
    if (constraint->phase != IN_REASONING)
        return take_answer(constraint, token, error);
    if (constraint->matcher && (is_end(constraint, token) || has(&constraint->calls, token)))
        return take_answer(constraint, token, error);
    if (has(&constraint->close, token))
        constraint->phase = IN_THE_ANSWER;
    else if (constraint->budget > 0)
        constraint->budget--;
    return GUMBEL_OK;
}

gumbel_status gb_constraint_accept(gb_constraint *constraint, int32_t token, gumbel_error *error) {
    GB_TRY(take_token(constraint, token, error));
    constraint->is_free = constraint->phase != ENDED && is_free(constraint);
    return GUMBEL_OK;
}

bool gb_constraint_has_ended(const gb_constraint *constraint) {
    return constraint->phase == ENDED;
}
