/* SPDX-License-Identifier: Apache-2.0 */
#include "base/memory.h"
#include "text/trie/section.h"

#include <string.h>

static gumbel_status bad(gumbel_error *error, const char *what) {
    return gb_fail(error, GUMBEL_ERROR_FORMAT, "token trie: %s", what);
}

/* Sets the arrays of the trie to where they lie behind the header. */
static gumbel_status place_arrays(const gb_trie_header *header, const uint8_t *data, size_t size,
                                  gb_token_trie *trie, gumbel_error *error) {
    if (header->token_count > GB_TRIE_MAX_TOKENS || header->node_count >= 1u << 24)
        return bad(error, "more tokens or nodes than there may be");
    uint64_t nodes = sizeof *header, twins = nodes + (uint64_t)header->node_count * sizeof(gb_trie_node);
    uint64_t longs = twins + (uint64_t)header->twin_count * sizeof(gb_twin_token);
    uint64_t offsets = longs + (uint64_t)header->long_count * 4;
    uint64_t bytes = offsets + ((uint64_t)header->token_count + 1) * 4;
    if (bytes + header->byte_count != size)
        return bad(error, "its arrays do not fill it");
    trie->token_count = header->token_count;
    trie->word_count = (header->token_count + 31) / 32;
    trie->no_token = trie->word_count * 32;
    memcpy(trie->slice_ends, header->slice_ends, sizeof trie->slice_ends);
    trie->nodes = (const gb_trie_node *)(data + nodes);
    trie->twins = (const gb_twin_token *)(data + twins);
    trie->twin_count = header->twin_count;
    trie->long_tokens = (const uint32_t *)(data + longs);
    trie->long_count = header->long_count;
    trie->offsets = (const uint32_t *)(data + offsets);
    trie->bytes = data + bytes;
    return GUMBEL_OK;
}

/* Tokens are below the count, and their bytes lie where they should. */
static gumbel_status check_tokens(const gb_token_trie *trie, uint32_t byte_count, gumbel_error *error) {
    bool good = trie->offsets[0] == 0 && trie->offsets[trie->token_count] == byte_count;
    for (uint32_t i = 0; i < trie->token_count && good; i++)
        good = trie->offsets[i] <= trie->offsets[i + 1];
    for (uint32_t i = 0; i < trie->twin_count && good; i++)
        good = trie->twins[i].token < trie->token_count && trie->twins[i].twin < trie->token_count;
    for (uint32_t i = 0; i < trie->long_count && good; i++)
        good = trie->long_tokens[i] < trie->token_count;
    return good ? GUMBEL_OK : bad(error, "a token out of range");
}

/* Every subtree ends within the one around it, and a node is one deeper than that one's. */
static gumbel_status check_slice(const gb_token_trie *trie, uint32_t first, uint32_t end,
                                 gumbel_error *error) {
    uint32_t ends[GB_TRIE_DEPTH + 1] = {end};
    uint32_t depth = 0;
    for (uint32_t i = first; i < end; i++) {
        gb_trie_node node = trie->nodes[i];
        uint32_t token = node.token_and_byte >> 8, size = node.size_and_depth >> 8;
        while (depth > 0 && ends[depth] == i)
            depth--;
        if ((node.size_and_depth & 0xFF) != ++depth || depth > GB_TRIE_DEPTH || size == 0 ||
            size > ends[depth - 1] - i)
            return bad(error, "a node's size or depth is wrong");
        if (token >= trie->token_count && token != trie->no_token)
            return bad(error, "a node's token is out of range");
        ends[depth] = i + size;
    }
    return GUMBEL_OK;
}

static gumbel_status check_nodes(const gb_token_trie *trie, uint32_t node_count, gumbel_error *error) {
    uint32_t first = 0;
    for (unsigned slice = 0; slice < GB_SLICE_COUNT; slice++) {
        uint32_t end = trie->slice_ends[slice];
        if (end < first || end > node_count)
            return bad(error, "its slices are not in order");
        GB_TRY(check_slice(trie, first, end, error));
        first = end;
    }
    return first == node_count ? GUMBEL_OK : bad(error, "nodes that are in no slice");
}

