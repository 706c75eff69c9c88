/* SPDX-License-Identifier: Apache-2.0 */
#include "text/tokenizer/tokenizer.h"

#include "base/memory.h"
#include "text/reply/reply_format.h"
#include "text/tokenizer/text_steps.h"
#include "text/trie/lazy_trie.h"

#include <string.h>

static gumbel_status allocate_patterns(gumbel_tokenizer *tokenizer, gumbel_error *error) {
    uint32_t count = tokenizer->data.added_count;
    tokenizer->raw_added.patterns = gb_allocate(count, sizeof(gb_added_pattern));
    tokenizer->normalized_added.patterns = gb_allocate(count, sizeof(gb_added_pattern));
    return tokenizer->raw_added.patterns && tokenizer->normalized_added.patterns
               ? GUMBEL_OK
               : gb_no_memory(error, "the tokenizer");
}

static void add_pattern(gb_added_tokens *set, gb_added_token added, const char *text, size_t length) {
    set->patterns[set->count++] = (gb_added_pattern){text, length, added.id, added.flags};
}

/* Appends the normalized spellings of the normalized added tokens, each after its length. */
static void normalize_spellings(const gb_tokenizer_data *data, gb_byte_buffer *spellings) {
    gb_byte_buffer output = {0}, spare = {0};
    for (uint32_t i = 0; i < data->added_count; i++) {
        gb_added_token added = gb_added_at(data, i);
        if (!(added.flags & GB_ADDED_NORMALIZED))
            continue;
        size_t length;
        const char *text = gb_token_text(data, added.id, &length);
        gb_normalize(&data->normalizer, text, length, &output, &spare);
        gb_buffer_append_text(spellings, (const char *)output.data, output.size);
        spellings->failed |= output.failed;
    }
    gb_buffer_free(&output);
    gb_buffer_free(&spare);
}

static gumbel_status index_added(gumbel_tokenizer *tokenizer, gumbel_error *error) {
    const gb_tokenizer_data *data = &tokenizer->data;
    GB_TRY(allocate_patterns(tokenizer, error));
    gb_byte_buffer spellings = {0};
    normalize_spellings(data, &spellings);
    tokenizer->normalized_added.storage = (char *)spellings.data;
    if (spellings.failed)
        return gb_no_memory(error, "the tokenizer");
    gb_byte_reader normalized = {.data = spellings.data, .size = spellings.size};
    for (uint32_t i = 0; i < data->added_count; i++) {
        gb_added_token added = gb_added_at(data, i);
        size_t length;
        const char *text = gb_token_text(data, added.id, &length);
        if (!(added.flags & GB_ADDED_NORMALIZED)) {
            add_pattern(&tokenizer->raw_added, added, text, length);
            continue;
        }
        uint32_t normalized_length;
        text = gb_read_text(&normalized, &normalized_length);
        if (normalized_length > 0)
            add_pattern(&tokenizer->normalized_added, added, text, normalized_length);
    }
    gb_added_tokens_index(&tokenizer->raw_added);
    gb_added_tokens_index(&tokenizer->normalized_added);
    return GUMBEL_OK;
}

static gumbel_status compile_expressions(gumbel_tokenizer *tokenizer, gumbel_error *error) {
    const gb_text_steps *steps = &tokenizer->data.pre_tokenizer;
    for (uint32_t i = 0; i < steps->count; i++)
        if (steps->items[i].kind == GB_SPLIT_EXPRESSION)
            GB_TRY(gb_splitter_create(&steps->items[i], &tokenizer->splitters[i], error));
    return GUMBEL_OK;
}

static gumbel_status fill(gumbel_tokenizer *tokenizer, const gb_blob *section, const gb_blob *chat,
                          gumbel_error *error) {
    GB_TRY(gb_tokenizer_parse(section, &tokenizer->data, error));
    tokenizer->id_limit = tokenizer->data.token_count;
    tokenizer->trie = gb_allocate(1, sizeof *tokenizer->trie);
    if (!tokenizer->trie)
        return gb_no_memory(error, "the tokenizer");
    GB_TRY(gb_vocabulary_create(&tokenizer->vocabulary, &tokenizer->data, error));
    GB_TRY(gb_merge_table_create(&tokenizer->merges, &tokenizer->vocabulary, error));
    GB_TRY(index_added(tokenizer, error));
    GB_TRY(compile_expressions(tokenizer, error));
    return chat && chat->data ? gb_chat_section_parse(chat, &tokenizer->chat, error) : GUMBEL_OK;
}

gumbel_status gb_tokenizer_create(const gb_blob *tokenizer, const gb_blob *chat, gumbel_tokenizer **result,
                                  gumbel_error *error) {
    *result = NULL;
    if (!tokenizer->data)
        return gb_fail(error, GUMBEL_ERROR_UNSUPPORTED, "the program has no tokenizer");
    gumbel_tokenizer *created = gb_allocate(1, sizeof *created);
    if (!created)
        return gb_no_memory(error, "the tokenizer");
    gumbel_status status = fill(created, tokenizer, chat, error);
    if (status == GUMBEL_OK)
        *result = created;
    else
        gumbel_tokenizer_destroy(created);
    return status;
}

void gumbel_tokenizer_destroy(gumbel_tokenizer *tokenizer) {
    if (!tokenizer)
        return;
    gb_vocabulary_free(&tokenizer->vocabulary);
    gb_merge_table_free(&tokenizer->merges);
    gb_added_tokens_free(&tokenizer->raw_added);
    gb_added_tokens_free(&tokenizer->normalized_added);
    for (uint32_t i = 0; i < GB_MAX_TEXT_STEPS; i++)
        gb_splitter_free(tokenizer->splitters[i]);
    gb_chat_section_free(&tokenizer->chat);
    gb_reply_format_destroy(tokenizer->reply_format);
    gb_free(tokenizer->reply_marks);
    if (tokenizer->trie)
        gb_token_trie_destroy(atomic_load(&tokenizer->trie->trie));
    gb_free(tokenizer->trie);
    gb_free(tokenizer->storage);
    gb_free(tokenizer);
}

void gb_tokenizer_allow_ids(gumbel_tokenizer *tokenizer, uint32_t limit) {
    if (limit > tokenizer->id_limit)
        tokenizer->id_limit = limit;
}

void gb_tokenizer_keep(gumbel_tokenizer *tokenizer, void *storage) {
    tokenizer->storage = storage;
}

int32_t gumbel_token_id(const gumbel_tokenizer *tokenizer, const char *spelling) {
    return gb_vocabulary_find(&tokenizer->vocabulary, spelling, strlen(spelling));
}
