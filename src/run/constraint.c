/* SPDX-License-Identifier: Apache-2.0 */
#include "run/constraint.h"

#include "base/memory.h"
#include "grammar/api.h"
#include "text/reply/reasoning.h"

#include <string.h>

enum { PLACE = 400 };

typedef enum gb_constraint_phase {
    AT_THE_BEGINNING, /* the first token may open reasoning */
    IN_REASONING,
    IN_THE_ANSWER,
    ENDED
} gb_constraint_phase;

/* Where the answer stands. */
typedef struct gb_place_of_answer {
    gb_constraint_phase phase;
    size_t forced_at; /* forced tokens that have come */
    uint32_t budget;  /* what is left of it */
    bool is_free;     /* any token may be drawn */
    size_t matched;   /* tokens that the matcher has accepted */
} gb_place_of_answer;

struct gb_constraint {
    gumbel_matcher *matcher; /* NULL: any answer will do */
    gb_place_of_answer at;
    gb_reasoning_marks marks;
    int32_t *forced; /* [forced_count] the answer's first tokens */
    size_t forced_count;
    const int32_t *draft; /* [draft_count] the next tokens, maybe */
    uint32_t draft_count;
    bool draft_is_free; /* and so are all places behind them */
    bool has_budget;
    bool may_call;       /* the answer may begin with a call */
    bool is_free_text;   /* as in the grammar */
    int32_t *end_tokens; /* [end_token_count] */
    size_t end_token_count;
    size_t row_words, word_count; /* of a mask in a step; of one that the grammar makes, at least as many */
    uint32_t *words;              /* [word_count] */
    gumbel_error error;           /* of the masks that were made last */
    uint32_t error_row;           /* the first one of them that has it */
};

/* ---- Reasoning ----------------------------------------------------------------------------------------- */

bool gb_constraint_forces(const gb_constraint *constraint) {
    return constraint->at.forced_at < constraint->forced_count;
}

static bool is_spent(const gb_constraint *constraint) {
    return constraint->has_budget && constraint->at.budget == 0;
}

/* Whether any token may be drawn, which is known without the mask. */
static bool is_free(const gb_constraint *constraint) {
    const gumbel_matcher *matcher = constraint->matcher;
    if (gb_constraint_forces(constraint))
        return false;
    if (is_spent(constraint))
        return constraint->at.phase != IN_REASONING && !matcher && constraint->marks.open.count == 0;
    if (!matcher)
        return true;
    return gumbel_matcher_may_end(matcher) &&
           (constraint->at.phase == IN_REASONING ? constraint->may_call : constraint->is_free_text);
}

/* Whether the answer may begin with a call. */
static bool may_call(const gb_constraint *constraint) {
    if (constraint->marks.calls.count == 0)
        return true;
    if (!constraint->matcher ||
        gumbel_matcher_accept(constraint->matcher, constraint->marks.calls.tokens[0], NULL) != GUMBEL_OK)
        return false;
    return gumbel_matcher_rollback(constraint->matcher, 1, NULL) == GUMBEL_OK;
}

static gumbel_status find_phase(const gumbel_tokenizer *tokenizer, const gb_constraint_options *options,
                                gb_constraint *constraint, gumbel_error *error) {
    const gb_reasoning_marks *marks = &constraint->marks;
    bool opens = false;
    constraint->has_budget = constraint->has_budget && marks->reasons; /* what never reasons keeps to any */
    if (constraint->has_budget && marks->closing < 0)
        return gb_fail(error, GUMBEL_ERROR_UNSUPPORTED,
                       "reasoning_budget: no token of the program's tokenizer closes reasoning");
    if (marks->close.count > 0)
        GB_TRY(gb_prompt_opens_reasoning(tokenizer, options->prompt, options->prompt_count, &opens, error));
    constraint->at.phase = opens                                       ? IN_REASONING
                           : options->reasons && marks->open.count > 0 ? AT_THE_BEGINNING
                                                                       : IN_THE_ANSWER;
    return GUMBEL_OK;
}

/* ---- Going on ------------------------------------------------------------------------------------------ */

static bool is_end(const gb_constraint *constraint, int32_t token) {
    for (size_t i = 0; i < constraint->end_token_count; i++)
        if (constraint->end_tokens[i] == token)
            return true;
    return false;
}

static gumbel_status take_answer(gb_constraint *constraint, int32_t token, gumbel_error *error) {
    const bool may_reason = constraint->at.phase == AT_THE_BEGINNING || constraint->at.is_free;
    if (may_reason && gb_is_mark_of(&constraint->marks.open, token)) {
        constraint->at.phase = IN_REASONING;
        return GUMBEL_OK;
    }
    constraint->at.phase = IN_THE_ANSWER;
    if (!constraint->matcher)
        return GUMBEL_OK;
    GB_TRY(gumbel_matcher_accept(constraint->matcher, token, error));
    constraint->at.matched++;
    constraint->at.phase = is_end(constraint, token) ? ENDED : IN_THE_ANSWER;
    return GUMBEL_OK;
}

