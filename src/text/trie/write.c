/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes a trie of tokens that are sorted by slice and bytes: nodes that the next token does not share are
 * closed, and new ones are opened for the rest of its bytes.
 */
#include "base/memory.h"
#include "text/trie/section.h"

#include <stdlib.h>
#include <string.h>

typedef struct sorted_token {
    uint64_t key; /* the slice and the first bytes: what orders most tokens */
    const uint8_t *data;
    uint32_t id;
    uint16_t size, slice;
} sorted_token;

typedef struct writer {
    sorted_token *sorted; /* those that are in a slice */
    size_t sorted_count;
    gb_trie_node *nodes;
    size_t node_count, node_capacity;
    gb_byte_buffer twins, long_tokens, offsets, bytes;
    gb_trie_header header;
    uint32_t no_token;
    bool failed;
} writer;

static int by_slice_and_bytes(const void *left, const void *right) {
    const sorted_token *a = left, *b = right;
    if (a->key != b->key)
        return a->key < b->key ? -1 : 1;
    size_t shorter = a->size < b->size ? a->size : b->size;
    int order = memcmp(a->data, b->data, shorter);
    if (order == 0 && a->size != b->size)
        order = a->size < b->size ? -1 : 1;
    return order ? order : a->id < b->id ? -1 : 1;
}

/* Compares as slice and bytes do, as far as it goes; bytes that are not there count as 0. */
static uint64_t key_of(uint32_t slice, gb_token_bytes bytes) {
    uint64_t key = slice;
    for (size_t i = 0; i < sizeof key - 1; i++)
        key = key << 8 | (i < bytes.size ? bytes.data[i] : 0);
    return key;
}

static size_t common_prefix(const sorted_token *a, const sorted_token *b) {
    size_t length = 0;
    while (length < a->size && length < b->size && a->data[length] == b->data[length])
        length++;
    return length;
}

/* Takes in every token: its bytes, and where it goes. */
static void sort_tokens(writer *all, const gb_token_bytes *tokens, size_t count) {
    for (size_t id = 0; id < count; id++) {
        gb_token_bytes bytes = tokens[id];
        gb_buffer_append_u32(&all->offsets, (uint32_t)all->bytes.size);
        gb_buffer_append(&all->bytes, bytes.data, bytes.size);
        if (bytes.size > GB_TRIE_DEPTH)
            gb_buffer_append_u32(&all->long_tokens, (uint32_t)id);
        else if (bytes.size) {
            const uint16_t slice = (uint16_t)gb_slice_of(bytes.data, bytes.size);
            all->sorted[all->sorted_count++] =
                (sorted_token){key_of(slice, bytes), bytes.data, (uint32_t)id, (uint16_t)bytes.size, slice};
        }
    }
    gb_buffer_append_u32(&all->offsets, (uint32_t)all->bytes.size);
    if (all->sorted_count)
        qsort(all->sorted, all->sorted_count, sizeof *all->sorted, by_slice_and_bytes);
}

/* The nodes on the way to the last token; open[depth] is a node. */
typedef struct path {
    uint32_t open[GB_TRIE_DEPTH + 1];
    size_t depth;
} path;

static void close_nodes(writer *all, path *at, size_t depth) {
    for (; at->depth > depth; at->depth--) {
        gb_trie_node *node = &all->nodes[at->open[at->depth]];
        node->size_and_depth |= (uint32_t)(all->node_count - at->open[at->depth]) << 8;
    }
}

static void open_nodes(writer *all, path *at, const sorted_token *token) {
    while (at->depth < token->size && !all->failed) {
        if (!gb_grow((void **)&all->nodes, &all->node_capacity, all->node_count + 1, sizeof *all->nodes)) {
            all->failed = true;
            return;
        }
        uint32_t id = at->depth + 1 == token->size ? token->id : all->no_token;
        all->nodes[all->node_count] = (gb_trie_node){.token_and_byte = id << 8 | token->data[at->depth],
                                                     .size_and_depth = (uint32_t)at->depth + 1};
        at->open[++at->depth] = (uint32_t)all->node_count++;
    }
}

