/* SPDX-License-Identifier: Apache-2.0
 *
 * What conversations of the lengths that reports name take, and how many have room.
 */
#ifndef GUMBEL_PROGRAM_CONVERSATIONS_H
#define GUMBEL_PROGRAM_CONVERSATIONS_H

#include "program/program.h"

/* What is left beside the program's weights of so many bytes of memory; UINT64_MAX where that is 0: not
 * known. */
uint64_t gb_room_beside_weights(const gb_program *program, uint64_t memory_bytes);

/* The index-th length, from 0, with what it takes; UINT64_MAX sessions have room where the room is that.
 * False past the last one of up to max_context, and for a program without states. */
bool gb_get_conversation_memory(const gb_program *program, uint32_t max_context, uint64_t room, size_t index,
                                gumbel_conversation_memory *memory);

#endif