/* A call, and the end of the answer, end reasoning without a mark. */
static gumbel_status take_token(gb_constraint *constraint, int32_t token, gumbel_error *error) {
    constraint->at.forced_at += gb_constraint_forces(constraint);
    if (constraint->at.phase != IN_REASONING)
        return take_answer(constraint, token, error);
    if (constraint->matcher && (is_end(constraint, token) || gb_is_mark_of(&constraint->marks.calls, token)))
        return take_answer(constraint, token, error);
    if (gb_is_mark_of(&constraint->marks.close, token))
        constraint->at.phase = IN_THE_ANSWER;
    else if (constraint->at.budget > 0)
        constraint->at.budget--;
    return GUMBEL_OK;
}

static gumbel_status go_on(gb_constraint *constraint, int32_t token, gumbel_error *error) {
    GB_TRY(take_token(constraint, token, error));
    constraint->at.is_free = constraint->at.phase != ENDED && is_free(constraint);
    return GUMBEL_OK;
}

/* To where the answer stood before. A matcher goes back by more tokens than a draft has. */
static void go_back(gb_constraint *constraint, const gb_place_of_answer *place) {
    if (constraint->at.matched > place->matched)
        gumbel_matcher_rollback(constraint->matcher, constraint->at.matched - place->matched, NULL);
    constraint->at = *place;
}

gumbel_status gb_constraint_accept(gb_constraint *constraint, int32_t token, gumbel_error *error) {
    constraint->draft_count = 0;
    if (constraint->error_row > 0)
        constraint->error_row--;
    return go_on(constraint, token, error);
}

bool gb_constraint_has_ended(const gb_constraint *constraint) {
    return constraint->at.phase == ENDED;
}

/* ---- Drafts -------------------------------------------------------------------------------------------- */

/* The next token where it is known to be the only one; -1. */
static int32_t next_forced(const gb_constraint *constraint) {
    if (gb_constraint_forces(constraint))
        return constraint->forced[constraint->at.forced_at];
    if (constraint->at.phase == IN_REASONING)
        return is_spent(constraint) ? constraint->marks.closing : -1;
    if (!constraint->matcher || constraint->at.phase != IN_THE_ANSWER)
        return -1;
    return gb_known_forced(constraint->matcher);
}

uint32_t gb_constraint_forced(gb_constraint *constraint, int32_t *tokens, uint32_t most) {
    const gb_place_of_answer place = constraint->at;
    uint32_t count = 0;
    while (count < most) {
        const int32_t token = next_forced(constraint);
        if (token < 0 || go_on(constraint, token, NULL) != GUMBEL_OK)
            break;
        tokens[count++] = token;
    }
    go_back(constraint, &place);
    return count;
}

/* Behind the answer's end nothing may follow. */
uint32_t gb_constraint_set_draft(gb_constraint *constraint, const int32_t *tokens, uint32_t count) {
    const gb_place_of_answer place = constraint->at;
    uint32_t allowed = 0;
    constraint->draft_is_free = true;
    while (allowed < count && constraint->at.phase != ENDED &&
           go_on(constraint, tokens[allowed], NULL) == GUMBEL_OK) {
        constraint->draft_is_free = constraint->draft_is_free && constraint->at.is_free;
        allowed++;
    }
    go_back(constraint, &place);
    constraint->draft = tokens;
    constraint->draft_count = allowed;
    return allowed;
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
        set_words(constraint, &constraint->marks.closing, 1, true);
        return;
    }
    fill_words(constraint, 0xFF);
    if (!gumbel_matcher_may_end(constraint->matcher))
        set_words(constraint, constraint->end_tokens, constraint->end_token_count, false);
    if (!constraint->may_call)
        set_words(constraint, constraint->marks.calls.tokens, constraint->marks.calls.count, false);
}

static gumbel_status mask_answer(gb_constraint *constraint, gumbel_error *error) {
    if (constraint->matcher)
        GB_TRY(gumbel_matcher_mask(constraint->matcher, constraint->words, constraint->word_count, error));
    else
        fill_words(constraint, 0xFF);
    if (is_spent(constraint) || constraint->at.phase == AT_THE_BEGINNING)
        set_words(constraint, constraint->marks.open.tokens, constraint->marks.open.count,
                  !is_spent(constraint));
    return GUMBEL_OK;
}

static gumbel_status make_mask(gb_constraint *constraint, gumbel_error *error) {
    if (gb_constraint_forces(constraint)) {
        fill_words(constraint, 0);
        set_words(constraint, &constraint->forced[constraint->at.forced_at], 1, true);
        return GUMBEL_OK;
    }
    if (constraint->at.phase != IN_REASONING)
        return mask_answer(constraint, error);
    mask_reasoning(constraint);
    return GUMBEL_OK;
}

/* The mask behind the first tokens of the draft, behind the last of which the constraint does not stand yet.
 */
static gumbel_status make_row(gb_constraint *constraint, uint32_t *words, uint32_t row, gumbel_error *error) {
    if (row > 0)
        GB_TRY(go_on(constraint, constraint->draft[row - 1], error));
    GB_TRY(make_mask(constraint, error));
    memcpy(words, constraint->words, constraint->row_words * sizeof *words);
    return GUMBEL_OK;
}

