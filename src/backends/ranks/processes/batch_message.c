/* SPDX-License-Identifier: Apache-2.0
 *
 * A batch as bytes: its counts, then its arrays in the order of roles.def, each from a multiple of 8 on.
 */
#include "backends/ranks/processes/message.h"

#include <string.h>

enum { ALIGNMENT = 8 };

typedef struct batch_head {
    uint32_t tokens, rows, following, stops;
    uint8_t has_tokens, has_mask, has_following, unused;
} batch_head;

#define COUNT_N(head, widths) (size_t)(head).tokens
#define COUNT_B(head, widths) (size_t)(head).rows
#define COUNT_BL(head, widths) ((size_t)(head).rows * (widths).max_bias)
#define COUNT_BW(head, widths) ((size_t)(head).rows * (widths).mask_words)

/* A batch that follows lacks its tokens; without a masked row nobody reads the masks. */
static bool has_input(const batch_head *head, gb_role role) {
    return role == GB_ROLE_TOKENS ? head->has_tokens : role != GB_ROLE_MASK || head->has_mask;
}

/* ---- Writing ------------------------------------------------------------------------------------------- */

static void append(gb_byte_buffer *to, const void *data, size_t size) {
    static const uint8_t zeros[ALIGNMENT];
    gb_buffer_append(to, data, size);
    gb_buffer_append(to, zeros, (ALIGNMENT - size % ALIGNMENT) % ALIGNMENT);
}

void gb_batch_write(const gb_batch *batch, const gb_batch_widths *widths, gb_byte_buffer *to) {
    const batch_head head = {batch->token_count,       batch->row_count,
                             batch->following_count,   batch->following ? batch->stop_count : 0,
                             batch->tokens != NULL,    gb_batch_has_mask(batch),
                             batch->following != NULL, 0};
    append(to, &head, sizeof head);
#define WRITE_INPUT(NAME, name, dims)                                                                        \
    if (has_input(&head, GB_ROLE_##NAME))                                                                    \
        append(to, batch->name, COUNT_##dims(head, *widths) * sizeof *batch->name);
#define WRITE_OUTPUT(NAME, name, dims)
#define GB_ROLE(number, NAME, name, direction, dtype, dims, required, neutral)                               \
    WRITE_##direction(NAME, name, dims)
#include "program/roles.def"
    append(to, batch->generated, head.tokens * sizeof *batch->generated);
    append(to, batch->draft, head.tokens * sizeof *batch->draft);
    append(to, batch->stop_ids, head.stops * sizeof *batch->stop_ids);
    if (batch->following) {
        gb_batch following = *batch->following;
        following.following = NULL;
        gb_batch_write(&following, widths, to);
    }
}

/* ---- Reading ------------------------------------------------------------------------------------------- */

typedef struct reader {
    const uint8_t *bytes;
    size_t size, at;
    bool has_failed;
} reader;

static const void *take(reader *r, size_t size) {
    const size_t padded = size + (ALIGNMENT - size % ALIGNMENT) % ALIGNMENT;
    if (r->has_failed || padded < size || padded > r->size - r->at) {
        r->has_failed = true;
        return r->bytes;
    }
    const void *taken = r->bytes + r->at;
    r->at += padded;
    return taken;
}

/* A bool that is neither true nor false must not be looked at. */
static const void *take_flags(reader *r, size_t size) {
    const uint8_t *flags = take(r, size);
    for (size_t i = 0; i < size && !r->has_failed; i++)
        r->has_failed = flags[i] > 1;
    return flags;
}

static bool is_within(const batch_head *head, const gb_batch_limits *limits) {
    return head->tokens > 0 && head->tokens <= limits->tokens && head->rows <= limits->rows;
}

static bool read_one(reader *r, const gb_batch_limits *limits, gb_batch *batch, batch_head *head) {
    const void *first = take(r, sizeof *head);
    if (r->has_failed)
        return false;
    memcpy(head, first, sizeof *head);
    if (!is_within(head, limits))
        return false;
    *batch = (gb_batch){.token_count = head->tokens, .row_count = head->rows, .mask = (const void *)r->bytes};
#define READ_INPUT(NAME, name, dims)                                                                         \
    if (has_input(head, GB_ROLE_##NAME))                                                                     \
        batch->name = _Generic(batch->name, const bool *: take_flags, default: take)(                        \
            r, COUNT_##dims(*head, limits->widths) * sizeof *batch->name);
#define READ_OUTPUT(NAME, name, dims)
#define GB_ROLE(number, NAME, name, direction, dtype, dims, required, neutral)                               \
    READ_##direction(NAME, name, dims)
#include "program/roles.def"
    batch->generated = take_flags(r, head->tokens * sizeof *batch->generated);
    batch->draft = take_flags(r, head->tokens * sizeof *batch->draft);
    batch->stop_ids = take(r, head->stops * sizeof *batch->stop_ids);
    batch->stop_count = head->stops;
    batch->following_count = head->following;
    return !r->has_failed && head->has_mask == gb_batch_has_mask(batch);
}

bool gb_batch_read(const uint8_t *bytes, size_t size, const gb_batch_limits *limits, gb_batch *batch,
                   gb_batch *following) {
    reader r = {bytes, size, 0, false};
    batch_head head = {0}, of_following = {0};
    if (!read_one(&r, limits, batch, &head) || !head.has_tokens)
        return false;
    if (!head.has_following)
        return r.at == size;
    if (!read_one(&r, limits, following, &of_following))
        return false;
    batch->following = following;
    return r.at == size;
}
