/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/states/drafts.h"

void gb_drafts_advance(gb_slot_drafts *of_slot, const gb_batch *batch) {
    for (uint32_t n = 0; n < batch->token_count; n++) {
        gb_slot_drafts *drafts = &of_slot[batch->slots[n]];
        if (!batch->draft[n]) { /* as every slot's first token */
            gb_drafts_reset(drafts, (uint32_t)batch->positions[n] + 1);
            continue;
        }
        drafts->turn += drafts->count == 0;
        drafts->count++;
    }
}

bool gb_drafts_truncate(gb_slot_drafts *of_slot, uint32_t position) {
    if (position < of_slot->position || position > of_slot->position + of_slot->count)
        return false;
    of_slot->count = position - of_slot->position;
    return true;
}
