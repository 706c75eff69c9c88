/* SPDX-License-Identifier: Apache-2.0
 *
 * The automaton of Aho and Corasick, "Efficient string matching: an aid to bibliographic search" (1975). A
 * node is a prefix of some stop strings. The node reached by a text is the longest of its ends that is such a
 * prefix, so that just its bytes are held back.
 */
#include "text/decode/stop_matcher.h"

#include "base/byte_buffer.h"
#include "base/memory.h"
#include "base/status.h"
#include "text/base/utf8.h"

#include <string.h>

/* Node 0 is the empty prefix, and stands for "none" among children, siblings and ends. */
typedef struct node {
    uint32_t child, sibling; /* the first longer prefix, and the next one of the same length and beginning */
    uint32_t fail;           /* the longest node that this prefix ends in, itself excluded */
    uint32_t end;            /* the longest node that is a whole string and that this prefix ends in */
    uint32_t depth;          /* bytes of the prefix */
    int32_t string;          /* the first one that is this prefix, or -1 */
    uint8_t byte;            /* the last one of the prefix */
} node;

struct gb_stop_matcher {
    node *nodes; /* [node_count] */
    uint32_t node_count;
    bool included;
    /* The state of a text. */
    uint32_t state;        /* the node that it has reached */
    int32_t found;         /* the string that ended it, or -1 */
    gb_byte_buffer buffer; /* what was given out last, then what is held back */
    size_t given;          /* bytes at its beginning that were given out */
};

/* ---- Making it ----------------------------------------------------------------------------------------- */

static gumbel_status check_strings(const char *const *strings, size_t count, uint64_t *total,
                                   gumbel_error *error) {
    *total = 0;
    for (size_t i = 0; i < count; i++) {
        if (!strings || !strings[i])
            return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "stop string %zu of %zu is NULL", i, count);
        size_t length = strlen(strings[i]);
        if (length == 0)
            return gb_fail(error, GUMBEL_ERROR_ARGUMENT,
                           "stop string %zu of %zu is empty: expected at least one character", i, count);
        if (!gb_utf8_is_valid(strings[i], length))
            return gb_fail(error, GUMBEL_ERROR_ARGUMENT, "stop string %zu of %zu is not UTF-8", i, count);
        *total += length;
    }
    if (*total >= INT32_MAX || count >= INT32_MAX)
        return gb_fail(error, GUMBEL_ERROR_LIMIT, "%zu stop strings of %llu bytes are too many", count,
                       (unsigned long long)*total);
    return GUMBEL_OK;
}

static uint32_t child_of(const gb_stop_matcher *matcher, uint32_t parent, uint8_t byte) {
    uint32_t child = matcher->nodes[parent].child;
    while (child != 0 && matcher->nodes[child].byte != byte)
        child = matcher->nodes[child].sibling;
    return child;
}

static uint32_t add_child(gb_stop_matcher *matcher, uint32_t parent, uint8_t byte) {
    uint32_t child = matcher->node_count++;
    matcher->nodes[child] = (node){.sibling = matcher->nodes[parent].child,
                                   .depth = matcher->nodes[parent].depth + 1,
                                   .string = -1,
                                   .byte = byte};
    return matcher->nodes[parent].child = child;
}

static void add_string(gb_stop_matcher *matcher, int32_t string, const char *text) {
    uint32_t at = 0;
    for (const char *c = text; *c; c++) {
        uint32_t child = child_of(matcher, at, (uint8_t)*c);
        at = child ? child : add_child(matcher, at, (uint8_t)*c);
    }
    if (matcher->nodes[at].string < 0)
        matcher->nodes[at].string = string;
}

/* The node that a text reaches which had reached another. */
static uint32_t next_node(const gb_stop_matcher *matcher, uint32_t at, uint8_t byte) {
    for (;; at = matcher->nodes[at].fail) {
        uint32_t child = child_of(matcher, at, byte);
        if (child != 0 || at == 0)
            return child;
    }
}

/* Fills in fail and end, shorter prefixes first. queue has room for every node. */
static void link_nodes(gb_stop_matcher *matcher, uint32_t *queue) {
    node *nodes = matcher->nodes;
    uint32_t count = 0;
    queue[count++] = 0;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t parent = queue[i];
        for (uint32_t child = nodes[parent].child; child != 0; child = nodes[child].sibling) {
            nodes[child].fail = parent ? next_node(matcher, nodes[parent].fail, nodes[child].byte) : 0;
            nodes[child].end = nodes[child].string >= 0 ? child : nodes[nodes[child].fail].end;
            queue[count++] = child;
        }
    }
}

