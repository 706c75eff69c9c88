/* SPDX-License-Identifier: Apache-2.0 */
#include "text/trie/tokenizer_trie.h"

#include "base/memory.h"
#include "text/decode/token_bytes.h"
#include "text/trie/lazy_trie.h"

/* Where each token's bytes begin among all, and the end. */
static bool spell_all(const gumbel_tokenizer *tokenizer, gb_byte_buffer *bytes, size_t *offsets) {
    gb_byte_buffer spare = {0};
    for (uint32_t token = 0; token < tokenizer->id_limit; token++) {
        offsets[token] = bytes->size;
        gb_append_token_bytes(tokenizer, (int32_t)token, bytes, &spare);
    }
    offsets[tokenizer->id_limit] = bytes->size;
    const bool failed = bytes->failed || spare.failed;
    gb_buffer_free(&spare);
    return !failed;
}

gumbel_status gb_write_tokenizer_trie(const gumbel_tokenizer *tokenizer, gb_byte_buffer *section,
                                      gumbel_error *error) {
    const size_t count = tokenizer->id_limit;
    gb_byte_buffer bytes = {0};
    size_t *offsets = gb_allocate(count + 1, sizeof *offsets);
    gb_token_bytes *tokens = gb_allocate(count + 1, sizeof *tokens);
    gumbel_status status = GUMBEL_OK;
    if (!offsets || !tokens || !spell_all(tokenizer, &bytes, offsets))
        status = gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for a trie of %zu tokens", count);
    for (size_t i = 0; i < count && status == GUMBEL_OK; i++)
        tokens[i] = (gb_token_bytes){bytes.data + offsets[i], offsets[i + 1] - offsets[i]};
    if (status == GUMBEL_OK)
        status = gb_token_trie_write(tokens, count, section, error);
    gb_buffer_free(&bytes);
    gb_free(tokens);
    gb_free(offsets);
    return status;
}

static gumbel_status make(const gumbel_tokenizer *tokenizer, gb_token_trie **trie, gumbel_error *error) {
    gb_byte_buffer section = {0};
    *trie = NULL;
    gumbel_status status = gb_write_tokenizer_trie(tokenizer, &section, error);
    if (status == GUMBEL_OK)
        status = gb_token_trie_open(section.data, section.size, trie, error);
    if (status == GUMBEL_OK)
        (*trie)->storage = section.data;
    else
        gb_buffer_free(&section);
    return status;
}

static gumbel_status open_stored(const gumbel_tokenizer *tokenizer, gb_token_trie **trie,
                                 gumbel_error *error) {
    const gb_blob *stored = &tokenizer->trie->stored;
    GB_TRY(gb_token_trie_open(stored->data, (size_t)stored->size, trie, error));
    const uint32_t count = (*trie)->token_count;
    if (count == tokenizer->id_limit)
        return GUMBEL_OK;
    gb_token_trie_destroy(*trie);
    *trie = NULL;
    return gb_fail(error, GUMBEL_ERROR_FORMAT, "token trie: it has %u tokens, the tokenizer %u", count,
                   tokenizer->id_limit);
}

static gumbel_status create(const gumbel_tokenizer *tokenizer, gb_token_trie **trie, gumbel_error *error) {
    if (!tokenizer->trie->stored.data)
        return make(tokenizer, trie, error);
    const gumbel_status status = open_stored(tokenizer, trie, error);
    return status == GUMBEL_ERROR_UNSUPPORTED ? make(tokenizer, trie, error) : status;
}

void gb_tokenizer_use_trie(gumbel_tokenizer *tokenizer, const gb_blob *stored) {
    tokenizer->trie->stored = *stored;
}

/* Of two threads that make it at once one keeps its own, the other takes that. */
gumbel_status gb_tokenizer_trie(const gumbel_tokenizer *tokenizer, const gb_token_trie **trie,
                                gumbel_error *error) {
    gb_lazy_trie *lazy = tokenizer->trie;
    gb_token_trie *made, *kept = atomic_load(&lazy->trie);
    *trie = kept;
    if (kept)
        return GUMBEL_OK;
    GB_TRY(create(tokenizer, &made, error));
    *trie = made;
    if (!atomic_compare_exchange_strong(&lazy->trie, &kept, made)) {
        gb_token_trie_destroy(made);
        *trie = kept;
    }
    return GUMBEL_OK;
}
