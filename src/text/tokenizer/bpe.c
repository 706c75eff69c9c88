/* SPDX-License-Identifier: Apache-2.0 */
#include "text/tokenizer/bpe.h"

#include "base/memory.h"

#include <string.h>

#define NO_SYMBOL UINT32_MAX

/* Symbols of a word that is merged without a queue. Most words are, and looking at all pairs of so few is
 * faster. */
enum { SHORT_WORD = 24 };

typedef struct encoder {
    const gb_vocabulary *vocabulary;
    const gb_merge_table *merges;
    gb_bpe_scratch *scratch;
    gb_token_sink *sink;
    bool failed; /* out of memory */
} encoder;

void gb_bpe_scratch_free(gb_bpe_scratch *scratch) {
    gb_free(scratch->symbols);
    gb_free(scratch->queue);
    *scratch = (gb_bpe_scratch){0};
}

/* ---- The queue: smallest rank first, leftmost first among equals ---- */

static void push(gb_bpe_scratch *scratch, uint64_t entry) {
    size_t at = scratch->queued++;
    while (at > 0 && scratch->queue[(at - 1) / 2] > entry) {
        scratch->queue[at] = scratch->queue[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    scratch->queue[at] = entry;
}

static uint64_t pop(gb_bpe_scratch *scratch) {
    uint64_t top = scratch->queue[0];
    uint64_t last = scratch->queue[--scratch->queued];
    size_t at = 0;
    for (size_t child = 1; child < scratch->queued; child = 2 * at + 1) {
        if (child + 1 < scratch->queued && scratch->queue[child + 1] < scratch->queue[child])
            child++;
        if (last <= scratch->queue[child])
            break;
        scratch->queue[at] = scratch->queue[child];
        at = child;
    }
    scratch->queue[at] = last;
    return top;
}

static void push_pair(const encoder *e, uint32_t left) {
    const gb_symbol *symbols = e->scratch->symbols;
    if (left == NO_SYMBOL || symbols[left].next == NO_SYMBOL)
        return;
    uint32_t rank = gb_find_merge(e->merges, symbols[left].id, symbols[symbols[left].next].id);
    if (rank != GB_NO_MERGE)
        push(e->scratch, (uint64_t)rank << 32 | left);
}

/* ---- Merging ---- */

/* Whether the pair that now stands at left still gives what the queued merge gives. It may have changed
 * since; a pair of another rank with the same result counts as the same, as it does in the reference. */
static bool is_current(const encoder *e, uint32_t left, int32_t result) {
    const gb_symbol *symbols = e->scratch->symbols;
    if (symbols[left].id < 0 || symbols[left].next == NO_SYMBOL)
        return false;
    uint32_t rank = gb_find_merge(e->merges, symbols[left].id, symbols[symbols[left].next].id);
    return rank != GB_NO_MERGE && gb_merge_at(e->merges->data, rank).result == result;
}

static void join(const encoder *e, uint32_t left, int32_t result) {
    gb_symbol *symbols = e->scratch->symbols;
    uint32_t right = symbols[left].next;
    symbols[left].id = result;
    symbols[left].next = symbols[right].next;
    symbols[right].id = -1;
    if (symbols[left].next != NO_SYMBOL)
        symbols[symbols[left].next].previous = left;
    push_pair(e, symbols[left].previous);
    push_pair(e, left);
}

/* Each merge takes one entry off the queue and adds two at most, so that 2 * count entries are enough. */
static void merge_long(encoder *e, size_t count) {
    gb_bpe_scratch *scratch = e->scratch;
    if (!gb_grow((void **)&scratch->queue, &scratch->queue_capacity, 2 * count, sizeof(uint64_t))) {
        e->failed = true;
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        scratch->symbols[i].previous = i > 0 ? i - 1 : NO_SYMBOL;
        scratch->symbols[i].next = i + 1 < count ? i + 1 : NO_SYMBOL;
    }
    scratch->queued = 0;
    for (uint32_t i = 0; i < count; i++)
        push_pair(e, i);
    while (scratch->queued > 0) {
        uint64_t top = pop(scratch);
        int32_t result = gb_merge_at(e->merges->data, (uint32_t)(top >> 32)).result;
        if (is_current(e, (uint32_t)top, result))
            join(e, (uint32_t)top, result);
    }
}

/* The same merges in the same order, closing each gap at once. Returns how many symbols are left. */
static size_t merge_short(const encoder *e, size_t count) {
    gb_symbol *symbols = e->scratch->symbols;
    uint32_t ranks[SHORT_WORD]; /* of each symbol with the next */
    for (size_t i = 0; i + 1 < count; i++)
        ranks[i] = gb_find_merge(e->merges, symbols[i].id, symbols[i + 1].id);
    while (count > 1) {
        size_t best = 0;
        for (size_t i = 1; i + 1 < count; i++)
            if (ranks[i] < ranks[best])
                best = i;
        if (ranks[best] == GB_NO_MERGE)
            break;
        symbols[best].id = gb_merge_at(e->merges->data, ranks[best]).result;
        count--;
        memmove(symbols + best + 1, symbols + best + 2, (count - best - 1) * sizeof *symbols);
        memmove(ranks + best, ranks + best + 1, (count - best) * sizeof *ranks);
        if (best > 0)
            ranks[best - 1] = gb_find_merge(e->merges, symbols[best - 1].id, symbols[best].id);
        if (best + 1 < count)
            ranks[best] = gb_find_merge(e->merges, symbols[best].id, symbols[best + 1].id);
    }
    return count;
}

/* Merges the symbols gathered so far, gives out what is left of them, and empties the word. */
static void flush_word(encoder *e) {
    gb_bpe_scratch *scratch = e->scratch;
    size_t count = scratch->count;
    scratch->count = 0;
    if (count > SHORT_WORD)
        merge_long(e, count);
    else
        count = merge_short(e, count);
    for (size_t i = 0; i < count; i++)
        if (scratch->symbols[i].id >= 0)
            gb_sink_token(e->sink, scratch->symbols[i].id);
}

/* Most borders of a text, such as those between words, no merge can reach across. Cutting there leaves the
 * result as it is and the queue short. */
static void add_symbol(encoder *e, int32_t id) {
    gb_bpe_scratch *scratch = e->scratch;
    if (scratch->count > 0 && !gb_can_join(e->merges, scratch->symbols[scratch->count - 1].id, id))
        flush_word(e);
    if (!gb_grow((void **)&scratch->symbols, &scratch->capacity, scratch->count + 1, sizeof(gb_symbol))) {
        e->failed = true;
        return;
    }
    scratch->symbols[scratch->count++] = (gb_symbol){.id = id};
}

/* ---- From text to symbols ---- */

/* False when the vocabulary lacks one of the character's bytes. */
static bool add_bytes(encoder *e, const char *text, size_t size) {
    const int32_t *byte_tokens = e->vocabulary->byte_tokens;
    for (size_t i = 0; i < size; i++)
        if (byte_tokens[(uint8_t)text[i]] < 0)
            return false;
    for (size_t i = 0; i < size; i++)
        add_symbol(e, byte_tokens[(uint8_t)text[i]]);
    return true;
}

/* An unknown token waits until the next unit that has a token of its own, also past characters that
 * became bytes: the order of the reference. */
static void add_units(encoder *e, const char *text, size_t length) {
    const gb_tokenizer_data *data = e->vocabulary->data;
    bool waiting = false;
    size_t size;
    for (size_t at = 0; at < length && !e->failed; at += size) {
        size = gb_unit_size(e->vocabulary, text[at]);
        int32_t id = gb_vocabulary_find_unit(e->vocabulary, text + at, size);
        if (id >= 0) {
            if (waiting)
                add_symbol(e, data->unknown);
            waiting = false;
            add_symbol(e, id);
        } else if (data->bpe_flags & GB_BPE_BYTE_FALLBACK && add_bytes(e, text + at, size)) {
            continue;
        } else if (data->unknown >= 0) {
            if (waiting && !(data->bpe_flags & GB_BPE_FUSE_UNKNOWN))
                add_symbol(e, data->unknown);
            waiting = true;
        }
    }
    if (waiting)
        add_symbol(e, data->unknown);
}

gumbel_status gb_bpe_encode(const gb_vocabulary *vocabulary, const gb_merge_table *merges, const char *text,
                            size_t length, gb_bpe_scratch *scratch, gb_token_sink *sink,
                            gumbel_error *error) {
    if (vocabulary->data->bpe_flags & GB_BPE_IGNORE_MERGES) {
        int32_t whole = gb_vocabulary_find_ordinary(vocabulary, text, length);
        if (whole >= 0) {
            gb_sink_token(sink, whole);
            return GUMBEL_OK;
        }
    }
    encoder e = {vocabulary, merges, scratch, sink, false};
    scratch->count = 0;
    add_units(&e, text, length);
    flush_word(&e);
    return e.failed ? gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory to encode %zu bytes of text", length)
                    : GUMBEL_OK;
}