/* After an error no row allows anything. */
static void make_rows(void *user, uint32_t *words, uint32_t rows) {
    gb_constraint *constraint = user;
    const gb_place_of_answer place = constraint->at;
    gumbel_error *error = &constraint->error;
    error->status = GUMBEL_OK;
    for (uint32_t r = 0; r < rows; r++) {
        uint32_t *of_row = words + r * constraint->row_words;
        if (error->status == GUMBEL_OK) {
            constraint->error_row = r;
            error->status = make_row(constraint, of_row, r, error);
        }
        if (error->status != GUMBEL_OK)
            memset(of_row, 0, constraint->row_words * sizeof *of_row);
    }
    go_back(constraint, &place);
}

gb_mask_source gb_constraint_mask(gb_constraint *constraint) {
    const bool is_free =
        constraint->at.is_free && (constraint->draft_count == 0 || constraint->draft_is_free);
    return (gb_mask_source){is_free ? NULL : make_rows, constraint};
}

static gumbel_status make_row_behind(gb_constraint *constraint, uint32_t *words) {
    for (uint32_t i = 0; i < constraint->draft_count; i++)
        GB_TRY(go_on(constraint, constraint->draft[i], NULL));
    if (constraint->at.is_free)
        fill_words(constraint, 0xFF);
    else
        GB_TRY(make_mask(constraint, NULL));
    memcpy(words, constraint->words, constraint->row_words * sizeof *words);
    return GUMBEL_OK;
}

/* Its error is nobody's: the draft ends there. */
static void make_behind(void *user, uint32_t *words, uint32_t rows) {
    gb_constraint *constraint = user;
    const gb_place_of_answer place = constraint->at;
    if (make_row_behind(constraint, words) != GUMBEL_OK)
        memset(words, 0, rows * constraint->row_words * sizeof *words);
    go_back(constraint, &place);
}

gb_mask_source gb_constraint_mask_behind(gb_constraint *constraint) {
    return (gb_mask_source){make_behind, constraint};
}

gumbel_status gb_constraint_explain(const gb_constraint *constraint, gumbel_error *error) {
    char place[PLACE];
    if (constraint->error.status != GUMBEL_OK && constraint->error_row == 0)
        return gb_fail(error, constraint->error.status, "%s", constraint->error.message);
    if (gb_constraint_forces(constraint))
        return gb_fail(error, GUMBEL_ERROR_NUMERIC, "token %d cannot follow: its logit is not finite",
                       (int)constraint->forced[constraint->at.forced_at]);
    if (!constraint->matcher)
        return gb_fail(error, GUMBEL_ERROR_NUMERIC,
                       "no token may be drawn: the reasoning budget is spent, and biases ban its end");
    gb_describe_matcher(constraint->matcher, place, sizeof place);
    return gb_fail(error, GUMBEL_ERROR_NUMERIC, "no token may be drawn %s", place);
}

/* ---- Making -------------------------------------------------------------------------------------------- */

static gumbel_status check(const gb_constraint_options *options, gumbel_error *error) {
    const gumbel_grammar *grammar = options->grammar;
    if (grammar && options->forced_count > 0)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "forced_tokens: not beside a grammar");
    for (size_t i = 0; i < options->forced_count; i++)
        if (options->forced[i] < 0 || (uint64_t)options->forced[i] >= options->vocab_size)
            return gb_fail(error, GUMBEL_ERROR_ARGUMENT,
                           "forced_tokens: number %zu is %d, the vocabulary has %llu", i,
                           (int)options->forced[i], (unsigned long long)options->vocab_size);
    if (!grammar && options->has_reasoning_budget && !options->tokenizer)
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

static gumbel_status copy_forced(const gb_constraint_options *options, gb_constraint *constraint,
                                 gumbel_error *error) {
    const size_t count = options->forced_count;
    if (count == 0)
        return GUMBEL_OK;
    constraint->forced = gb_allocate(count, sizeof *constraint->forced);
    if (!constraint->forced)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for %zu forced tokens", count);
    memcpy(constraint->forced, options->forced, count * sizeof *constraint->forced);
    constraint->forced_count = count;
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
    constraint->has_budget = options->has_reasoning_budget;
    constraint->at.budget = options->reasoning_budget;
    constraint->marks = tokenizer ? gb_read_reasoning_marks(tokenizer) : (gb_reasoning_marks){.closing = -1};
    GB_TRY(copy_forced(options, constraint, error));
    GB_TRY(find_phase(tokenizer, options, constraint, error));
    if (grammar)
        GB_TRY(gumbel_matcher_create(grammar, options->end_tokens, options->end_token_count,
                                     &constraint->matcher, error));
    constraint->is_free_text = grammar && grammar->is_free_text;
    constraint->may_call = may_call(constraint);
    constraint->at.is_free = is_free(constraint);
    return constraint->at.is_free ? GUMBEL_OK : make_mask(constraint, error);
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
    gb_free(constraint->forced);
    gb_free(constraint->end_tokens);
    gb_free(constraint->words);
    gb_free(constraint);
}
