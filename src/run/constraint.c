/* SPDX-License-Identifier: Apache-2.0 */
#include "run/constraint.h"

#include "base/memory.h"
#include "grammar/api.h"
#include "text/reply/reply.h"
#include "text/reply/reply_format.h"
#include "text/tokenizer/tokenizer.h"

#include <string.h>

enum { MOST_MARKS = 8, PLACE = 400 };

/* Tokens that open reasoning, or close it. */
typedef struct mark_list {
    int32_t tokens[MOST_MARKS];
    size_t count;
} mark_list;

typedef enum gb_constraint_phase {
    AT_THE_BEGINNING, /* the first token may open reasoning */
    IN_REASONING,
    IN_THE_GRAMMAR,
    ENDED
} gb_constraint_phase;

struct gb_constraint {
    gumbel_matcher *matcher;
    gb_constraint_phase phase;
    mark_list open, close;
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

static void find_marks(const gumbel_tokenizer *tokenizer, gb_constraint *constraint) {
    const gb_reply_format *format = tokenizer->reply_format;
    for (int i = 0; format && i < format->field_count; i++)
        if (format->fields[i].type == GUMBEL_PART_REASONING) {
            add_marks(tokenizer, format->fields[i].open, &constraint->open);
            add_marks(tokenizer, format->fields[i].close, &constraint->close);
        }
}

/* Whether the prompt ends within reasoning. */
static gumbel_status find_phase(const gumbel_tokenizer *tokenizer, const gb_constraint_options *options,
                                gb_constraint *constraint, gumbel_error *error) {
    constraint->phase = options->reasons && constraint->open.count > 0 ? AT_THE_BEGINNING : IN_THE_GRAMMAR;
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

static gumbel_status make_mask(gb_constraint *constraint, gumbel_error *error) {
    if (constraint->phase == IN_REASONING)
        return GUMBEL_OK;
    GB_TRY(gumbel_matcher_mask(constraint->matcher, constraint->words, constraint->word_count, error));
    for (size_t i = 0; constraint->phase == AT_THE_BEGINNING && i < constraint->open.count; i++) {
        const uint32_t token = (uint32_t)constraint->open.tokens[i];
        constraint->words[token / 32] |= UINT32_C(1) << token % 32;
    }
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
    return (gb_mask_source){constraint->phase == IN_REASONING ? NULL : make_row, constraint};
}

gumbel_status gb_constraint_explain(const gb_constraint *constraint, gumbel_error *error) {
    char place[PLACE];
    if (constraint->error.status != GUMBEL_OK)
        return gb_fail(error, constraint->error.status, "%s", constraint->error.message);
    gb_describe_matcher(constraint->matcher, place, sizeof place);
    return gb_fail(error, GUMBEL_ERROR_NUMERIC, "no token may be drawn %s", place);
}

/* ---- Making -------------------------------------------------------------------------------------------- */

static gumbel_status fill(const gb_constraint_options *options, gb_constraint *constraint,
                          gumbel_error *error) {
    const gumbel_grammar *grammar = options->grammar;
    const size_t words = (size_t)(options->vocab_size + 31) / 32;
    if (grammar->trie->token_count < options->vocab_size)
        return gb_fail(
            error, GUMBEL_ERROR_ARGUMENT,
            "grammar: it is for a tokenizer of %u ids, the program has %llu; gumbel_tokenizer_create "
            "makes the program's own",
            grammar->trie->token_count, (unsigned long long)options->vocab_size);
    constraint->row_words = words;
    constraint->word_count = words > grammar->trie->word_count ? words : grammar->trie->word_count;
    constraint->words = gb_allocate(constraint->word_count, sizeof *constraint->words);
    constraint->end_tokens = gb_allocate(options->end_token_count + 1, sizeof *constraint->end_tokens);
    if (!constraint->words || !constraint->end_tokens)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for a grammar's masks");
    for (size_t i = 0; i < options->end_token_count; i++)
        constraint->end_tokens[constraint->end_token_count++] = options->end_tokens[i];
    find_marks(grammar->tokenizer, constraint);
    GB_TRY(find_phase(grammar->tokenizer, options, constraint, error));
    GB_TRY(gumbel_matcher_create(grammar, options->end_tokens, options->end_token_count, &constraint->matcher,
                                 error));
    return make_mask(constraint, error);
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

gumbel_status gb_constraint_accept(gb_constraint *constraint, int32_t token, gumbel_error *error) {
    if (constraint->phase == IN_REASONING) {
        constraint->phase = has(&constraint->close, token) ? IN_THE_GRAMMAR : IN_REASONING;
        return GUMBEL_OK;
    }
    if (constraint->phase == AT_THE_BEGINNING && has(&constraint->open, token)) {
        constraint->phase = IN_REASONING;
        return GUMBEL_OK;
    }
    GB_TRY(gumbel_matcher_accept(constraint->matcher, token, error));
    constraint->phase = is_end(constraint, token) ? ENDED : IN_THE_GRAMMAR;
    return GUMBEL_OK;
}

bool gb_constraint_has_ended(const gb_constraint *constraint) {
    return constraint->phase == ENDED;
}
