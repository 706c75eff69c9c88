/* SPDX-License-Identifier: Apache-2.0
 *
 * A task as rank 0 sends it to the process of another rank, and what comes back. Both run the same version on
 * machines of the same byte order, so that numbers go as they lie in memory.
 */
#ifndef GUMBEL_BACKENDS_RANKS_PROCESSES_MESSAGE_H
#define GUMBEL_BACKENDS_RANKS_PROCESSES_MESSAGE_H

#include "backends/ranks/group.h"
#include "base/byte_buffer.h"

/* Behind gb_group_function's numbers. */
enum { GB_MESSAGE_LEAVE = GB_GROUP_FUNCTION_COUNT };

typedef struct gb_task_message {
    uint32_t function, group, slot, to, position, state, saved;
    uint32_t other_group; /* whose rows are taken */
    uint32_t other_slot, other_state, first, end;
    uint64_t bytes; /* that follow: of a creation, a batch, or states to load */
} gb_task_message;

/* What a rank is made with, as far as all ranks have it alike. */
typedef struct gb_creation_message {
    uint8_t program[16];  /* its id */
    uint64_t state_bytes; /* of all states, which have the same types */
    int64_t least_weights;
    uint32_t slots, max_context, step_tokens, prefill_chunk, least_chunk, draft_tokens;
    bool fuse, snapshots, has_profile;
    char backend[16];
    uint8_t unused[5]; /* so that no byte is padding, which would send what lay on the stack */
} gb_creation_message;

typedef struct gb_reply_message {
    gumbel_error outcome;
    uint64_t free_bytes;
    uint64_t bytes; /* that follow: states that were saved */
} gb_reply_message;

gb_task_message gb_task_message_of(const gb_group_task *task);

/* What tells caches of one type from those of another. */
uint64_t gb_all_state_bytes(const gb_program *program);

/* Appends a batch, and the one that follows it; `to` was empty, or has a multiple of 8 bytes. */
void gb_batch_write(const gb_batch *batch, const gb_batch_widths *widths, gb_byte_buffer *to);

/* The largest batch that is read. */
typedef struct gb_batch_limits {
    uint32_t tokens, rows;
    gb_batch_widths widths;
} gb_batch_limits;

/* Reads one whose arrays are among the bytes, which begin at a multiple of 8; `next` and the outputs are not
 * set. False: these bytes are none, or it is larger. */
bool gb_batch_read(const uint8_t *bytes, size_t size, const gb_batch_limits *limits, gb_batch *batch,
                   gb_batch *following);

#endif