static void make_nodes(writer *all) {
    path at = {.depth = 0};
    uint32_t slice = 0;
    const sorted_token *last = NULL;
    for (size_t i = 0; i < all->sorted_count && !all->failed; i++) {
        const sorted_token *token = &all->sorted[i];
        for (; slice < token->slice; slice++, last = NULL) {
            close_nodes(all, &at, 0);
            all->header.slice_ends[slice] = (uint32_t)all->node_count;
        }
        size_t shared = last ? common_prefix(last, token) : 0;
        if (last && shared == token->size) {
            gb_buffer_append_u32(&all->twins, token->id);
            gb_buffer_append_u32(&all->twins, last->id);
            continue;
        }
        close_nodes(all, &at, shared);
        open_nodes(all, &at, token);
        last = token;
    }
    close_nodes(all, &at, 0);
    for (; slice < GB_SLICE_COUNT; slice++)
        all->header.slice_ends[slice] = (uint32_t)all->node_count;
}

static void append_all(writer *all, gb_byte_buffer *section) {
    gb_trie_header *header = &all->header;
    header->node_count = (uint32_t)all->node_count;
    header->twin_count = (uint32_t)(all->twins.size / sizeof(gb_twin_token));
    header->long_count = (uint32_t)(all->long_tokens.size / sizeof(uint32_t));
    header->byte_count = (uint32_t)all->bytes.size;
    gb_buffer_append(section, header->magic, sizeof header->magic);
    const uint32_t *fields = &header->version;
    for (size_t i = 0; i < 6 + GB_SLICE_COUNT; i++)
        gb_buffer_append_u32(section, fields[i]);
    for (size_t i = 0; i < all->node_count; i++) {
        gb_buffer_append_u32(section, all->nodes[i].token_and_byte);
        gb_buffer_append_u32(section, all->nodes[i].size_and_depth);
    }
    const gb_byte_buffer *arrays[] = {&all->twins, &all->long_tokens, &all->offsets, &all->bytes};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) {
        all->failed |= arrays[i]->failed;
        gb_buffer_append(section, arrays[i]->data, arrays[i]->size);
    }
    all->failed |= section->failed;
}

gumbel_status gb_token_trie_write(const gb_token_bytes *tokens, size_t count, gb_byte_buffer *section,
                                  gumbel_error *error) {
    if (count > GB_TRIE_MAX_TOKENS)
        return gb_fail(error, GUMBEL_ERROR_LIMIT, "token trie: %zu tokens, at most %d", count,
                       GB_TRIE_MAX_TOKENS);
    writer all = {.header = {.version = GB_TRIE_VERSION}};
    memcpy(all.header.magic, GB_TRIE_MAGIC, sizeof all.header.magic);
    all.header.token_count = (uint32_t)count;
    all.no_token = (uint32_t)((count + 31) / 32 * 32);
    all.sorted = gb_allocate(count, sizeof *all.sorted);
    all.failed = !all.sorted;
    if (all.sorted)
        sort_tokens(&all, tokens, count);
    make_nodes(&all);
    bool small = all.node_count < 1u << 24 && all.bytes.size < 1u << 31;
    if (small)
        append_all(&all, section);
    gb_free(all.sorted);
    gb_free(all.nodes);
    gb_buffer_free(&all.twins);
    gb_buffer_free(&all.long_tokens);
    gb_buffer_free(&all.offsets);
    gb_buffer_free(&all.bytes);
    if (!small)
        return gb_fail(error, GUMBEL_ERROR_LIMIT, "token trie: %zu nodes, at most 2^24", all.node_count);
    return all.failed ? gb_fail(error, GUMBEL_ERROR_MEMORY, "token trie: no memory for %zu tokens", count)
                      : GUMBEL_OK;
}
