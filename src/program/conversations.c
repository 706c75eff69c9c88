/* SPDX-License-Identifier: Apache-2.0 */
#include "program/conversations.h"

static const uint32_t lengths[] = {1024, 8192, 32768};

uint64_t gb_room_beside_weights(const gb_program *program, uint64_t memory_bytes) {
    const uint64_t weights = gb_program_weight_bytes(program);
    if (memory_bytes == 0)
        return UINT64_MAX;
    return memory_bytes > weights ? memory_bytes - weights : 0;
}

bool gb_get_conversation_memory(const gb_program *program, uint32_t max_context, uint64_t room, size_t index,
                                gumbel_conversation_memory *memory) {
    if (index >= sizeof lengths / sizeof *lengths || lengths[index] > max_context)
        return false;
    const uint64_t bytes = gb_program_state_bytes_at(program, lengths[index]);
    if (bytes == 0)
        return false;
    *memory = (gumbel_conversation_memory){.size = memory->size,
                                           .tokens = lengths[index],
                                           .bytes = bytes,
                                           .sessions = room == UINT64_MAX ? UINT64_MAX : room / bytes};
    return true;
}