static bool set_bit(uint32_t *mask, uint32_t token) {
    bool is_new = !(mask[token / 32] >> (token % 32) & 1u);
    mask[token / 32] |= 1u << (token % 32);
    return is_new;
}

/* The masks of slices 0 to i. */
static bool make_masks(gb_token_trie *trie) {
    size_t words = trie->word_count;
    trie->masks = gb_allocate(GB_SLICE_COUNT - 1, words * sizeof *trie->masks);
    if (!trie->masks)
        return false;
    uint32_t node = 0, count = 0;
    for (unsigned slice = 0; slice < GB_SLICE_COUNT - 1; slice++) {
        uint32_t *mask = trie->masks + slice * words;
        if (slice && words)
            memcpy(mask, mask - words, words * sizeof *mask);
        for (; node < trie->slice_ends[slice]; node++)
            if (trie->nodes[node].token_and_byte >> 8 != trie->no_token)
                count += set_bit(mask, trie->nodes[node].token_and_byte >> 8);
        for (uint32_t i = 0; i < trie->twin_count; i++)
            if (mask[trie->twins[i].twin / 32] >> (trie->twins[i].twin % 32) & 1u)
                count += set_bit(mask, trie->twins[i].token);
        trie->counts[slice] = count;
    }
    return true;
}

/* Walks over the first level. */
static bool find_roots(gb_token_trie *trie) {
    trie->roots = gb_allocate(GB_SLICE_COUNT, sizeof *trie->roots);
    if (!trie->roots)
        return false;
    memset(trie->roots, 0xFF, GB_SLICE_COUNT * sizeof *trie->roots);
    uint32_t node = 0;
    for (unsigned slice = 0; slice < GB_SLICE_COUNT; slice++)
        for (; node < trie->slice_ends[slice]; node += trie->nodes[node].size_and_depth >> 8)
            trie->roots[slice][trie->nodes[node].token_and_byte & 0xFF] = node;
    return true;
}

gumbel_status gb_token_trie_open(const uint8_t *data, size_t size, gb_token_trie **trie,
                                 gumbel_error *error) {
    gb_trie_header header;
    *trie = NULL;
    if (size < sizeof header || memcmp(data, GB_TRIE_MAGIC, 4) != 0)
        return bad(error, "not one");
    memcpy(&header, data, sizeof header);
    if (header.version != GB_TRIE_VERSION)
        return gb_fail(error, GUMBEL_ERROR_UNSUPPORTED, "token trie: version %u, this is for version %d",
                       header.version, GB_TRIE_VERSION);
    gb_token_trie *opened = gb_allocate(1, sizeof *opened);
    if (!opened)
        return gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for a token trie");
    gumbel_status status = place_arrays(&header, data, size, opened, error);
    if (status == GUMBEL_OK)
        status = check_tokens(opened, header.byte_count, error);
    if (status == GUMBEL_OK)
        status = check_nodes(opened, header.node_count, error);
    if (status == GUMBEL_OK && !(make_masks(opened) && find_roots(opened)))
        status = gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for a token trie");
    if (status == GUMBEL_OK)
        *trie = opened;
    else
        gb_token_trie_destroy(opened);
    return status;
}

gumbel_status gb_token_trie_create(const gb_token_bytes *tokens, size_t count, gb_token_trie **trie,
                                   gumbel_error *error) {
    gb_byte_buffer section = {0};
    *trie = NULL;
    gumbel_status status = gb_token_trie_write(tokens, count, &section, error);
    if (status == GUMBEL_OK)
        status = gb_token_trie_open(section.data, section.size, trie, error);
    if (status == GUMBEL_OK)
        (*trie)->storage = section.data;
    else
        gb_buffer_free(&section);
    return status;
}

void gb_token_trie_destroy(gb_token_trie *trie) {
    if (!trie)
        return;
    gb_free(trie->roots);
    gb_free(trie->masks);
    gb_free(trie->storage);
    gb_free(trie);
}
