/* SPDX-License-Identifier: Apache-2.0 */
#include "run/draft/same_tokens.h"

#include "text/tokenizer/tokenizer_data.h"

#include <string.h>

static bool is_same_section(const gb_blob *a, const gb_blob *b) {
    return a->size == b->size && memcmp(a->data, b->data, a->size) == 0;
}

/* An id that one of them does not spell is padding there. */
static bool is_same_token(const gb_tokenizer_data *a, const gb_tokenizer_data *b, int32_t id) {
    size_t length_a, length_b;
    const char *text_a = gb_token_text(a, id, &length_a), *text_b = gb_token_text(b, id, &length_b);
    return length_a == 0 || length_b == 0 || (length_a == length_b && memcmp(text_a, text_b, length_a) == 0);
}

static gumbel_status compare(const gb_tokenizer_data *target, const gb_tokenizer_data *draft,
                             gumbel_error *error) {
    const uint32_t count =
        target->token_count < draft->token_count ? target->token_count : draft->token_count;
    if (gb_is_byte_level(target) != gb_is_byte_level(draft))
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT,
                       "draft_engine: one of the programs spells its tokens in bytes, the other in "
                       "characters; a draft model needs the same vocabulary");
    for (int32_t id = 0; id < (int32_t)count; id++) {
        if (is_same_token(target, draft, id))
            continue;
        size_t length, length_draft;
        const char *text = gb_token_text(target, id, &length),
                   *text_draft = gb_token_text(draft, id, &length_draft);
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT,
                       "draft_engine: token %d is '%.*s', and '%.*s' in the draft model; it needs the same "
                       "vocabulary",
                       id, (int)length, text, (int)length_draft, text_draft);
    }
    return GUMBEL_OK;
}

gumbel_status gb_check_same_tokens(const gb_program *target, const gb_program *draft, gumbel_error *error) {
    gb_tokenizer_data of_target, of_draft;
    if (target->metadata.vocab_size != draft->metadata.vocab_size)
        return gb_fail(error, GUMBEL_ERROR_ARGUMENT,
                       "draft_engine: the program has a vocabulary of %llu tokens, the draft model of %llu; "
                       "it needs the same one",
                       (unsigned long long)target->metadata.vocab_size,
                       (unsigned long long)draft->metadata.vocab_size);
    if (!target->tokenizer.data || !draft->tokenizer.data ||
        is_same_section(&target->tokenizer, &draft->tokenizer))
        return GUMBEL_OK;
    GB_TRY(gb_tokenizer_parse(&target->tokenizer, &of_target, error));
    GB_TRY(gb_tokenizer_parse(&draft->tokenizer, &of_draft, error));
    return compare(&of_target, &of_draft, error);
}
