/* SPDX-License-Identifier: Apache-2.0 */
#include "base/memory.h"
#include "run/draft/drafter.h"

#include <string.h>

bool gb_drafter_simulate(gb_drafter *drafter, const int32_t *answer, size_t count, uint32_t acceptance) {
    gb_simulated *simulated = &drafter->simulated;
    *simulated = (gb_simulated){.acceptance = acceptance, .count = count, .random = 1};
    simulated->answer = gb_allocate(count, sizeof *simulated->answer);
    if (simulated->answer)
        memcpy(simulated->answer, answer, count * sizeof *answer);
    return simulated->answer != NULL;
}

/* In [0, 100). (Knuth, The art of computer programming, volume 2, section 3.3.4: the multiplier of MMIX) */
static uint32_t next_percent(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((*state >> 33) % 100);
}

/* Behind the first wrong guess no turn comes. */
uint32_t gb_drafter_make_right(gb_drafter *drafter, uint32_t at, const gb_token_list *stop_tokens) {
    gb_simulated *simulated = &drafter->simulated;
    gb_draft *draft = &drafter->draft;
    bool is_right = true;
    for (uint32_t i = 0; simulated->answer && i < draft->count && at + i < simulated->count; i++) {
        const int32_t right = simulated->answer[at + i];
        is_right = is_right && next_percent(&simulated->random) < simulated->acceptance;
        draft->tokens[i] = is_right ? right : right == 0 ? 1 : right - 1;
        if (gb_lists_token(stop_tokens, draft->tokens[i]))
            draft->count = i;
    }
    return draft->count;
}