gumbel_status gb_stop_matcher_create(const char *const *strings, size_t count, bool included,
                                     size_t longest_piece, gb_stop_matcher **matcher, gumbel_error *error) {
    *matcher = NULL;
    uint64_t total, room;
    GB_TRY(check_strings(strings, count, &total, error));
    gb_stop_matcher *made = gb_allocate(1, sizeof *made);
    uint32_t *queue = gb_allocate(total + 1, sizeof *queue);
    bool good = made && queue && (made->nodes = gb_allocate(total + 1, sizeof *made->nodes)) &&
                gb_add_size(total, longest_piece, &room) &&
                gb_grow((void **)&made->buffer.data, &made->buffer.capacity, room, 1);
    if (good) {
        made->included = included;
        made->found = -1;
        made->nodes[made->node_count++].string = -1;
        for (size_t i = 0; i < count; i++)
            add_string(made, (int32_t)i, strings[i]);
        link_nodes(made, queue);
        *matcher = made;
    } else {
        gb_stop_matcher_destroy(made);
    }
    gb_free(queue);
    return good ? GUMBEL_OK : gb_fail(error, GUMBEL_ERROR_MEMORY, "no memory for %zu stop strings", count);
}

void gb_stop_matcher_destroy(gb_stop_matcher *matcher) {
    if (!matcher)
        return;
    gb_free(matcher->nodes);
    gb_buffer_free(&matcher->buffer);
    gb_free(matcher);
}

/* ---- Running it ---------------------------------------------------------------------------------------- */

/* Moves what is held back to the beginning of the buffer. */
static void forget_given(gb_stop_matcher *matcher) {
    gb_byte_buffer *buffer = &matcher->buffer;
    if (matcher->given == 0)
        return;
    buffer->size -= matcher->given;
    memmove(buffer->data, buffer->data + matcher->given, buffer->size);
    matcher->given = 0;
}

/* Ends the text after size bytes of the buffer. */
static void stop(gb_stop_matcher *matcher, int32_t string, size_t size) {
    matcher->found = string;
    matcher->state = 0;
    matcher->buffer.size = size;
}

void gb_stop_matcher_add(gb_stop_matcher *matcher, const char *piece, size_t size) {
    forget_given(matcher);
    for (size_t i = 0; i < size && matcher->found < 0; i++) {
        gb_buffer_append(&matcher->buffer, piece + i, 1);
        matcher->state = next_node(matcher, matcher->state, (uint8_t)piece[i]);
        const node *end = &matcher->nodes[matcher->nodes[matcher->state].end];
        if (end->string >= 0)
            stop(matcher, end->string, matcher->buffer.size - (matcher->included ? 0 : end->depth));
    }
}

void gb_stop_matcher_pass(gb_stop_matcher *matcher, const char *piece, size_t size) {
    forget_given(matcher);
    if (matcher->found >= 0 || size == 0)
        return;
    gb_buffer_append(&matcher->buffer, piece, size);
    matcher->state = 0;
}

void gb_stop_matcher_stop(gb_stop_matcher *matcher, int32_t string, const char *spelling, size_t size) {
    forget_given(matcher);
    if (matcher->found >= 0)
        return;
    if (matcher->included)
        gb_buffer_append(&matcher->buffer, spelling, size);
    stop(matcher, string, matcher->buffer.size);
}

void gb_stop_matcher_flush(gb_stop_matcher *matcher) {
    matcher->state = 0;
}

void gb_stop_matcher_take(gb_stop_matcher *matcher, const char **text, size_t *length) {
    forget_given(matcher);
    matcher->given = matcher->buffer.size - matcher->nodes[matcher->state].depth;
    *text = (const char *)matcher->buffer.data;
    *length = matcher->given;
}

void gb_stop_matcher_restart(gb_stop_matcher *matcher) {
    matcher->given = matcher->buffer.size;
    matcher->state = 0;
    matcher->found = -1;
}

int32_t gb_stop_matcher_found(const gb_stop_matcher *matcher) {
    return matcher->found;
}
